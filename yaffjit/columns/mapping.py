"""Columns by path, and how they become tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import numpy as np

from yaffjit import tables
from yaffjit.columns.results import Array, Column, kind_of, shown_value
from yaffjit.errors import near_names
from yaffjit.markup import Shown, table
from yaffjit.render import text_table

SHOWN_ROWS = 5


class Columns(Shown, Mapping[str, Any]):
    """Columns by path: ``cols["stats.ctr"]`` is a numpy array with one value a row.

    dtypes are the fields' own: int32 (enums too), uint32, int64, uint64, float32, float64, bool,
    datetime64[ns], timedelta64[ns]; or those that were asked for. A field that is absent reads as its
    protobuf default, a time as NaT. What has more than a number a row is a `TextColumn`, `ListColumn`,
    `MapColumn` or `DictionaryColumn`.
    """

    __slots__ = ("_columns", "_find_present", "_present", "_rows")

    def __init__(
        self, columns: Mapping[str, Column], rows: int, find_present: Callable[[str], Array]
    ) -> None:
        self._columns = dict(columns)
        self._rows = rows
        self._find_present = find_present
        self._present: dict[str, Array] = {}

    def __getitem__(self, path: str) -> Any:
        try:
            return self._columns[path]
        except KeyError:
            near = near_names(path, self._columns) if isinstance(path, str) else ""
            raise KeyError(f"no column {path!r}{near}") from None

    def __contains__(self, path: object) -> bool:
        return path in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def rows(self) -> int:
        """The length of each column."""
        return self._rows

    def present(self, path: str) -> Array:
        """In which rows a field, and each message on its path, is set.

        A field without presence of its own is set where it isn't zero or empty; an element where the index
        is within the list, a map's value where the map has the key, a oneof where a member is set. The path
        needn't be one of the columns, and may be of a message. Each path takes a pass over the rows the first
        time.

        Returns:
            A read-only bool array of shape (rows,).

        Raises:
            SchemaError: the message has no such path, or it goes through all elements of a field.
            TypeError: the path isn't text.
        """
        found = self._present.get(path) if isinstance(path, str) else None
        if found is None:
            found = self._find_present(path)
            found.flags.writeable = False
            self._present[path] = found
        return found

    def to_arrow(self) -> Any:
        """A pyarrow Table with a column a path; numbers, times, text and lists share their memory."""
        return tables.to_arrow(self)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """For ``pa.table(cols)``, polars and others that take tables of any library. It imports pyarrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        """One array of structs, for libraries that take arrays of any other. It imports pyarrow."""
        return tables.to_batch(self).__arrow_c_array__(requested_schema)

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a column a path. ImportError without pandas.

        Text becomes str objects, a dictionary a Categorical, lists and maps arrays and dicts. What is absent
        is the default, as it is here; a time NaT.
        """
        return tables.to_pandas(self)

    def to_polars(self) -> Any:
        """A polars DataFrame with a column a path. ImportError without polars.

        Text is String, a dictionary Categorical. What is absent is the default, as it is here; a time null.
        """
        return tables.to_polars(self.to_arrow())

    def to_numpy(self) -> Array:
        """A structured array of shape (rows,) with a field a path (a copy); text as objects.

        Raises:
            TypeError: a column has lists or maps.
        """
        return tables.to_numpy(self)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._columns)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "columns can't be pickled: they read presence from their records; "
            "pickle dict(cols), the arrays by path"
        )

    def _shown(self) -> tuple[str, list[str], list[list[str]], list[str]]:
        """A title, the header, the first rows, and which columns are of numbers."""
        header = [f"{path} ({kind_of(column)})" for path, column in self.items()]
        right = [
            name
            for name, column in zip(header, self.values(), strict=True)
            if isinstance(column, np.ndarray) and column.dtype.kind not in "mM"
        ]
        shown = min(self.rows, SHOWN_ROWS)
        lines = [[shown_value(column[row]) for column in self.values()] for row in range(shown)]
        if self.rows > shown:
            lines.append(["..." for _ in header])
        return f"Columns: {self.rows:,} {'row' if self.rows == 1 else 'rows'}", header, lines, right

    def _html_(self) -> str:
        return table(*self._shown())

    def __repr__(self) -> str:
        title, header, lines, right = self._shown()
        return f"<{title}>\n{text_table(header, lines, right=right)}"
