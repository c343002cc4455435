"""The kernels of builders, called where they lie: code that uses them is compiled without them.

They take and give int64. Machine code that is loaded from disk names them too, so they are there as soon as
there's a type of a builder; but for that which updates, which takes long to compile: code that calls it isn't
kept on disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import binding, ir
from numba import int64

from yaffjit.jit.emit.outline import I64
from yaffjit.jit.keys import source_hash
from yaffjit.kernels import builder_memory, builder_put, builder_update, builder_write
from yaffjit.kernels.cached import compiled

_KERNELS: dict[str, tuple[Any, int]] = {  # and how many arguments each has
    "begin": (builder_memory.begin, 2),
    "clear": (builder_memory.clear, 1),
    "new_message": (builder_memory.new_message, 6),
    "new_element": (builder_memory.new_element, 3),
    "attach": (builder_memory.attach, 1),
    "mark": (builder_memory.mark, 1),
    "put_text": (builder_put.put_text, 4),
    "append_number": (builder_put.append_number, 5),
    "append_text": (builder_put.append_text, 5),
    "utf8_nbytes": (builder_put.utf8_nbytes, 3),
    "take_utf8": (builder_put.take_utf8, 5),
    "find_pair": (builder_put.find_pair, 4),
    "put_pair": (builder_put.put_pair, 5),
    "write": (builder_write.write, 2),
    "place": (builder_write.place, 3),
}
_UPDATE = {"update": (builder_update.update, 6)}
_named: list[str] = []


def load_kernels(updates: bool = False) -> None:
    """Have their names be known to code that is compiled or loaded from now on."""
    for name, (dispatcher, count) in (_UPDATE if updates else _KERNELS).items():
        if name not in _named:
            (compiled_kernel,) = compiled(dispatcher, (int64,) * count).overloads.values()
            wrapper = compiled_kernel.fndesc.llvm_cfunc_wrapper_name
            address = compiled_kernel.library.get_pointer_to_function(wrapper)
            binding.add_symbol(_symbol(name), address)
            _named.append(name)


def _symbol(name: str) -> str:
    return f"yaffjit.builder.{name}.{source_hash()}"


def call(builder: ir.IRBuilder, name: str, args: Sequence[ir.Value]) -> ir.Value:
    """The result of a kernel; 0 of one that has none."""
    symbol = _symbol(name)
    function = builder.module.globals.get(symbol)
    if function is None:
        kind = ir.FunctionType(I64, [I64] * len(args))
        function = ir.Function(builder.module, kind, symbol)
        function.attributes.add("nounwind")
    return builder.call(function, args)
