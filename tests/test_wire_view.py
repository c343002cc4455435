"""Views of protobuf's own bytes, against google.protobuf: values, what is refused where, what is scanned."""

from __future__ import annotations

import copy
import json
import mmap
import os
import pickle
import random
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import RandomSchema, messages, schemas
from vectors import TESTS
from walk import check_view
from wire_messages import Maker
from wire_view_campaign import compare, outcome, run, run_by_kernel

import yaffjit as yj
from yaffjit.view import View, wire, wire_index, wire_view_class

# A twentieth of the campaign `python -m tests.wire_view_campaign`.
MESSAGES = int(os.environ.get("YAFFJIT_WIRE_MESSAGES", "50000"))
SEED = int(os.environ.get("YAFFJIT_SEED", "1"))

BANNER = """
    id: 18446744073709551615 price: 0.25 limit: 0 color: COLD title: "tea \\303\\251" raw: "\\000\\377"
    leaf { n: -1 text: "leaf" } tags: "a" tags: "" weights: 1.5 weights: -0.0 leaves { } leaves { n: 7 }
    attrs { key: "x" value: 1.5 } attrs { key: "" value: 0 } by_id { key: -1 value { n: 3 } }
    account: 5 parent { id: 2 parent { title: "far" } } active: true dropped: 4
"""


@cache
def schema(name: str) -> yj.Schema:
    return yj.load_schema(TESTS / "schemas" / name)


def banner_type() -> yj.MessageType:
    return schema("views.proto")["views.Banner"]


def everything() -> yj.MessageType:
    return schema("wire.proto")["wire.Everything"]


@pytest.fixture
def banner() -> tuple[Any, Any]:
    """A view and the message that it must equal."""
    message = text_format.Parse(BANNER, banner_type().message_class())
    return banner_type().view_protobuf(message.SerializeToString()), message


# --- values ---


@pytest.mark.slow
def test_damaged_messages() -> None:
    told = run(MESSAGES, SEED)
    # Enough of each, so that nothing is compared with nothing.
    assert told["accepted"] > MESSAGES // 4
    assert told["refused, first fault"] > MESSAGES // 4
    assert told["refused, later fault"] > 0
    assert told["refused, not met"] > 0


def test_damaged_messages_by_the_kernel() -> None:
    told = run_by_kernel(MESSAGES // 10, SEED)
    assert told["accepted"] > MESSAGES // 40
    assert told["refused, first fault"] > MESSAGES // 40


def test_nothing_outside_is_read() -> None:
    paths = f"import sys; sys.path[:0] = {[str(TESTS.parent), str(TESTS)]!r}"
    code = f"{paths}; import wire_view_campaign; wire_view_campaign.read_guarded(2000, 3)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("guarded: ")


def test_large_messages_by_the_kernel() -> None:
    assert wire_index.work.load() is not None
    message_type = banner_type()
    message = text_format.Parse(BANNER, message_type.message_class())
    for row in range(1000):
        message.leaves.add(n=row)
        message.attrs[str(row)] = row
    payload = message.SerializeToString()
    compare(message_type.view_protobuf(payload), message)
    compare(message_type.view_protobuf(payload + payload), message_type.message_class.FromString(payload * 2))
    with pytest.raises(yj.VerifyError) as checked:
        message_type.verify_protobuf(payload + b"\x0f")
    with pytest.raises(yj.VerifyError) as caught:
        message_type.view_protobuf(payload + b"\x0f")
    assert str(caught.value) == str(checked.value)


def load(random_schema: RandomSchema) -> yj.Schema:
    return yj.load_schema(random_schema.descriptor_set.SerializeToString())


def shown(value: Any) -> Any:
    """A value as text, for the sake of NaN; pairs of maps in any order."""
    if isinstance(value, dict):
        return sorted((repr(key), shown(held)) for key, held in value.items())
    return list(map(shown, value)) if isinstance(value, list) else repr(value)


@given(st.data())
@settings(max_examples=int(os.environ.get("YAFFJIT_EXAMPLES", "60")))
def test_random_schemas(data: st.DataObject) -> None:
    """Of messages that YaFF can't hold too, and of fields that it doesn't carry."""
    random_schema = data.draw(schemas())
    loaded = load(random_schema)
    maker = Maker(random.Random(data.draw(st.integers(0, 2**32))))
    for message_type in loaded.messages.values():
        made = [maker.message(message_type.message_class.DESCRIPTOR) for _ in range(3)]
        for payload in [*made, *map(maker.damaged, made)]:
            outcome(message_type, payload)
    root = data.draw(st.sampled_from(random_schema.roots))
    message = data.draw(messages(random_schema.message_class(root)))
    own = loaded[root].message_class.FromString(message.SerializePartialToString())
    view = loaded[root].view_protobuf(message.SerializePartialToString())
    check_view(view, own)
    assert shown(yj.to_dict(view, unknown_fields=True)) == shown(yj.to_dict(own, unknown_fields=True))


def test_the_same_as_a_message(banner: tuple[Any, Any]) -> None:
    view, message = banner
    check_view(view, message)
    assert view == message
    assert view == banner_type().view_protobuf(message.SerializeToString())
    assert view != banner_type().view_protobuf(b"")
    assert str(view) == str(message)
    assert repr(view).splitlines() == ["# views.Banner, view", *str(message).splitlines()]
    assert repr(banner_type().view_protobuf(b"")) == "# views.Banner, view, empty"
    assert view.to_message() == message
    assert view.SerializeToString(deterministic=True) == message.SerializeToString(deterministic=True)
    assert (view.ByteSize(), view.IsInitialized()) == (message.ByteSize(), True)
    assert yj.to_dict(view) == yj.to_dict(message)
    # Pairs of protobuf's maps come in any order.
    assert json.loads(yj.to_json(view)) == json.loads(yj.to_json(message))
    assert set(dir(view)) >= {"id", "title", "HasField", "dropped", "RED"}
    assert "Clear" not in dir(view)
    assert (view.COLD, view.Color.Name(view.color), view.ID_FIELD_NUMBER) == (-3, "COLD", 1)


def test_the_same_as_a_view_of_yaff(banner: tuple[Any, Any]) -> None:
    view, message = banner
    message.ClearField("dropped")
    own = banner_type().view(banner_type().encode(message))
    view = banner_type().view_protobuf(message.SerializeToString())
    assert view == own
    assert own == view
    assert banner_type().encode(view) == banner_type().encode(message)
    assert banner_type().encode({"parent": view}) == banner_type().encode({"parent": message})
    assert [f.name for f, _ in view.ListFields()] == [f.name for f, _ in own.ListFields()]
    assert repr(view) == repr(own)
    assert View.HasField(view, "contact")
    assert (view.WhichOneof("contact"), view.account, view.phone, view.person.n) == ("account", 5, "", 0)


def test_containers(banner: tuple[Any, Any]) -> None:
    view, message = banner
    assert (view.tags, view.tags[-1], view.tags[:1], list(reversed(view.tags))) == (
        ["a", ""],
        "",
        ["a"],
        ["", "a"],
    )
    assert ("a" in view.tags, "b" in view.tags, view.tags.index(""), view.tags.count("a")) == (
        True,
        False,
        1,
        1,
    )
    assert (view.weights, view.weights[1:], 1.5 in view.weights) == ([1.5, -0.0], [-0.0], True)
    assert [leaf.n for leaf in view.leaves] == [0, 7]
    assert (view.leaves[-1].n, [leaf.n for leaf in view.leaves[::-1]]) == (7, [7, 0])
    assert (len(view.attrs), dict(view.attrs), view.attrs["x"]) == (2, {"": 0.0, "x": 1.5}, 1.5)
    assert (view.attrs["gone"], view.attrs.get("gone"), "gone" in view.attrs, bool(view.attrs)) == (
        0.0,
        None,
        False,
        True,
    )
    assert (view.by_id[-1].n, view.by_id[5].n, next(iter(view.by_id))) == (3, 0, -1)
    assert view.by_id.GetEntryClass() is message.by_id.GetEntryClass()
    assert (repr(view.tags), repr(view.weights), repr(view.attrs)) == (
        "['a', '']",
        "[1.5, -0.0]",
        repr(dict(view.attrs)),
    )
    assert copy.copy(view.tags) == ["a", ""]
    assert pickle.loads(pickle.dumps(view.attrs)) == {"": 0.0, "x": 1.5}
    with pytest.raises(IndexError, match=r"list index out of range: leaves\[2\] of 2 elements"):
        view.leaves[2]
    with pytest.raises(TypeError, match="a boolean"):
        view.by_id[True]
    empty = banner_type().view_protobuf(b"")
    assert (empty.tags, len(empty.leaves), dict(empty.attrs), empty.by_id[3].n) == ([], 0, {}, 0)


def test_views_are_read_only_and_stay_where_they_are(banner: tuple[Any, Any]) -> None:
    view, _ = banner
    with pytest.raises(AttributeError, match="read-only"):
        view.id = 3
    with pytest.raises(
        TypeError, match=r"a view of views.Banner can't be pickled: it only points into a buffer"
    ):
        pickle.dumps(view)
    assert copy.deepcopy(view) is view
    with pytest.raises(ValueError, match='has no "nope" field'):
        view.HasField("nope")
    with pytest.raises(ValueError, match="does not have presence"):
        view.HasField("id")


def test_extensions() -> None:
    message_type = everything()
    pool = message_type.message_class.DESCRIPTOR.file.pool
    note, extra, more, state = (
        pool.FindExtensionByName(f"wire.{name}") for name in ("note", "extra", "more", "state")
    )
    message = message_type.message_class(i32=1)
    message.Extensions[note] = "hi"
    message.Extensions[extra].extend([1, 2])
    message.Extensions[more].i32 = 5
    view = message_type.view_protobuf(message.SerializeToString())
    assert (view.Extensions[note], view.Extensions[extra], view.Extensions[more].i32) == ("hi", [1, 2], 5)
    assert (view.Extensions[state], message.Extensions[state]) == (0, 0)
    assert list(view.Extensions) == [more, note, extra]
    assert len(view.Extensions) == len(message.Extensions) == 3
    assert (note in view.Extensions, state in view.Extensions) == (True, False)
    assert (view.HasExtension(note), view.HasExtension(state)) == (True, False)
    assert [field.number for field, _ in view.ListFields()] == [1, 100, 101, 102]
    for odd, text in (
        (extra, "Field is repeated. A singular method is required."),
        ("x", "Object 'x' is not a field descriptor"),
        (message_type.message_class.DESCRIPTOR.fields[0], "Field wire.Everything.i32 is not an extension"),
    ):
        for held in (view, message):
            with pytest.raises(KeyError, match=re.escape(text)):
                held.HasExtension(odd)
    with pytest.raises(KeyError, match=re.escape("Extension doesn't match (wire.Empty vs wire.note)")):
        schema("wire.proto")["wire.Empty"].view_protobuf(b"").HasExtension(note)


def test_well_known_types() -> None:
    message_type = schema("views.proto")["views.Times"]
    message = message_type.message_class()
    message.at.FromMilliseconds(1_500)
    view = message_type.view_protobuf(message.SerializeToString())
    assert view.at.ToDatetime() == message.at.ToDatetime()
    assert yj.to_json(view) == yj.to_json(message)


def test_arrays_lie_in_the_bytes() -> None:
    message_type = schema("views.proto")["views.Arrays"]
    message = message_type.message_class(d=[1.5, -0.0, 2.5], i32=range(-500, 500), b=[True] * 3, e=[1, 7])
    payload = message.SerializeToString()
    view = message_type.view_protobuf(payload)
    doubles = np.asarray(view.d)
    assert (doubles.dtype, doubles.tolist(), doubles.flags.writeable) == (np.float64, [1.5, -0.0, 2.5], False)
    assert np.shares_memory(doubles, np.frombuffer(payload, np.uint8))
    assert np.asarray(view.i32).tolist() == list(range(-500, 500))
    assert np.asarray(view.i32).dtype == np.int32
    assert (np.asarray(view.b).dtype, np.asarray(view.e).dtype) == (np.bool_, np.int32)
    assert not np.asarray(view.b).flags.writeable
    assert not np.asarray(view.i32).flags.writeable
    assert (view.i32[-1], view.i32[998:], 499 in view.i32, view.i32.count(0)) == (499, [498, 499], True, 1)
    with pytest.raises(ValueError, match="as float32 it needs a copy"):
        view.d.__array__(np.dtype("float32"), copy=False)
    # Two runs and single values are one field.
    mixed = message_type.view_protobuf(payload + payload + b"\x39" + bytes(8))
    assert mixed.d == [1.5, -0.0, 2.5] * 2 + [0.0]
    assert np.asarray(mixed.d).tolist() == mixed.d[:]


@pytest.mark.parametrize("nbytes", [1, 20, 70, 2000])
@pytest.mark.parametrize("parts", [1, 2])
def test_packed_numbers_few_and_many(nbytes: int, parts: int) -> None:
    chance = random.Random(nbytes)
    kinds = {"i32": 32, "u32": 32, "i64": 64, "u64": 64, "b": 64, "e": 32}
    message_type = schema("views.proto")["views.Arrays"]
    maker = Maker(chance)
    for name in kinds:
        number = message_type.message_class.DESCRIPTOR.fields_by_name[name].number
        payload = b""
        for _ in range(parts):
            run_bytes = b""
            while len(run_bytes) < nbytes:
                run_bytes += maker.varint(maker.number())
            payload += maker.counted(number, run_bytes)
        message = message_type.message_class.FromString(payload)
        view = message_type.view_protobuf(payload)
        assert list(getattr(view, name)) == list(getattr(message, name))
        assert np.asarray(getattr(view, name)).tolist() == list(getattr(message, name))


# --- how far is read ---


def test_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening scans the top level only; what is nested when it's entered, once a view."""
    scanned: list[str] = []
    scan = wire.scan

    def counting(typ: Any, *rest: Any) -> bool:
        scanned.append(typ.full_name)
        return scan(typ, *rest)

    monkeypatch.setattr(wire, "scan", counting)
    message = text_format.Parse(BANNER, banner_type().message_class())
    for cls in ("views.Banner", "views.Leaf"):  # their default instances are opened once a process
        wire_view_class(schema("views.proto")._plan, cls)._default_()
    scanned.clear()
    view = banner_type().view_protobuf(message.SerializeToString())
    assert scanned == ["views.Banner"]
    assert (view.id, view.title, view.tags[0], view.HasField("leaf"), len(view.leaves)) == (
        2**64 - 1,
        "tea é",
        "a",
        True,
        2,
    )
    assert scanned == ["views.Banner"]
    assert (view.leaf.n, view.leaf.text) == (-1, "leaf")
    assert scanned == ["views.Banner", "views.Leaf"]
    assert view.leaf is view.leaf
    scanned.clear()
    assert (view.leaves[1].n, view.leaves[1].text) == (7, "")
    assert scanned == ["views.Leaf"]
    scanned.clear()
    assert (view.attrs["x"], view.attrs[""], len(view.attrs)) == (1.5, 0.0, 2)
    assert scanned == ["views.Banner.AttrsEntry"] * 2
    scanned.clear()
    assert (view.by_id[-1].n, view.by_id[-1].text) == (3, "")
    assert scanned == ["views.Banner.ByIdEntry", "views.Leaf"]


def test_fragments_are_merged() -> None:
    message_type = everything()
    cases = [
        b"\x8a\x01\x02\x08\x05" + b"\x8a\x01\x04\x10\x06\x08\x07",  # child, twice
        b"\x8a\x01\x05\x8a\x01\x02\x08\x01" + b"\x8a\x01\x05\x8a\x01\x02\x10\x02",  # nested, in both
        b"\xf2\x01\x02\x08\x05" + b"\xf2\x01\x02\x10\x06",  # the same member of a oneof
        b"\xf2\x01\x02\x08\x05" + b"\xfa\x01\x01a" + b"\xf2\x01\x02\x10\x06",  # with another one between
        b"\xd2\x01\x08\x08\x01\x12\x00\x12\x02\x08\x05",  # a map's value in parts
    ]
    for payload in cases:
        compare(message_type.view_protobuf(payload), message_type.message_class.FromString(payload))
    view = message_type.view_protobuf(cases[0])
    assert view.child is view.child
    assert (view.child.i32, view.child.s32) == (7, 3)
    # Each fragment is bounded by itself.
    broken = b"\x8a\x01\x01\x08" + b"\x8a\x01\x02\x05\x00"
    with pytest.raises(yj.DecodeError) as caught:
        message_type.view_protobuf(broken).child  # noqa: B018
    assert str(caught.value) == (
        "wire.Everything, field child.i32: a varint doesn't end within the 0 bytes that are left at byte 4"
    )
    # What is wrong within the merged message is where it is in the bytes.
    with pytest.raises(yj.DecodeError) as caught:
        view = message_type.view_protobuf(b"\x08\x01\x8a\x01\x02\x08\x05\x8a\x01\x04\x8a\x01\x01\x0f")
        view.child.child  # noqa: B018
    assert str(caught.value) == "wire.Everything, field child.child.i32: wire type 7 (at most 5) at byte 13"


def test_text_that_is_not_utf8() -> None:
    checked = banner_type().view_protobuf(b"\x2a\x02a\xff" + b"\x42\x00" + b"\x42\x01\xfe")
    assert checked.tags[0] == ""
    with pytest.raises(yj.DecodeError) as caught:
        checked.title  # noqa: B018
    assert str(caught.value) == "views.Banner, field title: text isn't UTF-8 from byte 0xff on at byte 3"
    with pytest.raises(yj.DecodeError) as caught:
        list(checked.tags)
    assert str(caught.value) == "views.Banner, field tags[1]: text isn't UTF-8 from byte 0xfe on at byte 8"
    assert repr(checked) == (
        "# views.Banner, view; can't be shown: "
        "views.Banner, field title: text isn't UTF-8 from byte 0xff on at byte 3"
    )
    # proto2 doesn't check; protobuf's messages have bytes there.
    payload = b"\x7a\x01\xff" + b"\xba\x01\x01\xfe"
    view, message = everything().view_protobuf(payload), everything().message_class.FromString(payload)
    assert (view.text, view.texts) == (b"\xff", [b"\xfe"]) == (message.text, list(message.texts))
    assert yj.to_dict(view) == yj.to_dict(message)
    flags = b"\xda\x01\x05\x08\x01\x12\x01\xfd"  # by_flag: a text in a map
    for bad in (payload[:3], payload[3:], b"\x8a\x01\x03" + payload[:3], flags):
        with pytest.raises(yj.JsonError, match=r"wire.Everything has no JSON form: its text isn't UTF-8"):
            yj.to_json(everything().view_protobuf(bad))
    assert json.loads(yj.to_json(everything().view_protobuf(b"\x82\x01\x01\xff"))) == {"raw": "/w=="}


LEFT = "a varint doesn't end within the 0 bytes that are left"
ODD = "wire type 7 (at most 5)"
# Bytes of views.Banner, how a reader comes to what is wrong, the field, and the words.
FAULTS: list[tuple[bytes, Any, str, str]] = [
    (b"\x08", None, "id", f"{LEFT} at byte 1"),
    (b"\x08" + b"\x80" * 10 + b"\0", None, "id", "a varint has over 10 bytes at byte 1"),
    (b"\x11\x00", None, "price", "a value of 8 bytes, but 1 are left at byte 1"),
    (b"\x2a\x05ab", None, "title", "a size of 5 bytes, but 2 are left at byte 1"),
    (b"\x00\x00", None, "", "field number 0 (at least 1) at byte 0"),
    (b"\x0e\x00", None, "id", "wire type 6 (at most 5) at byte 0"),
    (b"\x0c", None, "", "end of group 1 without its beginning at byte 0"),
    (b"\xa3\x06\x08\x01", None, "#100", "group 100 has no end at byte 0"),
    (b"\xa3\x06\x14", None, "#100", "end of group 2 within group 100 at byte 2"),
    (b"\xff\xff\xff\xff\x7f", None, "", "tag 34359738367 (at most 4294967295) at byte 0"),
    (b"\x4a\x03abc", None, "weights[0]", "3 bytes of packed values that take 4 each at byte 1"),
    (b"\x3a\x01\x08", lambda view: view.leaf, "leaf.n", f"{LEFT} at byte 3"),
    (
        b"\x52\x00\x52\x01\x0f",
        lambda view: view.leaves[1],
        "leaves[1].n",
        "wire type 7 (at most 5) at byte 4",
    ),
    (
        b"\x52\x00\x52\x01\x0f",
        lambda view: list(view.leaves),
        "leaves[1].n",
        "wire type 7 (at most 5) at byte 4",
    ),
    (
        b"\x5a\x01\x11",
        lambda view: view.attrs["x"],
        "attrs[0].value",
        "a value of 8 bytes, but 0 are left at byte 3",
    ),
    (
        b"\x5a\x03\x0a\x01\xff",
        lambda view: len(view.attrs),
        "attrs[0].key",
        "text isn't UTF-8 from byte 0xff on at byte 4",
    ),
    (
        b"\x62\x02\x12\x00\x62\x03\x12\x01\x08",
        lambda view: view.by_id[0],
        "by_id[1].value.n",
        f"{LEFT} at byte 9",
    ),
    (
        b"\x82\x01\x05\x82\x01\x02\x08\x80",
        lambda view: view.parent.parent,
        "parent.parent.id",
        "a varint doesn't end within the 1 bytes that are left at byte 7",
    ),
]


@pytest.mark.parametrize(("payload", "read", "path", "text"), FAULTS)
def test_faults(payload: bytes, read: Any, path: str, text: str) -> None:
    """One text for a fault, whether it's met or looked for; and in records with the row."""
    wanted = f"views.Banner, field {path}: {text}" if path else f"views.Banner: {text}"
    read = read or View.ByteSize  # never reached: opening refuses
    with pytest.raises(yj.VerifyError) as checked:
        banner_type().verify_protobuf(payload)
    assert str(checked.value) == wanted
    with pytest.raises(yj.VerifyError) as caught:
        read(banner_type().view_protobuf(payload))
    assert str(caught.value) == wanted
    assert (caught.value.found, caught.value.limit) == (checked.value.found, checked.value.limit)
    cls = wire_view_class(schema("views.proto")._plan, "views.Banner")
    with pytest.raises(yj.VerifyError) as caught:
        read(cls(b"\x08\x01" + payload + b"\x08\x01", 2, 2 + len(payload), row=7))
    assert str(caught.value) == f"row 7: {wanted}"


def test_packed_varints_that_do_not_end() -> None:
    message_type = schema("views.proto")["views.Arrays"]
    for run_bytes, text in (
        (b"\x01\x80", "field i32[1]: a varint doesn't end within the 1 bytes that are left at byte 7"),
        (
            b"\x01" * 100 + b"\x80",
            "field i32[1]: a varint doesn't end within the 1 bytes that are left at byte 106",
        ),
        (b"\x01" * 90 + b"\x80" * 10 + b"\0", "field i32[1]: a varint has over 10 bytes at byte 96"),
    ):
        payload = b"\x12\x02\x01\x02" + b"\x12" + bytes([len(run_bytes)]) + run_bytes
        view = message_type.view_protobuf(payload)
        assert view.d == []
        with pytest.raises(yj.VerifyError) as caught:
            view.i32  # noqa: B018
        assert str(caught.value) == f"views.Arrays, {text}"


def test_depth() -> None:
    def nested(depth: int) -> bytes:
        payload = b""
        for _ in range(depth):
            size = len(payload)
            payload = (
                b"\x82\x01"
                + (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7]))
                + payload
            )
        return payload

    def enter(payload: bytes) -> int:
        view = banner_type().view_protobuf(payload)
        depth = 0
        while View.HasField(view, "parent"):
            view = view.parent
            depth += 1
        return depth

    assert enter(nested(100)) == 100
    with pytest.raises(yj.VerifyError) as checked:
        banner_type().verify_protobuf(nested(101))
    with pytest.raises(yj.VerifyError) as caught:
        enter(nested(101))
    assert str(caught.value) == str(checked.value)
    assert "messages nested 101 deep (at most 100)" in str(caught.value)
    groups = b"\xa3\x06" * 101 + b"\xa4\x06" * 101
    with pytest.raises(yj.VerifyError, match=r"messages nested 101 deep \(at most 100\)"):
        banner_type().view_protobuf(groups)
    assert banner_type().view_protobuf(groups[2:-2]).id == 0


# --- what it's made of ---


def test_buffers(tmp_path: Path) -> None:
    message = text_format.Parse(BANNER, banner_type().message_class())
    payload = message.SerializeToString()
    path = tmp_path / "message"
    path.write_bytes(payload)
    writable = bytearray(payload)
    frozen = np.frombuffer(payload, np.uint8)
    view = banner_type().view_protobuf(writable)
    writable[:] = bytes(len(writable))
    assert view == message  # it was copied
    for buf in (memoryview(payload), frozen, np.array(frozen)):
        view = banner_type().view_protobuf(buf)
        assert view == message
        check_view(view, message)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        view = banner_type().view_protobuf(mapped)
        assert np.shares_memory(np.asarray(view.weights), np.frombuffer(mapped, np.uint8))
        check_view(view, message)
        del view
    assert banner_type().view_protobuf(bytearray()) == banner_type().message_class()
    with pytest.raises(TypeError):
        banner_type().view_protobuf("text")


def test_messages_that_yaff_cannot_hold(tmp_path: Path) -> None:
    path = tmp_path / "big.proto"
    path.write_text('syntax = "proto3"; message Far { int32 far = 100000; Far child = 2; }')
    message_type = yj.load_schema(path)["Far"]
    with pytest.raises(yj.SchemaError):
        message_type.view(b"")
    payload = message_type.message_class(far=5, child={"far": 6}).SerializeToString()
    view = message_type.view_protobuf(payload)
    assert (view.far, view.child.far, view.child.child.far) == (5, 6, 0)
    assert yj.to_dict(view) == {"child": {"far": 6}, "far": 5}


def test_names_that_views_keep(tmp_path: Path) -> None:
    path = tmp_path / "names.proto"
    path.write_text(
        'syntax = "proto3"; message M { int32 _found_ = 1; }'
        "message N { int32 HasField = 1; bool __len__ = 2; }"
    )
    loaded = yj.load_schema(path)
    with pytest.raises(
        yj.SchemaError, match="M has no views: they keep the name of its field _found_ for themselves"
    ):
        loaded["M"].view_protobuf(b"")
    view = loaded["N"].view_protobuf(b"\x08\x05\x10\x01")
    assert (view.HasField, view.__len__, bool(view)) == (5, True, True)


# --- unknown fields ---


def test_unknown_fields() -> None:
    payload = (
        b"\x08\x01"
        + b"\xa0\x06\x96\x01"  # 100, a varint
        + b"\xab\x06\x18\x07\x1a\x01a\xac\x06"  # 101, a group
        + b"\x2d\x01\x00\x00\x00"  # 5, a text, as fixed32
        + b"\x3a\x06\xb2\x06\x03abc"  # leaf, with 102
    )
    view = banner_type().view_protobuf(payload)
    assert yj.unknown_fields(view) == [
        (100, 0, 150, 2),
        (101, 3, [(3, 0, 7, 8), (3, 2, b"a", 10)], 6),
        (5, 5, 1, 15),
    ]
    assert yj.unknown_fields(view)[0].value == 150
    assert yj.unknown_fields(view.leaf) == [(102, 2, b"abc", 22)]
    assert yj.to_dict(view, unknown_fields=True) == {
        "id": 1,
        "leaf": {102: [b"abc"]},
        100: [150],
        101: [{3: [7, b"a"]}],
        5: [1],
    }
    assert yj.to_dict(view) == {"id": 1, "leaf": {}}
    assert yj.to_dict(view.to_message(), unknown_fields=True) == yj.to_dict(view, unknown_fields=True)
    assert yj.unknown_fields(banner_type().view(banner_type().encode({}))) == []
    with pytest.raises(TypeError, match="a view is needed, not bytes"):
        yj.unknown_fields(payload)


def test_unknown_numbers_of_closed_enums_and_pairs() -> None:
    payload = (
        b"\x70\x01\x70\x05"  # closed: 1, then 5, which it doesn't have
        + b"\xa2\x01\x03\x01\x09\x00"  # closeds, packed: 1, 9, 0
        + b"\xca\x01\x05\x0a\x01a\x10\x05"  # states, a pair with the value 5
        + b"\xca\x01\x05\x0a\x01b\x10\x01"
    )
    view = everything().view_protobuf(payload)
    assert (view.closed, view.closeds, dict(view.states)) == (1, [1, 0], {"b": 1})
    assert yj.unknown_fields(view) == [(14, 0, 5, 2), (20, 0, 9, 8), (25, 2, b"\x0a\x01a\x10\x05", 10)]
