"""Maps that were seen to ascend aren't looked at again in jitted code, and lists that don't still are."""

from __future__ import annotations

import ctypes
import pickle
import struct
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from jit_map_fields import source

import yaffjit as yj
from yaffjit.kernels import ascending
from yaffjit.view.owner import Owner


@pytest.fixture(scope="module")
def maps(tmp_path_factory: pytest.TempPathFactory) -> yj.Schema:
    path = tmp_path_factory.mktemp("schema") / "maps.proto"
    path.write_text(source())
    return yj.load_schema(path)


MANY = range(60, 0, -1)  # pairs of a list; more than are compared one by one


def list_of(keys: Any) -> list[dict[str, int]]:
    return [{"key": key, "value": value} for value, key in enumerate(keys)]


@numba.njit
def what_is_read(messages):  # type: ignore[no-untyped-def]
    found = []
    for v in messages:
        total = 0
        for value in v.signed.values():
            total = (total * 31 + value) % 1_000_003
        found.append((len(v.signed), v.signed.get(7, -1), 8 in v.signed, v.signed[61], total))
    return found


def is_marked(records: yj.Records) -> bool:
    return bool(records._store.memory.owner.ascending)


def test_records_with_lists_among_maps(maps: yj.Schema) -> None:
    """However the records come about, and whatever the verifier told of the others."""
    lists, read_type = maps["maps.Lists"], maps["maps.Read"]
    good = [read_type.encode({"signed": {key: key for key in range(count)}}) for count in (3, 100, 0)]
    unsorted = lists.encode({"signed": list_of(MANY)})
    doubled = lists.encode({"signed": list_of([*range(50), *range(50)])})
    for payloads in (good, [*good, unsorted], [doubled, *good], [unsorted, doubled]):
        expected = what_is_read.py_func([read_type.view(buf) for buf in payloads])
        records = yj.records(read_type, payloads)
        data, offsets = b"".join(payloads), np.cumsum([0, *map(len, payloads)])
        ascend = payloads is good
        for made, rows, marked in (
            (records, range(len(payloads)), ascend),
            (yj.records(read_type, (data, offsets)), range(len(payloads)), ascend),
            (yj.records_unchecked(read_type, payloads), range(len(payloads)), False),
            (records[1:], range(1, len(payloads)), ascend),
            (records.take([1, 0, 1]), [1, 0, 1], ascend),
            (pickle.loads(pickle.dumps(records)), range(len(payloads)), False),
        ):
            assert what_is_read(made) == [expected[row] for row in rows]
            assert is_marked(made) is marked


def test_an_index_that_is_read_as_maps(tmp_path: Path) -> None:
    """Lists of pairs were written; whoever opens the files has maps there."""
    source_text = listed()
    (tmp_path / "lists.proto").write_text(source_text)
    (tmp_path / "maps.proto").write_text(source_text.replace("repeated Pair", "map<int32, int32>"))
    written = yj.load_schema(tmp_path / "lists.proto")["listed.Read"]
    read_type = yj.load_schema(tmp_path / "maps.proto")["listed.Read"]
    path = tmp_path / "lists.arrow"
    for contents in ([MANY, range(40)], [range(50), range(3)]):
        messages = [written.message_class(signed=list_of(keys)) for keys in contents]
        yj.build_index(path, written, messages)
        expected = what_is_read.py_func([read_type.view(written.encode(message)) for message in messages])
        for index in (yj.open_index(path, read_type), yj.open_index_unchecked(path, read_type)):
            assert what_is_read(index) == expected
        assert is_marked(yj.open_index(path, read_type)) is (contents[0] is not MANY)


def listed() -> str:
    return """
    syntax = "proto3"; package listed; import "yaff/proto/options.proto";
    message Pair {
      option (yaff.proto.message) = {layout: LAYOUT_FIXED};
      int32 key = 1; int32 value = 2;
    }
    message Read { repeated Pair signed = 1; }
    """


def test_views_of_lists_and_maps(maps: yj.Schema) -> None:
    """A view from records has their owner; one of its own bytes says nothing of its maps."""
    lists, read_type = maps["maps.Lists"], maps["maps.Read"]
    payloads = [lists.encode({"signed": list_of(keys)}) for keys in (range(90), MANY, [*range(50)] * 2)]

    @numba.njit
    def of_view(v):  # type: ignore[no-untyped-def]
        return len(v.signed), v.signed.get(7, -1), 8 in v.signed, v.signed[61], len(v.signed.keys())

    for records in (yj.records(read_type, payloads), yj.records(read_type, payloads[:1])):
        for row, buf in enumerate(payloads[: len(records)]):
            view = read_type.view(buf)
            assert of_view(records[row]) == of_view(view) == of_view.py_func(view)


def test_nobody_looks_where_bytes_are_marked(maps: yj.Schema) -> None:
    """Told by what is found wrong in a list that isn't sorted, where bytes are marked all the same."""
    lists, read_type = maps["maps.Lists"], maps["maps.Read"]
    buf = lists.encode({"signed": list_of([*range(100, 0, -1), 100])})
    found = []
    for marked in (False, True):
        view = read_type.view(buf)
        view._owner_ = Owner(view._data_, read_type.plan.plan, marked)
        found.append(marked_parts(view))
    assert found == [(100, 0, 100), (101, 100, 101)]


@numba.njit
def marked_parts(v):  # type: ignore[no-untyped-def]
    pairs = 0
    for _ in v.signed:
        pairs += 1
    return len(v.signed), v.signed.get(100, -1), pairs


def test_the_mark_is_where_numba_has_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a word of numba's record that is 0 otherwise; where it isn't found, nothing is marked."""
    assert ascending.has_size_word()
    for given, expected in ((False, 0), (True, ascending.MARK)):
        assert size_word(Owner(b"abc", ascending=given)) == expected
    monkeypatch.setattr(ascending, "has_size_word", lambda: False)
    assert size_word(Owner(b"abc", ascending=True)) == 0


def size_word(owner: Owner) -> int:
    _, record = struct.unpack("=QQ", owner.handle)
    return ctypes.c_uint64.from_address(record + ascending.SIZE_OFFSET).value
