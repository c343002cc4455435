"""What encode takes and refuses: dicts, messages of other pools, layouts, sharing, limits."""

from __future__ import annotations

import array
import datetime
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from spec import write
from vectors import TESTS

import yaffjit
from yaffjit.codec import encode as encode_module
from yaffjit.codec import fields as fields_module
from yaffjit.codec import writer as writer_module

SCHEMAS = TESTS / "schemas"


@pytest.fixture(scope="module")
def codec() -> Any:
    return yaffjit.load_schema(SCHEMAS / "codec.proto")


@pytest.fixture(scope="module")
def codec2() -> Any:
    return yaffjit.load_schema(SCHEMAS / "codec2.proto")


def refusal(message_type: Any, value: Any) -> str:
    with pytest.raises(yaffjit.EncodeError) as caught:
        message_type.encode(value)
    return str(caught.value)


# One value of each kind beside 0, with the limits of integers.
SCALARS = {
    "d": [1.5, -0.0, math.inf, 5e-324, 3],
    "f": [1.5, -math.inf, 2.0**-149, True],
    "i64": [2**63 - 1, -(2**63)],
    "u64": [2**64 - 1, 2**63],
    "i32": [2**31 - 1, -(2**31)],
    "f64": [2**64 - 1],
    "f32": [2**32 - 1],
    "b": [True, 1],
    "s": ["é\0", b"bytes"],
    "raw": [b"\xff\0"],
    "u32": [2**32 - 1],
    "color": [1, -3, 77, "BLUE"],
    "sf32": [-(2**31)],
    "sf64": [-(2**63)],
    "s32": [2**31 - 1, -(2**31)],
    "s64": [-(2**63)],
}
ALL_SCALARS = [(name, value) for name, values in SCALARS.items() for value in values]


@pytest.mark.parametrize("layout", ["flat", "sparse"])
@pytest.mark.parametrize("name, value", ALL_SCALARS, ids=repr)
def test_each_kind_from_a_dict(codec: Any, name: str, value: Any, layout: str) -> None:
    message_type = codec["codec.All"]
    message = message_type.message_class(**{name: value})
    assert message_type.encode({name: value}, layout) == write(message, layout)


@pytest.mark.parametrize("layout", ["flat", "sparse"])
@pytest.mark.parametrize("name", SCALARS)
def test_lists_of_each_kind_from_a_dict(codec: Any, name: str, layout: str) -> None:
    message_type = codec["codec.Lists"]
    values = SCALARS[name]
    message = message_type.message_class(**{name: values})
    for given in (values, tuple(values), (value for value in values)):
        assert message_type.encode({name: given}, layout) == write(message, layout)


def test_arrays_as_lists(codec: Any) -> None:
    message_type = codec["codec.Lists"]
    given = {
        "f": np.arange(3, dtype="f4"),
        "u64": np.array([2**64 - 1], dtype="u8"),
        "b": np.array([True, False]),
        "i32": array.array("i", [-1, 7]),
    }
    plain = {"f": [0.0, 1.0, 2.0], "u64": [2**64 - 1], "b": [True, False], "i32": [-1, 7]}
    assert message_type.encode(given) == write(message_type.message_class(**plain))


@pytest.mark.parametrize("layout", ["flat", "sparse"])
def test_maps_from_dicts(codec: Any, layout: str) -> None:
    message_type = codec["codec.Maps"]
    given = {
        "counts": {"zz": 1, "": 0, "é": 3, "a\0": 4, "a": 5},
        "names": {3: "three", -1: "", 0: "nil"},
        "leaves": {2**32 - 1: {"n": 1}, 0: {}},
        "colors": {True: "RED", False: -3},
    }
    message = message_type.message_class(
        counts=given["counts"], names=given["names"], colors={True: 1, False: -3}
    )
    message.leaves[2**32 - 1].n = 1
    message.leaves[0].SetInParent()
    assert message_type.encode(given, layout) == write(message, layout)


def test_names_in_dicts(codec: Any) -> None:
    all_kinds, keyword, hides = codec["codec.All"], codec["codec.Keyword"], codec["codec.Hides"]
    assert all_kinds.encode({"leafOne": {"n": 3}}) == all_kinds.encode({"leaf_one": {"n": 3}})
    assert keyword.decode(keyword.encode({"class": 1, "from": {}, "camelCase": 2})).camelCase == 2
    # What YaFF doesn't carry is known all the same.
    assert keyword.encode({"class": 1, "old": 5}) == keyword.encode({"class": 1})
    given = {"HasField": 3, "SetInParent": {}, "SerializePartialToString": "x"}
    assert hides.decode(hides.encode(given)) == hides.message_class(**given)


def test_none_is_not_set(codec: Any) -> None:
    message_type = codec["codec.All"]
    given = {"leaf_one": None, "d": None, "s": None}
    assert message_type.encode(given) == message_type.encode({})
    assert codec["codec.Lists"].encode({"d": None, "leaves": None}) == bytes.fromhex("040000000080")


def test_values_in_dicts_may_be_messages_views_and_enum_members(codec: Any) -> None:
    message_type, leaf_type = codec["codec.All"], codec["codec.Leaf"]
    leaf = leaf_type.message_class(n=3, s="x")
    expected = message_type.encode({"leaf_one": {"n": 3, "s": "x"}, "color": 2})
    blue = codec.enums["codec.Color"].BLUE
    assert message_type.encode({"leaf_one": leaf, "color": blue}) == expected
    view = leaf_type.view(leaf_type.encode(leaf))
    assert message_type.encode({"leaf_one": view, "color": "BLUE"}) == expected
    whole = message_type.view(expected)
    assert message_type.encode(whole) == expected


def test_well_known_types(codec: Any) -> None:
    known = codec["codec.Known"]
    moment = datetime.datetime(2024, 1, 2, 3, 4, 5, 600000)
    given = {
        "at": moment,
        "took": datetime.timedelta(seconds=1.5),
        "times": [moment, {"seconds": 5}],
        "wrapped": {"value": 3},
        "free": {"fields": {"a": {"number_value": 1.5}}},
    }
    message = known.decode(known.encode(given))
    assert message.at.ToDatetime() == moment
    assert message.took.ToTimedelta() == datetime.timedelta(seconds=1.5)
    assert [(at.seconds, at.nanos) for at in message.times] == [(1704164645, 600000000), (5, 0)]
    assert message.wrapped.value == 3
    assert message.free["a"] == 1.5
    stamp = codec["google.protobuf.Timestamp"]
    assert stamp.decode(stamp.encode(datetime.datetime(1970, 1, 2))).seconds == 86400


ALL, LISTS, MAPS, CHOICE = "codec.All", "codec.Lists", "codec.Maps", "codec.Choice"
REFUSALS = [
    (ALL, {"i32": "x"}, "field i32: 'x' is not an integer"),
    (ALL, {"i32": 1.0}, "field i32: 1.0 is not an integer"),
    (
        ALL,
        {"i32": 2147483648},
        "field i32: 2147483648 is out of range for int32 (-2147483648 to 2147483647)",
    ),
    (ALL, {"u64": -1}, "field u64: -1 is out of range for uint64 (0 to 18446744073709551615)"),
    (ALL, {"f32": 2**32}, "field f32: 4294967296 is out of range for fixed32 (0 to 4294967295)"),
    (ALL, {"d": "1"}, "field d: '1' is not a number"),
    (ALL, {"d": 10**400}, f"field d: 1{'0' * 76}... is out of range for double"),
    (ALL, {"b": "yes"}, "field b: 'yes' is not a bool"),
    (ALL, {"s": 5}, "field s: 5 is not a string"),
    (ALL, {"s": b"\xff"}, "field s: b'\\xff' is not valid UTF-8"),
    (ALL, {"s": "\ud800"}, "field s: '\\ud800' is not valid UTF-8"),
    (ALL, {"raw": "x"}, "field raw: 'x' is not bytes"),
    (ALL, {"color": "RDE"}, "field color: 'RDE' is not a value of enum codec.Color (did you mean 'RED'?)"),
    (ALL, {"color": 1.5}, "field color: 1.5 is not a name or number"),
    (
        ALL,
        {"color": 2**31},
        "field color: 2147483648 is out of range for enum (-2147483648 to 2147483647)",
    ),
    (ALL, {"leaf_one": 5}, "field leaf_one: 5 is not a dict or a message"),
    (ALL, {"leaf_one": {"m": 1}}, "field leaf_one.m: codec.Leaf has no such field"),
    (ALL, {"leaf": {}}, "field leaf: codec.All has no such field (did you mean 'leaf_one'?)"),
    (ALL, {"leafOne": {}, "leaf_one": {}}, "field leaf_one: given twice, as 'leafOne' and as 'leaf_one'"),
    (LISTS, {"i32": 5}, "field i32: 5 is not a list"),
    (LISTS, {"s": "ab"}, "field s: 'ab' is not a list"),
    (LISTS, {"leaves": {"n": 1}}, "field leaves: {'n': 1} is not a list"),
    (LISTS, {"i32": [1, None]}, "field i32[1]: None is not an integer"),
    (LISTS, {"s": ["a", b"\xff"]}, "field s[1]: b'\\xff' is not valid UTF-8"),
    (
        LISTS,
        {"color": ["RED", "BLU"]},
        "field color[1]: 'BLU' is not a value of enum codec.Color (did you mean 'BLUE'?)",
    ),
    (LISTS, {"leaves": [{}, {"n": "x"}]}, "field leaves[1].n: 'x' is not an integer"),
    (LISTS, {"leaves": [None]}, "field leaves[0]: None is not a dict or a message"),
    (MAPS, {"counts": [1]}, "field counts: [1] is not a dict"),
    (MAPS, {"counts": {1: 2}}, "field counts: key 1 is not a string"),
    (MAPS, {"counts": {"a": "b"}}, "field counts['a']: 'b' is not an integer"),
    (MAPS, {"names": {True: "b"}}, "field names: key True is not an integer"),
    (MAPS, {"names": {1: None}}, "field names[1]: None is not a string"),
    (MAPS, {"leaves": {7: {"n": "x"}}}, "field leaves[7].n: 'x' is not an integer"),
    (MAPS, {"leaves": {-1: {}}}, "field leaves: key -1 is out of range for uint32 (0 to 4294967295)"),
    (
        MAPS,
        {"colors": {False: "BULE"}},
        "field colors[False]: 'BULE' is not a value of enum codec.Color (did you mean 'BLUE'?)",
    ),
    (
        "codec.Known",
        {"at": datetime.timedelta(1)},
        "field at: datetime.timedelta(days=1) is not a dict or a message",
    ),
]


@pytest.mark.parametrize("name, value, sentence", REFUSALS, ids=[sentence for _, _, sentence in REFUSALS])
def test_refusals_of_dicts(codec: Any, name: str, value: Any, sentence: str) -> None:
    assert refusal(codec[name], value) == f"{name}, {sentence}"


class WithoutModule:
    """As classes of messages of a pool of their own: protobuf crashes when it looks for the module's name."""

    __module__: Any = None

    def __repr__(self) -> str:
        return "something"


def test_what_would_crash_protobuf_is_no_bool(codec: Any) -> None:
    leaf = codec["codec.Leaf"]
    view = leaf.view(leaf.encode({}))
    for value, text in (
        (leaf.message_class(), "a codec.Leaf message"),
        (view, "a codec.Leaf message"),
        (WithoutModule(), "something"),
    ):
        assert refusal(codec[ALL], {"b": value}) == f"codec.All, field b: {text} is not a bool"
        assert refusal(codec[LISTS], {"b": [True, value]}) == f"codec.Lists, field b[1]: {text} is not a bool"
    of_flags = codec[MAPS].encode({"flags": {"a": np.bool_(True)}})
    assert codec[MAPS].decode(of_flags).flags == {"a": True}
    assert refusal(codec[MAPS], {"flags": {"a": leaf.message_class()}}) == (
        "codec.Maps, field flags['a']: a codec.Leaf message is not a bool"
    )
    assert refusal(codec[MAPS], {"colors": {WithoutModule(): 1}}) == (
        "codec.Maps, field colors: key something is not a bool"
    )


def test_keys_that_are_one_to_protobuf(codec: Any) -> None:
    for name, pairs, sentence in (
        ("colors", {2: "RED", True: "BLUE"}, "[True]: given twice, as 2 and as True"),
        ("flags", {"a": True, "b": True, b"a": False}, "['a']: given twice, as 'a' and as b'a'"),
        ("colors", {2**70: 1}, f": key {2**70} is not a bool"),
    ):
        assert refusal(codec[MAPS], {name: pairs}) == f"codec.Maps, field {name}{sentence}"
    decoded = codec[MAPS].decode(codec[MAPS].encode({"colors": {2: 1, np.bool_(False): 2}}))
    assert dict(decoded.colors) == {True: 1, False: 2}


class NoList:
    def __iter__(self) -> Any:
        return iter([1])

    def tolist(self) -> tuple[int, ...]:
        return (1,)

    def __repr__(self) -> str:
        return "NoList"


@pytest.mark.parametrize("name", ["i32", "d", "b", "s", "raw", "color", "leaves"])
def test_arrays_without_dimensions_are_no_lists(codec: Any, name: str) -> None:
    for value in (np.array(5), np.array("x"), np.ma.masked, np.float64(1), NoList()):
        assert refusal(codec[LISTS], {name: value}) == f"codec.Lists, field {name}: {value!r} is not a list"


def test_refusals_of_whole_values(codec: Any) -> None:
    message_type = codec["codec.All"]
    assert refusal(message_type, [1]) == "codec.All: [1] is not a dict or a message"
    for given in (b"\x08\x01", bytearray(b""), memoryview(b"")):
        assert refusal(message_type, given) == (
            f"codec.All: {type(given).__name__} given: give a message or a dict; "
            "for protobuf bytes, message_class.FromString(...) first"
        )
    assert refusal(message_type, {5: 1}) == "codec.All: 5 is not the name of a field of codec.All"
    leaf = codec["codec.Leaf"].message_class()
    assert refusal(message_type, leaf) == "codec.All expected, but the message is a codec.Leaf"
    nested = "codec.All, field leaf_one: codec.Leaf expected, but the message is a codec.Tree"
    assert refusal(message_type, {"leaf_one": codec["codec.Tree"].message_class()}) == nested


def test_two_members_of_one_oneof(codec: Any) -> None:
    choice = codec["codec.Choice"]
    only_one = "are both given, but only one field of oneof"
    assert refusal(choice, {"number": 1, "text": ""}) == (
        f"codec.Choice: 'number' and 'text' {only_one} 'kind' can be set"
    )
    assert refusal(codec["codec.Choice"], {"yes": True, "number": 0, "no": False}) == (
        f"codec.Choice: 'yes' and 'no' {only_one} 'other' can be set"
    )
    given = {"number": 0, "text": None, "yes": False, "maybe": 0}
    assert choice.encode(given) == write(choice.message_class(number=0, yes=False, maybe=0))


@pytest.mark.parametrize("layout", ["FLAT", "", None, "dynamic"])
def test_layout_choices(codec: Any, layout: Any) -> None:
    with pytest.raises(ValueError) as caught:
        codec["codec.All"].encode({}, layout)
    assert str(caught.value) == f"layout must be one of 'flat', 'sparse', 'auto', 'smallest', not {layout!r}"


def test_smallest_is_sparse_where_that_is_smaller(codec: Any) -> None:
    lists, choice = codec["codec.Lists"], codec["codec.Choice"]
    full = {name: values for name, values in SCALARS.items() if name != "leaves"}
    chosen = []
    for message_type, given in [(lists, {}), (lists, full), (lists, {"s64": [1]}), (choice, {"maybe": 0})]:
        flat, sparse = message_type.encode(given, "flat"), message_type.encode(given, "sparse")
        chosen.append(len(sparse) < len(flat))
        assert message_type.encode(given, "smallest") == (sparse if chosen[-1] else flat)
    assert set(chosen) == {False, True}
    # Of two of one size the flat one, which is read faster.
    assert lists.encode({}, "smallest") == lists.encode({}, "flat") != lists.encode({}, "sparse")
    assert len(lists.encode({}, "flat")) == len(lists.encode({}, "sparse"))


def test_auto_is_sparse_where_that_saves_more_than_a_tenth(codec: Any) -> None:
    lists, choice = codec["codec.Lists"], codec["codec.Choice"]
    full = {name: values for name, values in SCALARS.items() if name != "leaves"}
    for message_type, given in [(lists, {}), (lists, full), (lists, {"s64": [1]}), (choice, {"maybe": 0})]:
        flat, sparse = message_type.encode(given, "flat"), message_type.encode(given, "sparse")
        expected = sparse if len(flat) - len(sparse) > len(flat) / 10 else flat
        assert message_type.encode(given, "auto") == expected
    last_only = lists.encode({"s64": [1]}, "auto")
    assert last_only == lists.encode({"s64": [1]}, "sparse") != lists.encode({"s64": [1]}, "flat")
    assert lists.encode(full, "auto") == lists.encode(full, "flat") != lists.encode(full, "sparse")


def test_gapped_dynamic_messages_are_sparse_in_any_layout(codec: Any) -> None:
    late = codec["codec.Late"]
    assert late.encode({"a": 7}, "flat") == late.encode({"a": 7}, "sparse")
    assert late.encode({"a": 7}, "flat").endswith(bytes.fromhex("fcffffff 9701 07000000"))


def test_equal_texts_and_arrays_are_written_once(codec: Any) -> None:
    lists = codec["codec.Lists"]
    data = lists.encode({"i32": [1, 2], "u32": [1, 2], "color": [1, 2], "s": ["ab", "ab"], "raw": [b"ab"]})
    assert data.count(bytes.fromhex("02000000 01000000 02000000")) == 1
    assert data.count(b"\2\0\0\0ab\0") == 1
    tree = codec["codec.Tree"]
    shared = tree.encode({"kids": [{"n": 5}, {"n": 5}]}, "sparse")
    assert shared == write(tree.message_class(kids=[{"n": 5}, {"n": 5}]), "sparse")


def test_messages_of_another_pool(codec: Any) -> None:
    message_type = codec["codec.All"]
    other = yaffjit.load_schema(SCHEMAS / "codec.proto")["codec.All"].message_class
    assert other is not message_type.message_class
    message = other(i32=-7, s="x", leaf_one={"n": 1})
    expected = message_type.encode({"i32": -7, "s": "x", "leaf_one": {"n": 1}})
    assert message_type.encode(message) == expected
    assert message_type.encode({"i32": -7, "s": "x", "leaf_one": message.leaf_one}) == expected


def test_the_generated_class_of_a_well_known_type(codec: Any) -> None:
    from google.protobuf.timestamp_pb2 import Timestamp

    stamp = codec["google.protobuf.Timestamp"]
    assert stamp.encode(Timestamp(seconds=5)) == stamp.encode({"seconds": 5})
    known = codec["codec.Known"]
    assert known.encode({"at": Timestamp(nanos=7)}) == known.encode({"at": {"nanos": 7}})


def test_unknown_fields_are_not_written(codec: Any) -> None:
    message_type = codec["codec.Leaf"]
    message = message_type.message_class.FromString(bytes.fromhex("0807 fa3f03616263"))
    assert message_type.encode(message) == message_type.encode({"n": 7})


STEPS = {
    "kid": lambda message: message.kid,
    "kids": lambda message: message.kids.add(),
    "named": lambda message: message.named["k"],
}


def tree_of(message_type: Any, step: str, depth: int) -> Any:
    root = message = message_type.message_class()
    for _ in range(depth):
        message = STEPS[step](message)
    message.n = 1
    return root


@pytest.mark.parametrize("layout", ["flat", "sparse"])
@pytest.mark.parametrize("step, deepest", [("kid", 100), ("kids", 100), ("named", 50)])
def test_nesting_as_deep_as_protobuf_reads(codec: Any, step: str, deepest: int, layout: str) -> None:
    tree = codec["codec.Tree"]
    message = tree_of(tree, step, deepest)
    data = tree.encode(message, layout)
    assert data == write(message, layout)
    assert tree.decode(data) == message
    with pytest.raises(yaffjit.EncodeError, match=r"\(\d+ more\).*: messages nested deeper than 100$"):
        tree.encode(tree_of(tree, step, deepest + 1), layout)


def test_a_pair_is_as_deep_as_a_message(codec: Any) -> None:
    tree = codec["codec.Tree"]
    message = tree_of(tree, "kid", 100)
    deepest = message
    while deepest.HasField("kid"):
        deepest = deepest.kid
    deepest.counts["k"] = 1
    with pytest.raises(yaffjit.EncodeError, match=r"kid\.counts: messages nested deeper than 100$"):
        tree.encode(message)


def test_dicts_that_never_end(codec: Any) -> None:
    endless: dict[str, Any] = {}
    endless["kid"] = endless
    path = ".".join(["kid"] * 10 + ["(81 more)"] + ["kid"] * 10)
    assert refusal(codec["codec.Tree"], endless) == (
        f"codec.Tree, field {path}: messages nested deeper than 100"
    )
    endless = {}
    endless["named"] = {"a": endless}
    assert refusal(codec["codec.Tree"], endless).endswith(": messages nested deeper than 100")


def test_fixed_messages_refuse_what_would_read_as_another_value(codec2: Any) -> None:
    rounded, holds = codec2["codec2.Rounded"], codec2["codec2.Holds"]
    third = "0.333333 would read as absent in a fixed message, which is the default 0.33333333"
    bad = {"third": 0.333333}
    assert refusal(rounded, bad) == f"codec2.Rounded, field third: {third}"
    assert refusal(rounded, {"tiny": 0.0}) == (
        "codec2.Rounded, field tiny: 0.0 would read as absent in a fixed message, which is the default 1e-09"
    )
    assert refusal(rounded, {"more": [{}, bad]}) == f"codec2.Rounded, field more[1].third: {third}"
    assert refusal(rounded, {"by_id": {3: bad}}) == f"codec2.Rounded, field by_id[3].third: {third}"
    assert refusal(holds, {"one": bad}) == f"codec2.Holds, field one.third: {third}"
    assert refusal(holds, {"many": [{}, bad]}) == f"codec2.Holds, field many[1].third: {third}"
    assert refusal(holds, {"named": {"k": bad}}) == f"codec2.Holds, field named['k'].third: {third}"
    for given in ({"third": 0.33333333}, {"third": 0.5}, {"tiny": 1e-9}, {"tiny": -0.0}):
        assert rounded.decode(rounded.encode(given)) == rounded.message_class(**given)
    # Only the presence of a value that equals the default is lost.
    assert rounded.decode(rounded.encode({"five": 5})) == rounded.message_class()


def test_numbers_that_a_closed_enum_has_not(codec2: Any) -> None:
    closed = codec2["codec2.Closed"]
    assert refusal(closed, {"gear": 5}) == (
        "codec2.Closed, field gear: 5 is not a number of closed enum codec2.Gear"
    )
    assert refusal(closed, {"gears": [3, 4]}) == (
        "codec2.Closed, field gears[1]: 4 is not a number of closed enum codec2.Gear"
    )
    assert refusal(closed, {"by_id": {1: 9}}) == (
        "codec2.Closed, field by_id[1]: 9 is not a number of closed enum codec2.Lamp"
    )


@pytest.mark.parametrize("layout", ["flat", "sparse"])
@pytest.mark.parametrize(
    "given",
    [
        {"gear": 3},
        {"gear": 7, "text": "anise"},
        {"text": ""},
        {"inf": math.inf},
        {"inf": -math.inf, "nan": 0.0},
        {"nan": -0.0},
        {"or": 0},
    ],
    ids=repr,
)
def test_values_at_the_defaults(codec2: Any, given: dict[str, Any], layout: str) -> None:
    closed = codec2["codec2.Closed"]
    message = closed.message_class(**given)
    data = closed.encode(given, layout)
    assert data == write(message, layout)
    assert closed.decode(data) == message


def test_keys_that_are_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "bad.proto"
    path.write_text('syntax = "proto2"; package bad; message M { map<string, int32> held = 1; }')
    message_type = yaffjit.load_schema(path)["bad.M"]
    message = message_type.message_class.FromString(b"\x0a\x05\x0a\x01\xff\x10\x01")
    assert refusal(message_type, message) == "bad.M, field held: key b'\\xff' is not valid UTF-8"


def test_proto2_text_that_is_not_utf8_is_kept(codec2: Any) -> None:
    closed = codec2["codec2.Closed"]
    message = closed.message_class.FromString(b"\x32\x02\xff\xfe")
    data = closed.encode(message)
    assert closed.decode(data).SerializeToString() == message.SerializeToString()


@pytest.mark.parametrize("layout", ["flat", "sparse"])
@pytest.mark.parametrize(
    "name, given, path",
    [
        ("codec.Leaf", {"s": "a" * 101}, "s"),
        ("codec.Lists", {"b": [True] * 101}, "b"),
        ("codec.Lists", {"s": ["a" * 80, "b" * 80, "c"]}, "s"),
        ("codec.Lists", {"d": [1.0], "f": [1.0] * 25}, "d"),
        ("codec.Lists", {"leaves": [{"s": "a" * 101}]}, "leaves[0].s"),
        ("codec.Lists", {"leaves": [{"n": 1, "s": "a"}, {"s": "b" * 100}]}, "leaves"),
        ("codec.Tree", {"named": {"k": {"counts": {"a" * 70: 1, "b" * 70: 2, "c": 3}}}}, "named['k'].counts"),
        ("codec.Maps", {"names": {1: "a" * 75, 2: "b" * 75}}, "names"),
    ],
    ids=repr,
)
def test_offsets_have_a_limit(
    codec: Any, monkeypatch: pytest.MonkeyPatch, name: str, given: Any, path: str, layout: str
) -> None:
    codec[name].encode(given, layout)
    for module in (encode_module, fields_module, writer_module):
        monkeypatch.setattr(module, "MAX_OFFSET", 100)
    with pytest.raises(yaffjit.EncodeError) as caught:
        codec[name].encode(given, layout)
    assert str(caught.value).startswith(f"{name}, field {path}: ")
    assert str(caught.value).endswith(" (at most 100)")


def test_the_sentences_about_that_limit(codec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Two kids that share their table, and a text between.
    far = {"leaves": [{"n": 1, "s": "a"}, {"n": 2, "s": "b" * 90}]}
    whole = codec["codec.Lists"].encode(far)
    for module in (encode_module, fields_module, writer_module):
        monkeypatch.setattr(module, "MAX_OFFSET", 100)
    assert refusal(codec["codec.Lists"], {"s": ["a" * 80, "b" * 80, "c"]}) == (
        "codec.Lists, field s: lies too far from its message, 103 bytes (at most 100)"
    )
    assert refusal(codec["codec.Leaf"], {"s": "a" * 101}) == "codec.Leaf, field s: 101 bytes (at most 100)"
    assert refusal(codec["codec.Lists"], {"b": [True] * 101}) == (
        "codec.Lists, field b: 101 elements (at most 100)"
    )
    # The table that both share is as far as that.
    with pytest.raises(
        yaffjit.EncodeError, match=r"leaves\[1\]: its meta table lies too far away, 1\d\d bytes"
    ):
        codec["codec.Lists"].encode(far, "sparse")
    # A buffer itself may be larger.
    chain = {"n": 1, "kid": {"n": 2, "kid": {"n": 3, "counts": {"a" * 30: 1, "b" * 30: 2}}}}
    data = codec["codec.Tree"].encode(chain)
    assert len(data) > 100 and codec["codec.Tree"].decode(data).kid.kid.n == 3
    assert len(whole) > 100
