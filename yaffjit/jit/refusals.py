"""Compile errors that arrive alone: our sentence, the user's file and line, hardly a frame of numba's.

numba gathers the errors of type inference, tries again, and wraps what is left in words of its own. Only two
sorts of exceptions come through as they are. One of numba's that isn't about types goes up to the call, which
cuts its traceback; but numba swallows it while it tries one implementation of a function after the other.
One that isn't numba's at all goes through that too, but brings all frames along.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, ClassVar, NoReturn

import numba
from numba.core import errors, ir, types
from numba.core.datamodel import default_manager, register_default
from numba.core.lowering import BaseLower
from numba.core.typeinfer import TypeInferer
from numba.core.types.functions import BaseFunction
from numba.core.typing.templates import AbstractTemplate, Signature, infer, infer_global, signature

from yaffjit.errors import (
    CompileAttributeError,
    CompileError,
    CompileTypeError,
    CompileValueError,
    EscapeError,
)

_NUMBA_FOLDER = os.path.join(os.path.dirname(numba.__file__), "")
_OUR_FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")
# What sentences call types, where numba's word isn't Python's.
_NAMES = {"uint64_exact": "uint64", "unicode_type": "str", "none": "None"}
# Code between a question of type inference and the template that answers it.
_ON_THE_WAY = ("numba.core.typing.context", "numba.core.typing.templates")


class _Shown(errors.VerificationError):
    """numba adds no words to it and shows it without its frames."""

    @property
    def args(self) -> tuple[Any, ...]:  # numba would put its own in
        slot: Any = BaseException.args
        return slot.__get__(self)

    @args.setter
    def args(self, value: object) -> None:
        pass

    def add_context(self, msg: str) -> _Shown:
        return self

    def patch_message(self, new_message: str) -> None:
        pass


def _shown(cls: type[CompileError]) -> type[CompileError]:
    """A class of the same name that numba takes for its own."""

    def reduce(self: CompileError) -> Any:
        return cls, (self.text, self.file, self.line)

    body = {
        "__init__": cls.__init__,
        "__str__": cls.__str__,
        "__reduce__": reduce,
        "__module__": cls.__module__,
        "__doc__": cls.__doc__,
    }
    return type(cls.__name__, (cls, _Shown), body)


_SHOWN: dict[type[CompileError], type[CompileError]] = {
    cls: _shown(cls) for cls in (CompileAttributeError, CompileTypeError, CompileValueError, EscapeError)
}


def _frames() -> Iterator[FrameType]:
    frame = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back  # type: ignore[assignment]


def _is_foreign(filename: str) -> bool:
    """Whether code in a file isn't the user's."""
    return filename.startswith((_NUMBA_FOLDER, _OUR_FOLDER)) or filename == "<string>"


def refusal(cls: type[CompileError], text: str) -> Exception:
    """The exception that says a sentence; to be raised while numba infers types or lowers.

    It's final, unless numba infers types only to learn more about the code: then it's one that numba expects.
    """
    place: ir.Loc | None = None
    for frame in _frames():
        owner = frame.f_locals.get("self")
        if isinstance(owner, TypeInferer) and frame.f_locals.get("raise_errors") is False:
            return errors.TypingError(text)
        inferred = type(owner).__module__ == "numba.core.typeinfer" or isinstance(owner, BaseLower)
        function = getattr(owner, "func_ir", None)  # for results, which have no line
        loc = getattr(owner, "loc", getattr(function, "loc", None)) if inferred else None
        if place is None and isinstance(loc, ir.Loc) and not _is_foreign(loc.filename):
            place = loc
    made = final_class(cls)
    return made(text) if place is None else made(text, place.filename, place.line)


def final_class(cls: type[CompileError]) -> type[CompileError]:
    """A class of that name whose exceptions come through from here."""
    for frame in _frames():
        if frame.f_code.co_name == "get_call_type":
            owner = frame.f_locals.get("self")
            if isinstance(owner, (BaseFunction, types.BoundFunction)) and not isinstance(owner, Method):
                return cls
    return _SHOWN[cls]


def is_probed() -> bool:
    """Whether a name is only tried, as by ``hasattr``; to be asked in a template for attributes."""
    for frame in _frames():
        module = frame.f_globals.get("__name__", "")
        if module not in _ON_THE_WAY and not module.startswith("yaffjit."):
            return module != "numba.core.typeinfer"
    return True


def is_asked_by_inference(function: str | None = None) -> bool:
    """Whether type inference itself asks the type whose method is running, by a function of that name.

    Else it's a template that asks, or numba's lowering.
    """
    asked = False
    for frame in itertools.islice(_frames(), 1, None):
        asked = asked or function in (None, frame.f_code.co_name)
        module = frame.f_globals.get("__name__", "")
        if module not in _ON_THE_WAY:
            return asked and module == "numba.core.typeinfer"
    return False


def assigned_type() -> types.Type | None:
    """The type of what is being assigned to the attribute that is asked for; None if it's read."""
    for frame in itertools.islice(_frames(), 1, None):
        if frame.f_globals.get("__name__", "") not in _ON_THE_WAY:
            return None
        if frame.f_code.co_name == "resolve_setattr":
            assigned: types.Type = frame.f_locals["value"]
            return assigned
    return None


class Method(types.BoundFunction):
    """A method of ours: its template's errors are final."""

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        return self.template(context).apply(args, kws)


register_default(Method)(default_manager._handlers[types.BoundFunction])


class RefusedType(types.Type):
    """The type of what can't be: a function's template gives it, and whoever uses it raises.

    numba takes what a template raises for a reason to try the next one.
    """

    def __init__(self, cls: type[CompileError], text: str) -> None:
        self.cls = cls
        self.text = text
        super().__init__(f"refused({cls.__name__}, {text!r})")

    def is_precise(self) -> bool:
        raise refusal(self.cls, self.text)

    def unify(self, typingctx: Any, other: types.Type) -> NoReturn:
        raise refusal(self.cls, self.text)


def shown(typ: types.Type) -> str:
    """A type as a sentence names it."""
    typ = types.unliteral(typ)
    return _NAMES.get(typ.name, str(typ))


def refused_call(args: tuple[types.Type, ...], text: str) -> Signature:
    """What a template of a global function gives for arguments that it must refuse."""
    return signature(RefusedType(CompileTypeError, text), *args)


def refuse_calls(
    function: Any, rule: Callable[[tuple[types.Type, ...]], str | None], first: bool = False
) -> None:
    """Refuse a function's calls for which ``rule(argument types)`` has a sentence.

    ``first``: also those for which numba has something; else what was there before is asked before.
    An argument of type None may only mean that numba doesn't know better yet.
    """

    class Refuse(AbstractTemplate):
        key = function
        metadata: ClassVar[dict[str, str]] = {"target": "cpu"} if first else {}

        def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
            text = None if types.none in args else rule(args)
            return None if text is None else refused_call(args, text)

    if isinstance(function, str):
        infer(Refuse)
    else:
        infer_global(function)(Refuse)
