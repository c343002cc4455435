"""Functions from Arrow batches with a column of messages to batches with what was read of them.

They pickle, compile once a process, and are what Ray's ``map_batches``, Spark's ``mapInArrow``, Dask's
``map_partitions`` and DuckDB's Arrow tables call.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from yaffjit.errors import YaffjitError
from yaffjit.index.metadata import MESSAGE_COLUMN, METADATA_KEY
from yaffjit.mapping.features import mapped_columns
from yaffjit.rows import Records, records
from yaffjit.tables import arrow_of

if TYPE_CHECKING:
    from yaffjit.mapping.arrays import Column

# What tells in the metadata of a table where its rows are from.
SHARD_KEY, ROW_KEY = b"yaffjit.shard", b"yaffjit.row"
ON_ERROR = ("raise", "null", "skip")
_SHOWN_ERRORS = 3

_log = logging.getLogger("yaffjit")
# What this process has of functions that came in pickles, so that each is compiled once.
_known: dict[str, BatchFunction] = {}


class BatchFunction:
    """``function(batch) -> batch`` of pyarrow RecordBatches and Tables: adds columns to those that are there.

    Attributes:
        column: the name of the column of messages.
        on_error: what becomes of a row that can't be read, or whose function raises: "raise"; "null"; "skip"
            leaves it out. What is left out is logged with the first reasons.
    """

    def __init__(
        self, message_type: Any, column: str, representation: str | None, on_error: str, keep: bool
    ) -> None:
        if on_error not in ON_ERROR:
            known = ", ".join(repr(known) for known in ON_ERROR)
            raise ValueError(f"on_error={on_error!r} isn't supported; supported: {known}")
        self.message_type = message_type
        self.column = column
        self.representation = representation
        self.on_error = on_error
        self.keep = keep
        self._key = uuid.uuid4().hex

    def added(self, recs: Records) -> Mapping[str, Any]:
        """The new columns, as Arrow arrays by name."""
        raise NotImplementedError

    def __call__(self, batch: Any) -> Any:
        """The batch with new columns, or, without ``keep``, without its messages.

        Raises:
            What reading a row raises: its text names shard and row.
            KeyError, TypeError: the batch has no such column, or it isn't one of bytes.
        """
        import pyarrow as pa

        table = pa.table(batch)
        payloads, representation = self._messages(table)
        mask = np.ones(len(payloads), bool)
        faults: list[str] = []
        while True:
            try:
                columns = self.added(self._records(payloads, mask, representation))
                break
            except Exception as error:
                row = getattr(error, "row", None)
                if self.on_error == "raise" or row is None or not mask[row]:
                    raise self._located(error, table, row) from error
                faults.append(str(self._located(error, table, row)))
                mask[row] = False
                if len(faults) == 1:
                    mask &= self._readable(payloads, representation, mask)
        for name, array in columns.items():
            table = _with_column(table, name, array)
        if not self.keep:
            table = table.drop_columns([self.column])
        bad = int(len(mask) - np.count_nonzero(mask))
        if bad:
            _log.warning(
                "%s of %s rows can't be read: %s",
                f"{bad:,}",
                f"{len(mask):,}",
                "; ".join(faults[:_SHOWN_ERRORS]),
            )
            table = table.filter(pa.array(mask)) if self.on_error == "skip" else table
        return table.combine_chunks().to_batches()[0] if _is_batch(batch) and len(table) else table

    def stream(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The same of batches as they come, for Spark's ``mapInArrow``."""
        import pyarrow as pa

        for batch in batches:
            yield from pa.table(self(batch)).to_batches()

    def _messages(self, table: Any) -> tuple[Any, str]:
        """The column of messages, and how they are encoded."""
        if self.column not in table.column_names:
            raise KeyError(f"the batch has no column {self.column!r}; its columns are {table.column_names}")
        field = table.schema.field(self.column)
        told = (field.metadata or {}).get(METADATA_KEY)
        representation = self.representation
        if representation is None:
            representation = json.loads(told)["representation"] if told else "protobuf"
        return table.column(self.column), representation

    def _records(self, payloads: Any, mask: Any, representation: str) -> Records:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not mask.all():
            payloads = pc.if_else(pa.array(mask), payloads, pa.scalar(None, payloads.type))
        return records(self.message_type.plan, payloads, representation, copy=True)

    def _readable(self, payloads: Any, representation: str, mask: Any) -> Any:
        """Which rows are well-formed: asked row by row, once a batch in which some aren't."""
        verify = self.message_type.verify if representation == "yaff" else self.message_type.verify_protobuf
        readable = mask.copy()
        for row in np.flatnonzero(mask).tolist():
            payload = payloads[row].as_py()
            try:
                if payload is not None:
                    verify(payload)
            except YaffjitError:
                readable[row] = False
        return readable

    def _located(self, error: Exception, table: Any, row: int | None) -> Exception:
        """The error, which also tells shard and row of the data set."""
        metadata = table.schema.metadata or {}
        shard = metadata.get(SHARD_KEY, b"").decode(errors="replace")
        if not shard or row is None:
            return error
        first = int(metadata.get(ROW_KEY, b"0"))
        return BatchError(f"{shard}, row {first + row:,}, row {row:,} of its batch: {error}")

    def __reduce__(self) -> Any:
        return _known_or, (self._key, type(self), self.__dict__)


class BatchError(YaffjitError):
    """A row of a shard couldn't be read, or the function raised there; the cause is its ``__cause__``."""


class MapBatches(BatchFunction):
    """See `map`."""

    def __init__(self, function: Callable[..., Any], names: Sequence[str], *options: Any) -> None:
        super().__init__(*options)
        self.function = function
        self.names = tuple(names)

    def added(self, recs: Records) -> Mapping[str, Any]:
        found = mapped_columns(recs, self.function, threads=1)
        if len(found) != len(self.names):
            raise ValueError(
                f"the function gives {len(found)} values a row, for {len(self.names)} names {self.names}"
            )
        return {name: _arrow(column) for name, column in zip(self.names, found, strict=True)}


class ColumnBatches(BatchFunction):
    """See `columns`."""

    def __init__(self, paths: Sequence[str], *options: Any) -> None:
        super().__init__(*options)
        self.paths = tuple(paths)

    def added(self, recs: Records) -> Mapping[str, Any]:
        table = recs.to_arrow(list(self.paths), threads=1)
        return dict(zip(table.column_names, table.columns, strict=True))


def map(
    function: Callable[..., Any],
    message_type: Any,
    to: str | Sequence[str] = "",
    *,
    column: str = MESSAGE_COLUMN,
    representation: str | None = None,
    on_error: str = "raise",
    keep: bool = False,
) -> BatchFunction:
    """A function of batches that adds what a plain function gives of each message, compiled once a process.

    Args:
        function: as `Records.map` takes it.
        message_type: of the messages.
        to: the name of the new column, several of a function that returns tuples; the function's own if none.
        column: that has the messages.
        representation: "yaff" or "protobuf"; None for what the column says of itself (an index does),
            "protobuf" if it doesn't.
        on_error: see `BatchFunction`.
        keep: the messages stay in the batch.
    """
    names = [to or getattr(function, "__name__", "value")] if isinstance(to, str) else to
    return MapBatches(function, names, message_type, column, representation, on_error, keep)


def columns(
    message_type: Any,
    paths: Sequence[str],
    *,
    column: str = MESSAGE_COLUMN,
    representation: str | None = None,
    on_error: str = "raise",
    keep: bool = False,
) -> BatchFunction:
    """A function of batches that adds columns of the messages by path, as `Records.to_arrow` gives them."""
    given = [paths] if isinstance(paths, str) else paths
    return ColumnBatches(given, message_type, column, representation, on_error, keep)


def _known_or(key: str, cls: type[BatchFunction], state: dict[str, Any]) -> BatchFunction:
    """The function of a pickle, the same one each time that it comes to this process."""
    known = _known.get(key)
    if known is None:
        known = cls.__new__(cls)
        known.__dict__.update(state)
        known = _known.setdefault(key, known)
    return known


def _arrow(column: Column) -> Any:
    """Results as an Arrow array; what is missing is null, NaN stays."""
    import pyarrow as pa

    values, missing = column.values, column.missing
    if values.ndim == 1:
        return (
            pa.array(values, mask=missing)
            if missing is not None or values.dtype == object
            else arrow_of(values)
        )
    items = pa.array(values.reshape(-1))
    nulls = None if missing is None else pa.array(missing)
    return pa.FixedSizeListArray.from_arrays(items, values.shape[1], mask=nulls)


def _with_column(table: Any, name: str, array: Any) -> Any:
    import pyarrow as pa

    chunked = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
    at = table.schema.get_field_index(name)
    return table.append_column(name, chunked) if at < 0 else table.set_column(at, name, chunked)


def _is_batch(batch: Any) -> bool:
    import pyarrow as pa

    return isinstance(batch, pa.RecordBatch)
