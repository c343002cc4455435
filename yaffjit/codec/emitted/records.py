"""The records of a wire table as values: what code is emitted from."""

from __future__ import annotations

from dataclasses import dataclass

from yaffjit.plan import wire_tables as tables
from yaffjit.plan.wire_tables import WireTable, Words

_WIRE_TYPES = range(6)
_FIRST_KNOWN = tables.VARINT64  # operations from here on read the field, the others skip it


@dataclass(frozen=True, slots=True)
class WireField:
    """A declared field or extension; ``ops`` are the operations of the wire types that it's read by."""

    number: int
    ops: dict[int, int]
    child: int  # row of its message type
    enum: tuple[int, ...]  # numbers of a closed enum
    live: int  # index among live fields; -1 if YaFF doesn't carry it
    oneof: int  # index of its oneof, -1 if it's in none


@dataclass(frozen=True, slots=True)
class LiveField:
    """A field that YaFF carries; the names are those of the table's words."""

    kind: int
    id: int
    offset: int
    width: int
    default: int
    explicit: bool
    float_width: int
    element_width: int
    child: int  # row of its message type
    op: int
    enum: tuple[int, ...]
    checked: bool
    key: int
    key_checked: bool


@dataclass(frozen=True, slots=True)
class Message:
    row: int
    is_entry: bool
    layout: int
    limit: int
    has_explicit: bool
    wire: tuple[WireField, ...]  # by number
    live: tuple[LiveField, ...]  # by id
    oneofs: int
    plain_bits: int  # metadata of all ids, without presence; and bits of it an id
    plain_stride: int
    presence_bits: int
    presence_stride: int


def messages_of(table: WireTable) -> list[Message]:
    """All messages of a table by their row."""
    words = table.words
    return [_message(words, row) for row in range(len(table.names))]


def _message(words: Words, row: int) -> Message:
    record = words[tables.MESSAGE_WORDS * row :][: tables.MESSAGE_WORDS].tolist()
    count = record[tables.LIVE_COUNT]
    live = tuple(_live(words, record[tables.LIVE] // 8 + tables.LIVE_WORDS * index) for index in range(count))
    slots_nbytes = tables.SLOT_NBYTES * count
    highest = live[-1].id if live else 0
    bits = {}
    for place, stride in (
        (tables.PLAIN_BITS, tables.PLAIN_STRIDE),
        (tables.PRESENCE_BITS, tables.PRESENCE_STRIDE),
    ):
        end = record[place] // 8
        nwords = (record[stride] * highest + 63) // 64
        bits[place] = int.from_bytes(words[end - nwords : end].tobytes(), "big")
    return Message(
        row=row,
        is_entry=bool(record[tables.IS_ENTRY]),
        layout=record[tables.LAYOUT],
        limit=record[tables.LIMIT],
        has_explicit=bool(record[tables.HAS_EXPLICIT]),
        wire=tuple(_wire(words, place, slots_nbytes) for place in _places(words, record)),
        live=live,
        oneofs=max(0, record[tables.SLOTS_NBYTES] - slots_nbytes) // 8,
        plain_bits=bits[tables.PLAIN_BITS],
        plain_stride=record[tables.PLAIN_STRIDE],
        presence_bits=bits[tables.PRESENCE_BITS],
        presence_stride=record[tables.PRESENCE_STRIDE],
    )


def _places(words: Words, record: list[int]) -> list[int]:
    """Where the records of the fields are, as indexes of words, by number."""
    dense = record[tables.DENSE] // 8
    places = words[dense : dense + record[tables.DENSE_COUNT]].tolist()
    far = record[tables.FAR] // 8
    places += words[far + 1 : far + 2 * record[tables.FAR_COUNT] : 2].tolist()
    return [place // 8 for place in places if place != record[tables.UNKNOWN]]


def _wire(words: Words, place: int, slots_nbytes: int) -> WireField:
    record = words[place : place + tables.FIELD_WORDS].tolist()
    ops = {wire_type: record[tables.OPS] >> 8 * wire_type & 255 for wire_type in _WIRE_TYPES}
    slot, case = record[tables.SLOT], record[tables.CASE]
    return WireField(
        number=record[tables.NUMBER],
        ops={wire_type: op for wire_type, op in ops.items() if op >= _FIRST_KNOWN},
        child=record[tables.MESSAGE] // (8 * tables.MESSAGE_WORDS),
        enum=_enum(words, record[tables.ENUM]),
        live=slot // tables.SLOT_NBYTES if slot >= 0 else -1,
        oneof=(case - slots_nbytes) // 8 if case >= 0 else -1,
    )


def _live(words: Words, place: int) -> LiveField:
    record = words[place : place + tables.LIVE_WORDS].tolist()
    return LiveField(
        kind=record[tables.KIND],
        id=record[tables.ID],
        offset=record[tables.OFFSET],
        width=record[tables.WIDTH],
        default=record[tables.DEFAULT],
        explicit=bool(record[tables.EXPLICIT]),
        float_width=record[tables.FLOAT_WIDTH],
        element_width=record[tables.ELEMENT_WIDTH],
        child=record[tables.CHILD] // (8 * tables.MESSAGE_WORDS),
        op=record[tables.OP],
        enum=_enum(words, record[tables.LIVE_ENUM]),
        checked=bool(record[tables.CHECKED]),
        key=record[tables.KEY],
        key_checked=bool(record[tables.KEY_CHECKED]),
    )


def _enum(words: Words, place: int) -> tuple[int, ...]:
    if not place:
        return ()
    count = int(words[place // 8])
    return tuple(words[place // 8 + 1 : place // 8 + 1 + count].tolist())
