"""The laid-out schema: slots, offsets, gaps, defaults as bits, and the fingerprint over all of it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import yaffjit as yj
from yaffjit.plan import MessagePlan

HEADER = 'syntax = "proto%d"; import "yaff/proto/options.proto"; package p;\n'


def plan_of(folder: Path, text: str, syntax: int = 3, slice: str | None = None) -> MessagePlan:
    path = folder / "schema.proto"
    path.write_text(HEADER % syntax + text)
    return yj.load_schema(path, slice=slice)["p.M"].plan


def slots(plan: MessagePlan) -> list[tuple[str, int, int, int, tuple[int, ...]]]:
    return [(f.name, f.id, f.offset, f.width, f.holes) for f in plan.fields]


def test_slots_of_every_kind(tmp_path: Path) -> None:
    kinds = (
        "double float int64 uint64 int32 fixed64 fixed32 bool string bytes uint32 sfixed32 sfixed64 sint32"
    )
    names = [
        *kinds.split(),
        "sint64",
        "E",
        "N",
        "repeated bool",
        "repeated double",
        "repeated string",
        "repeated N",
    ]
    fields = "".join(f"{kind} f{i} = {i};" for i, kind in enumerate(names, 1)) + "map<string, N> f22 = 22;"
    plan = plan_of(tmp_path, f"enum E {{ Z = 0; }} message N {{}} message M {{ {fields} }}")
    assert plan.widths == (8, 4, 8, 8, 4, 8, 4, 1, 4, 4, 4, 4, 8, 4, 8, 4, 4, 4, 4, 4, 4, 4)
    assert [f.offset for f in plan.fields] == [sum(plan.widths[:i]) for i in range(22)]
    assert plan.limit == sum(plan.widths)
    assert [f.element_width for f in plan.fields][17:] == [1, 8, 4, 4, 8]
    assert [f.inlined for f in plan.fields][17:] == [False, False, False, False, True]
    assert [f.name for f in plan.fields if f.is_scalar] == [f"f{i}" for i in (*range(1, 9), *range(11, 17))]
    assert plan.layout == "dynamic"
    assert not plan.gapped
    entry = plan.child(plan.by_name["f22"])
    assert (entry.layout, entry.is_map_entry, entry.widths) == ("fixed", True, (4, 4))


def test_fields_are_ordered_by_id_and_ids_may_be_given(tmp_path: Path) -> None:
    text = "message M { int64 c = 3; bool a = 10 [(yaff.proto.field) = {id: 2}]; int32 b = 1; }"
    assert slots(plan_of(tmp_path, text)) == [
        ("b", 1, 0, 4, ()),
        ("a", 2, 4, 1, ()),
        ("c", 3, 5, 8, ()),
    ]


def test_holes_take_no_room_but_are_remembered(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "message M { int32 a = 2; int64 b = 5; reserved 4; }")
    assert slots(plan) == [("a", 2, 0, 4, (1,)), ("b", 5, 4, 8, (1, 3, 4))]
    assert plan.gapped
    assert plan.widths == (0, 4, 0, 0, 8)


def test_dead_slots_take_room(tmp_path: Path) -> None:
    text = """
    message N {}
    message M {
      option (yaff.proto.message) = {reserved_fields: [
        {id: 2, type: TYPE_DOUBLE}, {id: 3, type: TYPE_BOOL, label: LABEL_REPEATED}, {id: 7}]};
      int32 a = 1;
      int64 old = 4 [deprecated = true, (yaff.proto.field) = {id: 9}];
      repeated N olds = 5 [deprecated = true];
      int32 b = 6;
    }"""
    plan = plan_of(tmp_path, text)
    assert slots(plan) == [("a", 1, 0, 4, ()), ("b", 6, 28, 4, ())]
    assert plan.widths == (4, 8, 4, 8, 4, 4)
    assert not plan.gapped
    assert plan.lost == (("old", "deprecated"), ("olds", "deprecated"))


def test_a_far_dead_slot_only_makes_a_gap(tmp_path: Path) -> None:
    text = "option (yaff.proto.message) = {reserved_fields: [{id: 18446744073709551615, type: TYPE_BOOL}]};"
    plan = plan_of(tmp_path, f"message M {{ {text} int32 a = 1; }}")
    assert plan.gapped
    assert len(plan.widths) == 8191


def test_ignored_messages_disappear_with_their_fields(tmp_path: Path) -> None:
    text = """
    message Gone { option (yaff.proto.message) = {ignore: true}; int32 x = 1; }
    message M { int32 a = 1; Gone g = 2; repeated Gone gs = 3; map<int32, Gone> gm = 4; int32 b = 5; }"""
    plan = plan_of(tmp_path, text)
    assert [f.name for f in plan.fields] == ["a", "b"]
    assert [name for name, _ in plan.lost] == ["g", "gs", "gm"]
    assert plan.lost[0][1] == "p.Gone is ignored"
    assert plan.gapped


def test_slices(tmp_path: Path) -> None:
    text = """
    message Out { int32 x = 1; }
    message M {
      option (yaff.proto.message) = {layout: LAYOUT_SPARSE};
      option (yaff.proto.message) = {slice_name: "s", layout: LAYOUT_FLAT};
      int32 plain = 1;
      int32 tagged = 7 [(yaff.proto.field) = {slice_name: "s", id: 1}];
      int32 any = 2 [(yaff.proto.field) = {}];
      Out out = 3 [(yaff.proto.field) = {slice_name: "s"}];
      int32 old = 4 [deprecated = true, (yaff.proto.field) = {slice_name: "s", id: 3}];
    }"""
    assert plan_of(tmp_path, text).layout == "sparse"
    plan = plan_of(tmp_path, text, slice="s")
    assert plan.layout == "flat"
    assert [(f.name, f.id) for f in plan.fields] == [("tagged", 1), ("any", 2), ("old", 3)]
    assert plan.lost == (("plain", "not in slice 's'"), ("out", "p.Out isn't in slice 's'"))
    path = tmp_path / "schema.proto"
    out = yj.load_schema(path, slice="s")["p.Out"]
    with pytest.raises(yj.SchemaError) as caught:
        _ = out.plan
    assert str(caught.value) == "YaFF can't hold p.Out: it isn't in slice 's'"


def test_float_defaults_are_rounded_to_six_decimals(tmp_path: Path) -> None:
    text = """message M {
      optional double tiny = 1 [default = 1e-9];
      optional float pi = 2 [default = 3.14159274];
      optional double big = 3 [default = 1e21];
      optional double minus = 4 [default = -0.0];
    }"""
    plan = plan_of(tmp_path, text, syntax=2)
    stored = {f.name: f.default_bits for f in plan.fields}
    declared = {f.name: f.declared_bits for f in plan.fields}
    double = lambda value: int.from_bytes(struct.pack("<d", value), "little")  # noqa: E731
    single = lambda value: int.from_bytes(struct.pack("<f", value), "little")  # noqa: E731
    assert stored == {"tiny": 0, "pi": single(3.141593), "big": double(1e21), "minus": 1 << 63}
    assert declared == {"tiny": double(1e-9), "pi": single(3.14159274), "big": double(1e21), "minus": 1 << 63}
    assert plan.by_name["tiny"].default == 1e-9


def test_oneofs_are_ordered_by_precedence(tmp_path: Path) -> None:
    text = (
        "message M { oneof o { int32 a = 1; string b = 2; int32 c = 3; M d = 4; } oneof q { int32 e = 5; } }"
    )
    plan = plan_of(tmp_path, text)
    assert {oneof.name: oneof.fields for oneof in plan.oneofs} == {"o": ("d", "b", "c", "a"), "q": ("e",)}
    assert plan.by_name["a"].oneof == "o"


def test_recursive_messages(tmp_path: Path) -> None:
    text = """message M { M left = 1; N right = 2; } message N { repeated M back = 1; F f = 2; }
    message F { option (yaff.proto.message) = {layout: LAYOUT_FIXED}; repeated F inside = 1; int32 v = 2; }"""
    plan = plan_of(tmp_path, text)
    assert plan.child(plan.by_name["left"]) is plan
    fixed = plan.plan["p.F"]
    assert fixed.by_name["inside"].inlined
    assert fixed.by_name["inside"].element_width == 8


BASE = """
enum E { A = 0; B = 1; }
message N { int32 x = 1; }
message M { int32 a = 1; N n = 2; E e = 3; optional float f = 4; oneof o { string s = 5; } }"""
CHANGES = {
    "name of a field": ("int32 a = 1", "int32 aa = 1"),
    "kind": ("int32 a = 1", "sint32 a = 1"),
    "width": ("int32 a = 1", "int64 a = 1"),
    "number": ("int32 a = 1", "int32 a = 9"),
    "presence": ("int32 a = 1", "optional int32 a = 1"),
    "repeated": ("int32 a = 1", "repeated int32 a = 1"),
    "nested field": ("int32 x = 1", "int32 x = 2"),
    "nested layout": ("message N {", "message N { option (yaff.proto.message) = {layout: LAYOUT_SPARSE};"),
    "layout": ("message M {", "message M { option (yaff.proto.message) = {layout: LAYOUT_FLAT};"),
    "enum value": ("B = 1", "B = 2"),
    "typed reserve": (
        "message M {",
        "message M { option (yaff.proto.message) = {reserved_fields: [{id: 6, type: TYPE_BOOL}]};",
    ),
    "oneof": ("oneof o", "oneof oo"),
    "new field": ("int32 a = 1;", "int32 a = 1; int32 z = 6;"),
    "deprecated": ("int32 a = 1", "int32 a = 1 [deprecated = true]"),
    "id": ("int32 a = 1", "int32 a = 1 [(yaff.proto.field) = {id: 9}]"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_fingerprint_changes_with(tmp_path: Path, change: str) -> None:
    before, after = CHANGES[change]
    assert before in BASE
    changed = plan_of(tmp_path, BASE.replace(before, after)).fingerprint
    assert changed != plan_of(tmp_path, BASE).fingerprint


def test_the_fingerprint_changes_with_a_default(tmp_path: Path) -> None:
    text = "message M { optional float f = 1 [default = %s]; }"
    prints = {
        plan_of(tmp_path, text % value, syntax=2).fingerprint for value in ("0", "-0.0", "1", "1e-9", "nan")
    }
    assert len(prints) == 5


@pytest.mark.parametrize(
    "change",
    [
        ("", "enum Alone { ZERO = 0; }"),
        ("enum Alone { ZERO = 0; ONE = 1; }", "enum Alone { ZERO = 0; ONE = 7; }"),
        ("int32 z = 8 [deprecated = true];", "int32 z = 9 [deprecated = true];"),
        ("int32 z = 8; int32 Z = 9;", "int32 Z = 9; int32 z = 8;"),
    ],
)
@pytest.mark.parametrize("message", ["message M {", "message N {"])
def test_the_fingerprint_changes_with_what_is_constants_of_views(
    tmp_path: Path, message: str, change: tuple[str, str]
) -> None:
    prints = {plan_of(tmp_path, BASE.replace(message, message + text)).fingerprint for text in change}
    assert len(prints) == 2


def test_the_fingerprint_ignores_what_no_reader_sees(tmp_path: Path) -> None:
    base = plan_of(tmp_path, BASE).fingerprint
    assert plan_of(tmp_path, "// a comment\n" + BASE + "\nmessage Other { int32 q = 1; }").fingerprint == base
    assert len(base) == 32
