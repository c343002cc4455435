"""Repeated fields of views of protobuf bytes: read-only sequences over the occurrences in the buffer."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from yaffjit.plan.model import SCALAR_WIDTH
from yaffjit.view.repeated import DTYPES, Messages, Numbers, Repeated, array_of
from yaffjit.view.wire_scan import WIDTHS, Field

if TYPE_CHECKING:
    import numpy as np

    from yaffjit.view.wire import WireView

# Packed varints of more bytes are decoded by numpy.
FEW_NBYTES = 64


class WireNumbers(Numbers):
    """Numbers, as a list if they are few, else as a numpy array; zero-copy where they are one packed run."""

    __slots__ = ("_values",)

    def __init__(self, name: str, kind: str, values: Any) -> None:
        self._name = name
        self._kind = kind
        self._values = values  # a list or an array
        self._count = len(values)

    def _item(self, index: int) -> Any:
        value = self._values[index]
        return value if type(self._values) is list else value.item()

    def _list(self) -> list[Any]:
        values: list[Any] = self._values if type(self._values) is list else self._values.tolist()
        return values

    def _array(self) -> np.ndarray[Any, Any]:
        if type(self._values) is list:
            import numpy

            values = numpy.array(self._values, DTYPES[self._kind])
            values.flags.writeable = False
            return values
        return self._values  # type: ignore[no-any-return]


def numbers_of(f: Field, view: WireView, spans: array[int] | None) -> WireNumbers:
    """The numbers that lie in some runs.

    Raises:
        VerifyError: they aren't varints.
    """
    if spans is None:
        return WireNumbers(f.name, f.kind, [])
    data = view._data_
    if f.kind in WIDTHS:
        width = SCALAR_WIDTH[f.kind]
        if len(spans) == 2:
            start, stop = spans
            return WireNumbers(f.name, f.kind, array_of(f.kind, data, start, (stop - start) // width))
        joined = b"".join([data[start:stop] for start, stop in pairs(spans)])
        return WireNumbers(f.name, f.kind, array_of(f.kind, joined, 0, len(joined) // width))
    nbytes = sum(stop - start for start, stop in pairs(spans))
    if nbytes <= FEW_NBYTES:
        return WireNumbers(f.name, f.kind, _few(f, view, spans))
    values = _many(f, view, spans, nbytes)
    values.flags.writeable = False
    return WireNumbers(f.name, f.kind, values)


def pairs(spans: array[int]) -> Iterator[tuple[int, int]]:
    places = iter(spans)
    return zip(places, places, strict=True)


def _few(f: Field, view: WireView, spans: array[int]) -> list[Any]:
    from yaffjit.view.wire_fields import number_reader

    data = view._data_
    read = number_reader(f.kind)
    values = []
    for start, stop in pairs(spans):
        for pos, _ in view._varints_(start, stop):
            values.append(read(data, pos))
    return values if f.numbers is None else [value for value in values if value in f.numbers]


def _many(f: Field, view: WireView, spans: array[int], nbytes: int) -> np.ndarray[Any, Any]:
    import numpy as np

    data = view._data_
    groups: Any
    if len(spans) == 2:
        groups = np.frombuffer(data, np.uint8, nbytes, spans[0])
    else:
        groups = np.frombuffer(b"".join([data[start:stop] for start, stop in pairs(spans)]), np.uint8)
    ends = np.flatnonzero(groups < 128)
    sizes = np.diff(ends, prepend=-1)
    whole = all(data[stop - 1] < 128 for start, stop in pairs(spans) if start < stop)
    if not whole or sizes.max(initial=0) > 10:
        for start, stop in pairs(spans):
            deque(view._varints_(start, stop), 0)  # raises
    starts = ends - sizes + 1
    values = (groups[starts] & 127).astype(np.uint64)
    for k in range(1, int(sizes.max(initial=0))):
        (longer,) = np.nonzero(sizes > k)
        values[longer] |= (groups[starts[longer] + k] & 127).astype(np.uint64) << np.uint64(7 * k)
    values = _OF_VARINTS[f.kind](values)
    if f.numbers is not None:
        values = values[np.isin(values, list(f.numbers))]
    return values.astype(DTYPES[f.kind], copy=False)  # type: ignore[no-any-return]


def _unzigzagged(values: Any) -> Any:
    return values >> 1 ^ -(values & 1)


# Numbers of 64 bits, unsigned -> of the kind.
_OF_VARINTS: dict[str, Callable[[Any], Any]] = {
    "int32": lambda values: values.astype("<u4").view("<i4"),
    "enum": lambda values: values.astype("<u4").view("<i4"),
    "uint32": lambda values: values.astype("<u4"),
    "int64": lambda values: values.view("<i8"),
    "uint64": lambda values: values,
    "sint32": lambda values: _unzigzagged(values.astype("<u4")).view("<i4"),
    "sint64": lambda values: _unzigzagged(values).view("<i8"),
    "bool": lambda values: values != 0,
}


class WireTexts(Repeated):
    """A repeated string or bytes field: each element is decoded when it's read."""

    __slots__ = ("_field", "_spans", "_view")

    def __init__(self, view: WireView, f: Field, spans: array[int]) -> None:
        self._view = view
        self._field = f
        self._spans = spans
        self._name = f.name
        self._count = len(spans) // 2

    def _item(self, index: int) -> Any:
        return text_of(self._view, self._field, self._spans[2 * index], self._spans[2 * index + 1])


def text_of(view: WireView, f: Field, start: int, stop: int) -> Any:
    """A string or bytes in a view's buffer; text that isn't UTF-8 is bytes where protobuf doesn't check it.

    Raises:
        VerifyError: protobuf checks it.
    """
    if f.kind == "string":
        try:
            return str(view._data_[start:stop], "utf-8")
        except UnicodeDecodeError:
            if f.utf8:
                raise view._fault_(start) from None
    return bytes(view._data_[start:stop])


class WireMessages(Messages):
    """A repeated message field: each element is scanned when it's made a view; the last one is kept."""

    __slots__ = ("_cls", "_number", "_spans", "_view")

    def __init__(self, view: WireView, f: Field, spans: array[int], cls: type[WireView]) -> None:
        self._view = view
        self._number = f.number
        self._spans = spans
        self._cls = cls
        self._name = f.name
        self._count = len(spans) // 2

    def _made(self, index: int) -> WireView:
        span = self._spans[2 * index], self._spans[2 * index + 1]
        return self._cls._of_field_(self._view, self._name, index, span)

    def _item(self, index: int) -> WireView:
        # Mostly several fields of an element are read, one after the other.
        last = self._view._found_.get(-self._number)
        if last is not None and last[0] == index:
            return last[1]  # type: ignore[no-any-return]
        made = self._made(index)
        self._view._found_[-self._number] = index, made
        return made

    def __iter__(self) -> Iterator[WireView]:
        return map(self._made, range(self._count))
