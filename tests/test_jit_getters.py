"""One plain function reads a protobuf message, a view and a view in jitted code, with equal results."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jit_kinds
import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

import yaffjit
from yaffjit.errors import CompileError, SchemaError
from yaffjit.jit import getter, presence

GOLDEN = Path(__file__).parent / "schemas" / "golden"


def plain_values(m: Any) -> Any:
    return (
        m.plain_double,
        m.plain_float,
        m.plain_int32,
        m.plain_int64,
        m.plain_uint32,
        m.plain_uint64,
        m.plain_sint32,
        m.plain_sint64,
        m.plain_fixed32,
        m.plain_fixed64,
        m.plain_sfixed32,
        m.plain_sfixed64,
        m.plain_bool,
        m.plain_color,
    )


def maybe_values(m: Any) -> Any:
    return (
        m.maybe_double,
        m.maybe_float,
        m.maybe_int32,
        m.maybe_int64,
        m.maybe_uint32,
        m.maybe_uint64,
        m.maybe_sint32,
        m.maybe_sint64,
        m.maybe_fixed32,
        m.maybe_fixed64,
        m.maybe_sfixed32,
        m.maybe_sfixed64,
        m.maybe_bool,
        m.maybe_color,
    )


def presences(m: Any) -> Any:
    return (
        m.HasField("maybe_double"),
        m.HasField("maybe_float"),
        m.HasField("maybe_int32"),
        m.HasField("maybe_int64"),
        m.HasField("maybe_uint32"),
        m.HasField("maybe_uint64"),
        m.HasField("maybe_sint32"),
        m.HasField("maybe_sint64"),
        m.HasField("maybe_fixed32"),
        m.HasField("maybe_fixed64"),
        m.HasField("maybe_sfixed32"),
        m.HasField("maybe_sfixed64"),
        m.HasField("maybe_bool"),
        m.HasField("maybe_color"),
        m.HasField("child"),
    )


def nested(m: Any) -> Any:
    child = m.child
    return (
        child.plain_int32,
        child.maybe_uint64,
        child.HasField("maybe_uint64"),
        child.HasField("child"),
        child.child.HasField("child"),
        m.child.child.child.child.plain_float,
        m.child.child.child.maybe_color,
    )


def everything(m: Any) -> Any:
    return plain_values(m), maybe_values(m), presences(m), nested(m)


jitted_plain = numba.njit(plain_values)
jitted_maybe = numba.njit(maybe_values)
jitted_presences = numba.njit(presences)
jitted_nested = numba.njit(nested)


@numba.njit
def jitted_everything(m):
    return jitted_plain(m), jitted_maybe(m), jitted_presences(m), jitted_nested(m)


@pytest.mark.parametrize("layout", jit_kinds.LAYOUTS)
def test_every_kind_and_presence_in_every_layout(layout: str) -> None:
    message_type = jit_kinds.message_type(layout)
    written = ("flat", "sparse") if layout == "dynamic" else ("flat",)
    for name, content in jit_kinds.contents(layout).items():
        message = message_type.message_class(**content)
        expected = everything(message)
        for form in written:
            view = message_type.view(message_type.encode(message, form))
            assert everything(view) == expected, (name, form)
            result = jitted_everything(view)
            assert result == expected, (name, form)
            assert types_of(result) == types_of(expected), (name, form)


def types_of(values: Any) -> Any:
    return tuple(map(types_of, values)) if isinstance(values, tuple) else type(values)


@numba.njit
def nan_and_zero(m):
    return m.plain_float, m.maybe_double, m.HasField("maybe_double"), math.copysign(1.0, m.maybe_float)


@pytest.mark.parametrize("layout", ["flat", "sparse", "dynamic"])
def test_nan_and_negative_zero_keep_their_bits(layout: str) -> None:
    message_type = jit_kinds.message_type(layout)
    content = {"plain_float": math.nan, "maybe_double": -0.0, "maybe_float": -0.0}
    view = message_type.view(message_type.encode(content))
    nan, zero, present, sign = nan_and_zero(view)
    assert math.isnan(nan)
    assert math.copysign(1.0, zero) == sign == -1.0
    assert present


def test_enum_default_that_the_bytes_spell_otherwise() -> None:
    """A closed enum without a zero: absent reads as protobuf's default, though the slot's default is 0."""
    source = """
        syntax = "proto2"; package closed;
        enum Level { LOW = 3; HIGH = 5; }
        message M { 
            optional Level level = 1; optional int32 n = 3; optional float third = 2 [default = 0.333333343];
        }
    """
    message_type = one_message(source, "closed.M")
    read = numba.njit(lambda m: (m.level, m.HasField("level"), m.third, m.HasField("third"), m.n))
    for content in ({}, {"n": 1}, {"level": 5}, {"level": 3, "n": 2}, {"third": 0.5}, {"third": 0.333333343}):
        message = message_type.message_class(**content)
        for form in ("flat", "sparse"):
            view = message_type.view(message_type.encode(message, form))
            assert read(view) == read.py_func(message) == read.py_func(view), (content, form)


def one_message(source: str, full_name: str) -> yaffjit.MessageType:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "one.proto"
        path.write_text(source)
        return yaffjit.load_schema(path)[full_name]


def test_names_of_fields_that_python_or_views_use_too() -> None:
    source = """
        syntax = "proto3"; package names;
        message M { int32 HasField = 1; int32 class = 2; int32 len = 3; optional int32 WhichOneof = 4; }
    """
    message_type = one_message(source, "names.M")
    content = {"HasField": 1, "class": 2, "len": 3, "WhichOneof": 4}
    view = message_type.view(message_type.encode(content))
    read = numba.njit(lambda m: (m.HasField, getattr(m, "class"), m.len, m.WhichOneof))
    message = message_type.message_class(**content)
    assert read(view) == read.py_func(view) == read.py_func(message) == (1, 2, 3, 4)


# Views in and out


def test_a_view_that_comes_out_is_the_same_message() -> None:
    message_type = jit_kinds.message_type("dynamic")
    view = message_type.view(message_type.encode({"child": {"plain_int32": 4}}))
    child = numba.njit(lambda m: m.child)(view)
    assert type(child) is type(view)
    assert child == view.child
    assert child.plain_int32 == 4
    assert child._data_ is view._data_


@pytest.mark.parametrize("layout", jit_kinds.LAYOUTS)
def test_an_absent_message_comes_out_as_the_default_instance(layout: str) -> None:
    message_type = jit_kinds.message_type(layout)
    view = message_type.view(message_type.encode({}))
    absent = numba.njit(lambda m: m.child)(view)
    assert absent == view.child
    assert not absent.ListFields()
    read = numba.njit(lambda m: (m.maybe_int32, m.HasField("maybe_int32"), m.child.plain_int32))
    assert read(absent) == (0, False, 0)
    assert read(view.child) == (0, False, 0)


def test_views_of_equal_schemas_share_one_compilation_and_keep_their_class() -> None:
    first = yaffjit.load_schema(GOLDEN / "hier.proto")["golden.hier.Root"]
    second = yaffjit.load_schema(GOLDEN / "hier.proto")["golden.hier.Root"]
    assert first.numba_type is second.numba_type
    mid = numba.njit(lambda m: m.mid)
    for message_type in (first, second):
        view = message_type.view(message_type.encode({"mid": {"m1": 3}}))
        assert type(mid(view)) is type(view.mid)
    assert len(mid.signatures) == 1


def test_views_in_tuples_lists_and_conditions() -> None:
    message_type = jit_kinds.message_type("dynamic")
    views = [message_type.view(message_type.encode({"plain_int32": n})) for n in (3, 8, 5)]

    @numba.njit
    def best(a, b, c):
        found = None
        for m in (a, b, c):
            if found is None or m.plain_int32 > found.plain_int32:
                found = m
        return found

    @numba.njit
    def either(a, b, first):
        m = a if first else b
        return m.plain_int32, True if m else False  # noqa: SIM210

    @numba.njit
    def gathered(pair):
        return [m for m in pair if m.plain_int32 > 3]

    assert best(*views).plain_int32 == 8
    assert either(views[0], views[1], False) == (8, True)
    assert [m.plain_int32 for m in gathered((views[0], views[1]))] == [8]


def test_the_bytes_outlive_the_names_that_a_view_came_by() -> None:
    message_type = jit_kinds.message_type("dynamic")
    view = message_type.view(message_type.encode({"child": {"plain_int32": 4, "plain_double": 0.5}}))
    child = numba.njit(lambda m: m.child)(view)
    del view
    assert child.plain_int32 == 4
    assert numba.njit(lambda m: m.plain_double)(child) == 0.5


def test_an_exported_buffer_cannot_move() -> None:
    from yaffjit.view.owner import Owner

    data = bytearray(b"abc")
    owner = Owner(memoryview(data).toreadonly())
    with pytest.raises(BufferError):
        data.append(1)
    address, _ = struct.unpack("QQ", owner.handle)
    assert (address, owner.nbytes) == (owner.address, 3)
    del owner
    data.append(1)


# Errors at compile time


def refused(function: Any, *args: Any) -> str:
    """The sentence of a compile error, with the place."""
    with pytest.raises(CompileError) as caught:
        numba.njit(function)(*args)
    return str(caught.value)


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda m: m.plain_int3, "kinds.Dynamic has no field 'plain_int3' (did you mean 'plain_int32'"),
        (lambda m: m.HasField("plain_int32"), "Field kinds.Dynamic.plain_int32 does not have presence."),
        (lambda m: m.HasField("many"), "Field kinds.Dynamic.many does not have presence."),
        (
            lambda m: m.HasField("chidl"),
            "Protocol message Dynamic has no \"chidl\" field (did you mean 'child'?).",
        ),
        (lambda m: m.WhichOneof("child"), "Expected a oneof name, but got field name child."),
        (
            lambda m: m.WhichOneof("pik"),
            "Protocol message Dynamic has no \"pik\" field (did you mean 'pick'?).",
        ),
        (lambda m: m.HasField(), "HasField() takes one name"),
    ],
)
def test_wrong_names_are_compile_errors(function: Any, sentence: str) -> None:
    message_type = jit_kinds.message_type("dynamic")
    assert sentence in refused(function, message_type.view(message_type.encode({})))


def test_a_name_must_be_written_in_the_code() -> None:
    message_type = jit_kinds.message_type("dynamic")
    view = message_type.view(message_type.encode({}))
    sentence = "HasField() takes a name that is written in the code, not str"
    assert sentence in refused(lambda m, name: m.HasField(name), view, "child")


def test_a_field_that_yaff_does_not_carry_says_why() -> None:
    source = """
        syntax = "proto3"; package lost;
        message M { int32 kept = 1; optional int32 old = 2 [deprecated = true]; }
    """
    message_type = one_message(source, "lost.M")
    view = message_type.view(message_type.encode({}))
    sentence = "YaFF doesn't carry field lost.M.old: deprecated"
    assert sentence in refused(lambda m: m.old, view)
    assert sentence in refused(lambda m: m.HasField("old"), view)


# Getters over one's own arrays


def test_getter_reads_from_python_and_in_jitted_code() -> None:
    message_type = jit_kinds.message_type("dynamic")
    buffers = [
        message_type.encode({"child": {"plain_float": i / 2, "maybe_uint64": 2**63 + i}}, form)
        for i, form in enumerate(["flat", "sparse", "flat"])
    ] + [message_type.encode({})]
    data = np.frombuffer(b"".join(buffers), np.uint8)
    starts = np.cumsum([0] + [len(buffer) for buffer in buffers])[:-1]
    get_float = message_type.getter("child.plain_float")
    get_uint64 = message_type.getter("child.maybe_uint64")
    has_uint64 = message_type.presence("child.maybe_uint64")
    assert [get_float(data, pos) for pos in starts] == [0.0, 0.5, 1.0, 0.0]
    assert [get_uint64(data, pos) for pos in starts] == [2**63, 2**63 + 1, 2**63 + 2, 0]
    assert [has_uint64(data, pos) for pos in starts] == [True, True, True, False]
    assert get_uint64(buffers[2], 0) == 2**63 + 2

    @numba.njit
    def total(data, starts):
        found = 0.0
        for pos in starts:
            if has_uint64(data, pos):
                found += get_float(data, pos)
        return found

    assert total(data, starts) == 1.5


def test_getter_sees_bytes_that_its_caller_has_just_written() -> None:
    message_type = jit_kinds.message_type("flat")
    buffer = bytearray(message_type.encode({"plain_double": 0.5}))
    data = np.frombuffer(buffer, np.uint8)
    at = buffer.index(struct.pack("<d", 0.5))
    get = message_type.getter("plain_double")

    @numba.njit
    def change(data, at, new):
        before = get(data, 0)
        for i in range(8):
            data[at + i] = new[i]
        return before, get(data, 0)

    assert change(data, at, np.frombuffer(struct.pack("<d", 2.5), np.uint8)) == (0.5, 2.5)


def test_getters_are_made_once() -> None:
    plan = jit_kinds.message_type("flat").plan
    assert getter(plan, "plain_int32") is getter(plan, "plain_int32")
    assert presence(plan, "child") is not getter(plan, "plain_int32")


def test_getters_have_a_name_and_say_what_they_read(all_type: yaffjit.MessageType) -> None:
    found = all_type.getter('one.parts["\u00e9 x"].amount'), all_type.presence("items[-1]")
    assert [f.__name__ for f in found] == ["get_one_parts_x_amount", "has_items_1"]
    assert [f.__doc__ for f in found] == [
        '``(data: uint8[:], pos: int) -> one.parts["\u00e9 x"].amount`` of the paths.All '
        "whose buffer starts at ``pos``.",
        "``(data: uint8[:], pos: int) -> bool``: whether the paths.All whose buffer starts at ``pos`` "
        "has items[-1].",
    ]
    has = found[1]
    assert numba.njit(lambda data: has(data, 0))(all_type.encode({})) is False


def test_getter_refuses_the_bytes_of_another_format() -> None:
    message_type = jit_kinds.message_type("flat")
    get = message_type.getter("plain_int32")
    buf = message_type.encode({"plain_int32": 7})
    assert get(buf, 0) == 7
    protobuf = message_type.message_class(plain_int32=7).SerializeToString() + bytes(8)
    for data in (protobuf, bytes(8), b"\3\0\0\0" + buf[4:], len(buf).to_bytes(4, "little") + buf[4:]):
        with pytest.raises(yaffjit.VerifyError) as raised:
            get(data, 0)
        assert str(raised.value) == "the root offset at pos leads out of the data: there is no YaFF buffer"


@pytest.mark.parametrize("pos", [-1, 10_000])
def test_getter_refuses_a_pos_outside_the_data(pos: int) -> None:
    message_type = jit_kinds.message_type("flat")
    get = message_type.getter("plain_int32")
    with pytest.raises(IndexError, match="pos isn't within the data"):
        get(message_type.encode({}), pos)


def test_getter_takes_contiguous_bytes() -> None:
    get = jit_kinds.message_type("flat").getter("plain_int32")
    with pytest.raises(CompileError, match="a getter takes a contiguous array of uint8, not array"):
        get(np.zeros(100, np.uint8)[::2], 0)


PATHS = Path(__file__).parent / "schemas" / "paths.proto"
CONTENT = {
    "id": -7,
    "title": "Ärger 日本 😀",
    "raw": b"\x00\xff",
    "note": "",
    "one": {"name": "one", "amount": 0, "tags": ["a", "", "ä", "😀"], "part": {"price": 0.5}},
    "word": "chosen",
    "ints": [1, -2, 2**31 - 1],
    "ids": [2**64 - 1, 2**60 + 1],
    "floats": [0.1, -1.5],
    "doubles": [0.1],
    "bools": [True, False, True],
    "grades": [3, 0, 9],
    "tags": ["plain", "日本", ""],
    "blobs": [b"", b"\x00b"],
    "items": [
        {"name": "first", "price": 2.5, "parts": {"x": {"name": "deep", "tags": ["t"]}}},
        {"amount": 4},
    ],
    "pairs": [{"name": "é", "amount": 1}, {"amount": -5}],
    "weights": {"size": 1.25, "": -0.5, 'a"]': 3.0} | {f"k{i}": float(i) for i in range(60)},
    "names": {-5: "minus", 0: "", 2**31 - 1: "many"},
    "by_id": {2**64 - 1: {"name": "last", "part": {"name": "inner"}}, 5: {}},
    "flags": {True: b"yes"},
    "ranks": {-(2**63): 3, 1: 9},
    "counts": {"c": 2**63 + 5},
}
# Paths, with what protobuf's message has there.
VALUES: list[tuple[str, Any]] = [
    ("id", lambda m: m.id),
    ("title", lambda m: m.title),
    ("raw", lambda m: m.raw),
    ("note", lambda m: m.note),
    ("word", lambda m: m.word),
    ("number", lambda m: m.number),
    ("one.name", lambda m: m.one.name),
    ("one.part.part.name", lambda m: m.one.part.part.name),
    ("one.part.price", lambda m: m.one.part.price),
    ("one.tags", lambda m: list(m.one.tags)),
    ("one.part.tags", lambda m: list(m.one.part.tags)),
    ("ints", lambda m: np.array(m.ints, np.int32)),
    ("ids", lambda m: np.array(m.ids, np.uint64)),
    ("floats", lambda m: np.array(m.floats, np.float32)),
    ("doubles", lambda m: np.array(m.doubles, np.float64)),
    ("bools", lambda m: np.array(m.bools, np.bool_)),
    ("grades", lambda m: np.array(m.grades, np.int32)),
    ("tags", lambda m: list(m.tags)),
    ("blobs", lambda m: list(m.blobs)),
    ("ints[-1]", lambda m: m.ints[-1]),
    ("ids[0]", lambda m: m.ids[0]),
    ("floats[0]", lambda m: m.floats[0]),
    ("bools[1]", lambda m: m.bools[1]),
    ("grades[2]", lambda m: m.grades[2]),
    ("tags[-2]", lambda m: m.tags[-2]),
    ("blobs[1]", lambda m: m.blobs[1]),
    ("items[0].price", lambda m: m.items[0].price),
    ("items[-2].name", lambda m: m.items[-2].name),
    ("items[1].amount", lambda m: m.items[1].amount),
    ("items[0].parts['x'].tags[0]", lambda m: m.items[0].parts["x"].tags[0]),
    ("items[0].parts['y'].name", lambda m: m.items[0].parts["y"].name),
    ("pairs[0].name", lambda m: m.pairs[0].name),
    ("pairs[-1].amount", lambda m: m.pairs[-1].amount),
    ('weights["size"]', lambda m: m.weights["size"]),
    ("weights['']", lambda m: m.weights[""]),
    ("weights['a\"]']", lambda m: m.weights['a"]']),
    ("weights['k59']", lambda m: m.weights["k59"]),
    ("weights['k']", lambda m: m.weights["k"]),
    ("names[-5]", lambda m: m.names[-5]),
    ("names[2147483647]", lambda m: m.names[2**31 - 1]),
    ("names[7]", lambda m: m.names[7]),
    ("by_id[18446744073709551615].part.name", lambda m: m.by_id[2**64 - 1].part.name),
    ("by_id[6].price", lambda m: m.by_id[6].price),
    ("flags[true]", lambda m: m.flags[True]),
    ("flags[false]", lambda m: m.flags[False]),
    ("ranks[-9223372036854775808]", lambda m: m.ranks[-(2**63)]),
    ("ranks[2]", lambda m: m.ranks[2]),
    ("counts['c']", lambda m: m.counts["c"]),
]
PRESENCES: list[tuple[str, bool]] = [
    ("note", True),
    ("one", True),
    ("one.amount", True),
    ("one.part.amount", False),
    ("one.part.part", False),
    ("word", True),
    ("number", False),
    ("items[1]", True),
    ("items[2]", False),
    ("items[-2]", True),
    ("items[-3]", False),
    ("items[1].amount", True),
    ("items[0].amount", False),
    ("items[5].amount", False),
    ("items[0].parts['x']", True),
    ("items[0].parts['z']", False),
    ("items[9].parts['x']", False),
    ("pairs[1]", True),
    ("pairs[2]", False),
    ("tags[2]", True),
    ("one.part.tags[0]", False),
    ("weights['size']", True),
    ("weights['k']", False),
    ("names[0]", True),
    ("names[1]", False),
    ("by_id[5].part", False),
    ("by_id[18446744073709551615].part", True),
    ("by_id[7].part", False),
    ("flags[false]", False),
    ("ranks[1]", True),
]


@pytest.fixture(scope="module")
def all_type() -> yaffjit.MessageType:
    return yaffjit.load_schema(PATHS)["paths.All"]


def assert_same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        assert found.tolist() == expected.tolist()
        assert found.flags.writeable and found.flags.aligned
    else:
        assert found == expected


@pytest.mark.parametrize(("path", "expect"), VALUES, ids=[path for path, _ in VALUES])
def test_value_of_every_sort_of_path(all_type: yaffjit.MessageType, path: str, expect: Any) -> None:
    get = all_type.getter(path)
    message = all_type.message_class(**CONTENT)
    for form in ("flat", "sparse"):
        data = np.frombuffer(b"xyz" + all_type.encode(message, form), np.uint8)
        assert_same(get(data, 3), expect(message))
    empty = np.frombuffer(all_type.encode({}), np.uint8)
    try:
        expected = expect(all_type.message_class())
    except IndexError:
        named = r"^list index out of range: \w+\[-?\d+\] of 0 elements$"
        with pytest.raises(IndexError, match=named):
            get(empty, 0)
    else:
        assert_same(get(empty, 0), expected)


@pytest.mark.parametrize(("path", "expected"), PRESENCES)
def test_presence_of_every_sort_of_path(all_type: yaffjit.MessageType, path: str, expected: bool) -> None:
    has = all_type.presence(path)
    for form in ("flat", "sparse"):
        assert has(np.frombuffer(all_type.encode(CONTENT, form), np.uint8), 0) is expected
    assert has(np.frombuffer(all_type.encode({}), np.uint8), 0) is False


def test_what_comes_out_is_a_copy(all_type: yaffjit.MessageType) -> None:
    """The bytes change and die; what was read before stays as it was, what is read after is new."""
    get_title, get_raw = all_type.getter("title"), all_type.getter("raw")
    get_ints, get_tags = all_type.getter("ints"), all_type.getter("tags")
    get_weight = all_type.getter("weights['k']")
    has_weight = all_type.presence("weights['j']")

    def content(n: int) -> dict[str, Any]:
        letter = "abc"[n]
        return {
            "title": letter,
            "raw": letter.encode(),
            "ints": [n],
            "tags": [letter],
            "weights": {"ikj"[n]: 7.0},
        }

    first, second, third = (np.frombuffer(all_type.encode(content(n)), np.uint8) for n in range(3))

    @numba.njit
    def read(data):
        ints = get_ints(data, 0)
        weight = get_weight(data, 0), has_weight(data, 0)
        return get_title(data, 0), get_raw(data, 0), ints[0], ints, get_tags(data, 0), weight

    @numba.njit
    def change(first, second, third):
        data = first.copy()
        before = read(data)
        data[:] = second
        between = read(data)
        data[:] = third
        return before, between, read(data)

    results = change(first, second, third)
    ints = [result[3].tolist() for result in results]
    assert ints == [[0], [1], [2]]
    assert [(*result[:3], *result[4:]) for result in results] == [
        ("a", b"a", 0, ["a"], (0.0, False)),
        ("b", b"b", 1, ["b"], (7.0, False)),
        ("c", b"c", 2, ["c"], (0.0, True)),
    ]


def test_getters_in_prange_and_of_memory_maps(all_type: yaffjit.MessageType, tmp_path: Path) -> None:
    buffers = [all_type.encode({"title": "x" * n, "ints": list(range(n))}) for n in range(50)]
    offsets = np.cumsum([0, *map(len, buffers)])
    (tmp_path / "data").write_bytes(b"".join(buffers))
    data = np.memmap(tmp_path / "data", np.uint8, "r")
    get_title, get_ints = all_type.getter("title"), all_type.getter("ints")
    has_fifth = all_type.presence("ints[4]")

    @numba.njit(parallel=True)
    def read(data, offsets):
        found = np.zeros(len(offsets) - 1, np.int64)
        for i in numba.prange(len(offsets) - 1):
            pos = offsets[i]
            found[i] = len(get_title(data, pos)) + get_ints(data, pos).sum() + has_fifth(data, pos)
        return found

    assert read(data, offsets).tolist() == [n + sum(range(n)) + (n >= 5) for n in range(50)]
    assert get_title(data, offsets[7]) == "x" * 7


def test_copies_are_freed(all_type: yaffjit.MessageType) -> None:
    data = np.frombuffer(all_type.encode(CONTENT), np.uint8)
    getters = [all_type.getter(path) for path in ("title", "raw", "ints", "tags", "blobs", "flags[true]")]
    for get in getters:
        get(data, 0)
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        for get in getters:
            for _ in range(10):
                get(data, 0)
        after = rtsys.get_allocation_stats()
    finally:
        _nrt_python.memsys_disable_stats()
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free >= 60
    assert after.alloc - before.alloc == after.free - before.free


def test_a_position_from_a_message(all_type: yaffjit.MessageType) -> None:
    """Offsets are often uint64; one that is no position is outside."""
    get_id = all_type.getter("id")
    view = all_type.view(all_type.encode({"ids": [3, 2**63 + 3, 2**64 - 1]}))
    data = b"xyz" + all_type.encode({"id": 5})
    read = numba.njit(lambda data, m, i: get_id(data, m.ids[i]))
    assert read(data, view, 0) == 5
    for i in (1, 2):
        with pytest.raises(IndexError, match="pos isn't within the data"):
            read(data, view, i)
    with pytest.raises(CompileError, match="pos is an integer, not float64"):
        get_id(data, 3.0)


def test_text_that_is_not_utf8_raises(all_type: yaffjit.MessageType) -> None:
    buffer = all_type.encode({"title": "abcd", "tags": ["good", "efgh"], "weights": {"ijkl": 1.0}})
    broken = buffer.replace(b"abcd", b"ab\xffd").replace(b"efgh", b"e\xe4gh").replace(b"ijkl", b"ij\xffl")
    for path, error in (
        ("title", "'utf-8' codec can't decode byte 0xff in position 2: invalid start byte"),
        ("tags", "'utf-8' codec can't decode byte 0xe4 in position 1: invalid continuation byte"),
        ("tags[-1]", "'utf-8' codec can't decode byte 0xe4 in position 1: invalid continuation byte"),
    ):
        with pytest.raises(UnicodeDecodeError) as caught:
            all_type.getter(path)(broken, 0)
        assert str(caught.value) == error
    assert all_type.getter("tags[0]")(broken, 0) == "good"
    assert all_type.getter("weights['ijkl']")(broken, 0) == 0.0


def test_pairs_that_are_not_sorted(tmp_path: Path) -> None:
    """A list of pairs that is read as a map: of equal keys the first counts, as in views."""
    schema = """
        syntax = "proto3"; package p;
        import "yaff/proto/options.proto";
        message Pair {
            option (yaff.proto.message) = {layout: LAYOUT_FIXED}; int32 key = 1; string value = 2;
        }
        message Pairs { repeated Pair pairs = 1; }
        message Mapped { map<int32, string> pairs = 1; }
    """
    (tmp_path / "p.proto").write_text(schema)
    types = yaffjit.load_schema(tmp_path / "p.proto")
    keys = [*range(90, 0, -1), 40, 7, 95]
    data = types["p.Pairs"].encode({"pairs": [{"key": k, "value": f"{i}"} for i, k in enumerate(keys)]})
    mapped = types["p.Mapped"]
    view = mapped.view(data)
    for key in (90, 40, 7, 95):
        assert mapped.getter(f"pairs[{key}]")(data, 0) == view.pairs[key] == str(keys.index(key))
    assert not mapped.presence("pairs[91]")(data, 0)


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        (
            "titel",
            "path 'titel' of paths.All: paths.All has no field 'titel' (did you mean 'title', 'items'?)",
        ),
        ("one.titel", "path 'one.titel' of paths.All: paths.Item has no field 'titel'"),
        ("one", "path 'one' of paths.All is a message: name a field of paths.Item"),
        ("items[0]", "path 'items[0]' of paths.All is a message: name a field of paths.Item"),
        ("by_id[5].part", "path 'by_id[5].part' of paths.All is a message: name a field of paths.Item"),
        ("items", "path 'items' of paths.All is repeated messages: name a field of one, as items[0].name"),
        ("weights", "path 'weights' of paths.All is a map: name a key, as weights[\"key\"]"),
        ("names[x]", "path 'names[x]' of paths.All: expected a key in brackets at position 5, not '[x]'"),
    ],
)
def test_paths_that_are_no_value(all_type: yaffjit.MessageType, path: str, sentence: str) -> None:
    with pytest.raises(SchemaError) as caught:
        all_type.getter(path)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("path", "field"),
    [("one.price", "Item.price"), ("tags", "All.tags"), ("weights", "All.weights")],
)
def test_presence_of_a_field_without_presence(all_type: yaffjit.MessageType, path: str, field: str) -> None:
    with pytest.raises(SchemaError) as caught:
        all_type.presence(path)
    assert str(caught.value) == f"Field paths.{field} does not have presence."
