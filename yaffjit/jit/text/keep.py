"""Where numba needs a string of its own, a text becomes one, as a value that is counted and freed.

numba converts arguments by casts, and nothing frees what a cast makes. So in each inferred function a call is
put before what would cast a text: ``d[v.name] = 1`` becomes ``d[keep(v.name)] = 1``. With that a text goes
wherever a string goes: into dicts, lists and sets, through all methods of strings, into a variable that
holds a string elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llvmlite import ir as llvm
from numba.core import cgutils, ir, rewrites, types
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from yaffjit.jit.text.type import TextLikeType

__all__ = ["keep", "kept_type"]


def kept_type(typ: types.Type) -> types.Type:
    """What a type becomes when all text in it is made numba's own; itself if there's none."""
    if isinstance(typ, TextLikeType):
        return typ.__unliteral__()
    if isinstance(typ, types.Optional):
        inner = kept_type(typ.type)
        return typ if inner is typ.type else types.Optional(inner)
    if isinstance(typ, types.BaseNamedTuple):
        parts = tuple(map(kept_type, typ))
        if all(new is old for new, old in zip(parts, typ, strict=True)):
            return typ
        return types.NamedTuple(parts, typ.instance_class)
    if isinstance(typ, types.BaseTuple):
        parts = tuple(map(kept_type, typ))
        return typ if all(new is old for new, old in zip(parts, typ, strict=True)) else types.Tuple(parts)
    return typ


def _keep(context: Any, builder: llvm.IRBuilder, typ: types.Type, value: llvm.Value) -> llvm.Value:
    """A value of the kept type, with a reference of its own to all that is counted in it."""
    kept = kept_type(typ)
    if kept is typ:
        context.nrt.incref(builder, typ, value)
        return value
    if isinstance(typ, TextLikeType):
        return context.cast(builder, value, typ, kept)
    if isinstance(typ, types.Optional):
        optional = context.make_helper(builder, typ, value=value)
        result = cgutils.alloca_once_value(builder, context.make_optional_none(builder, kept.type))
        with builder.if_then(optional.valid):
            inner = _keep(context, builder, typ.type, optional.data)
            builder.store(context.make_optional_value(builder, kept.type, inner), result)
        return builder.load(result)
    parts = [_keep(context, builder, part, builder.extract_value(value, i)) for i, part in enumerate(typ)]
    return context.make_tuple(builder, kept, parts)


@intrinsic(prefer_literal=True)
def keep(typingctx, value):  # type: ignore[no-untyped-def]
    """``keep(x)``: the same value, text in it as numba's own strings and bytes."""

    def codegen(context: Any, builder: llvm.IRBuilder, sig: Signature, args: list[llvm.Value]) -> llvm.Value:
        return _keep(context, builder, value, args[0])

    return kept_type(value)(value), codegen


class _Place:
    """Where a variable is used in a statement, and the type that it's cast to there."""

    def __init__(self, holder: Any, name: str, target: types.Type, at: Any = None) -> None:
        self.holder, self.name, self.target, self.at = holder, name, target, at

    @property
    def variable(self) -> ir.Var:
        found = getattr(self.holder, self.name)
        for index in self.at or ():
            found = found[index]
        return found

    def replace(self, variable: ir.Var) -> None:
        if self.at is None:
            setattr(self.holder, self.name, variable)
        else:
            setattr(self.holder, self.name, _replaced(getattr(self.holder, self.name), self.at, variable))


def _replaced(items: Any, at: tuple[int, ...], variable: ir.Var) -> Any:
    """A list or tuple with another variable at a position."""
    first, *rest = at
    new = list(items)
    new[first] = _replaced(new[first], tuple(rest), variable) if rest else variable
    return type(items)(new)


# Names of the variables that go with a signature's arguments, by kind of expression or statement.
_EXPRESSIONS = {
    "binop": ("lhs", "rhs"),
    "inplace_binop": ("lhs", "rhs"),
    "unary": ("value",),
    "getitem": ("value", "index"),
    "static_getitem": ("value", "index_var"),
    "getiter": ("value",),
}
_STATEMENTS = {
    ir.SetItem: ("target", "index", "value"),
    ir.StaticSetItem: ("target", "index_var", "value"),
    ir.DelItem: ("target", "index"),
    ir.SetAttr: ("target", "value"),
    ir.StoreMap: ("dct", "key", "value"),
}


@rewrites.register_rewrite("after-inference")
class KeepText(rewrites.Rewrite):
    """Puts calls of `keep` where an inferred function would cast a text to something else."""

    def __init__(self, state: Any) -> None:
        self.state = state
        typemap = state.typemap
        self.kept = {name: kept_type(typ) for name, typ in typemap.items()}
        self.texts = {name for name, kept in self.kept.items() if kept is not typemap[name]}

    def match(self, func_ir: Any, block: ir.Block, typemap: Any, calltypes: Any) -> bool:
        self.block = block
        return bool(self.texts) and any(True for inst in block.body for _ in self._places(inst))

    def apply(self) -> ir.Block:
        new = ir.Block(self.block.scope, self.block.loc)
        for inst in self.block.body:
            for place in list(self._places(inst)):
                place.replace(self._call_keep(new, place.variable))
            new.append(inst)
        return new

    def _call_keep(self, block: ir.Block, variable: ir.Var) -> ir.Var:
        state, loc = self.state, variable.loc
        typ = state.typemap[variable.name]
        function_type = state.typingctx.resolve_value_type(keep)
        function = self._variable(block.scope, "$keep", function_type, loc)
        kept = self._variable(block.scope, "$kept", self.kept[variable.name], loc)
        call = ir.Expr.call(function, (variable,), (), loc)
        state.calltypes[call] = function_type.get_call_type(state.typingctx, (typ,), {})
        block.append(ir.Assign(ir.Global("keep", keep, loc), function, loc))
        block.append(ir.Assign(call, kept, loc))
        return kept

    def _variable(self, scope: Any, name: str, typ: types.Type, loc: Any) -> ir.Var:
        made = scope.redefine(name, loc, rename=True)
        self.state.typemap[made.name] = typ
        return made

    def _places(self, inst: Any) -> Iterator[_Place]:
        """Where text is cast to something that isn't text."""
        for place in self._casts(inst):
            variable = place.variable
            if isinstance(variable, ir.Var) and variable.name in self.texts:
                target = place.target
                if target != self.state.typemap[variable.name] and kept_type(target) is target:
                    yield place

    def _casts(self, inst: Any) -> Iterator[_Place]:
        calltypes = self.state.calltypes
        names = _STATEMENTS.get(type(inst))
        if names is not None:
            yield from _by_name(inst, names, calltypes.get(inst))
        elif isinstance(inst, ir.Return):
            yield _Place(inst, "value", self.state.return_type)
        elif isinstance(inst, ir.Print):
            yield from _arguments(inst, calltypes.get(inst))
        elif isinstance(inst, ir.Assign):
            target = self.state.typemap[inst.target.name]
            if isinstance(inst.value, ir.Var):
                yield _Place(inst, "value", target)
            elif isinstance(inst.value, ir.Yield):
                yield _Place(inst.value, "value", self.state.return_type.yield_type)
            elif isinstance(inst.value, ir.Expr):
                yield from self._casts_of(inst.value, target)

    def _casts_of(self, expr: ir.Expr, target: types.Type) -> Iterator[_Place]:
        sig = self.state.calltypes.get(expr)
        if expr.op in _EXPRESSIONS:
            yield from _by_name(expr, _EXPRESSIONS[expr.op], sig)
        elif expr.op == "call":
            yield from _arguments(expr, sig)
        elif expr.op == "cast":
            yield _Place(expr, "value", target)
        elif expr.op == "getattr" and isinstance(target, types.BoundFunction):
            yield _Place(expr, "value", target.this)
        elif expr.op in ("build_list", "build_set") and hasattr(target, "dtype"):
            for i in range(len(expr.items)):
                yield _Place(expr, "items", target.dtype, (i,))
        elif expr.op == "build_map" and isinstance(target, types.DictType):
            for i in range(len(expr.items)):
                yield _Place(expr, "items", target.key_type, (i, 0))
                yield _Place(expr, "items", target.value_type, (i, 1))


def _by_name(holder: Any, names: tuple[str, ...], sig: Signature | None) -> Iterator[_Place]:
    if sig is not None:
        for name, target in zip(names, sig.args, strict=False):
            yield _Place(holder, name, target)


def _arguments(call: Any, sig: Signature | None) -> Iterator[_Place]:
    if sig is None:
        return
    for i, target in zip(range(len(call.args)), sig.args, strict=False):
        yield _Place(call, "args", target, (i,))
    keywords = getattr(call, "kws", ()) if isinstance(call, ir.Expr) else ()
    if sig.pysig is not None:
        order = list(sig.pysig.parameters)
        for i, (name, _) in enumerate(keywords):
            if name in order and order.index(name) < len(sig.args):
                yield _Place(call, "kws", sig.args[order.index(name)], (i, 1))
