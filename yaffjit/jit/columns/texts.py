"""Bytes copied into a column, as LLVM: short ones by a few loads and stores, without a call of memcpy."""

from __future__ import annotations

from llvmlite import ir

from yaffjit.jit.emit.outline import I1, I8, I16, I32, I64, POINTER
from yaffjit.jit.keys import source_hash

_WIDE = ir.VectorType(I64, 2)
_LONGEST_SHORT = 64


def copy_bytes(builder: ir.IRBuilder, target: ir.Value, source: ir.Value, nbytes: ir.Value) -> None:
    """Copy ``nbytes`` (an i64) bytes from one pointer to another; nothing else is read or written.

    Requires: the two don't overlap.
    """
    name = f"yaffjit.copy_bytes.{source_hash()}"
    function = builder.module.globals.get(name)
    if function is None:
        kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, I64])
        function = ir.Function(builder.module, kind, name)
        function.linkage = "linkonce_odr"
        function.attributes.add("nounwind")
        for argument in function.args[:2]:
            argument.add_attribute("noalias")
        _emit(function)
    builder.call(function, [target, source, nbytes])


def _emit(function: ir.Function) -> None:
    """Two pieces from the begin and two to the end, which overlap: few branches depend on the length."""
    b = ir.IRBuilder(function.append_basic_block())
    target, source, nbytes = function.args

    def move(typ: ir.Type, offset: ir.Value) -> None:
        pieces = [b.bitcast(b.gep(pointer, [offset]), typ.as_pointer()) for pointer in (source, target)]
        b.store(b.load(pieces[0], align=1), pieces[1], align=1)

    def move_ends(typ: ir.Type, width: int) -> None:
        move(typ, I64(0))
        move(typ, b.sub(nbytes, I64(width)))
        b.ret_void()

    with b.if_then(b.icmp_unsigned(">", nbytes, I64(16))):
        with b.if_then(b.icmp_unsigned("<=", nbytes, I64(_LONGEST_SHORT))):
            last = b.sub(nbytes, I64(16))
            is_two = b.icmp_unsigned("<=", nbytes, I64(32))
            move(_WIDE, b.select(is_two, last, I64(16)))
            move(_WIDE, b.select(is_two, I64(0), b.sub(nbytes, I64(32))))
            move_ends(_WIDE, 16)
        memcpy = b.module.declare_intrinsic("llvm.memcpy", [POINTER, POINTER, I64])
        b.call(memcpy, [target, source, nbytes, I1(0)])
        b.ret_void()
    for typ, width in ((I64, 8), (I32, 4), (I16, 2)):
        with b.if_then(b.icmp_unsigned(">=", nbytes, I64(width))):
            move_ends(typ, width)
    with b.if_then(b.icmp_unsigned("!=", nbytes, I64(0))):
        move(I8, I64(0))
    b.ret_void()
