"""``np.array([...])`` of dates: numba would look for their dtype in numpy, by its name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import ir, rewrites, types
from numba.np import numpy_support


@rewrites.register_rewrite("after-inference")
class NameDates(rewrites.Rewrite):
    """Puts a dtype where numba has an attribute of numpy, as "datetime64[us]", that isn't there."""

    def match(self, func_ir: Any, block: ir.Block, typemap: Any, calltypes: Any) -> bool:
        self._block = block
        self._typemap = typemap
        return any(self._is_date(inst) for inst in block.body)

    def apply(self) -> ir.Block:
        for inst in self._block.body:
            if self._is_date(inst):
                dtype = numpy_support.as_dtype(self._typemap[inst.target.name].dtype)
                inst.value = ir.Global(dtype.name, dtype, inst.value.loc)
        return self._block

    def _is_date(self, inst: Any) -> bool:
        if not (isinstance(inst, ir.Assign) and isinstance(inst.value, ir.Expr)):
            return False
        target = self._typemap.get(inst.target.name)
        return (
            inst.value.op == "getattr"
            and self._typemap.get(inst.value.value.name) == types.Module(np)
            and isinstance(target, types.DType)
            and isinstance(target.dtype, (types.NPDatetime, types.NPTimedelta))
            and not hasattr(np, inst.value.attr)
        )
