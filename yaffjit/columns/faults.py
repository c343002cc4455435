"""Why a value doesn't fit its column: found by plain Python in the row that the loop gave up."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from yaffjit.codec.verify_protobuf_plain import check_plain
from yaffjit.errors import NumberError, NumberOverflowError, VerifyError, YaffjitError
from yaffjit.plan.columns import ColumnPath, column_path
from yaffjit.plan.paths import Step
from yaffjit.plan.requests import TIMESTAMP, UNITS

if TYPE_CHECKING:
    from yaffjit.rows import Records

_FIRST_SECOND, _LAST_SECOND = -62135596800, 253402300799  # of the years that a Timestamp may have
_NANOS = 10**9
_EXACT = {"float32": 2**24, "float64": 2**53}


def broken(records: Records, row: int, first_row: int = 0) -> YaffjitError:
    """What is wrong with the protobuf bytes of a row; errors count rows from ``first_row``."""
    mp = records.plan
    try:
        check_plain(mp.plan, mp.full_name, records.payload(row) or b"")
    except VerifyError as error:
        error.row = first_row + row
        return error
    return YaffjitError(
        f"{mp.full_name}: columns refuse row {first_row + row}, in which the check finds nothing wrong; "
        "this is a bug of yaffjit"
    )


def fault(records: Records, path: str, row: int, first_row: int = 0) -> Exception:
    """What is wrong with the first value of a row that doesn't fit the column of a path.

    Args:
        first_row: the number that errors have of the first row.
    """
    column = column_path(records.plan, path)
    where = f"path {path!r} of {records.plan.full_name}, row {first_row + row}"
    try:
        for value in _values(records[row], column.steps, column):
            found = _fault(column, value, where)
            if found is not None:
                return found
    except UnicodeDecodeError as error:
        reason = f"{error.reason} ({where})"
        return UnicodeDecodeError(error.encoding, error.object, error.start, error.end, reason)
    raise AssertionError(f"{where}: a value didn't fit, and fits now: the bytes have changed")


def _values(held: Any, steps: tuple[Step, ...], column: ColumnPath) -> Iterator[Any]:
    """All values that steps lead to."""
    if not steps:
        yield held.WhichOneof(column.oneof) if column.oneof else held
        return
    step, rest = steps[0], steps[1:]
    inner = getattr(held, step.f.name)
    if step.index is not None:
        there = step.index in inner if step.f.is_map else -len(inner) <= int(step.index) < len(inner)
        if there:
            yield from _values(inner[step.index], rest, column)
    elif step.f.repeated and (rest or column.oneof or column.what != "length"):
        for each in inner.values() if step.f.is_map else inner:
            yield from _values(each, rest, column)
    else:
        yield from _values(inner, rest, column)


def _fault(column: ColumnPath, value: Any, where: str) -> Exception | None:
    if column.what == "time":
        return _time_fault(column, value.seconds, value.nanos, where)
    if column.what == "length":
        is_text = not column.steps[-1].target[1].repeated and column.steps[-1].target[1].kind == "string"
        if is_text and isinstance(value, bytes):  # of a field whose text isn't checked
            value = value.decode()
        value = len(value)
    if column.oneof:
        value = column.owner.by_name[value].number if value else 0
    dtype = column.dtype
    text = f"{where}: {{}} doesn't fit: {dtype} holds "
    if isinstance(value, float):
        if dtype != "float32" or not math.isfinite(value) or math.isfinite(_to_float32(value)):
            return None
        limit = np.finfo(np.float32).max
        return NumberOverflowError(f"{text}-{limit} to {limit}", value)
    if dtype in _EXACT:
        if int(np.dtype(dtype).type(value)) == value:
            return None
        return NumberOverflowError(f"{text}all integers only up to {_EXACT[dtype]}", value)
    if dtype == "bool":
        return None
    limits = np.iinfo(dtype)
    if limits.min <= value <= limits.max:
        return None
    return NumberOverflowError(f"{text}{limits.min} to {limits.max}", int(value))


def _to_float32(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _time_fault(column: ColumnPath, seconds: int, nanos: int, where: str) -> Exception | None:
    mp, f = column.steps[-1].each
    if mp.child(f).full_name == TIMESTAMP:
        invalid = f"{where}: Timestamp is not valid: "
        if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
            return NumberError(f"{invalid}seconds {{}} must be in {_FIRST_SECOND} to {_LAST_SECOND}", seconds)
        if not 0 <= nanos < _NANOS:
            return NumberError(f"{invalid}nanos {{}} must be in 0 to {_NANOS - 1}", nanos)
    name, unit = column.dtype.rstrip("]").split("[")
    per_second = 10 ** (9 - 3 * UNITS.index(unit))
    whole = seconds * per_second + int(math.copysign(abs(nanos) // (_NANOS // per_second), nanos))
    if -(2**63) < whole < 2**63:
        return None
    plain = column.path.partition(":" + name)[0]
    coarser = [f"{plain}:{name}[{other}]" for other in UNITS[UNITS.index(unit) + 1 :]]
    hint = f": ask for a coarser unit, as {' or '.join(coarser)}" if coarser else ""
    return NumberOverflowError(
        f"{where}: {{}} seconds and {nanos} nanoseconds don't fit {column.dtype}, "
        f"which holds {2**63 // per_second} seconds{hint}",
        seconds,
    )
