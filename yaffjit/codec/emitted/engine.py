"""Makes machine code of IR by LLVM, for this processor; it lives as long as what is returned."""

from __future__ import annotations

import ctypes
import sys
import threading
from typing import Any

import llvmlite.binding as llvm

from yaffjit.forks import renew_in_forks

_lock = threading.Lock()
renew_in_forks(sys.modules[__name__], "_lock", threading.Lock)
_ready = False

# Loops are short and of unknown lengths; unrolling and vectors would only take time.
SPEED_LEVEL = 2
_ROWS = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class MachineCode:
    """The function ``rows`` of a module. It's called without the interpreter's lock."""

    def __init__(self, text: str) -> None:
        # One at a time: all modules share LLVM's context.
        with _lock:
            _prepare()
            module = llvm.parse_assembly(text)
            module.verify()
            target = llvm.Target.from_triple(llvm.get_process_triple())
            machine = target.create_target_machine(
                cpu=llvm.get_host_cpu_name(),
                features=llvm.get_host_cpu_features().flatten(),
                opt=SPEED_LEVEL,
                jit=True,
            )
            options = llvm.create_pipeline_tuning_options(speed_level=SPEED_LEVEL)
            options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
            passes = llvm.create_pass_builder(machine, options)
            passes.getModulePassManager().run(module, passes)
            self._engine: Any = llvm.create_mcjit_compiler(module, machine)
            self._engine.finalize_object()
            self.rows = _ROWS(self._engine.get_function_address("rows"))


def _prepare() -> None:
    global _ready
    if not _ready:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        _ready = True
