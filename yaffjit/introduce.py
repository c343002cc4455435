"""Has numba know our classes before anything of ours was compiled, without loading what isn't used yet."""

from __future__ import annotations

import sys
from typing import Any


def load_jit() -> None:
    """Import `yaffjit.jit`, perhaps while a function is being compiled that it has come to."""
    if "yaffjit.jit" in sys.modules:
        return
    from numba.core.registry import cpu_target

    import yaffjit.jit  # noqa: F401  (for what it registers)

    # numba looks for new registrations only before it compiles.
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


def tell_numba() -> None:
    """Have numba know message classes and enums by name in functions to which nothing of ours has come yet.

    It loads numba. The package `yaffjit.jit` is imported when numba meets the first of them.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
    from numba.core.typing.typeof import typeof_impl

    def typeof(value: Any, c: Any) -> Any:
        load_jit()  # registers its own in place of this
        return typeof_impl.dispatch(type(value))(value, c)

    if "yaffjit.jit" not in sys.modules:
        for cls in (type(FileDescriptorProto), EnumTypeWrapper):
            typeof_impl.register(cls)(typeof)
