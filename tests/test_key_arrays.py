"""Arrow arrays of keys that aren't what they say: they are refused before anything follows their offsets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from yaffjit.index.key_queries import Texts, key_arrays

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
