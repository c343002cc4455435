"""Columns straight from protobuf bytes against google.protobuf: paths, wild wire forms, faults, functions."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import columns_spec
import numpy as np
import pytest
from google.protobuf.message import DecodeError as ProtobufError
from google.protobuf.message import Message
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st
from strategies import schemas
from vectors import TESTS
from wire_messages import Maker, varint

import yaffjit as yj
from yaffjit.kernels.map_keys import MOST_COMPARED
from yaffjit.plan.columns import presence_path

pytestmark = pytest.mark.slow

SCHEMAS = TESTS / "schemas"
PATHS_OF_ALL = [
    *(
        "id",
        "title",
        "len(title)",
        "note",
        "pick",
        "pick:category",
        "ints",
        "ints[0]",
        "ints[-2]",
    ),
    *("grades", "tags", "tags[-1]:dictionary", "len(blobs[1])", "items.price", "items.tags", "pairs.amount"),
    *(
        "items[0].part.name",
        "items[-3].tags[-2]",
    ),
    *(
        "weights",
        'weights["a"]',
        "by_id.name",
        "by_id[1].tags",
        "flags[true]",
    ),
    *("ranks:category", "one.part.tags", 'one.parts["a"].parts.amount'),
]
PATHS_OF_EVERYTHING = [
    *(
        "i32",
        "s32",
        "s64",
        "f64",
        "real",
        "flag",
        "closed",
        "text",
        "closeds",
        "closeds[-1]",
        "numbers:int64",
    ),
    *("packed[1]", "texts", "states", 'states["a"]', "len(states)", "by_number.closeds", "named"),
    *("chosen.texts", "chosen.numbers[-2]", "chosen.i32", "known", "far"),
    *(
        "children.states",
        "child.child.closed",
        "by_signed[0].real",
        "fixeds.flag",
    ),
]
DAMAGED = 300


@cache
def loaded(file: str, name: str) -> yj.MessageType:
    return yj.load_schema(SCHEMAS / file)[name]


def wire(message_type: yj.MessageType, payloads: Any) -> Any:
    return yj.records(message_type, payloads, representation="protobuf")


def parsed(message_type: yj.MessageType, payloads: list[bytes]) -> list[Message]:
    return [message_type.message_class.FromString(payload) for payload in payloads]


def wild(message_type: yj.MessageType, chance: random.Random, count: int) -> list[bytes]:
    """Messages as no serializer writes them, which protobuf accepts."""
    maker, made = Maker(chance), list[bytes]()
    while len(made) < count:
        payload = maker.message(message_type.message_class.DESCRIPTOR)
        try:
            message = message_type.message_class.FromString(payload)
        except ProtobufError:
            continue
        if not has_bytes_for_text(message):
            made.append(payload)
    return made


def has_bytes_for_text(message: Any) -> bool:
    """Whether some text that nobody checks isn't UTF-8, so that its length in characters isn't known."""
    try:
        for field, held in message.ListFields():
            each = held.items() if columns_spec.is_map_field(field) else held if field.is_repeated else [held]
            for value in each:
                of_map = columns_spec.is_map_field(field)
                one = field.message_type.fields_by_name["value"] if of_map else field
                value = value[1] if of_map else value
                is_bytes = isinstance(value, bytes) and one.type == one.TYPE_STRING
                if is_bytes or (isinstance(value, Message) and has_bytes_for_text(value)):
                    return True
    except UnicodeDecodeError:
        return True
    return False


def fields(*parts: tuple[int, Any]) -> bytes:
    """Fields by number: an int is a varint, all else is counted."""
    made = b""
    for number, value in parts:
        if isinstance(value, int):
            made += varint(number << 3) + varint(value)
        else:
            raw = value.encode() if isinstance(value, str) else value
            made += varint(number << 3 | 2) + varint(len(raw)) + raw
    return made


def check(message_type: yj.MessageType, payloads: list[bytes], paths: list[str], **options: Any) -> None:
    columns = wire(message_type, payloads).columns(*paths, **options)
    columns_spec.check(columns, parsed(message_type, payloads), paths)


@pytest.mark.parametrize(
    ("file", "name", "paths"),
    [
        ("paths.proto", "paths.All", PATHS_OF_ALL),
        ("wire.proto", "wire.Everything", PATHS_OF_EVERYTHING),
        ("codec_editions.proto", "codec_editions.Delimited", ["one.n", "many.n", "many[-1].n", "bare"]),
    ],
)
def test_wild_messages(file: str, name: str, paths: list[str]) -> None:
    message_type = loaded(file, name)

    @settings(max_examples=10)
    @given(st.randoms(use_true_random=False), st.integers(0, 12), st.booleans())
    def compare(chance: random.Random, count: int, shuffled: bool) -> None:
        payloads = wild(message_type, chance, count)
        recs = wire(message_type, (b"".join(payloads), np.cumsum([0, *map(len, payloads)])))
        if shuffled:
            order = chance.sample(range(count), count)
            recs, payloads = recs.take(order), [payloads[row] for row in order]
        columns_spec.check(recs.columns(*paths), parsed(message_type, payloads), paths)

    compare()


def test_presence() -> None:
    for file, name, paths in (
        (
            "paths.proto",
            "paths.All",
            ["pick", "one.part", "items[1].amount"],
        ),
        ("wire.proto", "wire.Everything", ["closed", "states", 'states["a"]']),
    ):
        message_type = loaded(file, name)
        payloads = wild(message_type, random.Random(5), 60)
        columns = wire(message_type, payloads).columns(paths[0])
        columns_spec.check_presence(columns, parsed(message_type, payloads), paths)
        for path in paths:
            assert presence_path(message_type.plan, path).what == "present"


# Each schema is compiled, so a failing one isn't made smaller.
@settings(max_examples=2, phases=[Phase.generate])
@given(st.data())
def test_random_schemas(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    note(f"{schema.file}")
    full_name = max(schema.roots, key=lambda name: len(schema.descriptor(name).fields))
    message_type = yj.load_schema(schema.descriptor_set.SerializeToString())[full_name]
    every = list(columns_spec.all_paths(message_type.plan, 2))
    if every:
        paths = data.draw(st.permutations(every))[:12]
        payloads, held = [], []
        for payload in wild(message_type, data.draw(st.randoms(use_true_random=False)), 30):
            (message,) = parsed(message_type, [payload])
            try:  # what views don't have isn't read either
                held.append(message_type.decode(message_type.encode(message)))
            except yj.EncodeError:
                continue
            payloads.append(payload)
        columns_spec.check(wire(message_type, payloads).columns(*paths), held, paths)


# ---- what only protobuf's bytes have ----


def test_the_last_pair_of_a_key_counts() -> None:
    message_type = loaded("paths.proto", "paths.All")

    def pair(number: int, key: Any, value: Any) -> tuple[int, bytes]:
        return number, fields((1, key), (2, value))

    tags = fields((4, "x"), (4, "yy"))
    many = [pair(20, key % 50, fields((1, f"n{key}"))) for key in range(2 * MOST_COMPARED)]
    texts = [pair(23, str(key % 40), key) for key in range(2 * MOST_COMPARED)]
    nested = fields((1, "a"), (6, fields((1, "k"), (2, tags))), (6, fields((1, "k"), (2, b""))))
    payloads = [
        fields(pair(20, 1, tags), pair(20, 2, b""), pair(20, 1, fields((4, "z"))), pair(23, "a", 1)),
        fields(*many, *texts),
        fields(pair(23, "a", 5), (23, b""), pair(23, "b", 6), pair(23, "a", 7), (23, fields((2, 9)))),
        fields((16, nested), (16, nested), pair(19, 3, "one"), pair(19, 4, "two"), pair(19, 3, "three")),
        b"",
    ]
    paths = ["by_id.tags", "by_id.name", "counts", "names", "items.parts.tags", "len(by_id)", "len(counts)"]
    check(message_type, payloads, [*paths, "len(items.parts)", "len(counts):int8"])
    with pytest.raises(OverflowError) as caught:
        wire(message_type, [b"", fields(*(pair(20, key, b"") for key in range(200)))]).columns(
            "len(by_id):int8"
        )
    assert str(caught.value) == (
        "path 'len(by_id):int8' of paths.All, row 1: 200 doesn't fit: int8 holds -128 to 127"
    )


def test_another_member_of_a_oneof_clears_lists() -> None:
    """More elements are met than count, so there's no room for them."""
    message_type = loaded("wire.proto", "wire.Everything")
    long = fields(
        *((23, "text" * 20) for _ in range(300)), *((24, fields((23, "x"), (18, 5))) for _ in range(99))
    )
    short = fields((23, "s"), (24, fields((23, "t"), (23, "u"))))
    payloads = [
        fields((30, long), (31, "named")),
        fields((30, long), (31, "named"), (30, short), (30, short)),
        fields((30, short), (30, long)),
        fields(
            (24, fields((30, long), (31, ""))), (24, fields((30, short))), (31, "n"), (30, long), (31, "m")
        ),
        fields((30, short)),
    ] * 3
    check(
        message_type,
        payloads,
        [
            *("chosen.texts", "chosen.children.texts", "chosen.children.numbers", "children.chosen.texts"),
            *("children.chosen.children.texts", "chosen.texts[-2]", "len(chosen.children)", "choice"),
        ],
    )


def test_strange_entries_leave_nothing_behind() -> None:
    """An entry with an unknown field isn't the map's, whatever was read of it before."""
    message_type = loaded("wire.proto", "wire.Everything")
    held = fields((23, "text"), (23, "more"), (24, fields((18, 5))))
    strange = fields((1, 1), (2, held), (3, 7))
    payloads = [
        fields((26, strange)),
        fields(
            (26, fields((1, 2), (2, held))), (26, strange), (26, fields((1, 1), (2, fields((23, "own")))))
        ),
        fields(
            (25, fields((1, "a"), (2, 5))), (25, fields((1, "b"), (2, 1))), (25, fields((1, "a"), (9, 1)))
        ),
    ]
    paths = ["by_number.texts", "by_number.children.numbers", "by_number[1].texts", "states", 'states["a"]']
    check(message_type, payloads, [*paths, "len(states)", "len(by_number)"])


def test_canonical_messages_are_read_to_the_last_field_that_is_needed() -> None:
    message_type = loaded("paths.proto", "paths.All")
    payloads = wild(message_type, random.Random(1), 40)
    canonical = [message.SerializeToString(deterministic=True) for message in parsed(message_type, payloads)]
    paths = ["id", "title", "one.name", "one.tags", "ints", "items.name"]
    check(message_type, canonical, paths, assume_canonical=True)
    check(message_type, canonical, paths[:4], assume_canonical=True)
    # What comes behind isn't looked at, and a later value isn't found.
    cut = fields((1, 7), (2, "first"), (5, fields((1, "one"), (4, "t"), (6, b"\xff"))), (17, b"\xff"), (1, 8))
    columns = wire(message_type, [cut]).columns(*paths[:4], assume_canonical=True)
    assert (columns["id"].tolist(), list(columns["title"])) == ([7], ["first"])
    assert wire(message_type, [cut]).columns("id")["id"].tolist() == [8]


# ---- bytes that protobuf refuses ----


def test_faults_name_row_field_and_position() -> None:
    message_type = loaded("paths.proto", "paths.All")
    good = fields((1, 5), (16, fields((1, "a"), (4, "t"))))
    cases: list[tuple[bytes, str, str]] = [
        (
            b"\x08",
            "id",
            "paths.All, field id: a varint doesn't end within the 0 bytes that are left at byte 1",
        ),
        (
            fields((1, 5)) + b"\x12\x05ab",
            "id",
            "paths.All, field title: a size of 5 bytes, but 2 are left at byte 3",
        ),
        (
            fields((16, fields((1, "a")) + b"\x22\x09x")),
            "items.tags",
            "paths.All, field items[0].tags[0]: a size of 9 bytes, but 1 are left at byte 7",
        ),
        (
            fields((11, b"1234567")),
            "doubles[0]",
            "paths.All, field doubles: 7 packed bytes, which isn't a whole number of 8 at byte 2",
        ),
    ]
    for bad, path, _ in cases:
        recs = wire(message_type, [good, good, bad, bad])
        for selection, row in ((recs, 2), (recs[1:], 1), (recs.take([3, 0]), 0)):
            with pytest.raises(yj.VerifyError) as caught:
                selection.columns(path)
            with pytest.raises(yj.VerifyError) as expected:
                message_type.verify_protobuf(bad)
            assert str(caught.value) == f"row {row}: {expected.value}"
            assert (caught.value.row, caught.value.position) == (row, expected.value.position)
    for bad, path, sentence in cases[:3]:
        with pytest.raises(yj.VerifyError) as caught:
            wire(message_type, [bad]).columns(path)
        assert str(caught.value) == f"row 0: {sentence}"


def test_values_that_do_not_fit() -> None:
    message_type = loaded("paths.proto", "paths.All")
    recs = wire(message_type, [fields((1, 5)), fields((1, 300), (8, 2**31 - 1))])
    for path, sentence in (
        ("id:int8", "path 'id:int8' of paths.All, row 1: 300 doesn't fit: int8 holds -128 to 127"),
        (
            "ints:int16",
            "path 'ints:int16' of paths.All, row 1: 2147483647 doesn't fit: int16 holds -32768 to 32767",
        ),
    ):
        with pytest.raises(OverflowError) as caught:
            recs.columns(path)
        assert str(caught.value) == sentence
    unchecked = loaded("codec2.proto", "codec2.Closed")
    texts = wire(unchecked, [fields((6, b"\xff"))])
    assert texts.columns("text")["text"].data.tolist() == [255]
    with pytest.raises(UnicodeDecodeError, match=r"path 'len\(text\)' of codec2.Closed, row 0"):
        texts.columns("len(text)")


def test_damaged_messages() -> None:
    """What protobuf accepts reads as it does; what is refused is what it refuses."""
    message_type = loaded("wire.proto", "wire.Everything")
    chance = random.Random(11)
    maker = Maker(chance)
    refused = 0
    for payload in wild(message_type, chance, DAMAGED):
        bad = maker.damaged(payload)
        try:
            held = [message_type.message_class.FromString(bad)]
        except ProtobufError:
            held = []
        recs = wire(message_type, [payload, bad])
        try:
            columns = recs[1:].columns(*PATHS_OF_EVERYTHING)
        except yj.VerifyError as error:
            assert not held, bad.hex()
            assert error.row == 0
            refused += 1
        except OverflowError:
            continue
        else:
            if held and not has_bytes_for_text(held[0]):
                columns_spec.check(columns, held, PATHS_OF_EVERYTHING)
    assert DAMAGED // 4 < refused < DAMAGED


# ---- functions ----


def test_functions_read_both_representations() -> None:
    message_type = loaded("paths.proto", "paths.All")
    payloads = [fields((1, row), (2, f"t{row}"), (14, "a"), (16, fields((2, b"")))) for row in range(50)]
    both = [wire(message_type, payloads), message_type.transcode(payloads)]

    def score(message: Any, more: int) -> Any:
        if message.id % 7 == 0:
            return None
        return message.id * 2 + len(message.title) + more if "a" in message.tags else 0

    first, second = (recs.map(score, args=(3,)) for recs in both)
    assert (first == second).all() and first.mask.tolist() == second.mask.tolist()
    assert first.tolist() == [None if row % 7 == 0 else 2 * row + len(f"t{row}") + 3 for row in range(50)]
    kept, same = (recs.filter(lambda message: message.id % 3 == 1) for recs in both)
    assert kept.representation == "protobuf"
    assert [view.id for view in kept] == [view.id for view in same] == list(range(1, 50, 3))
    feature = yj.feature(score)
    assert feature(both[0][8], 3) == feature(both[1][8], 3) == feature(both[0], 3)[8]
    bad = wire(message_type, [*payloads[:9], b"\x12\x05ab"])
    for jit in (True, False):
        with pytest.raises(yj.VerifyError) as caught:
            bad.map(score, args=(3,), jit=jit)
        assert caught.value.row == 9
        assert str(caught.value) == (
            "row 9: paths.All, field title: a size of 5 bytes, but 2 are left at byte 1"
        )
