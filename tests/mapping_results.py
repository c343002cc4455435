"""`map` compiled and in plain Python give equal arrays: how to compare them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import yaffjit as yj

# What map can't keep: `features` has functions that return dicts.
REFUSED = (yj.CompileError, TypeError)


def missing(array: Any) -> Any:
    """In which rows there's no value, or NaN."""
    if array.dtype == object:
        return np.array([value is None for value in array], np.bool_)
    gone = np.ma.getmaskarray(array)
    return gone | np.isnan(np.ma.getdata(array)) if array.dtype.kind == "f" else gone


def check_same(compiled: Any, plain: Any) -> None:
    """Assert that results of `map` are those of ``jit=False``.

    This one doesn't know the type: a column of which every value is missing is of None; integers are int64
    where they fit.
    """
    if isinstance(compiled, tuple):
        if not isinstance(plain, tuple):
            assert missing(plain).all()
            plain = (plain,) * len(compiled)
        assert len(compiled) == len(plain)
        for one, other in zip(compiled, plain, strict=True):
            check_same(one, other)
        return
    assert len(compiled) == len(plain)
    gone = missing(compiled)
    none = missing(plain)
    if none.ndim < gone.ndim:
        assert none.all()  # of arrays
        none = np.broadcast_to(none[:, None], gone.shape)
    assert np.array_equal(gone, none)
    if gone.all():
        return
    assert compiled.dtype == plain.dtype or {compiled.dtype.name, plain.dtype.name} == {"int64", "uint64"}
    assert compiled.shape == plain.shape
    there = np.ma.getdata(compiled)[~gone]
    expected = np.ma.getdata(plain)[~gone]
    assert [*map(type, there.tolist())] == [*map(type, expected.tolist())]
    assert np.array_equal(there, expected)


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives: its result, or the class of its exception and the row."""
    try:
        return call()
    except (ArithmeticError, LookupError, ValueError, TypeError) as error:
        kind = next(cls for cls in type(error).__mro__ if cls.__module__ == "builtins")
        return kind, getattr(error, "row", None)


def check_map(function: Callable[[Any], Any], jitted: Any, rows: Any) -> None:
    """Assert that mapping a jitted function gives what mapping the plain one in Python does, errors too."""
    compiled = outcome(lambda: rows.map(jitted))
    plain = outcome(lambda: rows.map(function, jit=False))
    if isinstance(plain, tuple) and isinstance(plain[0], type):
        assert compiled == plain
    else:
        check_same(compiled, plain)
