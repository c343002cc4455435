"""Arrow arrays out of what two passes have stored: validity packed into bits, offsets as 32 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from yaffjit.columns.arrow.names import Dictionary
from yaffjit.columns.arrow.types import is_coded, plain_type, type_of
from yaffjit.columns.results import Array
from yaffjit.plan.gathering import Leaf
from yaffjit.plan.shapes import Lengths, Node, Several, Struct, Value

MOST = 2**31 - 1  # what 32-bit offsets count up to


class TooLargeError(Exception):
    """There are more elements, or bytes, than `MOST`."""


class TextError(Exception):
    """A text isn't UTF-8.

    Attributes:
        value: which one of its column it is, or in which one it is.
        fault: what is wrong with it.
    """

    def __init__(self, leaf: Leaf, value: int, fault: UnicodeDecodeError) -> None:
        super().__init__(leaf, value)
        self.leaf = leaf
        self.value = value
        self.fault = fault


def pooled(length: int, dtype: str, number: int) -> Array:
    """A new array in memory of pyarrow's pool."""
    width = np.dtype(dtype).itemsize
    return np.frombuffer(pa.allocate_buffer(length * width), np.uint8).view(dtype)


class Assembly:
    """Makes arrays of one batch.

    Args:
        arrays: of the slots.
        names: of enums and oneofs, by the slot of their numbers.
        enums: as `types.type_of` takes it.
    """

    def __init__(self, arrays: list[Array], names: dict[int, Dictionary], enums: str) -> None:
        self._arrays = arrays
        self._names = names
        self._enums = enums

    def array(self, node: Node, count: int, rows: Array | None = None) -> Any:
        """The array of a column.

        Args:
            node: what it's made of.
            count: how many values it has.
            rows: which of them may be valid, bool of shape (count,); None if all may.

        Raises:
            TooLargeError: 32-bit offsets don't suffice.
            TextError: a text isn't UTF-8.
        """
        valid = self._valid(node.present, rows)
        if isinstance(node, Struct):
            children = [self.array(field, count) for _, field in node.fields]
            return pa.Array.from_buffers(type_of(node, self._enums), count, [_bits(valid)], children=children)
        if isinstance(node, Several):
            return self._several(node, count, valid)
        if isinstance(node, Lengths):
            lengths = np.diff(self._arrays[node.loop.all_offsets]).astype(node.dtype)
            return self._plain(pa.from_numpy_dtype(lengths.dtype), lengths, count, valid)
        return self._value(node, count, valid)

    def _valid(self, present: Leaf | None, rows: Array | None) -> Array | None:
        if present is None:
            return rows
        found = self._arrays[present.values]
        return found if rows is None else found & rows

    def _several(self, node: Several, count: int, valid: Array | None) -> Any:
        loop = node.loop
        wide = self._arrays[loop.all_offsets]
        within = int(wide[-1])
        buffers = [_bits(valid), _offsets(wide)]
        try:
            item = self.array(node.item, within)
            keys = self._leaf(loop.keys, within, None) if loop.keys is not None else None
        except TextError as error:
            error.value = int(np.searchsorted(wide, error.value, side="right")) - 1
            raise
        typ = type_of(node, self._enums)
        if keys is not None:
            pairs = pa.struct([typ.key_field, typ.item_field])
            item = pa.Array.from_buffers(pairs, within, [None], children=[keys, item])
        return pa.Array.from_buffers(typ, count, buffers, children=[item])

    def _value(self, node: Value, count: int, valid: Array | None) -> Any:
        leaf = node.leaf
        if leaf.what == "which":
            is_set = self._arrays[leaf.values] != 0
            valid = is_set if valid is None else valid & is_set
        if not is_coded(node, self._enums):
            made = self._leaf(leaf, count, valid)
            return made.dictionary_encode() if node.coded else made
        names = self._names[leaf.values]
        numbers = self._arrays[leaf.values]
        if leaf.what == "which":  # what is null needs a code that there is
            numbers = np.where(numbers == 0, node.names[0][0], numbers).astype(np.int32)
        codes = names.codes(numbers)
        buffers = [_bits(valid), pa.py_buffer(codes)]
        return pa.DictionaryArray.from_buffers(type_of(node, self._enums), count, buffers, names.values)

    def _leaf(self, leaf: Leaf, count: int, valid: Array | None) -> Any:
        typ, values = plain_type(leaf), self._arrays[leaf.values]
        if leaf.what == "text":
            buffers = [_bits(valid), _offsets(self._arrays[leaf.all_offsets]), pa.py_buffer(values)]
            made = pa.Array.from_buffers(typ, count, buffers)
            if pa.types.is_string(typ):
                _check_utf8(leaf, made, values)
            return made
        if leaf.what == "time":
            there = ~np.isnat(values)
            valid = there if valid is None else valid & there
        return self._plain(typ, values, count, valid)

    def _plain(self, typ: Any, values: Array, count: int, valid: Array | None) -> Any:
        if values.dtype == np.bool_:
            content = pa.py_buffer(np.packbits(values, bitorder="little"))
        else:
            content = pa.py_buffer(values.view(np.uint8))
        return pa.Array.from_buffers(typ, count, [_bits(valid), content])


def _bits(valid: Array | None) -> Any:
    """A validity bitmap; None where all are valid."""
    if valid is None or valid.all():
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def _offsets(wide: Array) -> Any:
    if wide[-1] > MOST:
        raise TooLargeError
    narrow = pooled(len(wide), "int32", 0)
    narrow[:] = wide
    return pa.py_buffer(narrow)


def _check_utf8(leaf: Leaf, made: Any, data: Array) -> None:
    if not data.size or int(data.max()) < 0x80:
        return
    try:
        made.validate(full=True)
    except pa.ArrowInvalid:
        for value, raw in enumerate(made.cast(pa.binary())):
            try:
                (raw.as_py() or b"").decode()
            except UnicodeDecodeError as error:
                raise TextError(leaf, value, error) from None
        raise
