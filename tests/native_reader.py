"""All getters of a schema as one native library, called from Python: quick enough for every vector.

numba isn't involved: the emitted LLVM is compiled as it is, so a walk over a message tests the emitter alone.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import llvmlite.binding as llvm
from google.protobuf.message import Message
from llvmlite import ir

from yaffjit.jit.emit import yaff
from yaffjit.jit.emit.outline import I64, POINTER
from yaffjit.plan.model import SCALAR_CODE, FieldPlan, MessagePlan

VOID = ir.VoidType()
PART = 8
Emitter = Callable[[ir.IRBuilder, ir.Value], ir.Value]


class NativeReader:
    """Compiled readers of message types.

    Args:
        plans: message types; all that they reach through singular message fields are readable too.
        frozen: whether getters are emitted for bytes that don't change.
    """

    def __init__(self, plans: list[MessagePlan], frozen: bool = True) -> None:
        self.frozen = frozen
        module = ir.Module("readers")
        self.plans: dict[tuple[str, str], MessagePlan] = {}
        waiting = list(plans)
        while waiting:
            mp = waiting.pop()
            if (mp.fingerprint, mp.full_name) not in self.plans:
                self.plans[mp.fingerprint, mp.full_name] = mp
                waiting += [mp.child(f) for f in mp.fields if f.kind == "message" and not f.repeated]
        for mp in self.plans.values():
            self._emit(module, mp)
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
        parsed = llvm.parse_assembly(str(module))
        parsed.verify()
        passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
        passes.getModulePassManager().run(parsed, passes)
        self.optimized = str(parsed)
        self._engine = llvm.create_mcjit_compiler(parsed, machine)
        self._engine.finalize_object()

    def _emit(self, module: ir.Module, mp: MessagePlan) -> None:
        """``void read(message, out)``: a 64-bit word per field, per presence, per oneof."""
        emitters: list[Emitter] = [partial(self._value, mp, f) for f in mp.fields]
        emitters += [partial(self._flag, yaff.present, mp, f) for f in mp.fields]
        emitters += [partial(self._flag, yaff.which, mp, oneof) for oneof in mp.oneofs]
        signature = ir.FunctionType(VOID, [POINTER, I64.as_pointer()])
        function = ir.Function(module, signature, _symbol(mp))
        builder = ir.IRBuilder(function.append_basic_block())
        # In parts, because LLVM's time grows faster than a function.
        for first in range(0, len(emitters), PART):
            part = ir.Function(module, signature, f"{_symbol(mp)}.{first}")
            part.attributes.add("noinline")
            inner = ir.IRBuilder(part.append_basic_block())
            message, out = part.args
            for i, emit in enumerate(emitters[first : first + PART], first):
                inner.store(emit(inner, message), inner.gep(out, [I64(i)]))
            inner.ret_void()
            builder.call(part, function.args)
        builder.ret_void()

    def _flag(
        self, emit: Any, mp: MessagePlan, asked: Any, builder: ir.IRBuilder, message: ir.Value
    ) -> ir.Value:
        return builder.zext(emit(builder, mp, asked, message, self.frozen), I64)

    def _value(self, mp: MessagePlan, f: FieldPlan, builder: ir.IRBuilder, message: ir.Value) -> ir.Value:
        if f.out_of_line:
            return builder.ptrtoint(yaff.reference(builder, mp, f, message, self.frozen), I64)
        value = yaff.scalar(builder, mp, f, message, self.frozen)
        if f.kind in ("float", "double"):
            value = builder.bitcast(value, ir.IntType(8 * f.width))
        return value if f.width == 8 else builder.zext(value, I64)

    def read(self, mp: MessagePlan, address: int) -> tuple[list[int], list[int], list[int]]:
        """Words of the fields (scalar bits or addresses), presence of the fields, numbers of the oneofs."""
        size = 2 * len(mp.fields) + len(mp.oneofs)
        out = (ctypes.c_uint64 * max(size, 1))()
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(
            self._engine.get_function_address(_symbol(mp))
        )
        function(address or None, ctypes.addressof(out))
        words, count = list(out)[:size], len(mp.fields)
        return words[:count], words[count : 2 * count], words[2 * count :]

    def differences(self, mp: MessagePlan, address: int, message: Message, where: str = "") -> list[str]:
        """What differs between the native message at an address (0: absent) and protobuf's; [] if nothing."""
        found = []
        words, presences, numbers = self.read(mp, address)
        for f, word, present in zip(mp.fields, words, presences, strict=True):
            path = f"{where}.{f.name}"
            if f.explicit and bool(present) != message.HasField(f.name):
                found.append(f"{path}: presence {present}")
            if f.is_scalar:
                expected = stored_bits(f, getattr(message, f.name))
                if word != expected:
                    found.append(f"{path}: {word:#x} is not {expected:#x}")
            elif f.repeated:
                if bool(word) != (len(getattr(message, f.name)) > 0):
                    found.append(f"{path}: at {word:#x}")
            elif f.kind == "message":
                if bool(word) != message.HasField(f.name):
                    found.append(f"{path}: at {word:#x}")
                if where.count(".") < 6:
                    found += self.differences(mp.child(f), word, getattr(message, f.name), path)
            elif word:
                content = getattr(message, f.name)
                raw = content if isinstance(content, bytes) else content.encode()
                if ctypes.string_at(word, 4 + len(raw)) != struct.pack("<I", len(raw)) + raw:
                    found.append(f"{path}: other text at {word:#x}")
            elif f.explicit and message.HasField(f.name):
                found.append(f"{path}: no text")
        for oneof, number in zip(mp.oneofs, numbers, strict=True):
            name = message.WhichOneof(oneof.name)
            if number != (mp.by_name[name].number if name is not None else 0):
                found.append(f"{where}.{oneof.name}: member {number}, not {name}")
        return found


def stored_bits(f: FieldPlan, value: Any) -> int:
    """The bits of a protobuf scalar value."""
    code = SCALAR_CODE[f.kind]
    return int.from_bytes(struct.pack("<" + code, value), "little")


def _symbol(mp: MessagePlan) -> str:
    return f"read.{mp.full_name}.{mp.fingerprint}"
