"""Which rows a `--where` holds for: its columns are read a batch at a time, and compared as arrays."""

from __future__ import annotations

import contextlib
import math
import operator
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from yaffjit.cli.where import Condition, Literal, Name, WhereError
from yaffjit.errors import SchemaError, near_names

if TYPE_CHECKING:
    from yaffjit.plan import MessagePlan
    from yaffjit.plan.columns import ColumnPath
    from yaffjit.rows import Records

Mask = npt.NDArray[np.bool_]

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_OF_ARROW = {
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
_ORDER = ("<", "<=", ">", ">=")
# numpy takes words like "now" as well, and no zones. Without a zone it's UTC.
_TIME = re.compile(
    r"(?P<time>\d{4}-\d\d(?:-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)?)?)"
    r"(?:Z|(?P<sign>[+-])(?P<hours>[01]\d|2[0-3])(?::?(?P<minutes>[0-5]\d))?)?",
    re.ASCII,
)


class Where:
    """Conditions on messages of one type.

    Args:
        mp: the type.
        conditions: all of which must hold.

    Raises:
        WhereError: a path isn't one, or what it leads to can't be compared so.
    """

    def __init__(self, mp: MessagePlan, conditions: tuple[Condition, ...]) -> None:
        self._checks = [_Check(mp, condition) for condition in conditions]

    def rows(self, records: Records) -> Iterator[int]:
        """The rows that match, in order; reads no further than they are asked for, by 65,536."""
        first = 0
        for batch in records.batches():
            paths = dict.fromkeys(check.column for check in self._checks if check.is_value)
            columns: Any = batch.columns(*paths) if paths else {}
            matches = np.ones(len(batch), np.bool_)
            for check in self._checks:
                if not matches.any():
                    break
                matches &= check.mask(columns[check.column]) if check.is_value else check.presence(batch)
            for row in np.flatnonzero(matches).tolist():
                yield first + row
            first += len(batch)


class _Check:
    """One condition, of which everything is known but the values."""

    def __init__(self, mp: MessagePlan, condition: Condition) -> None:
        from yaffjit.plan.columns import presence_path

        self.path = self.column = condition.path
        self.is_value = "present" not in condition.operator
        self._condition = condition
        self._operator = condition.operator
        self._literals: list[Any] = []
        try:
            if not self.is_value:
                presence_path(mp, self.path)
                return
            column = self._found(mp)
        except SchemaError as error:
            raise WhereError(condition.at, str(error)) from error
        steps, self._levels = column.steps, len(column.loops)
        if column.path != self.path:  # of the map, and not of a field of its messages
            self._levels = column.loops.index(len(steps) - 2) + 1
            steps = steps[:-1]
        self._is_list = self._levels > 0
        last = steps[-1] if steps else None
        # A map contains its keys, as in Python.
        self._keys = self._is_list and last is not None and last.f.is_map and last.index is None
        if self._is_list and self._operator != "contains":
            self._refuse("it has several values a row, for which only 'contains' is")
        text = column.what == "text"
        if not self._is_list and not text and self._operator in ("contains", "startswith"):
            self._refuse(f"'{self._operator}' is for text, and 'contains' for lists")
        what, dtype = column.what, column.dtype
        if self._keys and last is not None:
            key = last.mp.child(last.f).fields[0].kind
            what, dtype = (
                ("text", "") if key == "string" else ("number", "bool" if key == "bool" else "int64")
            )
        names = {} if self._keys else _names(column)
        self._is_bytes = not self._keys and last is not None and last.each[1].kind == "bytes"
        self._literals = [_value(self, what, dtype, names, literal) for literal in condition.literals]

    def _found(self, mp: MessagePlan) -> ColumnPath:
        """The column to read: of a map of messages, whose keys are asked for, that of a field in them."""
        from yaffjit.plan.columns import column_path, expand

        try:
            return column_path(mp, self.path)
        except SchemaError:
            if self._operator == "contains":
                with contextlib.suppress(SchemaError):
                    found = column_path(mp, expand(mp, f"{self.path}.*")[0])
                    if found.steps[-2].f.is_map and found.steps[-2].index is None:
                        self.column = found.path
                        return found
            raise

    def presence(self, records: Records) -> Mask:
        from yaffjit.columns.read import present

        found: Mask = present(records, self.path)
        return found if self._operator == "present" else ~found

    def mask(self, column: Any) -> Mask:
        """Where a column's values fulfil it."""
        if not self._is_list:
            return _compared(column, self._operator, self._literals)
        levels = []
        for level in range(self._levels):
            levels.append(column.offsets)
            column = column.keys if self._keys and level == self._levels - 1 else column.values
        found = _compared(column, "==", self._literals)
        for offsets in reversed(levels):
            sums = np.concatenate(([0], np.cumsum(found)))
            found = sums[offsets[1:]] > sums[offsets[:-1]]
        return found

    def _refuse(self, fault: str) -> None:
        raise WhereError(self._condition.at, f"{self.path}: {fault}")

    def refuse_literal(self, literal: Literal, what: str) -> WhereError:
        shown = str(literal) if isinstance(literal, (bool, Name)) else repr(literal)
        shown = shown.lower() if isinstance(literal, bool) else shown
        return WhereError(self._condition.at, f"{self.path} is {what}, so it isn't compared with {shown}")


def _value(check: _Check, what: str, dtype: str, names: dict[str, int], literal: Literal) -> Any:
    """A literal as a column of some sort has its values."""
    if what == "text":
        if type(literal) is bytes and check._is_bytes:
            return literal
        if type(literal) is not str:
            raise check.refuse_literal(literal, "text")
        return literal.encode("utf-8", "surrogateescape")
    if what == "time":
        return _time(check, np.dtype(dtype), literal)
    number = "a bool" if dtype == "bool" else "a number"
    if isinstance(literal, (str, bytes)) and not isinstance(literal, Name):
        raise check.refuse_literal(literal, number)
    if isinstance(literal, Name):
        if literal not in names:
            fault = "a name, which only enums and oneofs have" if not names else "no name of its values"
            near = near_names(literal, names)
            raise WhereError(check._condition.at, f"{check.path} is compared with {literal!s}, {fault}{near}")
        return names[literal]
    if (dtype == "bool") != isinstance(literal, bool):
        raise check.refuse_literal(literal, number)
    return literal


def _names(column: ColumnPath) -> dict[str, int]:
    """The numbers that a column's values have names for."""
    if column.what == "which":
        owner = column.owner
        members = next(oneof.fields for oneof in owner.oneofs if oneof.name == column.oneof)
        return {name: owner.by_name[name].number for name in members}
    if column.what != "number" or not column.steps:
        return {}
    step = column.steps[-1]
    mp, f = step.each
    return dict(mp.plan.schema.enums[f.enum].values) if f.kind == "enum" else {}


def _time(check: _Check, dtype: np.dtype[Any], literal: Literal) -> Any:
    if dtype.kind == "M" and type(literal) is str:
        given = _datetime(literal)
        found = given.astype(dtype)
        # numpy wraps around where a time is beyond the dtype; what isn't a time equals nothing.
        if found.astype(given.dtype) == given:
            return found
    if (
        dtype.kind == "m"
        and isinstance(literal, (int, float))
        and not isinstance(literal, bool)
        and abs(literal) * 10**9 < 2**63  # neither infinite nor NaN either
    ):
        return np.timedelta64(round(float(literal) * 10**9), "ns")
    what = (
        "a time, as '2024-05-01T12:00:00' or '2024-05-01 14:00+02:00'"
        if dtype.kind == "M"
        else "a duration in seconds"
    )
    raise check.refuse_literal(literal, what)


def _datetime(text: str) -> np.datetime64:
    """A time in UTC; NaT where it isn't one."""
    found = _TIME.fullmatch(text)
    if found is None:
        return np.datetime64("NaT")
    try:
        given: np.datetime64 = np.datetime64(found["time"])
    except ValueError:
        return np.datetime64("NaT")
    if found["hours"] is None:
        return given
    minutes = 60 * int(found["hours"]) + int(found["minutes"] or 0)
    shifted: np.datetime64 = given - np.timedelta64(-minutes if found["sign"] == "-" else minutes, "m")
    return shifted


def _compared(values: Any, operator_: str, literals: list[Any]) -> Mask:
    from yaffjit.columns import TextColumn

    if isinstance(values, TextColumn):
        return _compared_text(values, operator_, literals)
    if operator_ in ("in", "not in"):
        found = np.zeros(len(values), np.bool_)
        for literal in literals:
            found |= _compared_numbers(values, "==", literal)
        return found if operator_ == "in" else ~found
    return _compared_numbers(values, "==" if operator_ == "contains" else operator_, literals[0])


def _compared_text(values: Any, operator_: str, literals: list[bytes]) -> Mask:
    """By bytes, which for UTF-8 is the order of characters, whatever the bytes are."""
    import pyarrow as pa
    from pyarrow import compute

    array = values.to_arrow_binary()
    if operator_ in ("in", "not in"):
        found = compute.is_in(array, pa.array(literals, pa.large_binary()))
        found = found if operator_ == "in" else compute.invert(found)
    elif operator_ == "contains":
        found = compute.match_substring(array, literals[0])
    elif operator_ == "startswith":
        found = compute.starts_with(array, literals[0])
    else:
        found = getattr(compute, _OF_ARROW[operator_])(array, pa.scalar(literals[0], pa.large_binary()))
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


def _compared_numbers(values: Any, operator_: str, literal: Any) -> Mask:
    """As Python compares: exactly."""
    if values.dtype == np.float32:
        values = values.astype(np.float64)
    if values.dtype.kind in "iu" and isinstance(literal, float):
        if math.isnan(literal):
            return np.full(len(values), operator_ == "!=")
        if math.isinf(literal):
            return np.full(len(values), _COMPARE[operator_](0.0, literal))
        if not literal.is_integer():
            if operator_ in ("==", "!="):
                return np.full(len(values), operator_ == "!=")
            # Between two integers: what is below it is at most the lower one.
            operator_ = "<=" if operator_ in ("<", "<=") else ">"
        literal = math.floor(literal)
    return np.asarray(_COMPARE[operator_](values, literal), np.bool_)
