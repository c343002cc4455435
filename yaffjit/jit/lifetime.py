"""No view, records or iterator that jitted code borrows outlives its bytes: the compiler refuses to keep one.

What jitted code borrows isn't counted, so anything that lives longer than the call must not hold it. Ways
out are closed where they begin, at no cost when the code runs:

* containers (typed lists and dicts, jitclasses, structrefs, whatever else numba counts references to),
  results of ``objmode`` blocks: a look at the types of each inferred function;
* jitted generators that Python would hold: when they are boxed;
* globals, closure variables and defaults: when they would become constants.

Tuples, optionals, lists and sets that numba makes by itself stay within the call, or are boxed element by
element, each view with its own hold of the bytes.
"""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

import numba
from llvmlite import ir as llvm
from numba.core import boxing as _boxing  # noqa: F401  (registers numba's boxer of generators, which ours replaces)
from numba.core import ir, rewrites, types
from numba.core.datamodel import default_manager
from numba.core.imputils import lower_constant
from numba.core.pythonapi import _boxers
from numba.core.typing.typeof import Purpose, typeof_impl

from yaffjit.errors import CompileError, EscapeError
from yaffjit.jit.keys import KeyedType
from yaffjit.jit.refusals import final_class
from yaffjit.jit.types import BorrowedType, OneofType

_NUMBA_FOLDER = os.path.join(os.path.dirname(numba.__file__), "")
_UNNAMED = "<string>"  # code that numba itself wrote and compiled, or `python -c`
_PASSED_OVER = (__file__, contextlib.__file__)
_NAMES_OF_CONTAINERS = {
    types.ListType: "a typed List",
    types.DictType: "a typed Dict",
    types.ClassInstanceType: "a jitclass",
    types.StructRef: "a structref",
    types.Buffer: "an array",
    types.Generator: "a returned generator",
}
_NAMES_OF_ITERATORS = {
    types.EnumerateType: "an enumerate",
    types.ZipType: "a zip",
    types.ListIter: "an iterator over a list",
}
# They live on the stack, or numba boxes what's in them one by one, so each part is judged alone.
_ON_THE_STACK = (
    types.BaseTuple,
    types.Pair,
    types.UniTupleIter,
    types.Optional,
    types.UnionType,
    types.List,
    types.Set,
    types.ListIter,
    types.SetIter,
    types.EnumerateType,
    types.ZipType,
)
# What they mention isn't held by them.
_HOLD_NOTHING = (
    BorrowedType,
    types.BoundFunction,
    types.Dispatcher,
    types.Function,
    types.Generator,  # within jitted code; see _box_generator
    types.Module,
    types.TypeRef,
    types.Number,
    types.NoneType,
    types.UnicodeType,
    types.IntegerLiteral,
    types.StringLiteral,
)
_refusals: weakref.WeakKeyDictionary[types.Type, str | None] = weakref.WeakKeyDictionary()


# ---- types that mention a borrowed one ----


def _parts(typ: types.Type) -> Iterator[types.Type]:
    """The types that `typ` is made of."""
    if isinstance(typ, types.ClassInstanceType):
        yield from typ.class_type.struct.values()
    elif isinstance(typ, types.StructRef):
        yield from typ.field_dict.values()
    elif isinstance(typ, types.DeferredType):
        if typ._define is not None:
            yield typ.get()
    else:
        found = list(vars(typ).values())
        while found:
            part = found.pop()
            if isinstance(part, types.Type):
                yield part
            elif isinstance(part, (tuple, list, set, frozenset)):
                found.extend(part)
            elif isinstance(part, dict):
                found.extend(part.values())


def walk(typ: types.Type) -> Iterator[types.Type]:
    """`typ` and all types that it's made of, each once."""
    seen: set[types.Type] = set()
    found = [typ]
    while found:
        part = found.pop()
        if part in seen:
            continue
        seen.add(part)
        yield part
        if not isinstance(part, BorrowedType):
            found.extend(_parts(part))


def _first_borrowed(parts: Iterable[types.Type]) -> BorrowedType | None:
    return next((part for part in parts if isinstance(part, BorrowedType)), None)


def _counted(typ: types.Type) -> bool:
    """Whether values of `typ` are on the heap, where others can share them."""
    if isinstance(
        typ, (types.ListType, types.DictType, types.ClassInstanceType, types.StructRef, types.Buffer)
    ):
        return True
    try:
        return bool(default_manager[typ].contains_nrt_meminfo())
    except (KeyError, NotImplementedError):  # no native form, hence no value
        return False


def _describe(typ: types.Type) -> str:
    return next(
        (name for cls, name in _NAMES_OF_CONTAINERS.items() if isinstance(typ, cls)),
        f"a {type(typ).__name__}",
    )


def _name(borrowed: Any) -> str:
    mp = getattr(borrowed, "mp", None)  # text isn't of a message type
    return borrowed.what if mp is None else f"{borrowed.what} of {mp.full_name}"


def _refusal(typ: types.Type) -> str | None:
    """The sentence, if a value of `typ` could keep a borrowed one longer than its bytes."""
    if isinstance(typ, types.ObjModeDispatcher):
        outputs = typ.dispatcher.output_types
        borrowed = _first_borrowed(walk(outputs) if isinstance(outputs, types.Type) else ())
        return borrowed and (
            f"{_name(borrowed)} can't come out of an objmode block, whose objects are gone when it ends: "
            "pass it to the jitted function as an argument"
        )
    if isinstance(typ, _HOLD_NOTHING):
        return None
    try:
        return _refusals[typ]
    except KeyError:
        parts = tuple(walk(typ))
        refusal = _container_refusal(typ, _first_borrowed(parts))
        if not any(isinstance(part, types.DeferredType) for part in parts):  # that may be defined later
            _refusals[typ] = refusal
        return refusal


def _container_refusal(typ: types.Type, borrowed: BorrowedType | None) -> str | None:
    if isinstance(typ, (types.Set, types.DictType)):
        key = typ.dtype if isinstance(typ, types.Set) else typ.key_type
        if any(isinstance(part, OneofType) for part in walk(key)):
            return OneofType.hash_fault
    if borrowed is None:
        return None
    if isinstance(typ, types.Set):
        return _cant_be_stored(borrowed, "a set")
    if isinstance(typ, _ON_THE_STACK):
        return next(filter(None, map(_refusal, _parts(typ))), None)
    return _cant_be_stored(borrowed, _describe(typ)) if _counted(typ) else None


def _cant_be_stored(borrowed: Any, where: str) -> str:
    return f"{_name(borrowed)} can't be stored in {where}, which may outlive the bytes: {borrowed.instead}"


def _cant_be_returned(iterator: types.Type, borrowed: Any) -> str:
    """``borrowed`` is what the iterator holds, itself perhaps, or None for an iterator of numba's own."""
    if borrowed is iterator:
        what = _name(borrowed)
    else:
        what = _NAMES_OF_ITERATORS.get(type(iterator), "an iterator")
        what += f" with {_name(borrowed)}" if borrowed is not None else ""
    return f"{what} can't be returned from a jitted function: return a list, or loop over it inside"


# ---- the user's line ----


def _is_numbas(filename: str) -> bool:
    return filename.startswith(_NUMBA_FOLDER) or filename == _UNNAMED


def _line(state: Any, name: str) -> tuple[str, int]:
    """File and line of the user's code that makes variable `name` of the function that is being compiled.

    If that function is numba's own: the line that is being inferred further out, or that called from Python.
    """
    loc = state.func_ir.loc
    if not _is_numbas(loc.filename):
        assignments = (a for block in state.func_ir.blocks.values() for a in block.find_insts(ir.Assign))
        loc = next((a.loc for a in assignments if a.target.name == name), loc)
        return loc.filename, loc.line
    found: dict[str, tuple[str, int]] = {}
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self")
        inferred = getattr(owner, "loc", None) if type(owner).__module__ == "numba.core.typeinfer" else None
        if isinstance(inferred, ir.Loc) and not _is_numbas(inferred.filename):
            return inferred.filename, inferred.line
        filename = frame.f_code.co_filename
        if isinstance(inferred, ir.Loc) and inferred.filename == _UNNAMED:
            found.setdefault("unnamed", (_UNNAMED, inferred.line))
        elif not _is_numbas(filename) and filename not in _PASSED_OVER:
            found.setdefault("caller", (filename, frame.f_lineno))
        frame = frame.f_back
    return found.get("caller") or found.get("unnamed") or (loc.filename, loc.line)


def _escape(text: str, line: tuple[str, int] | None = None) -> CompileError:
    return final_class(EscapeError)(text, *(line or ()))


# ---- the three checks ----


@rewrites.register_rewrite("after-inference")
class RefuseEscapes(rewrites.Rewrite):
    """Not a rewrite: numba makes one for each function that it has inferred, its own overloads included."""

    def __init__(self, state: Any) -> None:
        returned = state.return_type
        if isinstance(returned, types.Type) and not isinstance(returned, types.Generator):
            for part in walk(returned):
                borrowed = _first_borrowed_of_generator(part)
                if borrowed is not None:
                    raise _escape(_cant_be_stored(borrowed, _describe(part)), _line(state, ""))
                if isinstance(part, types.IteratorType):
                    borrowed = _first_borrowed(walk(part))
                    if borrowed is not None or any(isinstance(arg, KeyedType) for arg in state.args):
                        raise _escape(_cant_be_returned(part, borrowed), _line(state, ""))
        for name, typ in state.typemap.items():
            refusal = _refusal(typ)
            if refusal is not None:
                raise _escape(refusal, _line(state, name))

    def match(self, *args: Any) -> bool:
        return False


def _first_borrowed_of_generator(typ: types.Type) -> BorrowedType | None:
    if not isinstance(typ, types.Generator):
        return None
    return _first_borrowed(part for part in walk(typ) if part is not typ)


_box_numbas_generator = _boxers.functions[types.Generator]


def _box_generator(typ: Any, value: llvm.Value, c: Any) -> llvm.Value:
    """Refuse a generator that holds what's borrowed between its values; within jitted code they all work."""
    borrowed: Any = _first_borrowed_of_generator(typ)
    if borrowed is None:
        return _box_numbas_generator(typ, value, c)
    if typ.has_finalizer:
        name = c.context.get_generator_desc(typ).llvm_finalizer_name
        finalize = c.pyapi._get_function(llvm.FunctionType(llvm.VoidType(), [c.pyapi.voidptr]), name=name)
        c.builder.call(finalize, [c.builder.bitcast(value, c.pyapi.voidptr)])
    error = _escape(
        f"the jitted generator {typ.gen_func.__name__} holds {_name(borrowed)} between its values, "
        "which may outlive the bytes: iterate over it inside another jitted function, or return a list"
    )
    kind, text = (c.pyapi.unserialize(c.pyapi.serialize_object(o)) for o in (EscapeError, str(error)))
    c.pyapi.err_set_object(kind, text)
    for obj in (kind, text):
        c.pyapi.decref(obj)
    return c.pyapi.get_null_object()


# numba's decorator for boxers refuses a second one.
_boxers.functions[types.Generator] = _box_generator


def _cant_be_constant(borrowed: Any) -> CompileError:
    return _escape(
        f"{_name(borrowed)} can't be a global, closure variable or default of a jitted function: "
        "pass it as an argument"
    )


_typeof_unknown = typeof_impl.dispatch(object)


@typeof_impl.register(object)
def _typeof(value: Any, c: Any) -> types.Type | None:
    """What numba asks for values whose class it doesn't know, elements of global tuples and lists too."""
    typ = _typeof_unknown(value, c)
    if isinstance(typ, BorrowedType) and c.purpose is Purpose.constant:
        raise _cant_be_constant(typ)
    return typ


@lower_constant(BorrowedType)
def _lower_constant(context: Any, builder: llvm.IRBuilder, typ: types.Type, value: Any) -> llvm.Value:
    raise _cant_be_constant(typ)
