"""`map` by a compiled loop: stretches of rows on threads, results straight into arrays."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from yaffjit.arrays import array_address
from yaffjit.jit import mapping as jit
from yaffjit.jit.results import Leaf, Result
from yaffjit.mapping.arrays import Array, Column, Mask
from yaffjit.mapping.rows import raise_in_row
from yaffjit.pool import run_timed

if TYPE_CHECKING:
    from yaffjit.rows import Records

UNKNOWN = -1


class _Output:
    """Where one leaf's values go."""

    def __init__(self, leaf: Leaf, rows: int, valid: Mask | None) -> None:
        self.leaf = leaf
        self.rows = rows
        self.missing: Mask | None = None
        if valid is not None:
            self.missing = ~valid
        elif leaf.optional:
            self.missing = np.zeros(rows, np.bool_)
        self.length = UNKNOWN  # of each array
        self.first_row = UNKNOWN  # that had an array
        self.values: Array | None = None
        if leaf.form == "text":
            self.values = np.full(rows, None, object)
        elif leaf.form != "array":
            self.values = (np.empty if self.missing is None else np.zeros)(rows, leaf.dtype)

    def make_arrays(self, length: int, row: int) -> None:
        self.length = length
        self.first_row = row
        self.values = np.zeros((self.rows, length), self.leaf.dtype)

    def column(self) -> Column:
        leaf = self.leaf
        if self.values is None:  # no row had an array
            self.make_arrays(0, UNKNOWN)
        assert self.values is not None
        if leaf.form != "oneof":
            return Column(self.values, self.missing)
        numbers = [0, *sorted(leaf.names)]
        names = np.array([None, *(leaf.names[number] for number in numbers[1:])], object)
        return Column(names[np.searchsorted(numbers, self.values)], None)


class _Stretch:
    """One call's table, and the text that it stores."""

    def __init__(self, outputs: list[_Output], begin: int, end: int, stop: Array, valid: Mask | None) -> None:
        self._outputs = outputs
        self._begin = begin
        self._texts: dict[int, Array] = {}
        self.table = np.zeros(jit.LEAVES + jit.WORDS * len(outputs), np.int64)
        self.table[jit.STOP] = array_address(stop)
        self.table[jit.ROW] = UNKNOWN
        self.table[jit.VALID] = 0 if valid is None else array_address(valid)
        for place, output in enumerate(outputs):
            words = self.words(place)
            if output.leaf.form == "text":
                nbytes = jit.text_nbytes(output.leaf)
                text = self._texts[place] = np.empty((end - begin, nbytes), np.uint8)
                words[jit.DATA] = array_address(text) - begin * nbytes
            if output.missing is not None:
                words[jit.MISSING] = array_address(output.missing)
            self.set_values(place)
        self.address = array_address(self.table)

    def words(self, place: int) -> Array:
        start = jit.LEAVES + jit.WORDS * place
        return self.table[start : start + jit.WORDS]

    def set_values(self, place: int) -> None:
        output = self._outputs[place]
        words = self.words(place)
        if output.leaf.form != "text":
            words[jit.DATA] = 0 if output.values is None else array_address(output.values)
        words[jit.LENGTH] = output.length

    def make_objects(self, end: int) -> tuple[int, Exception] | None:
        """Objects of the text of all rows before ``end``; the first row whose text isn't UTF-8, and why."""
        fault: tuple[int, Exception] | None = None
        begin = self._begin
        for place, text in self._texts.items():
            output = self._outputs[place]
            assert output.values is not None
            missing = 0 if output.missing is None else array_address(output.missing) + begin
            objects = array_address(output.values) + begin * output.values.itemsize
            row = begin + jit.text_maker(output.leaf.stored)(
                array_address(text), missing, objects, end - begin
            )
            if row < end and (fault is None or row < fault[0]):
                fault = row, output.values[row]
        return fault


def map_compiled(
    records: Records,
    loop: jit.Loop,
    result: Result,
    args: tuple[Any, ...],
    name: str,
    threads: int | None,
    update: Callable[[int], object],
) -> list[Column]:
    """The columns of a function's results.

    Args:
        loop, result: of `jit.compile_loop`, for records and arguments of these types.
        name: the function's, for errors.
        threads: as `run_timed` takes it.
        update: called with the number of rows that have been worked on since the last call.
    """
    rows = len(records)
    message = records.plan.full_name
    records._ready()  # in this thread, where Ctrl-C ends it
    valid = null_rows(records)
    outputs = [_Output(leaf, rows, valid) for leaf in result.leaves]
    arrays = [output for output in outputs if output.leaf.form == "array"]
    stop = np.zeros(1, np.int64)
    updating = threading.Lock()

    def work(begin: int, end: int) -> None:
        records._check()
        stretch = _Stretch(outputs, begin, end, stop, valid)
        row = begin
        error: Exception | None = None
        try:
            while row < end and not stop[0]:
                row = loop(records, args, row, end, stretch.address)
                if row < end and not stop[0]:
                    error = _length_fault(stretch, outputs, name)
                    if error is not None:
                        break
        except Exception as raised:
            row = int(stretch.table[jit.ROW])
            if row == UNKNOWN:  # it's about an argument, or the records as a whole
                raise
            error = raised
        undecoded = stretch.make_objects(row)
        if undecoded is not None:
            row, error = undecoded
        if error is not None:
            raise_in_row(error, row, message)
        with updating:
            update(end - begin)

    def lengths_are_known() -> bool:
        return all(output.length != UNKNOWN for output in arrays)

    def end_early() -> None:
        stop[0] = 1

    run_timed(work, rows, threads, end_early, lengths_are_known)
    return [output.column() for output in outputs]


def _length_fault(stretch: _Stretch, outputs: list[_Output], name: str) -> ValueError | None:
    """Take the length of the first row's array for that of all, or say that this one is another."""
    place, length, row = (int(stretch.table[word]) for word in (jit.FAULT, jit.FOUND, jit.ROW))
    output = outputs[place]
    if output.length == UNKNOWN:
        output.make_arrays(length, row)
        stretch.set_values(place)
        return None
    member = f" as member {place} of a tuple" if len(outputs) > 1 else ""
    return ValueError(
        f"{name} returns arrays of one length: {length} elements in row {row}{member}, "
        f"but {output.length} in row {output.first_row}"
    )


def null_rows(records: Records) -> Mask | None:
    """A byte a row, false where there's no message; None if there's one everywhere."""
    valid = getattr(records, "valid", None)
    if valid is None or valid.all():
        return None
    return np.ascontiguousarray(valid, np.bool_)
