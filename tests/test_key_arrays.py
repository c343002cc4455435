"""Arrow arrays of keys that aren't what they say: they are refused before anything follows their offsets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from yaffjit.index.key_queries import Integers, Texts, key_arrays

FAR = 10**11


def texts(offsets: list[int]) -> Any:
    buffers = [None, pa.py_buffer(np.array(offsets, np.int64)), pa.py_buffer(b"ab")]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def test_offsets_that_lead_away() -> None:
    sound = texts([0, 1, 2])
    for offsets in ([0, FAR, 2], [0, -FAR, 1]):
        damaged = texts(offsets)
        for keys in (damaged, pa.chunked_array([sound, damaged])):
            with pytest.raises(ValueError, match=r"^the keys of name are a damaged Arrow array: "):
                key_arrays(keys, "bytes", "name")
    made, single = key_arrays(pa.chunked_array([sound, sound[1:]]), "bytes", "name")
    assert not single
    assert isinstance(made, Texts)
    assert np.diff(made.offsets).tolist() == [1, 1, 1]


def test_codes_beyond_a_dictionary() -> None:
    damaged = pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int32()), texts([0, 1, 2]), safe=False)
    with pytest.raises(ValueError, match=r"^the keys of name are a damaged Arrow array: "):
        key_arrays(damaged, "bytes", "name")


def test_masked_keys_are_missing_as_null_ones_are() -> None:
    mask = [False, True, False]
    for dtype in (np.int64, np.uint8, ">i4"):
        made, single = key_arrays(np.ma.array([5, 6, 7], dtype, mask=mask), "int64", "id")
        assert not single
        assert isinstance(made, Integers)
        assert made.impossible is not None
        assert made.impossible.tolist() == mask
        assert made.values[[0, 2]].tolist() == [5, 7]
    for values in (np.array(["a", "b", "c"]), np.array([b"a", b"b", b"c"], object)):
        text, _ = key_arrays(np.ma.array(values, mask=mask), "string", "name")
        assert text.impossible is not None
        assert text.impossible.tolist() == mask
    whole, _ = key_arrays(np.ma.array([5, 6]), "int64", "id")
    assert whole.impossible is None
    with pytest.raises(TypeError) as caught:
        key_arrays(np.ma.array([1.5, 2.0], mask=[True, False]), "int64", "id")
    assert str(caught.value) == "a key of id is an integer, but the keys are double"


def test_lists_of_arrays_are_no_keys() -> None:
    with pytest.raises(TypeError) as caught:
        key_arrays([np.array([1, 2])], "int64", "id")
    assert str(caught.value) == "a key of id is an integer, not ndarray array([1, 2])"
