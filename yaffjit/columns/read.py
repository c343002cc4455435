"""Columns of records by their paths."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from yaffjit.arrays import array_address
from yaffjit.columns.categories import categories
from yaffjit.columns.faults import fault
from yaffjit.columns.gather import gathered
from yaffjit.columns.mapping import Columns
from yaffjit.columns.results import Array, Column, DictionaryColumn, ListColumn, MapColumn, TextColumn
from yaffjit.plan.columns import expand
from yaffjit.plan.gathering import Found, Leaf
from yaffjit.plan.requests import DICTIONARY

if TYPE_CHECKING:
    from yaffjit.rows import Records


def columns(
    records: Records,
    paths: tuple[str, ...],
    out: Mapping[str, Array] | None = None,
    threads: int | None = None,
    assume_canonical: bool = False,
) -> Columns:
    """Read fields of all rows into arrays.

    Args:
        records: the messages, n of them.
        paths: what is read, in the language of docs/columns.md.
        out: arrays to fill by path, of columns with one number a row: C-contiguous, aligned, writable, of
            shape (n,) and the column's dtype. Those that are left out are made.
        threads: how many read at most; None for all cores.
        assume_canonical: see `yaffjit.rows.Records.columns`.

    Raises:
        SchemaError: a path isn't one of a column.
        VerifyError: protobuf bytes aren't what protobuf accepts; names the row, field path and position.
        ValueError: no path was given, or an array of ``out`` doesn't fit, or overlaps with another.
        OverflowError: a number or time doesn't fit the dtype that was asked for; names the row and the value.
        MemoryError: the columns take more memory than there is.
        TypeError: a path isn't text, or ``out`` isn't a mapping.
    """
    for path in paths:
        check_is_text(path)
    expanded = tuple(dict.fromkeys(itertools.chain.from_iterable(expand(records.plan, p) for p in paths)))
    if not expanded:
        raise ValueError('columns: name at least one, as in recs.columns("id", "stats.ctr")')
    given = _given(out, expanded)
    wanted = paths_of(records, expanded, canonical=assume_canonical)
    by_slot: dict[int, Array] = {}
    for found in wanted.gathering.columns:
        path = found.column.path
        if path in given:
            _check_out(path, given[path], len(records), found)
            # The loop writes plain arrays, whatever class of them was given.
            by_slot[found.leaf.values] = given[path].view(np.ndarray)
    _check_overlap(given)
    arrays = gathered(records, wanted, by_slot, threads)
    read = {found.column.path: _column(records, found, arrays) for found in wanted.gathering.columns}
    return Columns({**read, **given}, len(records), lambda path: present(records, path, threads))


def check_is_text(path: Any) -> None:
    """TypeError for a path that isn't text."""
    if not isinstance(path, str):
        hint = ': name them one by one, as in recs.columns("id", "stats.ctr")'
        several = hint if isinstance(path, (list, tuple, set, dict)) else ""
        raise TypeError(f'a path must be text, as "stats.ctr", not {type(path).__name__}{several}')


def present(records: Records, path: str, threads: int | None = None) -> Array:
    """Which rows have what a path leads to: bool, of shape (rows,). SchemaError where that can't be asked."""
    check_is_text(path)
    wanted = paths_of(records, (), (path,))
    return gathered(records, wanted, {}, threads)[wanted.gathering.presences[0].leaf.values]


def paths_of(
    records: Records, values: tuple[str, ...], presences: tuple[str, ...] = (), canonical: bool = False
) -> Any:
    """`Paths` of columns and presences, made once: it takes longer than reading a thousand rows."""
    from yaffjit.jit.columns.paths import Paths

    mp, representation = records.plan, records.representation
    memo = mp.plan.memo
    key = ("columns", mp.full_name, values, presences, representation, canonical)
    made = memo.get(key)
    if made is None:
        made = memo.setdefault(key, Paths(mp, values, presences, representation, canonical))
    return made


# ---- arrays that are given ----


def _given(out: Any, paths: tuple[str, ...]) -> dict[str, Array]:
    if out is None:
        return {}
    if not isinstance(out, Mapping):
        raise TypeError(f'out must map paths to arrays, as {{"id": array}}, not {type(out).__name__}')
    for path in out:
        if path not in paths:
            raise ValueError(f"out has an array for {path!r}, which isn't among the columns {list(paths)}")
    return dict(out)


def _check_out(path: str, array: Any, rows: int, found: Found) -> None:
    if found.loops or found.leaf.what == "text" or found.column.request:
        raise ValueError(f"out[{path!r}]: only columns of one number or time a row are filled, not this one")
    dtype = np.dtype(found.leaf.dtype)
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


def _check_overlap(given: Mapping[str, Array]) -> None:
    """Each array has its bytes for itself: what one path stores there, another would overwrite."""
    placed = sorted((array_address(array), array.nbytes, path) for path, array in given.items())
    for (start, nbytes, path), (following, _, other) in itertools.pairwise(placed):
        if start + nbytes > following:
            first, second = (name for name in given if name in (path, other))
            raise ValueError(f"out[{first!r}] and out[{second!r}] overlap in memory")


# ---- arrays as columns ----


def _column(records: Records, found: Found, arrays: list[Array]) -> Column:
    loops = found.loops
    if found.column.what == "length" and found.leaf.what != "length":
        column: Column = _lengths(records, found, arrays)
        loops = loops[:-1]
    else:
        column = _values(found, arrays)
    for loop in reversed(loops):
        offsets = arrays[loop.all_offsets]
        if loop.keys is None:
            column = ListColumn(offsets, column)
        else:
            column = MapColumn(offsets, _plain(loop.keys, arrays), column)
    return column


def _lengths(records: Records, found: Found, arrays: list[Array]) -> Array:
    """How many keys maps have, as their column holds them."""
    lengths = np.diff(arrays[found.loops[-1].all_offsets])
    dtype = np.dtype(found.column.dtype)
    too_long = np.flatnonzero(lengths > np.iinfo(dtype).max)
    if len(too_long):
        row = int(too_long[0])
        if len(found.loops) > 1:  # each is an element's
            row = int(np.searchsorted(arrays[found.loops[-2].starts], row, side="right")) - 1
        raise fault(records, found.column.path, row)
    return lengths.astype(dtype)


def _values(found: Found, arrays: list[Array]) -> Column:
    plain = _plain(found.leaf, arrays)
    if isinstance(plain, TextColumn):
        return plain.dictionary() if found.column.request == DICTIONARY else plain
    return _category(found.leaf, plain) if found.column.request else plain


def _plain(leaf: Leaf, arrays: list[Array]) -> TextColumn | Array:
    if leaf.what != "text":
        return arrays[leaf.values]
    assert leaf.f is not None
    return TextColumn(arrays[leaf.all_offsets], arrays[leaf.values], leaf.f.kind == "string")


def _category(leaf: Leaf, numbers: Array) -> DictionaryColumn:
    mp = leaf.owner
    if leaf.f is None:
        declared = mp.plan.schema.messages[mp.full_name].fields
        members = {f.number: f.name for f in declared if f.oneof == leaf.oneof and f.name in mp.by_name}
        return categories(numbers, members, none=0)
    names: dict[int, str] = {}
    for name, number in mp.plan.schema.enums[leaf.f.enum].values:
        names.setdefault(number, name)
    return categories(numbers, names)
