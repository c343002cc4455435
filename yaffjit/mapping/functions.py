"""Which functions and arguments `map` takes: what can't work is refused before anything is compiled."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

_IN_PYTHON = "jit=False runs it in Python"
# What would be taken apart, and put together again, for each stretch of rows; and what isn't.
_INSTEAD = {
    list: "pass numpy.array(x), tuple(x) or numba.typed.List(x)",
    set: "pass numpy.array(sorted(x)), tuple(x) or a numba.typed.Dict of its values",
    frozenset: "pass numpy.array(sorted(x)), tuple(x) or a numba.typed.Dict of its values",
    dict: "pass a numba.typed.Dict, or arrays of its keys and values",
}


def check_returns(function: Callable[..., Any], name: str) -> None:
    """Raises TypeError for functions whose call gives something to be waited for or iterated over."""
    if inspect.iscoroutinefunction(function):
        what = "async def"
    elif inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        what = "a generator, which yields"
    else:
        return
    raise TypeError(f"map takes functions that return a value for a row, but {name} is {what}")


def check_call(function: Callable[..., Any], name: str, args: tuple[Any, ...]) -> None:
    """Raises TypeError for functions that don't take a row and such arguments."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # some of C's
        return
    try:
        signature.bind(None, *args)
    except TypeError as error:
        more = f" and {len(args)} of args=" if args else ""
        raise TypeError(f"map calls {name}{signature} with the row{more}: {error}") from None


def check_compiled(function: Any, name: str) -> None:
    """Raises TypeError for functions that jitted code can't call by position.

    Args:
        function: a plain function, or numba's dispatcher of one.
    """
    plain: FunctionType = getattr(function, "py_func", function)
    check_returns(plain, name)
    if getattr(function, "targetoptions", {}).get("forceobj"):
        raise TypeError(
            f"map calls jitted functions without the GIL, but {name} is compiled with forceobj=True: "
            f"pass the plain function, or {_IN_PYTHON}"
        )
    code = plain.__code__
    names = code.co_varnames[code.co_argcount :]
    if code.co_kwonlyargcount:
        fault = f"parameter {names[0]!r} of {name} is keyword-only: without the '*' before it, args= gives it"
    elif code.co_flags & inspect.CO_VARKEYWORDS:
        kwargs = names[bool(code.co_flags & inspect.CO_VARARGS)]
        fault = f"{name} takes **{kwargs}"
    else:
        return
    raise TypeError(f"jitted functions are called by position, but {fault}; {_IN_PYTHON}")


def check_arguments(args: tuple[Any, ...], place: str = "args") -> None:
    """Raises TypeError for lists, sets and dicts, also in tuples: numba would copy them over and over."""
    for number, value in enumerate(args):
        where = f"{place}[{number}]"
        if isinstance(value, tuple):
            check_arguments(value, where)
        for kind, instead in _INSTEAD.items():
            if isinstance(value, kind):
                raise TypeError(
                    f"{where} is a {kind.__name__}, which jitted code would copy for each stretch of rows: "
                    f"{instead}; {_IN_PYTHON}"
                )
