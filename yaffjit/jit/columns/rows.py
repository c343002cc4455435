"""What the two passes over rows do with one message: `measure_row` and `fill_row`.

Many columns are stored by several functions, called one after the other, because large ones take long to
compile: a hundred columns 2.0 s in one, 0.6 s in seven. Few are stored by one: twenty take 0.86 of the time
that two functions take for them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import NumbaTypeError
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from yaffjit.jit.columns.arrays import FITS
from yaffjit.jit.columns.passes import Fill, Measure, Pass
from yaffjit.jit.columns.wire_passes import ColumnPass, WireFill, WireMeasure
from yaffjit.jit.emit.outline import I64, POINTER, Body
from yaffjit.jit.types import MessageViewType, PathsType, WireViewType
from yaffjit.plan.gathering import Gathering, Leaf, Loop
from yaffjit.plan.shapes import stored_for

UNITS = 24  # columns of one function at most


def _stored(paths: PathsType, repeated_keys: bool = False) -> Gathering:
    return stored_for(paths.mp, paths.values, paths.presences, paths.shaped, repeated_keys)


def _groups(wanted: Gathering) -> list[list[Leaf | Loop]]:
    """The root's leaves and loops in groups; fields of one message are neighbours."""
    units: list[Leaf | Loop] = [*wanted.root.leaves, *wanted.root.loops]
    if len(units) <= UNITS:
        return [units]
    units.sort(key=lambda unit: [(step.f.name, repr(step.index)) for step in unit.steps[:-1]])
    count = -(-len(units) // UNITS)
    return [units[len(units) * i // count : len(units) * (i + 1) // count] for i in range(count)]


def _part(
    module: ir.Module, pass_class: type[Pass], paths: PathsType, number: int, units: Sequence[Leaf | Loop]
) -> ir.Function:
    """A function (message, owner, table, row) for one group."""
    content = repr((pass_class.__name__, paths.key, number)).encode("utf-8", "surrogatepass")
    symbol = f"yaffjit.columns.{hashlib.blake2b(content, digest_size=16).hexdigest()}"
    found = module.globals.get(symbol)
    if found is not None:
        return found
    function = ir.Function(module, ir.FunctionType(I64, [POINTER, POINTER, I64, I64]), symbol)
    function.linkage = "linkonce_odr"
    function.attributes.add("nounwind")
    function.attributes.add("noinline")
    message, owner, table, row = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    wanted = _stored(paths)
    builder.ret(pass_class(builder, wanted, table, row, owner).run(message, units))
    return function


def _wire_row(module: ir.Module, pass_class: type[ColumnPass], paths: PathsType) -> ir.Function:
    """A function (pointer, nbytes, table, row) for a message of protobuf's bytes."""
    content = repr((pass_class.__name__, paths.key)).encode("utf-8", "surrogatepass")
    symbol = f"yaffjit.columns.{hashlib.blake2b(content, digest_size=16).hexdigest()}"
    found = module.globals.get(symbol)
    if found is not None:
        return found
    function = ir.Function(module, ir.FunctionType(I64, [POINTER, I64, I64, I64]), symbol)
    function.linkage = "linkonce_odr"
    function.attributes.add("nounwind")
    wanted = _stored(paths, repeated_keys=True)
    pass_class(Body(function, frozen=True), wanted, paths.canonical).write()
    return function


def _make_row(name: str, pass_class: type[Pass], wire_class: type[ColumnPass], doc: str) -> Any:
    def row(typingctx: Any, message: Any, paths: Any, table: Any, row: Any) -> Any:
        if not (isinstance(message, MessageViewType) and isinstance(paths, PathsType)):
            raise NumbaTypeError(f"{name} takes a message view, paths, the address of a table and a row")
        if message.mp.fingerprint != paths.mp.fingerprint:
            raise NumbaTypeError(
                f"the paths are of {paths.mp.full_name}, the message is of {message.mp.full_name}"
            )

        def codegen(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
            view = cgutils.create_struct_proxy(message)(context, builder, args[0])
            if isinstance(message, WireViewType):
                function = _wire_row(builder.module, wire_class, paths)
                return builder.call(function, [view.pointer, view.nbytes, args[2], args[3]])
            wanted = _stored(paths)
            groups = _groups(wanted)
            if len(groups) == 1:
                made = pass_class(builder, wanted, args[2], args[3], view.owner)
                return made.run(view.pointer, groups[0])
            failed: ir.Value = I64(FITS)
            for number, units in enumerate(groups):
                function = _part(builder.module, pass_class, paths, number, units)
                part = builder.call(function, [view.pointer, view.owner, args[2], args[3]])
                failed = builder.select(builder.icmp_signed("==", failed, I64(FITS)), part, failed)
            return failed

        return types.int64(message, paths, types.int64, types.int64), codegen

    row.__name__ = row.__qualname__ = name
    row.__doc__ = doc
    return intrinsic(row)


_CONTRACT = """

    ``table`` is the address of the addresses of all arrays, by slot of the paths' `Gathering`. Gives 0, or 1
    and the index (in ``Gathering.leaves``) of a leaf with a value that doesn't fit its dtype; or -1 where
    protobuf's bytes are broken.

    Requires: {}
    """
measure_row = _make_row(
    "measure_row",
    Measure,
    WireMeasure,
    "``measure_row(message, paths, table, row)``: store a row's numbers, and its counts at ``row + 1``."
    + _CONTRACT.format("the arrays of the first pass have the slots' dtypes and lengths; ``row`` is a row."),
)
fill_row = _make_row(
    "fill_row",
    Fill,
    WireFill,
    "``fill_row(message, paths, table, row)``: store what a row has more than one of."
    + _CONTRACT.format(
        "all arrays have the slots' dtypes and lengths, and the starts have been summed up from the counts "
        "that `measure_row` stored of the same bytes."
    ),
)
