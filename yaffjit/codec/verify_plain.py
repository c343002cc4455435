"""The rules of a well-formed YaFF buffer in plain Python: what the kernel must equal, and all error texts.

Whatever is accepted here can't make a reader of ours read outside the buffer. The rules:

* An offset is at most 2**31-1 and leads forward, so that there are no cycles. 0 means absent in a flat or
  fixed slot, and is an error in a sparse message and in an array.
* Presence and size bits and sparse tables lie before their message, but not below byte 4.
* A flat message reaches to the last slot that a reader of this plan looks at. Where fields have been
  removed, slots behind them are found by the sizes in the message, which must be there.
* A text has its terminator; an array its elements; a sparse value its bytes.
* Messages lie at most `MAX_DEPTH` deep in the root, which is what protobuf's parser takes; map pairs and
  array elements count.
* Writers share equal texts, scalar arrays and sparse tables within a buffer, and a message may be shared
  too. So work is limited in proportion to the buffer: a *step* is one text, array, array element or message
  (one more for each 16 fields looked at, up to 32 more; in a flat message those that lie out of line and,
  with presence bits, scalars with explicit presence). What writers make takes three steps a byte at most:
  that's for many small sparse messages of a type with hundreds of fields, which share one table.
* In a flat message with presence bits, a scalar with explicit presence whose bit is 0 has 0 in its slot: else
  some would read its value, and some that it's absent. (What lies out of line is present if its offset isn't
  0; nobody looks at its bit.)
* With ``utf8``, text is UTF-8 wherever protobuf demands it. Long texts are read once however many fields
  share them.

What makes no reader unsafe is no error: unknown ids, size codes of fields that the plan knows, presence bits
of slots that are 0, bytes of a bool other than 0 and 1 (any but 0 is true, once XORed with the
default), maps that are unsorted or name a key twice: lists of pairs may be read as maps.

Whether the keys of all maps ascend is told, though: then they may be searched by halving. It's only told if
it shows in the first `LONG_TEXT` bytes of keys that are text.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NoReturn

from yaffjit.errors import VerifyError
from yaffjit.plan.limits import MAX_DEPTH
from yaffjit.plan.model import MAX_OFFSET, SCALAR_CODE, FieldPlan, MessagePlan

STEPS_PER_BYTE = 8
# Texts of this many bytes are looked up before they are read; all of them together may have
# TEXT_BYTES_PER_BYTE times as many bytes as the buffer, which only texts that overlap can exceed.
LONG_TEXT = 256
TEXT_BYTES_PER_BYTE = 8

# Where a message can begin at the earliest, and what lies before it.
_ROOT_OFFSET = 4
_HEADER = 2
_FLAT = 0x8000
_SIZED = 2
_EXPLICIT = 1
_CODE_WIDTH = (0, 1, 4, 8)

_read_u16 = struct.Struct("<H").unpack_from
_read_u32 = struct.Struct("<I").unpack_from
_read_i32 = struct.Struct("<i").unpack_from


def verify_plain(mp: MessagePlan, data: bytes | memoryview, utf8: bool = True) -> bool:
    """Check one buffer.

    Args:
        mp: the root message's plan.
        data: the whole buffer; a memoryview must have format "B".
        utf8: also check text where protobuf does.

    Returns:
        Whether the keys of all its maps are known to ascend strictly.

    Raises:
        VerifyError: names the field path, the byte position and the two numbers compared.
    """
    check = _Check(mp, data, utf8)
    check.root()
    return check.ascending


def step_cost(field_count: int) -> int:
    """Steps of a message of which ``field_count`` fields are looked at."""
    return 1 + min(field_count >> 4, 32)


class _Check:
    """One pass over one buffer. All positions are absolute."""

    def __init__(self, mp: MessagePlan, data: bytes | memoryview, utf8: bool) -> None:
        self.mp = mp
        self.data = data
        self.nbytes = len(data)
        self.utf8 = utf8
        self.path: list[str] = []  # of the field or element that is being read, from the root
        self.steps = 0
        self.text_bytes = 0
        self.long_texts: set[int] = set()
        self.ascending = True  # the keys of all maps so far do

    def fail(self, pos: int, text: str, found: int, limit: int | None) -> NoReturn:
        path = ".".join(self.path)
        raise VerifyError(text, pos, message=self.mp.full_name, path=path, found=found, limit=limit)

    def room(self, what: str, pos: int, size: int) -> None:
        """``size`` bytes at ``pos`` are in the buffer."""
        if size > self.nbytes - pos:
            text = f"{what} of {_bytes(size)} runs past the end of the buffer ({_bytes(self.nbytes)})"
            self.fail(pos, text, size, self.nbytes)

    def step(self, count: int, pos: int) -> None:
        self.steps += count
        limit = STEPS_PER_BYTE * self.nbytes
        if self.steps > limit:
            text = f"parts are shared too often: {self.steps} steps to read it all (at most {limit})"
            self.fail(pos, text, self.steps, limit)

    def offset(self, slot: int, least: int = 1) -> int:
        """The offset in a slot."""
        offset: int = _read_u32(self.data, slot)[0]
        if offset < least:
            self.fail(slot, f"offset of {offset} (at least {least})", offset, least)
        if offset > MAX_OFFSET:
            self.fail(slot, f"offset of {offset} (at most {MAX_OFFSET})", offset, MAX_OFFSET)
        return offset

    def root(self) -> None:
        self.room("root offset", 0, _ROOT_OFFSET)
        self.message(self.mp, self.offset(0, least=_ROOT_OFFSET), 0)

    def message(self, mp: MessagePlan, at: int, depth: int) -> None:
        """The message at ``at`` and all that it reaches."""
        if depth > MAX_DEPTH:
            self.fail(at, f"message at depth {depth} (at most {MAX_DEPTH})", depth, MAX_DEPTH)
        if mp.layout == "fixed":
            self.room("fixed message", at, mp.limit)
            self.slots(mp.fields, at, at, depth)
            return
        self.room("header", at, _HEADER)
        header: int = _read_u16(self.data, at)[0]
        is_flat = header >= _FLAT
        if mp.layout == "flat" and not is_flat:
            self.fail(at, f"header 0x{header:04x} of a flat message is below 0x8000", header, _FLAT)
        if mp.layout == "sparse" and is_flat:
            self.fail(at, f"header 0x{header:04x} of a sparse message isn't below 0x8000", header, _FLAT)
        highest = max((header & ~_FLAT) >> 2, 1) - 1
        fields = tuple(f for f in mp.fields if f.id <= highest)
        if is_flat:
            self.flat(fields, at, header, highest, depth)
        else:
            self.sparse(fields, at, highest, depth)

    def flat(self, fields: tuple[FieldPlan, ...], at: int, header: int, highest: int, depth: int) -> None:
        bits = (2 if header & _SIZED else 0) + (header & _EXPLICIT)
        begin = at - (highest * bits + 7) // 8
        if begin < _ROOT_OFFSET:
            text = f"presence and size bits begin at byte {begin} (at least {_ROOT_OFFSET}): header"
            self.fail(at, text, begin, _ROOT_OFFSET)
        moved = 0  # bytes of removed fields before the last field
        if fields:
            moved = self.moved(fields[-1], at, header)
            self.room("flat message", at, _HEADER + fields[-1].offset + moved + fields[-1].width)
        optional = [f for f in fields if f.explicit and f.is_scalar] if header & _EXPLICIT else []
        self.slots(fields, at, at + _HEADER, depth, header if moved else None, optional)

    def moved(self, f: FieldPlan, at: int, header: int) -> int:
        """How many bytes removed fields take before field ``f`` in a flat message."""
        if f.holes and not header & _SIZED:
            text = f"id {f.holes[0]} was removed, but header 0x{header:04x} gives no sizes to find id {f.id}"
            self.fail(at, text, f.holes[0], f.id)
        step = 3 if header & _EXPLICIT else 2
        moved = 0
        for hole in f.holes:
            code = 0
            for i in (0, 1):
                bit = step * hole - 2 + i
                code |= (self.data[at - 1 - (bit >> 3)] >> (bit & 7) & 1) << i
            moved += _CODE_WIDTH[code]
        return moved

    def presence(self, f: FieldPlan, at: int, slot: int) -> None:
        """A scalar with explicit presence, in a flat message with presence bits, is 0 if its bit is."""
        bits = int.from_bytes(self.data[slot : slot + f.width], "little")
        step = 3 if _read_u16(self.data, at)[0] & _SIZED else 1
        bit = step * (f.id - 1)
        if bits and not self.data[at - 1 - (bit >> 3)] >> (bit & 7) & 1:
            self.path.append(f.name)
            self.fail(slot, f"absent by its presence bit, but its slot holds 0x{bits:x} (must be 0)", bits, 0)

    def slots(
        self,
        fields: tuple[FieldPlan, ...],
        at: int,
        first_slot: int,
        depth: int,
        header: int | None = None,
        optional: Sequence[FieldPlan] = (),
    ) -> None:
        """The slots of a fixed or flat message; ``header`` is given if holes move them.

        What they refer to, and those of the ``optional`` scalars, which have a presence bit.
        """
        references = [f for f in fields if f.out_of_line]
        self.step(step_cost(len(references) + len(optional)), at)
        for f in optional:
            moved = 0 if header is None else self.moved(f, at, header)
            self.presence(f, at, first_slot + f.offset + moved)
        for f in references:
            slot = first_slot + f.offset
            if header is not None:
                slot += self.moved(f, at, header)
            if _read_u32(self.data, slot)[0]:
                self.reference(f, at, slot, depth)

    def sparse(self, fields: tuple[FieldPlan, ...], at: int, highest: int, depth: int) -> None:
        self.step(step_cost(len(fields)), at)
        if not highest:
            return
        if at - 4 < _ROOT_OFFSET:
            text = f"table offset begins at byte {at - 4} (at least {_ROOT_OFFSET}): header"
            self.fail(at, text, at - 4, _ROOT_OFFSET)
        end = at + _read_i32(self.data, at - 4)[0]
        begin = end - highest - max(highest - 31, 0)
        if begin < _ROOT_OFFSET:
            text = f"table begins at byte {begin} (at least {_ROOT_OFFSET}): header"
            self.fail(at, text, begin, _ROOT_OFFSET)
        if end > self.nbytes:
            text = f"table ends at byte {end}, past the end of the buffer ({_bytes(self.nbytes)}): header"
            self.fail(at, text, end, self.nbytes)
        for f in fields:
            wide = f.id >= 32
            entry = _read_u16(self.data, end - 2 * f.id + 31)[0] if wide else self.data[end - f.id]
            if entry:
                self.path.append(f.name)
                if entry < _HEADER:
                    text = f"value is {_bytes(entry)} behind the start of the header (at least {_HEADER})"
                    self.fail(at + entry, text, entry, _HEADER)
                self.room("value", at + entry, f.width)
                self.path.pop()
                if f.out_of_line:
                    self.reference(f, at, at + entry, depth)

    def reference(self, f: FieldPlan, at: int, slot: int, depth: int) -> None:
        """What the offset in a slot leads to, from the start of the message at ``at``."""
        self.path.append(f.name)
        target = at + self.offset(slot)
        if f.repeated:
            self.array(f, target, depth)
        elif f.kind == "message":
            self.message(self.mp.child(f), target, depth + 1)
        else:
            self.text(f, target)
        self.path.pop()

    def array(self, f: FieldPlan, pos: int, depth: int) -> None:
        self.step(1, pos)
        self.room("count", pos, 4)
        count: int = _read_u32(self.data, pos)[0]
        first = pos + 4
        width = f.element_width
        if count * width > self.nbytes - first:
            of = f"array of {count} elements of {_bytes(width)}"
            text = f"{of} runs past the end of the buffer ({_bytes(self.nbytes)})"
            self.fail(pos, text, count * width, self.nbytes)
        if f.kind not in ("message", "string", "bytes"):
            return
        name = self.path[-1]
        child = self.mp.child(f) if f.message else None
        for i in range(count):
            self.path[-1] = f"{name}[{i}]"
            element = first + i * width
            if not f.inlined:
                element = first + self.offset(element)
            if child is None:
                self.text(f, element)
            else:
                self.message(child, element, depth + 1)
        if f.is_map:
            keys = [self.key(f, first + i * width) for i in range(count)]
            self.ascending &= all(map(_is_less, keys, keys[1:]))

    def key(self, f: FieldPlan, pair: int) -> int | bytes:
        """The key of a map's pair at ``pair``, which has been checked."""
        kind = self.mp.child(f).fields[0].kind
        if kind != "string":
            number: int = struct.unpack_from("<" + SCALAR_CODE[kind], self.data, pair)[0]
            return number
        offset: int = _read_u32(self.data, pair)[0]
        if not offset:
            return b""
        first = pair + offset + 4
        length: int = _read_u32(self.data, pair + offset)[0]
        return bytes(self.data[first : first + min(length, LONG_TEXT + 1)])

    def text(self, f: FieldPlan, pos: int) -> None:
        self.step(1, pos)
        self.room("length", pos, 4)
        length: int = _read_u32(self.data, pos)[0]
        first = pos + 4
        self.room("text", first, length)
        end = first + length
        self.room("terminator", end, 1)
        if self.data[end]:
            byte = self.data[end]
            self.fail(end, f"terminator of a text of {_bytes(length)} is {byte} instead of 0", byte, 0)
        if not (self.utf8 and f.utf8):
            return
        if length >= LONG_TEXT:
            if pos in self.long_texts:
                return
            self.long_texts.add(pos)
            self.text_bytes += length
            limit = TEXT_BYTES_PER_BYTE * self.nbytes
            if self.text_bytes > limit:
                text = f"texts overlap: they have {self.text_bytes} bytes (at most {limit})"
                self.fail(pos, text, self.text_bytes, limit)
        try:
            bytes(self.data[first:end]).decode()
        except UnicodeDecodeError as error:
            byte = self.data[first + error.start]
            self.fail(first + error.start, f"text isn't UTF-8: byte 0x{byte:02x}", byte, None)


def _is_less(a: Any, b: Any) -> bool:
    """Whether a key is less than another. Texts come with one byte more than may be looked at."""
    if isinstance(a, bytes) and len(a) > LONG_TEXT < len(b):
        a, b = a[:LONG_TEXT], b[:LONG_TEXT]
    less: bool = a < b
    return less


def _bytes(count: int) -> str:
    return f"{count} byte" if count == 1 else f"{count} bytes"
