"""A jitted builder's ``update(view)``: the bytes that `update_protobuf` gives for the same changes."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from numba import njit

import yaffjit as yj
from yaffjit.codec.update import parts_of
from yaffjit.errors import CompileError

PROTO = """
edition = "2023";
package ju;
enum Level { LOW = 0; HIGH = 5; }
enum Closed { option features.enum_type = CLOSED; NONE = 0; ONE = 1; MINUS = -1; }
message Part {
  int32 x = 1;
  string text = 2;
  Part next = 4;
}
message Root {
  int32 number = 1 [features.field_presence = IMPLICIT];
  string name = 2;
  Part part = 3;
  repeated sint64 packed = 4;
  map<string, double> attrs = 5;
  oneof choice { Part left = 6; Part right = 7; int32 plain = 8; Closed member = 9; }
  Part group = 10 [features.message_encoding = DELIMITED];
  Closed closed = 11;
  repeated Part parts = 12;
  repeated Closed levels = 13 [features.repeated_field_encoding = EXPANDED];
  int64 far = 300;
}
"""
UNKNOWN = b"\xfa\x01\x02hi"  # field 31


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("jit_update") / "ju.proto"
    path.write_text(PROTO)
    return yj.load_schema(path)["ju.Root"]


# What `change` does, by code; the second number of a step is the value.
(
    NUMBER, NO_NUMBER, NAME, NO_NAME, PART_X, NO_PART_X, NO_PART, NEXT_TEXT, NO_NEXT, LEFT_X, NO_LEFT,
    RIGHT_TEXT, NO_RIGHT_X, PLAIN, MEMBER, NO_MEMBER, PACKED, NO_PACKED, ATTRS, NO_ATTRS, GROUP_X,
    NO_GROUP_X, CLOSED, PARTS, NO_PARTS, LEVELS, NO_LEVELS, FAR, NO_FAR, PART_TEXT,
) = range(30)  # fmt: skip


@njit
def change(b, steps):  # type: ignore[no-untyped-def]
    for step in range(len(steps)):
        code, value = steps[step]
        if code == NUMBER:
            b.number = value
        elif code == NO_NUMBER:
            b.ClearField("number")
        elif code == NAME:
            b.name = str(value)
        elif code == NO_NAME:
            b.ClearField("name")
        elif code == PART_X:
            b.part.x = value
        elif code == PART_TEXT:
            b.part.text = str(value)
        elif code == NO_PART_X:
            b.part.ClearField("x")
        elif code == NO_PART:
            b.ClearField("part")
        elif code == NEXT_TEXT:
            b.part.next.text = str(value)
        elif code == NO_NEXT:
            b.part.ClearField("next")
        elif code == LEFT_X:
            b.left.x = value
        elif code == NO_LEFT:
            b.ClearField("left")
        elif code == RIGHT_TEXT:
            b.right.text = str(value)
        elif code == NO_RIGHT_X:
            b.right.ClearField("x")
        elif code == PLAIN:
            b.plain = value
        elif code == MEMBER:
            b.member = 1
        elif code == NO_MEMBER:
            b.ClearField("member")
        elif code == PACKED:
            b.packed.append(value)
        elif code == NO_PACKED:
            b.ClearField("packed")
        elif code == ATTRS:
            b.attrs[str(value)] = value
        elif code == NO_ATTRS:
            b.ClearField("attrs")
        elif code == GROUP_X:
            b.group.x = value
        elif code == NO_GROUP_X:
            b.group.ClearField("x")
        elif code == CLOSED:
            b.closed = -1
        elif code == PARTS:
            b.parts.add().x = value
        elif code == NO_PARTS:
            b.ClearField("parts")
        elif code == LEVELS:
            b.levels.append(1)
        elif code == NO_LEVELS:
            b.ClearField("levels")
        elif code == FAR:
            b.far = value
        elif code == NO_FAR:
            b.ClearField("far")


@njit
def updated(message_type, view, steps, buffer):  # type: ignore[no-untyped-def]
    """The changed bytes, by a builder that was used before; and again, which changes nothing of it."""
    b = message_type.builder(buffer)
    b.name = "before"
    b.part.ClearField("text")
    b.update(view)
    b.clear()
    change(b, steps)
    first = b.update(view).copy()
    second = b.update(view).copy()
    return first, second, b.finish().copy()


@dataclass
class Made:
    """What was set and unset in a message that is being built."""

    values: dict[str, Any] = field(default_factory=dict)
    unset: set[str] = field(default_factory=set)
    within: dict[str, Made] = field(default_factory=dict)
    present: bool = False

    def put(self, path: str, value: Any) -> None:
        name, _, rest = path.partition(".")
        self.present = True
        if name in CHOICE:
            for other in CHOICE - {name}:
                self.values.pop(other, None)
                if other in self.within and self.within[other].present:
                    del self.within[other]
        if rest:
            self.within.setdefault(name, Made()).put(rest, value)
        elif isinstance(value, list):
            self.values.setdefault(name, []).extend(value)
        elif isinstance(value, dict):
            self.values.setdefault(name, {}).update(value)
        else:
            self.values[name] = value

    def drop(self, path: str) -> None:
        name, _, rest = path.partition(".")
        if rest:
            self.within.setdefault(name, Made()).drop(rest)
            return
        self.unset.add(name)
        self.values.pop(name, None)
        if name in self.within and self.within[name].present:
            del self.within[name]

    def whole(self) -> dict[str, Any]:
        return self.values | {name: made.whole() for name, made in self.within.items() if made.present}

    def sets(self) -> bool:
        return bool(self.values) or any(made.sets() for made in self.within.values())

    def changes(self, prefix: str = "") -> dict[str, Any]:
        found = {prefix + name: value for name, value in self.values.items()}
        chosen = any(name in self.values for name in CHOICE) or any(
            made.present for name, made in self.within.items() if name in CHOICE
        )
        for name, made in self.within.items():
            if made.present and name in self.unset:
                found[prefix + name] = made.whole()
            elif name not in self.unset and (made.present or name not in CHOICE or not chosen):
                found |= made.changes(f"{prefix}{name}.")
        for name in self.unset:
            if name not in self.values and not (name in self.within and self.within[name].present):
                found[prefix + name] = None
        return found

    def is_empty_somewhere(self) -> bool:
        """Whether a message is there of which nothing is set, which paths can't say."""
        return (self.present and not self.sets()) or any(m.is_empty_somewhere() for m in self.within.values())


CHOICE = {"left", "right", "plain", "member"}
SETS = {
    NUMBER: "number", PART_X: "part.x", LEFT_X: "left.x", PLAIN: "plain", GROUP_X: "group.x", FAR: "far",
}  # fmt: skip
TEXTS = {NAME: "name", NEXT_TEXT: "part.next.text", RIGHT_TEXT: "right.text", PART_TEXT: "part.text"}
DROPS = {
    NO_NUMBER: "number", NO_NAME: "name", NO_PART_X: "part.x", NO_PART: "part", NO_NEXT: "part.next",
    NO_LEFT: "left", NO_RIGHT_X: "right.x", NO_MEMBER: "member", NO_PACKED: "packed", NO_ATTRS: "attrs",
    NO_GROUP_X: "group.x", NO_PARTS: "parts", NO_LEVELS: "levels", NO_FAR: "far",
}  # fmt: skip


def made_by(steps: list[tuple[int, int]]) -> Made:
    made = Made()
    for code, value in steps:
        if code in SETS:
            made.put(SETS[code], value)
        elif code in TEXTS:
            made.put(TEXTS[code], str(value))
        elif code in DROPS:
            made.drop(DROPS[code])
        elif code == MEMBER:
            made.put("member", 1)
        elif code == PACKED:
            made.put("packed", [value])
        elif code == ATTRS:
            made.put("attrs", {str(value): float(value)})
        elif code == CLOSED:
            made.put("closed", -1)
        elif code == PARTS:
            made.put("parts", [{"x": value}])
        elif code == LEVELS:
            made.put("levels", [1])
    return made


FIELDS: list[dict[str, Any]] = [
    {"number": 5}, {"name": "a"}, {"part": {"x": 1}}, {"part": {"text": "b", "next": {"x": 2}}},
    {"packed": [1, -2]}, {"attrs": {"1": 1.0}}, {"left": {"x": 3}}, {"left": {"text": "c"}},
    {"right": {"x": 4, "text": "d"}}, {"plain": 6}, {"member": 1}, {"group": {"x": 7}},
    {"group": {"next": {"x": 8}}}, {"closed": 1}, {"parts": [{"x": 9}, {}]}, {"levels": [0, 1]}, {"far": 10},
]  # fmt: skip
STRANGE = [
    UNKNOWN,
    b"\x08\x85\x80\x00",  # number = 5, by a varint of three bytes
    b"\x58\x63",  # closed = 99
    b"\x48\x63",  # member = 99
    b"\x68\x63",  # levels: 99
    b"\x6a\x02\x01\x00",  # levels, packed
    b"\x20\x06",  # packed, by itself
    b"\x10\x01",  # name as a varint
    b"\x53\x92\x03\x01z\x54",  # the group with an unknown field
    b"\xfb\x01\x08\x01\xfc\x01",  # an unknown group
    b"\x1a\x05\x88\x80\x00\x81\x00",  # part: x in long varints
]


@st.composite
def payloads(draw: st.DrawFn) -> list[Any]:
    return draw(st.lists(st.sampled_from([*FIELDS, *STRANGE]), max_size=12))


def serialized(root: Any, chosen: list[Any]) -> bytes:
    whole = (each if isinstance(each, bytes) else written(root, each) for each in chosen)
    return b"".join(whole)


def written(root: Any, fields: dict[str, Any]) -> bytes:
    data: bytes = root.message_class(**fields).SerializeToString(deterministic=True)
    return data


@pytest.mark.slow
@given(payloads(), st.lists(st.tuples(st.integers(0, 29), st.integers(-3, 300)), max_size=8))
def test_as_in_python(root: Any, chosen: list[Any], steps: list[tuple[int, int]]) -> None:
    data = serialized(root, chosen)
    try:
        view = root.view_protobuf(data)
    except yj.DecodeError:
        return
    made = made_by(steps)
    if made.is_empty_somewhere():
        return
    note(f"{data.hex()} {made.changes()!r}")
    expected = root.update_protobuf(view, made.changes())
    # numba takes no empty list: the first step does nothing
    given_steps = np.array([(-1, 0), *steps], np.int64)
    buffer = np.zeros(4096, np.uint8)
    first, second, finished = updated(root, view, given_steps, buffer)
    assert bytes(first).hex() == bytes(second).hex() == expected.hex()
    assert bytes(finished) == written(root, made.whole())


# ---- what an update takes and refuses ----


@njit
def raised(message_type, source, number, buffer):  # type: ignore[no-untyped-def]
    b = message_type.builder(buffer)
    b.part.x = number
    return b.update(source)


def test_sources(root: Any) -> None:
    data = written(root, {"name": "n", "part": {"text": "t"}}) + UNKNOWN
    wanted = written(root, {"name": "n", "part": {"x": 3, "text": "t"}}) + UNKNOWN
    records = yj.records(root, [b"", data], representation="protobuf")
    held = np.frombuffer(bytearray(b"--" + data), np.uint8)

    @njit
    def of_many(message_type, records, array):  # type: ignore[no-untyped-def]
        b = message_type.builder()
        b.part.x = 3
        view = message_type.view_protobuf(array)
        return b.update(records[1]), b.update(records[0]), b.update(view), b.update(array)

    of_record, of_nothing, of_array_view, of_array = of_many(root, records, held[2:])
    assert bytes(of_record) == bytes(of_array_view) == bytes(of_array) == wanted
    assert bytes(of_nothing) == written(root, {"part": {"x": 3}})
    view = root.view_protobuf(data)
    assert bytes(raised(root, view, 3, np.zeros(99, np.uint8))) == wanted
    # Into the buffer that is read.
    room = np.zeros(64, np.uint8)
    room[: len(data)] = np.frombuffer(data, np.uint8)
    assert bytes(raised(root, room[: len(data)], 3, room)) == wanted
    assert bytes(raised(root, np.zeros(0, np.uint8), 3, room)) == written(root, {"part": {"x": 3}})


def test_nested_and_merged_views(root: Any) -> None:
    part = root.schema["ju.Part"]

    @njit
    def of_nested(part_type, view):  # type: ignore[no-untyped-def]
        b = part_type.builder()
        b.x = 300
        return b.update(view.part), b.update(view.left)

    data = written(root, {"part": {"x": 1, "text": "t"}}) + written(root, {"name": "n", "part": {"x": 2}})
    of_part, of_absent = of_nested(part, root.view_protobuf(data))
    assert bytes(of_part) == part.update_protobuf(root.view_protobuf(data).part, {"x": 300})
    assert bytes(of_part) == part.message_class(x=300, text="t").SerializeToString()
    assert bytes(of_absent) == part.message_class(x=300).SerializeToString()


@pytest.mark.parametrize(
    "data, text",
    [
        (b"\x12\x05a", "ju.Root, field name: a size of 5 bytes, but 1 are left at byte 1"),
        (
            b"\x1a\x03\x08\x01\x08",
            "ju.Part, field x: a varint doesn't end within the 0 bytes that are left at byte 3",
        ),
        (b"\x1a\x02\x08\x01\x1a\x01\x0f", "ju.Part, field x: wire type 7 (at most 5) at byte 2"),
        (b"\x00\x01", "ju.Root: field number 0 (at least 1) at byte 0"),
        (b"\x53\x08\x01", "ju.Root, field group: group 10 has no end at byte 0"),
        (b"\x53" * 200, "ju.Root, field group: messages nested 101 deep (at most 100) at byte 100"),
    ],
)
def test_broken_messages(root: Any, data: bytes, text: str) -> None:
    room = np.zeros(64, np.uint8)
    with pytest.raises(yj.DecodeError) as caught:
        raised(root, np.frombuffer(data, np.uint8), 1, room)
    assert str(caught.value) == text
    assert not room.any()


def test_a_buffer_that_is_too_small(root: Any) -> None:
    room = np.zeros(4, np.uint8)
    with pytest.raises(yj.errors.BufferTooSmallError) as caught:
        raised(root, np.frombuffer(UNKNOWN, np.uint8), 1, room)
    assert str(caught.value) == "ju.Root: 9 bytes are needed, but the buffer has 4"
    assert not room.any()


TAKES = "update() takes a view of protobuf bytes, an array of uint8 or bytes"
REFUSED = {
    "b.update()": "update() takes one view of protobuf bytes",
    "b.update(5)": f"{TAKES}, not int",
    "b.update(b.part)": f"{TAKES}, not nested message of a builder[",
    "b.update(v.part)": "update() of a builder of ju.Root takes no protobuf view[ju.Part ",
    "b.update(y)": f"{TAKES}, not view[ju.Root ",
}


@pytest.mark.parametrize("code", REFUSED)
def test_refused_when_compiled(root: Any, code: str) -> None:
    names: dict[str, Any] = {}
    exec(f"def f(T, v, y):\n    b = T.builder()\n    {code}\n", names)
    with pytest.raises(CompileError) as caught:
        njit(names["f"])(root, root.view_protobuf(b""), root.view(root.encode({})))
    assert caught.value.text.startswith(REFUSED[code])


def test_places_of_a_oneof_that_switches_often(root: Any) -> None:
    """Each switch forgets what came before, without looking at all of it again."""
    switching = (b"\x32\x00\x40\x01" + UNKNOWN) * 50_000
    data = switching + b"\x32\x02\x08\x01"

    @njit
    def of_left(message_type, source):  # type: ignore[no-untyped-def]
        b = message_type.builder()
        b.left.text = "t"
        return b.update(source)

    found = bytes(of_left(root, np.frombuffer(data, np.uint8)))
    assert found == UNKNOWN * 50_000 + written(root, {"left": {"x": 1, "text": "t"}})


def test_random_order_of_parts(root: Any) -> None:
    fields = {"number": 5, "name": "a", "packed": [1], "part": {"x": 1}, "attrs": {"1": 1.0}, "far": 1}
    data = written(root, fields)
    parts = [data[part.begin : part.end] for part in parts_of(data)]
    for seed in range(20):
        random.Random(seed).shuffle(parts)
        payload = UNKNOWN.join(parts)
        found = raised(root, np.frombuffer(payload, np.uint8), 9, np.zeros(999, np.uint8))
        assert bytes(found) == root.update_protobuf(payload, {"part.x": 9})
