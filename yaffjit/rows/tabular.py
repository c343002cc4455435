"""Records as tables of other libraries: Arrow, pandas, polars, numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yaffjit import tables

if TYPE_CHECKING:
    from yaffjit.columns.profile import Profile


class Tabular:
    """What records can become; they inherit it."""

    __slots__ = ()

    def to_arrow(
        self: Any,
        paths: Any = None,
        *,
        enums: str = "dictionary",
        unit: str = "ns",
        threads: int | None = None,
    ) -> Any:
        """All messages whole, or what some paths lead to, as a pyarrow Table with a row for each.

        Messages are structs, repeated fields lists, maps maps; a oneof is a column of names beside its
        members. What has presence and isn't set is null, and so is all of a null row. The table has chunks of
        65,536 rows, so that 32-bit offsets suffice.

        Args:
            paths: None for all fields; a path, or several: those of `columns`, and of messages too.
            enums: "dictionary" of names, or "integer"; of oneofs too.
            unit: of times: "ns", "us", "ms" or "s".
            threads: how many read at most; None for all cores.

        Raises:
            SchemaError: a path isn't one, or a message type holds itself.
            VerifyError: protobuf bytes aren't what protobuf accepts; names the row, field path and position.
            OverflowError: a time doesn't fit its unit; names the row and path.
            UnicodeDecodeError: a text isn't UTF-8; names the row and path.
        """
        from yaffjit.columns.arrow import to_arrow

        return to_arrow(self, paths, enums, unit, threads)

    def arrow_reader(
        self: Any, paths: Any = None, *, enums: str = "dictionary", unit: str = "ns", rows: int = 65536
    ) -> Any:
        """As `to_arrow`, as a pyarrow RecordBatchReader that makes each batch when it's asked for.

        Args:
            rows: of a batch, at most.
        """
        from yaffjit.columns.arrow import reader

        return reader(self, paths, enums, unit, rows)

    def profile(self: Any, rows: int = 100_000) -> Profile:
        """How often each field is set, how large it is, and between which values: a mapping by path.

        It prints as a table, and has ``plot()`` and ``to_pandas()``. Messages that hold others of their own
        type aren't gone into.

        Args:
            rows: so many are looked at, at most: at random if there are more.

        Raises:
            VerifyError: protobuf bytes aren't what protobuf accepts; names the row, field path and position.
            ValueError: ``rows`` isn't at least 1.
        """
        from yaffjit.columns.profile import profile

        return profile(self, rows)

    def __arrow_c_array__(self: Any, requested_schema: Any = None) -> Any:
        """All messages as one array of structs, for libraries that take arrays of any other.

        Raises:
            ValueError: there are more bytes or elements than 32-bit offsets count.
        """
        from yaffjit.columns.arrow import one_batch

        return one_batch(self).__arrow_c_array__(requested_schema)

    def __arrow_c_stream__(self: Any, requested_schema: Any = None) -> Any:
        """All messages, a batch whenever one is asked for, for libraries that take tables of any other."""
        return self.arrow_reader().__arrow_c_stream__(requested_schema)

    def to_pandas(self: Any, *paths: str) -> Any:
        """A pandas DataFrame of some paths, or of all fields. ImportError without pandas.

        Missing values are NaN among floats, NaT among times, None among objects; integers and bools that may
        be missing have pandas' own types of these. Enums and oneofs are categories; messages, lists and maps
        objects.
        """
        return tables.frame(self.to_arrow(paths or None))

    def to_polars(self: Any, *paths: str) -> Any:
        """A polars DataFrame of some paths, or of all fields, with nulls. ImportError without polars."""
        return tables.to_polars(self.to_arrow(paths or None))

    def to_numpy(self: Any, *paths: str) -> Any:
        """A structured array of shape (rows,) with a field a path; see `Columns.to_numpy`.

        Raises:
            TypeError: a path leads to lists or maps.
        """
        return self.columns(*paths).to_numpy()
