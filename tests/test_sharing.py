"""Small buffers that are huge messages, since parts of a buffer may be shared."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from vectors import TESTS, load_vectors

import yaffjit as yj
from yaffjit.codec import decode as decode_module
from yaffjit.codec.decode import MAX_NBYTES, decode_within
from yaffjit.codec.locate import read_u32
from yaffjit.codec.measure import protobuf_nbytes
from yaffjit.codec.wire import TooLong, message_reader

PROTO = """
syntax = "proto3";
package sharing;
message N {
  repeated bytes raw = 1;
  repeated N many = 2;
  map<string, string> names = 3;
  repeated string texts = 4;
  N one = 5;
  repeated int32 numbers = 6;
  string text = 7;
}
"""
LONG = 100_000


@pytest.fixture(scope="module")
def shared_type(tmp_path_factory: pytest.TempPathFactory) -> yj.MessageType:
    path = tmp_path_factory.mktemp("sharing") / "sharing.proto"
    path.write_text(PROTO)
    return yj.load_schema(path)["sharing.N"]


def array(message_type: yj.MessageType, name: str, element: int, count: int) -> bytes:
    """A buffer whose root has the field ``name`` alone: ``count`` offsets to one object that follows them.

    ``element`` is what the object's first 4 bytes say: the length of a text.
    """
    f = message_type.plan.by_name[name]
    header = (0x8000 | (f.id + 1) << 2).to_bytes(2, "little")
    slots = bytes(f.offset) + (2 + f.offset + 4).to_bytes(4, "little")
    offsets = (4 * count).to_bytes(4, "little") * count
    body = count.to_bytes(4, "little") + offsets + element.to_bytes(4, "little") + b"x" * element + b"\0"
    return (4).to_bytes(4, "little") + header + slots + body


@pytest.fixture(scope="module")
def buffers(shared_type: yj.MessageType) -> dict[str, bytes]:
    """Each has 220 KB and is a message of 3 GB."""
    count = 30_000
    return {name: array(shared_type, name, LONG, count) for name in ("raw", "texts")}


def uses(function: Callable[[], Any]) -> tuple[float, int]:
    """Seconds and the most bytes at once."""
    tracemalloc.start()
    start = time.perf_counter()
    try:
        function()
    finally:
        seconds = time.perf_counter() - start
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return seconds, most


@pytest.mark.parametrize("name", ["raw", "texts"])
def test_messages_over_2_gib_are_refused_before_they_are_built(
    shared_type: yj.MessageType, buffers: dict[str, bytes], name: str
) -> None:
    buf = buffers[name]
    view = shared_type.view(buf)
    nbytes = 30_000 * (1 + 3 + LONG)
    sentence = f"sharing.N: {nbytes} bytes as a protobuf message (at most {MAX_NBYTES})"
    for build in (
        lambda: shared_type.decode(buf),
        view.to_message,
        view.ByteSize,
        view.SerializeToString,
        lambda: view == view,
        lambda: str(view),
        lambda: yj.to_json(view),
        lambda: shared_type.encode(view),
    ):

        def refused(build: Callable[[], Any] = build) -> None:
            with pytest.raises(yj.DecodeError) as caught:
                build()
            assert str(caught.value) == sentence

        _, most = uses(refused)
        assert most < 2**26


@pytest.mark.parametrize("name", ["raw", "texts"])
def test_repr_shows_the_beginning(shared_type: yj.MessageType, buffers: dict[str, bytes], name: str) -> None:
    view = shared_type.view(buffers[name])
    shown = repr(view)
    seconds, most = uses(lambda: repr(view))
    assert most < 2**26
    assert seconds < 2
    lines = shown.splitlines()
    assert lines[0] == "# sharing.N, view"
    line = f'{name}: "'
    assert lines[1:-1] == [f"{line}{'x' * (400 - len(line))} ..."] * 60
    assert lines[-1] == "# ... more lines"
    _, most = uses(lambda: repr(getattr(view, name)))
    assert most < 2**26
    quoted = repr(b"x" * 400 if name == "raw" else "x" * 400)
    assert repr(getattr(view, name)).startswith(f"[{quoted}..., {quoted}..., ")
    assert repr(getattr(view, name)).endswith(", ... 30000 elements]")


def test_the_beginning_is_what_the_whole_begins_with(
    shared_type: yj.MessageType, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = {
        "raw": [b"\xff" * 500, b"a"],
        "many": [{}, {"one": {"text": "b", "names": {"c": "d", "": "e"}}}, *[{"numbers": [-1, 2]}] * 10],
        "names": {"z": "y" * 1000, "é": "f", "é" * 900: "g"},
        "texts": ["h"] * 5,
        "one": {"many": [{"many": [{"many": [{}]}]}]},
        "numbers": range(100),
        "text": "i" * 500,
    }
    view = shared_type.view(shared_type.encode(content))
    whole = repr(view).splitlines()
    monkeypatch.setattr("yaffjit.view.base.SHOWN_NBYTES", 10)
    cut = repr(view).splitlines()
    assert cut[:-1] == whole[:-1]
    assert (cut[-1], whole[-1][-10:]) == ("# ... more lines", "more lines")


def test_sizes_of_the_golden_vectors() -> None:
    """What is measured is what would be built, to the byte."""
    schemas: dict[Any, yj.Schema] = {}
    checked = 0
    for vector in load_vectors():
        if "yaff_hex" not in vector:
            continue
        key = vector["schema"], vector.get("slice")
        if key not in schemas:
            schemas[key] = yj.load_schema(TESTS / "schemas" / "golden" / key[0], slice=key[1])
        mp = schemas[key][vector["message"]].plan
        data = bytes.fromhex(vector["yaff_hex"])
        at = read_u32(data)[0]
        wire = message_reader(mp).wire(data, at, MAX_NBYTES)
        assert protobuf_nbytes(mp, data, at) == len(wire), vector["name"]
        assert message_reader(mp).wire(data, at, len(wire)) == wire
        if wire and decode_within(mp, data, at, 0) is not None:
            # Only what lies out of line counts, and this has none.
            assert not message_reader(mp).objects or message_reader(mp).wire_of_scalars(data, at) == wire
        checked += 1
    assert checked > 500


def test_long_messages_are_measured_and_then_built(
    shared_type: yj.MessageType, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = {
        "raw": [b"a" * 100] * 50,
        "many": [{"one": {"texts": ["b" * 50] * 20}}] * 3,
        "numbers": [1] * 9,
    }
    for layout in ("flat", "sparse"):
        buf = shared_type.encode(content, layout=layout)
        whole = shared_type.decode(buf)
        nbytes = whole.ByteSize()
        with monkeypatch.context() as patched:
            patched.setattr(decode_module, "UNMEASURED_NBYTES", 500)
            assert shared_type.decode(buf) == whole
            patched.setattr(decode_module, "MAX_NBYTES", nbytes)
            assert shared_type.decode(buf) == whole
            patched.setattr(decode_module, "MAX_NBYTES", nbytes - 1)
            with pytest.raises(yj.DecodeError) as caught:
                shared_type.decode(buf)
            assert str(caught.value) == (
                f"sharing.N: {nbytes} bytes as a protobuf message (at most {nbytes - 1})"
            )
    with pytest.raises(TooLong):
        mp = shared_type.plan
        message_reader(mp).wire(buf, read_u32(buf)[0], 499)


def test_the_beginning_leaves_out_what_protobuf_does_not_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers that a closed enum doesn't have: an open one of the same name may have written them."""
    kinds = []
    for syntax, label in (("proto3", ""), ("proto2", "optional")):
        path = tmp_path / f"{syntax}.proto"
        path.write_text(
            f'syntax = "{syntax}"; package closed; enum E {{ A = 0; B = 1; }}'
            f"message M {{ {label} E one = 1; repeated E many = 2; {label} string text = 3; }}"
        )
        kinds.append(yj.load_schema(path)["closed.M"])
    writer, reader = kinds
    view = reader.view(writer.encode({"one": 7, "many": [1, 7, 1], "text": "a"}))
    whole = repr(view)
    assert whole == '# closed.M, view\nmany: B\nmany: B\ntext: "a"'
    monkeypatch.setattr("yaffjit.view.base.SHOWN_NBYTES", 1)
    assert repr(view) == f"{whole}\n# ... more lines"
