"""Repeated fields of views: read-only sequences, and those of YaFF, over the array in the buffer."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from yaffjit.codec.locate import read_u32
from yaffjit.errors import ElementError
from yaffjit.plan.model import SCALAR_CODE, SCALAR_WIDTH, FieldPlan
from yaffjit.view.fields import read_bytes, read_text

if TYPE_CHECKING:
    import numpy as np

    from yaffjit.view.buffers import Data
    from yaffjit.view.yaff import YaffView

# (data, position of the array's count, owner of the bytes) -> the field's value
MakeRepeated = Callable[["Data", int, Any], "Repeated"]

# The longest repr: elements, characters after which no element begins, and characters of a text.
REPR_ELEMENTS = 200
REPR_CHARACTERS = 20_000
REPR_TEXT = 400


class Repeated(Sequence[Any]):
    """A repeated field: indexed, sliced (into lists), compared and searched as protobuf's containers are."""

    __slots__ = ("_count", "_name")
    _count: int
    _name: str  # of the field

    def _item(self, index: int) -> Any:
        """The element at ``index``, which is in range."""
        raise NotImplementedError

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._item(i) for i in range(*index.indices(self._count))]
        try:
            at = operator.index(index)
        except TypeError:
            raise TypeError("list indices must be integers") from None
        if at < 0:
            at += self._count
        if not 0 <= at < self._count:
            raise ElementError(self._name, operator.index(index), self._count)
        return self._item(at)

    def __iter__(self) -> Iterator[Any]:
        return map(self._item, range(self._count))

    def __reversed__(self) -> Iterator[Any]:
        return map(self._item, range(self._count - 1, -1, -1))

    def index(self, value: Any, *bounds: int) -> int:
        """The first index of a value within optional bounds; ValueError if there is none."""
        return list(self).index(value, *bounds)

    def __eq__(self, other: object) -> bool:
        # As protobuf's containers: equal to lists and to each other, not to tuples.
        if isinstance(other, (tuple, str, bytes)) or not isinstance(other, Sequence):
            return NotImplemented
        return len(other) == self._count and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return str(list(self))

    def __repr__(self) -> str:
        shown: list[str] = []
        characters = 0
        for row in range(min(self._count, REPR_ELEMENTS)):
            if characters > REPR_CHARACTERS:
                break
            shown.append(repr_in_container(self._item(row)))
            characters += len(shown[-1])
        return cut_list(shown, self._count)

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: Any) -> list[Any]:
        return list(self)

    def __reduce__(self) -> Any:
        return list, (list(self),)


def str_in_container(value: Any) -> str:
    """A value as protobuf shows it within a container: a message by its text format."""
    from yaffjit.view.base import View

    return str(value) if isinstance(value, View) else repr(value)


def repr_in_container(value: Any) -> str:
    """As `str_in_container`, but only the beginning of what is long."""
    from yaffjit.view.base import REPR_LINES, View, text_within

    if isinstance(value, View):
        text, more = text_within(value, REPR_LINES, REPR_TEXT)
        return f"{text}..." if more else text
    if isinstance(value, (str, bytes)) and len(value) > REPR_TEXT:
        return f"{value[:REPR_TEXT]!r}..."
    return repr(value)


def cut_list(shown: list[str], count: int) -> str:
    rest = f", ... {count} elements" if count > len(shown) else ""
    return f"[{', '.join(shown)}{rest}]"


class Numbers(Repeated):
    """A repeated number, bool or enum; ``numpy.asarray`` of it is a read-only array."""

    __slots__ = ("_kind",)
    _kind: str

    def _list(self) -> list[Any]:
        """All elements."""
        raise NotImplementedError

    def _array(self) -> np.ndarray[Any, Any]:
        """All elements with the field's own dtype, read-only."""
        raise NotImplementedError

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._list()[index]
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._list())

    def __reversed__(self) -> Iterator[Any]:
        return iter(self._list()[::-1])

    def __contains__(self, value: object) -> bool:
        return value in self._list()

    def count(self, value: Any) -> int:
        return self._list().count(value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """The elements, shape (n,), with the field's own dtype (enums int32) unless another is asked for."""
        import numpy

        array = self._array()
        if dtype is not None and numpy.dtype(dtype) != array.dtype:
            if copy is False:
                asked = numpy.dtype(dtype)
                raise ValueError(f"a repeated {self._kind} is {array.dtype}: as {asked} it needs a copy")
            return array.astype(dtype)
        return array.copy() if copy else array


class RepeatedScalars(Numbers):
    """Numbers of a YaFF message."""

    __slots__ = ("_data", "_start")
    _data: Data
    _start: int  # of the first element, absolute

    def __init__(self, data: Data, start: int, count: int, name: str, kind: str) -> None:
        self._data = data
        self._start = start
        self._count = count
        self._name = name
        self._kind = kind

    def _item(self, index: int) -> Any:
        return _ELEMENTS[self._kind](self._data, self._start + index * SCALAR_WIDTH[self._kind])[0]

    def _list(self) -> list[Any]:
        nbytes = self._count * SCALAR_WIDTH[self._kind]
        return list_of(self._kind, memoryview(self._data)[self._start : self._start + nbytes])

    def _array(self) -> np.ndarray[Any, Any]:
        return array_of(self._kind, self._data, self._start, self._count)


def list_of(kind: str, elements: memoryview) -> list[Any]:
    """The values of an array of scalars as they are stored."""
    if kind == "bool":
        return [element != 0 for element in elements]
    code: Any = SCALAR_CODE[kind]
    values: list[Any] = elements.cast(code).tolist()
    return values


def array_of(kind: str, data: Data, start: int, count: int) -> np.ndarray[Any, Any]:
    """An array of scalars as they are stored, without a copy; read-only."""
    import numpy

    array: Any
    own = numpy.dtype(DTYPES[kind])
    if count:
        array = numpy.frombuffer(data, own, count, start)
    else:
        array = numpy.empty(0, own)
        array.flags.writeable = False
    return array  # type: ignore[no-any-return]


class RepeatedText(Repeated):
    """A repeated string or bytes field of a YaFF message."""

    __slots__ = ("_data", "_read", "_start")
    _data: Data
    _start: int  # of the first element, absolute
    _read: Callable[[Data, int], Any]

    def __init__(
        self, data: Data, start: int, count: int, name: str, read: Callable[[Data, int], Any]
    ) -> None:
        self._data = data
        self._start = start
        self._count = count
        self._name = name
        self._read = read

    def _item(self, index: int) -> Any:
        data, start = self._data, self._start
        return self._read(data, start + read_u32(data, start + 4 * index)[0])


class Messages(Repeated):
    """A repeated message field: each element is a view."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self))}]"


class RepeatedMessages(Messages):
    """Messages in a YaFF message; fixed ones lie in the array itself."""

    __slots__ = ("_data", "_element", "_owner", "_start", "_width")
    _data: Data
    _start: int  # of the first element, absolute
    _element: type[YaffView]
    _width: int  # bytes of an inlined element, 0 where the array holds offsets

    def __init__(
        self,
        data: Data,
        start: int,
        count: int,
        name: str,
        element: type[YaffView],
        width: int,
        owner: Any,
    ) -> None:
        self._data = data
        self._start = start
        self._count = count
        self._name = name
        self._element = element
        self._width = width
        self._owner = owner

    def _item(self, index: int) -> YaffView:
        data, start = self._data, self._start
        if self._width:
            return self._element(data, start + self._width * index, self._owner)
        return self._element(data, start + read_u32(data, start + 4 * index)[0], self._owner)


_ELEMENTS = {kind: struct.Struct("<" + code).unpack_from for kind, code in SCALAR_CODE.items()}
# numpy's names: an enum is an int32, a bool a byte.
DTYPES = {kind: "?" if code == "?" else f"<{code}" for kind, code in SCALAR_CODE.items()}


def make_repeated(f: FieldPlan, element: Callable[[], type[YaffView]]) -> MakeRepeated:
    """A function that makes the value of a repeated field; ``element`` gives the class of its messages."""
    kind, name = f.kind, f.name
    if kind == "message":
        width = f.element_width if f.inlined else 0

        def messages(data: Data, at: int, owner: Any) -> Repeated:
            return RepeatedMessages(data, at + 4, read_u32(data, at)[0], name, element(), width, owner)

        return messages
    if kind in ("string", "bytes"):
        read = read_text if kind == "string" else read_bytes

        def texts(data: Data, at: int, owner: Any) -> Repeated:
            return RepeatedText(data, at + 4, read_u32(data, at)[0], name, read)

        return texts

    def scalars(data: Data, at: int, owner: Any) -> Repeated:
        return RepeatedScalars(data, at + 4, read_u32(data, at)[0], name, kind)

    return scalars
