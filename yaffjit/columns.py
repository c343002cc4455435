"""Fields of many messages as numpy arrays, all read in one pass over the rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from yaffjit import tables
from yaffjit.errors import SchemaError, near_names
from yaffjit.pool import run_stretches
from yaffjit.render import text_table

if TYPE_CHECKING:
    from yaffjit.plan import MessagePlan
    from yaffjit.rows import Records

Array = npt.NDArray[Any]

# About 10 ms of rows at most: Ctrl-C is honoured between two runs of the jitted loop.
GATHER_ROWS = 1 << 17
SHOWN_ROWS = 5


class Columns(Mapping[str, Array]):
    """Columns by path: ``cols["stats.ctr"]`` is a numpy array with one value a row.

    dtypes are the fields' own: int32 (enums too), uint32, int64, uint64, float32, float64, bool. A field
    that is absent reads as its protobuf default.
    """

    __slots__ = ("_arrays", "_present", "_records")

    def __init__(self, records: Records, arrays: dict[str, Array]) -> None:
        self._records = records
        self._arrays = arrays
        self._present: dict[str, Array] = {}

    def __getitem__(self, path: str) -> Array:
        try:
            return self._arrays[path]
        except KeyError:
            near = near_names(path, self._arrays) if isinstance(path, str) else ""
            raise KeyError(f"no column {path!r}{near}") from None

    def __contains__(self, path: object) -> bool:
        return path in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    @property
    def rows(self) -> int:
        """The length of each column."""
        return len(self._records)

    def present(self, path: str) -> Array:
        """In which rows a field, and each message on its path, is set: a read-only bool array.

        A field without presence of its own is set where it isn't zero. The path needn't be one of the
        columns, and may be of a message. Each path takes a pass over the rows the first time.

        Raises:
            SchemaError: the message has no such path, or it is of a repeated or text field without presence.
            TypeError: the path isn't text.
        """
        _check_is_text(path)
        found = self._present.get(path)
        if found is None:
            found = _presence(self._records, path)
            found.flags.writeable = False
            self._present[path] = found
        return found

    def to_arrow(self) -> Any:
        """A pyarrow Table with a column a path; numbers share their memory."""
        return tables.to_arrow(self)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """For ``pa.table(cols)``, polars and others that take tables of any library. It imports pyarrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a column a path. ImportError without pandas."""
        return tables.to_pandas(self)

    def to_numpy(self) -> Array:
        """A structured array of shape (rows,) with a field a path (a copy)."""
        return tables.to_numpy(self)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._arrays)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "columns can't be pickled: they read presence from their records; "
            "pickle dict(cols), the arrays by path"
        )

    def __repr__(self) -> str:
        header = [f"{path} ({array.dtype})" for path, array in self.items()]
        shown = min(self.rows, SHOWN_ROWS)
        lines = [[_text(array[row]) for array in self.values()] for row in range(shown)]
        if self.rows > shown:
            lines.append(["..." for _ in header])
        return f"<Columns: {self.rows:,} rows>\n{text_table(header, lines, right=header)}"


def _text(value: np.generic) -> str:
    return f"{value:.6g}" if isinstance(value, np.floating) else str(value)


def columns(records: Records, paths: tuple[str, ...], out: Mapping[str, Array] | None = None) -> Columns:
    """Read fields of all rows into arrays.

    Args:
        records: the messages, n of them.
        paths: dotted paths of singular numbers, bools and enums.
        out: arrays to fill by path: C-contiguous, aligned, writable, of shape (n,) and the field's dtype.
            Those that are left out are made; nothing else of that size is allocated.

    Raises:
        SchemaError: a path isn't one of these.
        ValueError: no path was given, or an array of ``out`` doesn't fit, or overlaps with another.
        TypeError: a path isn't text, or ``out`` isn't a mapping.
    """
    for path in paths:
        _check_is_text(path)
    paths = tuple(dict.fromkeys(paths))
    if not paths:
        raise ValueError('columns: name at least one, as in recs.columns("id", "stats.ctr")')
    given = _given(out, paths)
    wanted = _paths(records.plan, paths)
    arrays: dict[str, Array] = {}
    for path, dtype in zip(paths, map(np.dtype, wanted.dtypes), strict=True):
        array = given.get(path)
        if array is None:
            arrays[path] = np.empty(len(records), dtype)
        else:
            _check_out(path, array, len(records), dtype)
            arrays[path] = array
    _check_overlap({path: arrays[path] for path in given})
    # The loop is compiled for plain arrays, whatever class of them was given.
    _gather(records, wanted, tuple(array.view(np.ndarray) for array in arrays.values()))
    return Columns(records, arrays)


def _check_is_text(path: Any) -> None:
    if not isinstance(path, str):
        hint = ': name them one by one, as in recs.columns("id", "stats.ctr")'
        several = hint if isinstance(path, (list, tuple, set, dict)) else ""
        raise TypeError(f'a path must be text, as "stats.ctr", not {type(path).__name__}{several}')


def _given(out: Any, paths: tuple[str, ...]) -> dict[str, Array]:
    if out is None:
        return {}
    if not isinstance(out, Mapping):
        raise TypeError(f'out must map paths to arrays, as {{"id": array}}, not {type(out).__name__}')
    for path in out:
        if path not in paths:
            raise ValueError(f"out has an array for {path!r}, which isn't among the columns {list(paths)}")
    return dict(out)


def _check_overlap(given: Mapping[str, Array]) -> None:
    """Each array has its bytes for itself: what one path stores there, another would overwrite."""
    placed = sorted(
        (array.__array_interface__["data"][0], array.nbytes, path) for path, array in given.items()
    )
    for (start, nbytes, path), (following, _, other) in itertools.pairwise(placed):
        if start + nbytes > following:
            first, second = (name for name in given if name in (path, other))
            raise ValueError(f"out[{first!r}] and out[{second!r}] overlap in memory")


def _paths(mp: MessagePlan, values: tuple[str, ...], presences: tuple[str, ...] = ()) -> Any:
    """`Paths`, made once: it takes longer than reading a thousand rows."""
    from yaffjit.jit.paths import Paths

    memo = mp.plan.memo
    key = ("columns", mp.full_name, values, presences)
    made = memo.get(key)
    if made is None:
        made = memo.setdefault(key, Paths(mp, values, presences))
    return made


def _gather(records: Records, paths: Any, outs: tuple[Array, ...]) -> None:
    from yaffjit.jit.gather import gather

    def work(begin: int, end: int) -> None:
        records._chunks.check()
        gather(records, paths, outs, begin, end)

    run_stretches(work, len(records), GATHER_ROWS)


def _check_out(path: str, array: Any, rows: int, dtype: np.dtype[Any]) -> None:
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        raise ValueError(f"out[{path!r}] must be a numpy array, not {type(array).__name__}")
    if array.dtype != dtype:
        raise ValueError(f"out[{path!r}] has dtype {array.dtype}, but the field needs {dtype}")
    if array.shape != (rows,):
        raise ValueError(f"out[{path!r}] has shape {array.shape}, but the records need {(rows,)}")
    if not (array.flags.c_contiguous and array.flags.aligned):
        raise ValueError(f"out[{path!r}] must be contiguous and aligned")
    if not array.flags.writeable:
        raise ValueError(f"out[{path!r}] is read-only")


def _presence(records: Records, path: str) -> Array:
    from yaffjit.jit.paths import resolve, what_is

    f = resolve(records.plan, path)[-1][1]
    if f.explicit:
        found = np.empty(len(records), np.bool_)
        _gather(records, _paths(records.plan, (), (path,)), (found,))
        return found
    if f.out_of_line:
        what = what_is(f) if f.repeated else f"{f.kind} without presence"
        raise SchemaError(f"path {path!r} of {records.plan.full_name}: field {f.name} is {what}")
    # Read anew, because the caller may have changed the arrays. By bits, as the format does it: -0.0 is set.
    values = columns(records, (path,))[path]
    return values.view(f"u{values.itemsize}") != 0
