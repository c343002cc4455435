"""Keys as callers give them, a value, a list, arrays, columns, made plain arrays for look-ups."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from yaffjit.columns.results import DictionaryColumn, TextColumn
from yaffjit.index.key_table import TEXT_KINDS, UNSIGNED_KINDS
from yaffjit.plan.limits import INT64_MAX, INT64_MIN, UINT64_MAX


class Integers(NamedTuple):
    """Integer keys: int64, of unsigned ones the same bits."""

    values: NDArray[np.int64]
    impossible: NDArray[np.bool_] | None  # which no field of the kind can have, null ones too

    def __len__(self) -> int:
        return len(self.values)


class Texts(NamedTuple):
    """Text keys: key i is ``data[offsets[i]:offsets[i + 1]]``."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    impossible: NDArray[np.bool_] | None

    def __len__(self) -> int:
        return len(self.offsets) - 1


def key_arrays(keys: Any, kind: str, path: str) -> tuple[Integers | Texts, bool]:
    """Keys as the kernels take them, and whether it's a single one.

    Raises:
        TypeError: they aren't keys of such a field.
        ValueError: an array of more than one dimension.
    """
    is_text = kind in TEXT_KINDS
    single = _single(keys, is_text, path)
    if single is not None:
        return (_texts_of([single], path) if is_text else _integers_of([single], kind, path)), True
    arrow = _arrow(keys)
    if arrow is not None:
        return _of_arrow(arrow, kind, path), False
    if isinstance(keys, np.ndarray) and keys.ndim != 1:
        raise ValueError(f"keys must be of one dimension, not of shape {keys.shape}")
    if is_text:
        return _texts_of(_items(keys, path), path), False
    if isinstance(keys, np.ndarray) and keys.dtype != object:
        return _of_numbers(keys, kind, path), False
    return _integers_of(_items(keys, path), kind, path), False


def shown_key(keys: Integers | Texts, number: int) -> str:
    """A key as errors name it."""
    if isinstance(keys, Integers):
        return str(int(keys.values[number]))
    raw = keys.data[keys.offsets[number] : keys.offsets[number + 1]].tobytes()
    try:
        return repr(raw.decode())
    except UnicodeDecodeError:
        return repr(raw)


def _single(keys: Any, is_text: bool, path: str) -> Any:
    """The value of a single key, None if it's many; TypeError if it's no key."""
    if isinstance(keys, np.ndarray) and keys.ndim == 0:
        keys = keys[()]
    if isinstance(keys, pa.Scalar):
        keys = keys.as_py()
        if keys is None:
            raise _not_a_key(None, is_text, path)
    if isinstance(keys, (str, bytes, bytearray, memoryview)):
        return _item(keys, is_text, path)
    if isinstance(keys, (bool, np.bool_, float, np.floating)) or keys is None:
        raise _not_a_key(keys, is_text, path)
    if hasattr(keys, "__index__") and not isinstance(keys, np.ndarray):
        return _item(keys, is_text, path)
    return None


def _item(key: Any, is_text: bool, path: str) -> Any:
    if is_text:
        if isinstance(key, str):
            return key.encode()
        if isinstance(key, (bytes, bytearray, memoryview)):
            return bytes(key)
    elif not isinstance(key, (bool, np.bool_)) and hasattr(key, "__index__"):
        with contextlib.suppress(TypeError):  # arrays
            return operator.index(key)
    raise _not_a_key(key, is_text, path)


def _not_a_key(key: Any, is_text: bool, path: str) -> TypeError:
    wanted = "text or bytes" if is_text else "an integer"
    shown = "" if key is None else f" {key!r:.40}"
    return TypeError(f"a key of {path} is {wanted}, not {type(key).__name__}{shown}")


def _items(keys: Any, path: str) -> list[Any]:
    if not isinstance(keys, Iterable) or isinstance(keys, dict):
        raise TypeError(f"keys of {path} are a value, a list or an array, not {type(keys).__name__}")
    return keys.tolist() if isinstance(keys, np.ndarray) else list(keys)


def _integers_of(items: list[Any], kind: str, path: str) -> Integers:
    values = [_item(item, False, path) for item in items]
    low, high = (0, UINT64_MAX) if kind in UNSIGNED_KINDS else (INT64_MIN, INT64_MAX)
    impossible = np.array([not low <= value <= high for value in values], np.bool_)
    kept = [value if low <= value <= high else 0 for value in values]
    bits = np.array(kept, np.uint64 if kind in UNSIGNED_KINDS else np.int64).view(np.int64)
    return Integers(bits, impossible if impossible.any() else None)


def _of_numbers(array: NDArray[Any], kind: str, path: str) -> Integers:
    if array.dtype.kind not in "iu":
        raise TypeError(f"a key of {path} is an integer, but the keys are {array.dtype}")
    unsigned = kind in UNSIGNED_KINDS
    impossible = None
    if array.dtype.kind == "i" and unsigned:
        impossible = array < 0
    elif array.dtype.kind == "u" and array.dtype.itemsize == 8 and not unsigned:
        impossible = array > INT64_MAX
    wide = array.astype(np.uint64 if array.dtype.kind == "u" else np.int64)
    bits = np.ascontiguousarray(wide).view(np.int64)
    return Integers(bits, impossible if impossible is not None and impossible.any() else None)


def _texts_of(items: list[Any], path: str) -> Texts:
    raw = [_item(item, True, path) for item in items]
    offsets = np.zeros(len(raw) + 1, np.int64)
    np.cumsum([len(text) for text in raw], out=offsets[1:])
    return Texts(np.frombuffer(b"".join(raw), np.uint8), offsets, None)


def _arrow(keys: Any) -> Any:
    """Keys as an Arrow array, if they have that form; None otherwise."""
    if isinstance(keys, (TextColumn, DictionaryColumn)):
        return keys
    if isinstance(keys, (pa.Array, pa.ChunkedArray)):
        return keys
    if isinstance(keys, np.ma.MaskedArray) and keys.ndim == 1 and np.ma.is_masked(keys):
        values = np.asarray(keys)
        return pa.array(values.astype(values.dtype.newbyteorder("=")), mask=np.ma.getmaskarray(keys))
    if hasattr(keys, "__arrow_c_stream__"):
        return pa.chunked_array(keys)
    return pa.array(keys) if hasattr(keys, "__arrow_c_array__") else None


def _of_arrow(array: Any, kind: str, path: str) -> Integers | Texts:
    is_text = kind in TEXT_KINDS
    if isinstance(array, TextColumn):
        if not is_text:
            raise TypeError(f"a key of {path} is an integer, but the keys are {array.kind}")
        # Their offsets needn't begin with 0.
        return Texts(array.data, np.ascontiguousarray(array.offsets), None)
    if isinstance(array, DictionaryColumn):
        array = array.to_arrow()
    try:
        array.validate(full=True)  # the kernels, and pyarrow itself, follow offsets wherever they lead
    except pa.ArrowInvalid as error:
        raise ValueError(f"the keys of {path} are a damaged Arrow array: {error}") from error
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # pyarrow gives one where there's no chunk
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    nulls = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    if not is_text:
        if not pa.types.is_integer(array.type):
            raise TypeError(f"a key of {path} is an integer, but the keys are {array.type}")
        if nulls is not None:
            array = array.fill_null(0)
        made = _of_numbers(array.to_numpy(zero_copy_only=False), kind, path)
        return made if nulls is None else Integers(made.values, _either(nulls, made.impossible))
    if not _is_text_type(array.type):
        raise TypeError(f"a key of {path} is text or bytes, but the keys are {array.type}")
    array = array.cast(pa.large_binary())
    _, offsets, data = array.buffers()
    if not len(array):
        return Texts(np.empty(0, np.uint8), np.zeros(1, np.int64), nulls)
    found = np.frombuffer(offsets, np.int64, len(array) + 1, 8 * array.offset)
    return Texts(
        np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8),
        found,
        nulls,
    )


def _either(one: NDArray[np.bool_], other: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    return one if other is None else one | other


def _is_text_type(typ: Any) -> bool:
    tests = (
        *(pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary),
        *(pa.types.is_string_view, pa.types.is_binary_view, pa.types.is_fixed_size_binary),
    )
    return any(test(typ) for test in tests)
