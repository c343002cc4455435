"""What records hold, field by field: how often each is set, how large it is, and between which values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from yaffjit.codec.locate import FLAT, read_u16, read_u32
from yaffjit.columns.results import Array
from yaffjit.errors import near_names
from yaffjit.markup import Shown, table
from yaffjit.plan.columns import value_form
from yaffjit.plan.model import FieldPlan, MessagePlan
from yaffjit.render import text_table
from yaffjit.schema.enums import enum_name

if TYPE_CHECKING:
    from yaffjit.plan import Plan
    from yaffjit.rows import Records

MOST_ROWS = 100_000
MOST_FIELDS = 1000
SIZED_ROWS = 10_000  # whose bytes are looked at
HEADER = ("field", "kind", "set", "size", "least", "mean", "most")
_NUMBERS = HEADER[2:]


@dataclass(frozen=True, slots=True)
class FieldProfile:
    """One field over all rows.

    Attributes:
        path: as `Records.columns` takes it.
        kind: of its values.
        share: of the rows in which it's set, from 0 to 1, as `Columns.present` tells.
        size: characters of a text, bytes, elements or pairs, on the mean where it's set; None of one number.
        least, mean, most: of the numbers, elements and times that are set; of enums only the least and most.
            NaN doesn't count. None where there are none.
    """

    path: str
    kind: str
    share: float
    size: float | None = None
    least: Any = None
    mean: Any = None
    most: Any = None

    def cells(self) -> tuple[str, ...]:
        size = "" if self.size is None else f"{self.size:,.1f}"
        return (
            self.path,
            self.kind,
            f"{self.share:.1%}",
            size,
            *map(_shown, (self.least, self.mean, self.most)),
        )


class Profile(Shown, Mapping[str, FieldProfile]):
    """The fields of records, by path; a table when it's printed, with bars in a notebook.

    Attributes:
        rows: how many were looked at, and how many there are.
        nbytes: least, mean and most bytes of a message.
        layouts: how many messages have which layout at their root; empty of protobuf bytes.
    """

    def __init__(
        self,
        title: str,
        rows: tuple[int, int],
        nbytes: tuple[int, float, int],
        layouts: Mapping[str, int],
        fields: Mapping[str, FieldProfile],
    ) -> None:
        self.title = title
        self.rows = rows
        self.nbytes = nbytes
        self.layouts = layouts
        self._fields = fields

    def __getitem__(self, path: str) -> FieldProfile:
        try:
            return self._fields[path]
        except KeyError:
            raise KeyError(f"no field {path!r}{near_names(path, self._fields)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row a field. ImportError without pandas."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_pandas needs pandas: pip install pandas") from error
        names = FieldProfile.__slots__
        return pd.DataFrame([{name: getattr(row, name) for name in names} for row in self.values()])

    def plot(self) -> Any:
        """A matplotlib Figure of how often each field is set. ImportError without matplotlib."""
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ImportError("plot needs matplotlib: pip install matplotlib") from error
        rows = list(self.values())[::-1]
        figure = Figure(figsize=(8, 0.8 + 0.22 * len(rows)), layout="constrained")
        axes = figure.subplots()
        axes.barh([row.path for row in rows], [100 * row.share for row in rows], color="#2457a6", height=0.7)
        axes.set_xlim(0, 100)
        axes.set_xlabel(f"percent of the rows of {self.title} in which it's set")
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
        return figure

    def _summary(self) -> str:
        looked, there = self.rows
        least, mean, most = self.nbytes
        rows = f"{looked:,} of {there:,} rows" if looked < there else f"{there:,} rows"
        layouts = "".join(f", {count:,} {name}" for name, count in self.layouts.items())
        return f"{self.title}: {rows}, {least:,} to {most:,} bytes each, {mean:,.1f} on the mean{layouts}"

    def _html_(self) -> str:
        return table(self._summary(), HEADER, [row.cells() for row in self.values()], _NUMBERS, bar="set")

    def __repr__(self) -> str:
        return f"{self._summary()}\n{text_table(HEADER, [row.cells() for row in self.values()], _NUMBERS)}"


def profile(records: Records, rows: int = MOST_ROWS) -> Profile:
    """What records hold.

    Args:
        rows: so many are looked at, at most: at random if there are more.

    Raises:
        VerifyError: protobuf bytes aren't what protobuf accepts; names the row, field path and position.
        ValueError: ``rows`` isn't at least 1.
    """
    if rows < 1:
        raise ValueError(f"a profile takes at least 1 row, not {rows}")
    looked = records if len(records) <= rows else records.sample(rows, seed=0)
    mp = records.plan
    names = [f.name for f in _declared(mp) if not _holds(mp.plan, f.message)]
    arrow: Any = looked.to_arrow(names, enums="integer") if names else None
    fields: dict[str, FieldProfile] = {}
    for name in names:
        column = arrow.column(name).combine_chunks()
        for found in _profiles(mp, mp.by_name[name], "", column, len(looked)):
            if len(fields) < MOST_FIELDS:
                fields[found.path] = found
    sizes, layouts = _sizes(looked)
    return Profile(mp.full_name, (len(looked), len(records)), sizes, layouts, fields)


def _declared(mp: MessagePlan) -> list[FieldPlan]:
    """The fields that YaFF carries, in the order of declaration."""
    return [mp.by_name[f.name] for f in mp.plan.schema.messages[mp.full_name].fields if f.name in mp.by_name]


def _holds(plan: Plan, name: str) -> bool:
    """Whether a message type leads back to one that holds it, which Arrow has no type for."""
    seen: set[str] = set()
    above = [(name, frozenset[str]())]
    while above:
        name, holders = above.pop()
        if name in holders:
            return True
        if name and name not in seen:
            seen.add(name)
            above += [(f.message, holders | {name}) for f in plan[name].fields if f.message]
    return False


def _profiles(mp: MessagePlan, f: FieldPlan, prefix: str, column: Any, rows: int) -> Iterator[FieldProfile]:
    """A field and those of the singular messages in it.

    Args:
        column: its pyarrow array, null where it's absent.
        rows: how many there are in all.
    """
    path = f"{prefix}{f.name}"
    there = column.drop_null()
    kind = _kind(mp, f)
    if f.repeated:
        lengths = np.diff(np.asarray(there.offsets))
        share, size = _mean(lengths > 0, rows), _mean(lengths[lengths > 0])
        values = None if f.is_map or f.kind == "message" else _numbers(mp, f, there.flatten())
        yield FieldProfile(path, kind, share or 0.0, size, *(values or ()))
    elif f.kind == "message" and value_form(mp, f) is None:
        yield FieldProfile(path, kind, len(there) / rows if rows else 0.0)
        child = mp.child(f)
        for inner in _declared(child):
            yield from _profiles(child, inner, f"{path}.", there.field(inner.name), rows)
    elif f.kind in ("string", "bytes"):
        import pyarrow.compute as pc

        sizes = np.asarray(pc.utf8_length(there) if f.kind == "string" else pc.binary_length(there))
        is_set = np.ones(len(sizes), bool) if f.explicit else sizes > 0
        yield FieldProfile(path, kind, _mean(is_set, rows) or 0.0, _mean(sizes[is_set]))
    else:
        numbers = there.to_numpy(zero_copy_only=False)
        is_set = np.ones(len(numbers), bool) if f.explicit else numbers != 0
        share = _mean(is_set, rows) or 0.0
        yield FieldProfile(path, kind, share, None, *(_numbers(mp, f, there.filter(is_set)) or ()))


def _numbers(mp: MessagePlan, f: FieldPlan, values: Any) -> tuple[Any, Any, Any] | None:
    """The least of numbers, times or names, their mean, and the most."""
    if f.kind in ("string", "bytes") or not len(values):
        return None
    numbers = values.to_numpy(zero_copy_only=False)
    if numbers.dtype.kind == "f":
        numbers = numbers[~np.isnan(numbers)]
    if not len(numbers) or numbers.dtype.kind not in "biufmM":
        return None
    least, most = numbers.min(), numbers.max()
    if f.enum:
        named = partial(enum_name, mp.plan.schema, f.enum)
        return named(int(least)), None, named(int(most))
    if numbers.dtype.kind in "mM":
        return least, None, most
    return least.item(), float(np.mean(numbers, dtype=np.float64)), most.item()


def _mean(values: Array, count: int | None = None) -> float | None:
    """The mean; of bools the share of a number of rows."""
    count = len(values) if count is None else count
    return float(values.sum(dtype=np.float64)) / count if count else None


def _kind(mp: MessagePlan, f: FieldPlan) -> str:
    if f.is_map:
        entry = mp.child(f)
        key, value = entry.by_name["key"], entry.by_name["value"]
        return f"map of {key.kind} to {_name(value)}"
    return f"list of {_name(f)}" if f.repeated else _name(f)


def _name(f: FieldPlan) -> str:
    return f.message or f.enum or f.kind


def _sizes(records: Records) -> tuple[tuple[int, float, int], Mapping[str, int]]:
    """Bytes of a message, and of YaFF the layouts at the root, of the first rows."""
    payloads = [records.payload(row) or b"" for row in range(min(len(records), SIZED_ROWS))]
    sizes = [len(payload) for payload in payloads if payload] or [0]
    layouts: Counter[str] = Counter()
    if records.representation == "yaff":
        declared = records.plan.layout
        for payload in filter(None, payloads):
            header = 0 if declared == "fixed" else read_u16(payload, read_u32(payload, 0)[0])[0]
            layouts["fixed" if declared == "fixed" else "flat" if header & FLAT else "sparse"] += 1
    return (min(sizes), sum(sizes) / len(sizes), max(sizes)), layouts


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
