"""Operators and functions that nothing is given for: a sentence of ours where numba would list its own tries.

To be imported after all that gives something for them, since numba asks in that order.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types
from numba.core.typing.templates import AttributeTemplate, infer_getattr

from yaffjit.errors import CompileAttributeError
from yaffjit.jit.integers import uint64_exact
from yaffjit.jit.operators import BINARY, EQUALITY, ORDER, UNARY
from yaffjit.jit.refusals import is_probed, refusal, refuse_calls, shown
from yaffjit.jit.types import MessageViewType, OneofType, RecordsType

_FUNCTIONS: tuple[Callable[..., Any], ...] = (min, max, divmod, round, complex, pow, sum)

Args = tuple[types.Type, ...]


def _bare(t: types.Type) -> types.Type:
    return t.type if isinstance(t, types.Optional) else t


def _takes_uint64(args: Args) -> bool:
    return any(_bare(arg) is uint64_exact for arg in args)


def _first_message(args: Args) -> MessageViewType | None:
    return next((bare for bare in map(_bare, args) if isinstance(bare, MessageViewType)), None)


def _binary(symbol: str) -> Callable[[Args], str | None]:
    def rule(args: Args) -> str | None:
        if len(args) != 2:
            return None
        if _takes_uint64(args):
            left, right = map(shown, args)
            return f"{left} {symbol} {right} isn't supported in jitted code"
        if any(isinstance(arg, RecordsType) for arg in args):
            return f"records {symbol} isn't available in jitted code"
        message = _first_message(args)
        if message is None:
            return None
        if symbol in EQUALITY + ORDER:
            return f"messages aren't compared in jitted code: compare fields of {message.mp.full_name}"
        return f"{symbol} isn't for messages: use fields of {message.mp.full_name}"

    return rule


def _unary(symbol: str) -> Callable[[Args], str | None]:
    def rule(args: Args) -> str | None:
        if not _takes_uint64(args):
            return None
        return f"{symbol} of a uint64 is negative, which a uint64 can't hold: take np.int64(x) first"

    return rule


def _is_oneof(args: Args) -> bool:
    return len(args) == 1 and isinstance(_bare(args[0]), OneofType)


def _called(name: str) -> Callable[[Args], str | None]:
    def rule(args: Args) -> str | None:
        if not _takes_uint64(args):
            return None
        given = ", ".join(map(shown, args))
        has_float = name in ("min", "max") and any(isinstance(_bare(arg), types.Float) for arg in args)
        instead = ": float(x) makes a float of a uint64" if has_float else ""
        return f"{name}({given}) isn't supported in jitted code{instead}"

    return rule


def _array_of_uint64(name: str) -> Callable[[Args], str | None]:
    """Of a list, a tuple or one value; there are arrays of numba's own numbers only."""

    def rule(args: Args) -> str | None:
        at = 1 if name == "np.full" else 0
        given = args[at] if len(args) > at else None
        parts = given.types if isinstance(given, types.BaseTuple) else (getattr(given, "dtype", given),)
        if uint64_exact not in parts:
            return None
        return f"{name} isn't for uint64 fields: use np.uint64(x), of each element"

    return rule


def _of_message(words: str) -> Callable[[Args], str | None]:
    def rule(args: Args) -> str | None:
        message = _bare(args[0]) if args else None
        return words.format(message.mp.full_name) if isinstance(message, MessageViewType) else None

    return rule


for _symbol, _operators in BINARY.items():
    for _operator in _operators:
        refuse_calls(_operator, _binary(_symbol))
for _symbol in "-~":
    refuse_calls(UNARY[_symbol], _unary(_symbol))
for _function in _FUNCTIONS:
    refuse_calls(_function, _called(_function.__name__))
for _name, _function in vars(np).items():
    if isinstance(_function, np.ufunc):
        refuse_calls(_function, _called(f"np.{_name}"))
# first: numba's asarray() calls array(), which would name that, in functions after a parallel one
for _function in (np.array, np.asarray, np.full):
    refuse_calls(_function, _array_of_uint64(f"np.{_function.__name__}"), first=True)
refuse_calls(operator.getitem, _of_message("{} has no items in jitted code: read a field by its name"))
refuse_calls(len, _of_message("{} has no len() in jitted code"))
refuse_calls("getiter", _of_message("{} can't be iterated over in jitted code: read a field by its name"))
# numba would give these something.
refuse_calls(hash, _of_message("a message isn't hashable: hash fields of {}"), first=True)
refuse_calls(hash, lambda args: OneofType.hash_fault if _is_oneof(args) else None, first=True)


@infer_getattr
class _RecordsAttributes(AttributeTemplate):
    key = RecordsType

    def generic_resolve(self, records: RecordsType, name: str) -> None:
        if not is_probed() and not name.startswith("__"):
            text = f"records have no {name!r} in jitted code: only len(), rows, slices and loops over them"
            raise refusal(CompileAttributeError, text)
