"""Paths of columns as a numba type, so that the disk cache takes the loops that use them."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core.imputils import lower_constant
from numba.extending import NativeValue, unbox

from yaffjit.jit.types import PathsType
from yaffjit.plan.gathering import Gathering
from yaffjit.plan.model import MessagePlan
from yaffjit.plan.shapes import stored_for


class Paths:
    """Which columns a jitted loop stores; of no size at run time.

    Args:
        mp: the root message.
        values: paths of columns, as `yaffjit.plan.columns` describes them.
        presences: paths whose presence is stored.
        representation: of the messages.
        canonical: protobuf messages are taken to have their fields by ascending number, each once.
        shaped: values are as `yaffjit.plan.shapes.Shaping` takes them; this is its unit. Else empty.

    Attributes:
        gathering: the arrays that are needed for it.

    Raises:
        SchemaError: a path isn't one of these.
    """

    def __init__(
        self,
        mp: MessagePlan,
        values: tuple[str, ...] = (),
        presences: tuple[str, ...] = (),
        representation: str = "yaff",
        canonical: bool = False,
        shaped: str = "",
    ) -> None:
        self.mp = mp
        self.gathering: Gathering = stored_for(mp, values, presences, shaped, representation == "protobuf")
        self._numba_type_ = PathsType(mp, values, presences, canonical, shaped)


@unbox(PathsType)
def _unbox_paths(paths: PathsType, obj: ir.Value, c: Any) -> NativeValue:
    return NativeValue(c.context.get_dummy_value())


@lower_constant(PathsType)
def _constant_paths(context: Any, builder: ir.IRBuilder, paths: PathsType, value: Any) -> ir.Value:
    return context.get_dummy_value()
