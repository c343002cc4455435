"""Map fields of views: read-only mappings; those of YaFF lie over the sorted array of pairs."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Collection, ItemsView, Iterator, Mapping, ValuesView
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from yaffjit.codec.locate import read_u32
from yaffjit.plan.model import SCALAR_CODE, MessagePlan
from yaffjit.view.fields import read_bytes, read_text, scalar_reader
from yaffjit.view.repeated import REPR_CHARACTERS, REPR_ELEMENTS, repr_in_container, str_in_container

if TYPE_CHECKING:
    from yaffjit.schema.model import SchemaDef
    from yaffjit.view.buffers import Data
    from yaffjit.view.yaff import YaffView

# Up to this many pairs are compared one by one.
FEW = 8

_RANGES = {"i": (-(2**31), 2**31), "I": (0, 2**32), "q": (-(2**63), 2**63), "Q": (0, 2**64)}
# Pairs by row, or where they aren't strictly ascending: the first row of each key.
Rows: TypeAlias = range | dict[Any, int]


class MapKind:
    """What all maps of one field have in common, whatever the representation.

    A *raw* key is what pairs are found by: the bytes of a text, else the number.
    """

    def __init__(self, schema: SchemaDef, entry_name: str, key_kind: str) -> None:
        self.schema = schema
        self.entry_name = entry_name
        self.key_kind = key_kind
        self.text_keys = key_kind in ("string", "bytes")
        self._key_code = SCALAR_CODE.get(key_kind, "")

    def key(self, raw: Any) -> Any:
        return str(raw, "utf-8") if self.key_kind == "string" else raw

    def raw_of(self, key: Any) -> Any:
        """The raw form of a key that a caller gives; protobuf's errors if it can't be a key."""
        if self.text_keys:
            if isinstance(key, str):
                return key.encode()
            if not isinstance(key, bytes):
                raise TypeError("bad argument type for built-in operation")
            key.decode()
            return key
        if self._key_code == "?":
            return _bool_of(key)
        if isinstance(key, bool):
            raise TypeError(f"Field {self.entry_name}.key: Expected an int, got a boolean.")
        number = operator.index(key)
        low, high = _RANGES[self._key_code]
        if not low <= number < high:
            raise ValueError(f"Value out of range: {number}")
        return number

    def default(self) -> Any:
        """What a missing key reads as."""
        raise NotImplementedError


class YaffMapKind(MapKind):
    """Where keys and values lie in the pairs of one field."""

    def __init__(self, entry: MessagePlan, child: Callable[[], type[YaffView]]) -> None:
        key, value = entry.fields
        super().__init__(entry.plan.schema, entry.full_name, key.kind)
        self.width = entry.limit
        self.key_offset = key.offset
        self.value_offset = value.offset
        self.value_default = value.default
        self.child = child if value.kind == "message" else None
        self._read_key = struct.Struct("<" + self._key_code).unpack_from if self._key_code else None
        self.read_value: Callable[[Data, int], Any]
        if value.kind in ("string", "bytes"):
            self.read_value = read_text if value.kind == "string" else read_bytes
            self.value_out_of_line = True
        elif value.kind == "message":
            self.value_out_of_line = True
        else:
            self.read_value = scalar_reader(value.kind, value.default_bits)
            self.value_out_of_line = False

    def raw_key(self, data: Data, pair: int) -> Any:
        at = pair + self.key_offset
        if self._read_key is not None:
            return self._read_key(data, at)[0]
        offset = read_u32(data, at)[0]
        return read_bytes(data, pair + offset) if offset else b""

    def value(self, data: Data, pair: int, owner: Any) -> Any:
        at = pair + self.value_offset
        if not self.value_out_of_line:
            return self.read_value(data, at)
        offset = read_u32(data, at)[0]
        if self.child is not None:
            child = self.child()
            return child(data, pair + offset, owner) if offset else child._default_()
        return self.read_value(data, pair + offset) if offset else self.value_default

    def default(self) -> Any:
        return self.value_default if self.child is None else self.child()._default_()


def _bool_of(key: Any) -> bool:
    """A bool key from what protobuf takes for one: numbers of 64 bits, and numpy's bools."""
    if type(key).__name__ in ("bool", "bool_") and type(key).__module__ == "numpy":
        return bool(key)
    number = operator.index(key)
    if not -(2**63) <= number < 2**63:
        raise OverflowError("Python int too large to convert to C long")
    return number != 0


class MapView(Mapping[Any, Any]):
    """A map field.

    A missing key reads as the default by ``[]``, as in protobuf, but isn't inserted. A representation says
    which of its rows count, and what key and value of a row are.
    """

    __slots__ = ("_kind",)
    _kind: MapKind

    def _raw(self, row: Any) -> Any:
        raise NotImplementedError

    def _value(self, row: Any) -> Any:
        raise NotImplementedError

    def _rows(self) -> Collection[Any]:
        """The rows that count, in order."""
        raise NotImplementedError

    def _find(self, key: Any) -> Any:
        """The row of a key, or None."""
        raise NotImplementedError

    def __getitem__(self, key: Any) -> Any:
        row = self._find(key)
        return self._kind.default() if row is None else self._value(row)

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key, or ``default`` if it's missing."""
        row = self._find(key)
        return default if row is None else self._value(row)

    def __contains__(self, key: object) -> bool:
        return self._find(key) is not None

    def __len__(self) -> int:
        return len(self._rows())

    def __iter__(self) -> Iterator[Any]:
        key = self._kind.key
        for row in self._rows():
            yield key(self._raw(row))

    def values(self) -> ValuesView[Any]:
        return _Values(self)

    def items(self) -> ItemsView[Any, Any]:
        return _Items(self)

    def GetEntryClass(self) -> Any:
        """protobuf's class of the pairs."""
        return self._kind.schema.message_class(self._kind.entry_name)

    def __str__(self) -> str:
        return f"{{{', '.join(f'{key!r}: {str_in_container(value)}' for key, value in self.items())}}}"

    def __repr__(self) -> str:
        shown: list[str] = []
        characters = 0
        for key, value in self.items():
            if len(shown) == REPR_ELEMENTS or characters > REPR_CHARACTERS:
                shown.append(f"... {len(self)} pairs")
                break
            shown.append(f"{repr_in_container(key)}: {repr_in_container(value)}")
            characters += len(shown[-1])
        return f"{{{', '.join(shown)}}}"

    def __copy__(self) -> dict[Any, Any]:
        return dict(self.items())

    def __deepcopy__(self, memo: Any) -> dict[Any, Any]:
        return dict(self.items())

    def __reduce__(self) -> Any:
        return dict, (dict(self.items()),)


class YaffMap(MapView):
    """A map field of a YaFF message.

    Pairs come in the order of their keys. Of equal keys, which only data of another schema can have, the
    first counts.
    """

    __slots__ = ("_count", "_data", "_distinct_rows", "_owner", "_start")
    _kind: YaffMapKind

    def __init__(self, data: Data, start: int, count: int, kind: YaffMapKind, owner: Any) -> None:
        self._data = data
        self._start = start
        self._count = count
        self._kind = kind
        self._owner = owner
        self._distinct_rows: Rows | None = None

    def _raw(self, row: int) -> Any:
        return self._kind.raw_key(self._data, self._start + row * self._kind.width)

    def _value(self, row: int) -> Any:
        return self._kind.value(self._data, self._start + row * self._kind.width, self._owner)

    def _distinct(self) -> Rows:
        """Rows that count. A list of pairs that is read as a map is neither sorted nor without doubles."""
        rows = self._distinct_rows
        if rows is None:
            # Never all keys at once: pairs may share long ones.
            if all(before < raw for before, raw in pairwise(map(self._raw, range(self._count)))):
                rows = range(self._count)
            else:
                rows = {}
                for row in range(self._count):
                    rows.setdefault(self._raw(row), row)
            self._distinct_rows = rows
        return rows

    def _find(self, key: Any) -> int | None:
        raw = self._kind.raw_of(key)
        count = self._count
        if count <= FEW:
            for row in range(count):
                if self._raw(row) == raw:
                    return row
            return None
        rows = self._distinct()
        if isinstance(rows, dict):
            return rows.get(raw)
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            if self._raw(middle) < raw:
                low = middle + 1
            else:
                high = middle
        return low if low < count and self._raw(low) == raw else None

    def _rows(self) -> Collection[int]:
        rows = self._distinct()
        return rows.values() if isinstance(rows, dict) else rows

    def __bool__(self) -> bool:
        return self._count > 0


class _Values(ValuesView[Any]):
    __slots__ = ()
    _mapping: MapView

    def __iter__(self) -> Iterator[Any]:
        return map(self._mapping._value, self._mapping._rows())


class _Items(ItemsView[Any, Any]):
    __slots__ = ()
    _mapping: MapView

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return zip(self._mapping, self._mapping.values(), strict=True)
