"""Records to Arrow, a batch of rows at a time: tables, and streams that make a batch when it's asked for."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from yaffjit.columns.arrow.assemble import MOST, Assembly, TextError, TooLargeError, pooled
from yaffjit.columns.arrow.names import Dictionary
from yaffjit.columns.arrow.types import DICTIONARY, INTEGER, is_coded, type_of
from yaffjit.columns.gather import gathered
from yaffjit.plan.columns import expand
from yaffjit.plan.model import MessagePlan
from yaffjit.plan.pages import PAGE_ROWS
from yaffjit.plan.requests import UNITS
from yaffjit.plan.shapes import WHOLE, Node, Several, Shaping, Struct, Value, stored_for
from yaffjit.pool import run_stretches

if TYPE_CHECKING:
    from yaffjit.rows import Records

BATCH_ROWS = PAGE_ROWS  # so many that 32-bit offsets suffice; a batch of an index


def arrow_schema(mp: MessagePlan, paths: Any = None, enums: str = DICTIONARY, unit: str = "ns") -> Any:
    """The schema that `to_arrow` has; it takes the same."""
    return _Form(mp, "yaff", paths, enums, unit).schema


def to_arrow(
    records: Records, paths: Any = None, enums: str = DICTIONARY, unit: str = "ns", threads: int | None = None
) -> Any:
    """A pyarrow Table of whole messages or chosen paths; see docs/arrow.md.

    Args:
        records: the messages.
        paths: None for all fields, a path, or several.
        enums: "dictionary" of names or "integer".
        unit: of times: "ns", "us", "ms" or "s".
        threads: how many read at most; None for all cores.

    Raises:
        SchemaError: a path isn't one, or a message type holds itself.
        VerifyError: protobuf bytes aren't what protobuf accepts; names the row, field path and position.
        OverflowError: a time doesn't fit its unit; names the row.
        UnicodeDecodeError: a text isn't UTF-8; names the row.
    """
    form = _Form(records.plan, records.representation, paths, enums, unit)
    batches = _batches(form, records, threads)
    if any(names.others for names in form.names.values()):
        # Batches that were made before all numbers were known have other dictionaries.
        form.sort_names()
        batches = _batches(form, records, threads)
    return pa.Table.from_batches(batches, form.schema)


def reader(
    records: Records, paths: Any = None, enums: str = DICTIONARY, unit: str = "ns", rows: int = BATCH_ROWS
) -> Any:
    """A pyarrow RecordBatchReader, which makes each batch when it's asked for; arguments as `to_arrow`.

    Args:
        rows: of a batch, at most.
    """
    rows = operator.index(rows)
    if rows < 1:
        raise ValueError(f"a batch has at least 1 row, not {rows}")
    form = _Form(records.plan, records.representation, paths, enums, unit)

    def batches() -> Iterator[Any]:
        for begin in range(0, len(records), rows):
            yield from form.batches(records, begin, min(len(records), begin + rows), None)

    return pa.RecordBatchReader.from_batches(form.schema, batches())


def one_batch(records: Records) -> Any:
    """All rows as one pyarrow RecordBatch. ValueError where 32-bit offsets don't suffice."""
    form = _Form(records.plan, records.representation, None, DICTIONARY, "ns")
    made = list(form.batches(records, 0, len(records), None))
    if len(made) > 1:
        raise ValueError(
            f"{len(records)} rows have more than 2**31 - 1 bytes or elements in a column, which one array of "
            "Arrow can't have: take the stream, or fewer rows at a time"
        )
    return made[0]


def _batches(form: _Form, records: Records, threads: int | None) -> list[Any]:
    rows = len(records)
    if form.is_fixed:  # nothing has offsets, so one batch has room for all
        return list(form.batches(records, 0, rows, threads)) if rows else []
    count = -(-rows // BATCH_ROWS)
    made: list[list[Any]] = [[]] * count

    def work(begin: int, end: int) -> None:
        for i in range(begin, end):
            first = i * BATCH_ROWS
            made[i] = list(form.batches(records, first, min(rows, first + BATCH_ROWS), 1))

    run_stretches(work, count, 1, threads)
    return [batch for of_one in made for batch in of_one]


class _Form:
    """What is read of messages of one type, and what it becomes."""

    def __init__(self, mp: MessagePlan, representation: str, paths: Any, enums: str, unit: str) -> None:
        if enums not in (DICTIONARY, INTEGER):
            raise ValueError(f"enums must be 'dictionary' or 'integer', not {enums!r}")
        if unit not in UNITS:
            raise ValueError(f"unit must be one of {', '.join(map(repr, UNITS))}, not {unit!r}")
        self.mp = mp
        self.enums = enums
        self.unit = unit
        self.paths = _expanded(mp, paths)
        shaping = stored_for(mp, self.paths, (), unit, representation == "protobuf")
        assert isinstance(shaping, Shaping)
        self.is_fixed = shaping.is_fixed
        self.columns = _named(self.paths, shaping)
        self.schema = pa.schema([(name, type_of(node, enums)) for name, node in self.columns])
        self.names = {
            value.leaf.values: Dictionary(value.names)
            for value in _values(shaping.shapes)
            if is_coded(value, enums)
        }

    def sort_names(self) -> None:
        """See `Dictionary.sort`."""
        for names in self.names.values():
            names.sort()

    def batches(self, records: Records, begin: int, end: int, threads: int | None) -> Iterator[Any]:
        """Record batches of some rows: one, or more if 32-bit offsets don't suffice for that."""
        part = records[begin:end]
        try:
            yield self._batch(part, begin, threads)
        except TooLargeError:
            if end - begin < 2:
                raise ValueError(
                    f"{self.mp.full_name}: row {begin} has more than {MOST} bytes or elements in a column, "
                    "which an array of Arrow with 32-bit offsets can't have"
                ) from None
            middle = (begin + end) // 2
            yield from self.batches(records, begin, middle, threads)
            yield from self.batches(records, middle, end, threads)

    def _batch(self, part: Records, first_row: int, threads: int | None) -> Any:
        arrays = gathered(part, _paths(part, self.paths, self.unit), {}, threads, first_row, pooled)
        rows = part.valid
        # Where no row can be null, it's one value that stands for all.
        valid = None if not rows.strides[0] or rows.all() else rows
        assembly = Assembly(arrays, self.names, self.enums)
        try:
            columns = [assembly.array(node, len(part), valid) for _, node in self.columns]
        except TextError as error:
            fault = error.fault
            where = f"path {error.leaf.path!r} of {self.mp.full_name}, row {first_row + error.value}"
            reason = f"{fault.reason} ({where})"
            raise UnicodeDecodeError(fault.encoding, fault.object, fault.start, fault.end, reason) from None
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _expanded(mp: MessagePlan, paths: Any) -> tuple[str, ...]:
    """Paths without ``*``, each once."""
    if paths is None:
        return (WHOLE,)
    if not isinstance(paths, str) and not isinstance(paths, Sequence):
        raise TypeError(f"paths must be None, a path, or a list of them, not {type(paths).__name__}")
    given = [paths] if isinstance(paths, str) else paths
    found = tuple(dict.fromkeys(one for path in given for one in expand(mp, path)))
    if not found:
        raise ValueError('name at least one path, as in to_arrow(["id", "stats.ctr"])')
    return found


def _named(paths: tuple[str, ...], shaping: Shaping) -> list[tuple[str, Node]]:
    """Names of columns, and what they are made of."""
    whole = shaping.shapes[0]
    if paths == (WHOLE,) and isinstance(whole, Struct):
        return list(whole.fields)
    return list(zip(paths, shaping.shapes, strict=True))


def _values(nodes: Iterable[Node]) -> Iterator[Value]:
    for node in nodes:
        if isinstance(node, Struct):
            yield from _values(field for _, field in node.fields)
        elif isinstance(node, Several):
            yield from _values([node.item])
        elif isinstance(node, Value):
            yield node


def _paths(records: Records, paths: tuple[str, ...], unit: str) -> Any:
    """`Paths` of a `Shaping`, made once."""
    from yaffjit.jit.columns.paths import Paths

    mp, representation = records.plan, records.representation
    memo = mp.plan.memo
    key = ("arrow", mp.full_name, paths, unit, representation)
    made = memo.get(key)
    if made is None:
        made = memo.setdefault(key, Paths(mp, paths, (), representation, shaped=unit))
    return made
