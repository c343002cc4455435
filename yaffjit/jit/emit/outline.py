"""Loads that never change and getters that LLVM may merge: the mechanism under every emitted getter.

A getter is a function of its own, called where a field is read. It's declared to touch no memory, so that
LLVM merges equal calls before it opens them, stores in between or not: a chain of messages is followed once,
however often it's written. Opened in place, the branches of a getter would keep LLVM from seeing that.

Requires: the bytes under a view don't change while a jitted function that reads them runs. Where they may
(a user's own writable array), getters are emitted with ``frozen=False``: they merge only between stores.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from llvmlite import ir

from yaffjit.jit.keys import source_hash

I1 = ir.IntType(1)
I8 = ir.IntType(8)
I16 = ir.IntType(16)
I32 = ir.IntType(32)
I64 = ir.IntType(64)
POINTER = I8.as_pointer()
NULL = ir.Constant(POINTER, None)


class Body:
    """The builder of one emitted function; each path ends in a return.

    Attributes:
        builder: where instructions go.
        frozen: the bytes don't change while the function's callers run.
    """

    def __init__(self, function: ir.Function, frozen: bool) -> None:
        self.builder = ir.IRBuilder(function.append_basic_block())
        self.frozen = frozen
        self.args = function.args

    def load(self, pointer: ir.Value, offset: int | ir.Value, type: ir.Type) -> ir.Value:
        """The unaligned value at ``pointer + offset`` bytes."""
        at = self.builder.bitcast(self.at(pointer, offset), type.as_pointer())
        loaded = self.builder.load(at, align=1)
        if self.frozen:
            loaded.set_metadata("invariant.load", self.builder.module.add_metadata([]))
        return loaded

    def at(self, pointer: ir.Value, offset: int | ir.Value) -> ir.Value:
        """``pointer + offset`` bytes, which lies in the same buffer, and so isn't null."""
        return self.builder.gep(pointer, [I64(offset) if isinstance(offset, int) else offset], inbounds=True)

    def return_unless(self, condition: ir.Value, value: ir.Value) -> None:
        """Go on only where the condition holds."""
        proceed = self.builder.append_basic_block()
        leave = self.builder.append_basic_block()
        self.builder.cbranch(condition, proceed, leave)
        self.builder.position_at_end(leave)
        self.builder.ret(value)
        self.builder.position_at_end(proceed)


def outlined(
    module: ir.Module,
    name: str,
    content: object,
    result: ir.Type,
    args: Sequence[ir.Type],
    emit: Callable[[Body], None],
    frozen: bool,
    inline: bool = True,
) -> ir.Function:
    """The function that ``emit`` writes, which is added to the module on first use.

    Args:
        name: what the function does, for those who read the code.
        content: all that the emitted code depends on, by its repr; equal functions of several modules become
            one, so two that differ must differ here. Never an object's identity.
        args: their types.
        emit: writes the body; it must end each path in a return, and can't raise.
        frozen: the bytes that it reads don't change while its callers run.
        inline: whether LLVM opens the calls in the end.
    """
    parts = (name, content, frozen, inline, str(result), [str(arg) for arg in args], source_hash())
    digest = hashlib.blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    symbol = f"yaffjit.{name}.{digest}"
    function = module.globals.get(symbol)
    if function is None:
        function = ir.Function(module, ir.FunctionType(result, list(args)), symbol)
        function.linkage = "linkonce_odr"
        make_pure(function, frozen, inline)
        emit(Body(function, frozen))
    return function


def make_pure(function: ir.Function, frozen: bool, inline: bool) -> None:
    """Say of a function that LLVM may merge its calls, and whether it opens them in the end."""
    # llvmlite's list of attributes is older than LLVM's.
    function.attributes._known = function.attributes._known | {"willreturn"}
    for attribute in ("nounwind", "willreturn", "readnone" if frozen else "readonly"):
        function.attributes.add(attribute)
    function.attributes.add("alwaysinline" if inline else "noinline")


def call_outlined(
    builder: ir.IRBuilder,
    name: str,
    content: object,
    result: ir.Type,
    args: Sequence[ir.Value],
    emit: Callable[[Body], None],
    frozen: bool,
    inline: bool = True,
) -> ir.Value:
    """Call the function of `outlined` with arguments of its types."""
    types = [arg.type for arg in args]
    return builder.call(outlined(builder.module, name, content, result, types, emit, frozen, inline), args)
