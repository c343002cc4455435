"""Presence bits that contradict their slots: refused for scalars, not looked at for the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import yaffjit as yj
from yaffjit.codec.locate import EXPLICIT, FLAT, SIZED, presence, read_u16, read_u32
from yaffjit.codec.verify import _loaded
from yaffjit.codec.verify_plain import verify_plain

FIELDS = """
  optional int32 number = 1; optional bool flag = 2; optional double real = 3; optional string text = 4;
  optional bytes raw = 5; Leaf leaf = 6; repeated int32 many = 7; map<string, int32> names = 8;
  int32 implicit = 9; string implicit_text = 10; repeated Leaf leaves = 11;
  oneof kind { int64 whole = 12; string word = 13; Leaf part = 14; bool yes = 15; }
  optional int32 zero = 16;
"""
CONTENT = {
    "number": 7,
    "flag": True,
    "real": 1.5,
    "text": "a",
    "raw": b"b",
    "leaf": {"n": 1},
    "many": [1, 2],
    "names": {"c": 3},
    "implicit": 4,
    "implicit_text": "d",
    "leaves": [{}, {}],
}
KINDS: list[dict[str, Any]] = [{"whole": 5}, {"word": "e"}, {"part": {}}, {"yes": True}, {}]


@pytest.fixture(scope="module")
def types(tmp_path_factory: pytest.TempPathFactory) -> dict[str, yj.MessageType]:
    """By case: dynamic, pinned FLAT, and dynamic read by a schema that has lost some fields."""
    folder = tmp_path_factory.mktemp("presence")
    made = {}
    for case in ("dynamic", "flat", "gaps"):
        fields = FIELDS
        if case == "gaps":
            for name in ("optional double real = 3;", "optional bytes raw = 5;", "repeated int32 many = 7;"):
                fields = fields.replace(name, "")
        option = "option (yaff.proto.message) = {layout: LAYOUT_FLAT};" if case == "flat" else ""
        path = folder / f"{case}.proto"
        path.write_text(
            f'syntax = "proto3"; package presence; import "yaff/proto/options.proto";'
            f"message Leaf {{ optional int32 n = 1; }} message M {{ {option} {fields} }}"
        )
        made[case] = yj.load_schema(path)["presence.M"]
    return made


def contents(message_type: yj.MessageType) -> list[dict[str, Any]]:
    """Messages with presence bits: ``zero`` can't be told from an absent one without."""
    whole = [{**CONTENT, **kind, "zero": 0} for kind in KINDS]
    return [*whole, {"zero": 0}, {"zero": 0, "number": 7, "yes": True}, {"zero": 0, "leaf": {}, "text": ""}]


def flipped(buf: bytes, id: int) -> bytes:
    """The buffer with the presence bit of an id of its root turned over."""
    at = read_u32(buf)[0]
    header = read_u16(buf, at)[0]
    assert header & FLAT and header & EXPLICIT
    bit = (3 if header & SIZED else 1) * (id - 1)
    changed = bytearray(buf)
    changed[at - 1 - (bit >> 3)] ^= 1 << (bit & 7)
    return bytes(changed)


def refusal(message_type: yj.MessageType, buf: bytes) -> str | None:
    """Why a buffer is refused, by the plain verifier and by the kernel."""
    found = []
    for verify in (lambda: verify_plain(message_type.plan, buf), lambda: message_type.verify(buf)):
        try:
            verify()
            found.append(None)
        except yj.VerifyError as error:
            found.append(str(error))
    assert found[0] == found[1]
    return found[0]


def check_routes(message_type: yj.MessageType, buf: bytes) -> None:
    """All readers say the same of the presence of each field."""
    mp = message_type.plan
    message = message_type.decode(buf)
    view = message_type.view(buf)
    recs = yj.records(message_type, [buf])
    at = read_u32(buf)[0]
    names = [f.name for f in mp.fields if f.explicit]
    for name in names:
        has = message.HasField(name)
        f = mp.by_name[name]
        assert view.HasField(name) == has, name
        assert message_type.presence(name)(np.frombuffer(buf, np.uint8), 0) == has, name
        if not f.oneof:
            assert presence(mp, f)(buf, at) == has, name
        if f.is_scalar:
            columns = recs.columns(name)
            assert bool(columns.present(name)[0]) == has, name
            assert columns[name][0] == getattr(view, name) == getattr(message, name), name
    assert view.WhichOneof("kind") == message.WhichOneof("kind")
    assert view.HasField("kind") == message.HasField("kind")
    assert [field.name for field, _ in view.ListFields()] == [field.name for field, _ in message.ListFields()]
    assert view == message
    assert yj.to_dict(view) == yj.to_dict(message)
    assert message_type.decode(message_type.encode(view)) == message


@pytest.mark.parametrize("case", ["dynamic", "flat", "gaps"])
def test_each_bit_turned_over(types: dict[str, yj.MessageType], case: str) -> None:
    _loaded.load()
    writer = types["dynamic" if case == "gaps" else case]
    reader = types[case]
    refused = accepted = 0
    for content in contents(writer):
        buf = writer.encode(content)
        check_routes(reader, buf)
        last = writer.plan.by_name["zero"].id
        for f in writer.plan.fields:
            if f.id > last:
                continue
            changed = flipped(buf, f.id)
            sentence = refusal(reader, changed)
            known = reader.plan.by_name.get(f.name)
            at = read_u32(buf)[0]
            slot = buf[at + 2 + f.offset :][: f.width]
            bits = int.from_bytes(slot, "little")
            if known is not None and known.is_scalar and known.explicit and bits:
                assert sentence == (
                    f"presence.M, field {f.name}: absent by its presence bit, but its slot holds 0x{bits:x} "
                    f"(must be 0) at byte {at + 2 + f.offset}"
                )
                refused += 1
            else:
                assert sentence is None
                check_routes(reader, changed)
                accepted += 1
    assert refused > 10
    assert accepted > 60


def test_bits_of_nested_messages_and_elements(types: dict[str, yj.MessageType]) -> None:
    message_type = types["dynamic"]
    leaf = message_type.schema["presence.Leaf"]
    good = leaf.encode({"n": 0})
    at = read_u32(good)[0]
    bad = bytearray(good)
    bad[at + 2 : at + 6] = (9).to_bytes(4, "little")
    assert leaf.view(bytes(bad)).n == 9
    bad[at - 1] ^= 1
    sentence = (
        "presence.Leaf, field n: absent by its presence bit, but its slot holds 0x9 (must be 0) at byte"
    )
    assert refusal(leaf, bytes(bad)) == f"{sentence} {at + 2}"
    for content, path in (
        ({"leaf": {"n": 0}}, "leaf.n"),
        ({"leaves": [{}, {"n": 0}]}, "leaves[1].n"),
        ({"part": {"n": 0}}, "part.n"),
    ):
        buf = message_type.encode(content)
        inner = bytes(good[at - 1 : at + 6])
        start = buf.index(inner)
        changed = buf[:start] + bytes(bad[at - 1 : at + 6]) + buf[start + len(inner) :]
        wanted = f"presence.M, field {path}: absent by its presence bit, but its slot holds 0x9 (must be 0)"
        assert str(refusal(message_type, changed)).startswith(wanted)
