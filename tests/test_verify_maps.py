"""Whether the keys of all maps ascend: both verifiers tell it, of maps and of lists that are read as maps."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jit_map_fields import INTEGERS, limits

import yaffjit as yj
from yaffjit.codec.verify import _loaded, verify, verify_many, verify_places
from yaffjit.codec.verify_plain import LONG_TEXT, verify_plain

KINDS = (*INTEGERS, "bool", "string")


@pytest.fixture(scope="module", autouse=True)
def _kernel() -> None:
    _loaded.load()


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> yj.Schema:
    lines = ['syntax = "proto3"; package ascend; import "yaff/proto/options.proto"; message Lists {']
    for i, kind in enumerate(KINDS):
        option = "option (yaff.proto.message) = {layout: LAYOUT_FIXED};"
        lines.append(f"message Of{kind} {{ {option} {kind} key = 1; int32 value = 2; }}")
        lines.append(f"repeated Of{kind} {kind} = {i + 1};")
    lines.append(f"repeated Lists more = 20; message Text {{ {option} string key = 1; string value = 2; }}")
    lines.append("repeated Text texts = 21; } message Maps {")
    lines += [f"map<{kind}, int32> {kind} = {i + 1};" for i, kind in enumerate(KINDS)]
    lines.append("repeated Maps more = 20; map<string, string> texts = 21; }")
    path = tmp_path_factory.mktemp("schema") / "ascend.proto"
    path.write_text("\n".join(lines))
    return yj.load_schema(path)


def pairs(keys: list[Any]) -> list[dict[str, Any]]:
    return [{"key": key} for key in keys]


def ascend(schema: yj.Schema, content: dict[str, Any], layout: str = "flat") -> bool:
    """What is said of lists that are read as maps, by both verifiers."""
    buf = schema["ascend.Lists"].encode(content, layout=layout)
    mp = schema["ascend.Maps"].plan
    assert verify(schema["ascend.Lists"].plan, buf) is True  # which has no maps
    found = verify(mp, buf)
    assert verify_plain(mp, buf) is verify(mp, memoryview(buf)) is found
    return found


def keys_of(kind: str) -> st.SearchStrategy[Any]:
    if kind == "bool":
        return st.booleans()
    if kind == "string":
        few = st.text("a\x7fé", max_size=3)
        long = st.integers(LONG_TEXT - 9, LONG_TEXT + 1).map("a".__mul__)
        return st.text(max_size=9) | few | st.builds(str.__add__, long, few)
    low, high = limits(kind)
    return st.integers(low, high) | st.sampled_from([low, low + 1, -1, 0, 1, high - 1, high]).filter(
        lambda key: low <= key
    )


@given(st.data())
def test_any_keys(schema: yj.Schema, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    keys = data.draw(st.lists(keys_of(kind), max_size=6))
    if data.draw(st.booleans()):
        keys = sorted(set(keys), key=lambda key: key.encode() if kind == "string" else key)
    bits = [key.encode() if kind == "string" else key for key in keys]
    expected = all(a < b for a, b in pairwise(bits))
    if kind == "string":  # it isn't told of keys that are equal for too long
        for a, b in pairwise(bits):
            expected &= min(len(a), len(b)) <= LONG_TEXT or a[:LONG_TEXT] != b[:LONG_TEXT]
    layout = data.draw(st.sampled_from(["flat", "sparse"]))
    assert ascend(schema, {kind: pairs(keys)}, layout) is expected


def test_texts_that_are_equal_for_long(schema: yj.Schema) -> None:
    same = "x" * LONG_TEXT
    assert ascend(schema, {"string": pairs([same + "a"])})
    assert ascend(schema, {"string": pairs([same, same + "a"])})
    assert ascend(schema, {"string": pairs([same[1:] + "a", same[1:] + "b"])})
    assert not ascend(schema, {"string": pairs([same + "a", same + "b"])})
    maps = schema["ascend.Maps"]
    buf = maps.encode({"string": {same + "a": 1, same + "b": 2}})
    assert verify(maps.plan, buf) is verify_plain(maps.plan, buf) is False


def test_a_text_that_was_left_out_is_empty(schema: yj.Schema) -> None:
    assert ascend(schema, {"string": [{"value": 1}, {"key": "a"}]})
    assert not ascend(schema, {"string": [{"value": 1}, {"value": 2}]})
    assert not ascend(schema, {"string": [{"key": "a"}, {"value": 2}]})


def test_all_maps_count(schema: yj.Schema) -> None:
    """Wherever they lie, and whatever follows: also where texts are values, and long ones are shared."""
    good, bad = pairs([1, 2, 3]), pairs([1, 3, 2])
    assert ascend(schema, {"int32": good, "int64": good, "more": [{"int32": good}] * 3})
    assert not ascend(schema, {"int32": bad, "int64": good})
    assert not ascend(schema, {"int32": good, "int64": bad})
    assert not ascend(schema, {"int32": good, "more": [{"int32": good}, {"more": [{"uint64": bad}]}, {}]})
    long = "long " * 200
    texts = [{"key": f"{number:05}", "value": long} for number in range(3000)]
    for layout in ("flat", "sparse"):
        assert ascend(schema, {"texts": texts}, layout)
        assert not ascend(schema, {"texts": [*texts, texts[-1]]}, layout)


def test_what_is_written_as_a_map_ascends(schema: yj.Schema) -> None:
    maps = schema["ascend.Maps"]
    content: dict[str, Any] = {kind: {7: 1, 3: 2, 5: 3} for kind in INTEGERS}
    content |= {"bool": {True: 1, False: 2}, "string": {key: 1 for key in ("b", "", "é", "a\0", "a", "aa")}}
    content |= {"int32": {0: 1, -1: 1, 2**31 - 1: 1, -(2**31): 1}, "uint32": {2**32 - 1: 1, 0: 1, 2**31: 1}}
    content |= {"int64": {0: 1, -1: 1, 2**63 - 1: 1, -(2**63): 1}, "uint64": {2**64 - 1: 1, 0: 1, 2**63: 1}}
    for layout in ("flat", "sparse"):
        buf = maps.encode(content, layout=layout)
        assert verify(maps.plan, buf) is verify_plain(maps.plan, buf) is True


def test_bools_other_than_0_and_1(schema: yj.Schema) -> None:
    """Any but 0 is true."""
    maps = schema["ascend.Maps"]
    buf = maps.encode({"bool": {False: 5, True: 5}})
    pair = b"\1\5\0\0\0"
    assert buf.count(pair) == 1
    for found, first, second in ((True, 0, 7), (False, 7, 1), (False, 1, 7), (False, 7, 0), (False, 0, 0)):
        changed = buf.replace(
            b"\0\5\0\0\0" + pair, bytes([first]) + b"\5\0\0\0" + bytes([second]) + b"\5\0\0\0"
        )
        assert verify(maps.plan, changed) is verify_plain(maps.plan, changed) is found


@pytest.mark.parametrize("path", ["plain", "kernel"])
def test_many(schema: yj.Schema, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row that doesn't ascend is enough; of no row it's true."""
    if path == "plain":
        monkeypatch.setattr(_loaded, "kernel", None)
        monkeypatch.setattr(_loaded, "load", lambda: None)
    monkeypatch.setattr("yaffjit.codec.verify._CALL_ROWS", 3)
    lists, mp = schema["ascend.Lists"], schema["ascend.Maps"].plan
    good, bad = (lists.encode({"int32": pairs(keys)}) for keys in ([1, 2], [2, 1]))
    for bad_row in (None, 0, 4, 9):
        rows = [bad if row == bad_row else good for row in range(10)]
        expected = bad_row is None
        data, offsets = b"".join(rows), np.cumsum([0, *map(len, rows)])
        assert verify_many(mp, data, offsets) is expected
        held = np.frombuffer(data, np.uint8)
        starts = held.ctypes.data + offsets[:-1]
        places = np.stack([starts, np.diff(offsets)], axis=1)
        assert verify_places(mp, places) is expected
        assert verify_places(mp, np.array([[0, 0], *places[5:9], [0, 0]])) is True
        assert verify_many(mp, data, offsets[5:10]) is True
    assert verify_many(mp, b"", [0]) is verify_places(mp, np.empty((0, 2), np.int64)) is True
