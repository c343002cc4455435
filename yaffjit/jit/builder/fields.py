"""Fields of messages that are built in jitted code: set and read by name, their presence, their removal."""

from __future__ import annotations

import struct
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import (
    impl_ret_borrowed,
    impl_ret_new_ref,
    lower_builtin,
    lower_getattr_generic,
    lower_setattr_generic,
)
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    Signature,
    infer_getattr,
    signature,
)

from yaffjit.errors import CompileAttributeError, CompileTypeError, CompileValueError, near_names
from yaffjit.jit import constants
from yaffjit.jit.builder import type as parts
from yaffjit.jit.builder.kernels import call
from yaffjit.jit.builder.type import (
    BuilderType,
    MapBuilderType,
    MessageBuilderType,
    PartType,
    RepeatedBuilderType,
    as_address,
    as_pointer,
    load_word,
    opened,
    raise_if_null,
    word_at,
)
from yaffjit.jit.builder.values import check_value, is_text, number, text
from yaffjit.jit.emit.outline import I1, I32, I64, NULL
from yaffjit.jit.integers import uint64_exact
from yaffjit.jit.refusals import Method, assigned_type, is_probed, refusal, shown
from yaffjit.jit.text.type import constant_bytes, make_text, owned_bytes_type, owned_text_type
from yaffjit.plan import builder_tables as tables
from yaffjit.plan.builder_tables import BuilderField

# Methods of builders by name, and of nested messages; their modules enter them here.
builder_methods: dict[str, Any] = {}
message_methods: dict[str, Any] = {}


# ---- types ----


@infer_getattr
class _Attributes(AttributeTemplate):
    key = PartType

    def generic_resolve(self, part: PartType, name: str) -> types.Type | None:
        if not isinstance(part, (BuilderType, MessageBuilderType)):
            return None
        given = assigned_type()
        methods = builder_methods if part.is_root else message_methods
        if given is None and name in methods:
            return Method(methods[name], part)
        f = part.builds.by_name.get(name)
        if f is not None:
            return _read_type(part, f) if given is None else _assigned(part, f, given)
        constant = constants.of_message(part.mp).attribute(name)
        if constant is not None and given is None:
            return constant
        if is_probed() or name.startswith("__"):
            return None
        text = f"a builder of {part.mp.full_name} has no field {name!r}"
        raise refusal(CompileAttributeError, text + near_names(name, [*part.builds.by_name, *methods]))


def _assigned(part: PartType, f: BuilderField, given: types.Type) -> types.Type:
    where = f"{part.mp.full_name}.{f.name}"
    if f.op in (tables.MESSAGE, tables.GROUP):
        text = f"Assignment not allowed to message field {where}: set the fields in it"
        raise refusal(CompileAttributeError, text)
    if f.op >= tables.PACKED:
        put = "x[key] = value puts pairs into it" if f.op == tables.MAP else "append to it"
        if f.op in (tables.MESSAGES, tables.GROUPS):
            put = "add() gives a new element"
        raise refusal(CompileAttributeError, f"Assignment not allowed to repeated field {where}: {put}")
    check_value(part.mp.plan, where, f.definition, given)
    return given


def _read_type(part: PartType, f: BuilderField) -> types.Type:
    if f.op in (tables.MESSAGE, tables.GROUP):
        return parts.child_type(part, f)
    if f.op == tables.MAP:
        return MapBuilderType(part.mp, "", f.name)
    if f.op > tables.TEXT:
        return RepeatedBuilderType(part.mp, "", f.name)
    if is_text(f.definition):
        return owned_text_type if f.kind == "string" else owned_bytes_type
    if f.kind == "bool":
        return types.boolean
    if f.kind in ("float", "double"):
        return types.float64
    return uint64_exact if f.kind in ("uint64", "fixed64") else types.int64


# ---- presence ----


def has(builder: ir.IRBuilder, record: ir.Value, f: BuilderField) -> ir.Value:
    """Whether a field is set, as an i1."""
    if f.case:
        return builder.icmp_unsigned("==", load_word(builder, record, f.case), I64(f.rank + 1))
    bits = load_word(builder, record, f.has_at)
    return builder.icmp_unsigned("!=", builder.and_(bits, I64(f.has_bit)), I64(0))


def touch(context: Any, builder: ir.IRBuilder, part: PartType, native: Any, f: BuilderField | None) -> None:
    """Have a field be set, and the message that it's in be there."""
    if f is not None:
        word = word_at(builder, native.record, f.has_at)
        builder.store(builder.or_(builder.load(word), I64(f.has_bit)), word)
        if f.case:
            builder.store(I64(f.rank + 1), word_at(builder, native.record, f.case))
    if not part.is_root:
        absent = builder.icmp_unsigned("==", load_word(builder, native.record, tables.PRESENT), I64(0))
        with builder.if_then(absent, likely=False):
            call(builder, "attach", [as_address(builder, native.record)])


# ---- setting ----


@lower_setattr_generic(BuilderType)
@lower_setattr_generic(MessageBuilderType)
def _set_field(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value], name: str) -> None:
    part, given = sig.args
    native = opened(context, builder, part, args[0])
    f = part.builds.by_name[name]
    if is_text(f.definition):
        state = as_address(builder, native.state)
        pointer, nbytes = text(context, builder, f.definition, given, args[1], state)
        slot = as_address(builder, word_at(builder, native.record, f.slot))
        put = call(builder, "put_text", [state, slot, pointer, nbytes])
        raise_if_null(context, builder, put)
    else:
        _, bits = number(context, builder, part.mp.plan, f.definition, given, args[1])
        builder.store(bits, word_at(builder, native.record, f.slot))
    touch(context, builder, part, native, f)


# ---- reading ----


@lower_getattr_generic(BuilderType)
@lower_getattr_generic(MessageBuilderType)
def _get_field(context: Any, builder: ir.IRBuilder, part: PartType, value: ir.Value, name: str) -> ir.Value:
    f = part.builds.by_name.get(name)
    if f is None:
        return constants.lower_attribute(context, builder, constants.of_message(part.mp), name)
    native = opened(context, builder, part, value)
    typ = _read_type(part, f)
    if isinstance(typ, PartType):
        record = native.record
        if isinstance(typ, MessageBuilderType):
            record = _message(context, builder, part, native, f)
        made = parts.part_of(context, builder, typ, native, record)
    elif is_text(f.definition):
        return impl_ret_new_ref(context, builder, typ, _read_text(context, builder, native, f))
    else:
        made = _read_number(builder, native, f)
    return impl_ret_borrowed(context, builder, typ, made)


def _message(context: Any, builder: ir.IRBuilder, part: PartType, native: Any, f: BuilderField) -> ir.Value:
    """The record of a nested message: that in the slot, unless the field was unset since, or a new one."""
    found = load_word(builder, native.record, f.slot)
    record = cgutils.alloca_once_value(builder, found)
    is_new = cgutils.alloca_once_value(builder, I1(1))
    with builder.if_then(builder.icmp_unsigned("!=", found, I64(0)), likely=True):
        was_there = load_word(builder, as_pointer(builder, found), tables.PRESENT)
        unset = builder.and_(
            builder.icmp_unsigned("!=", was_there, I64(0)),
            builder.not_(has(builder, native.record, f)),
        )
        builder.store(unset, is_new)
    with builder.if_then(builder.load(is_new), likely=False):
        words = [I64(part.builds.child(f).nbytes), as_address(builder, native.record)]
        words += [I64(f.slot), I64(f.rank), I64(f.case)]
        args = [as_address(builder, native.state), *words]
        made = call(builder, "new_message", args)
        raise_if_null(context, builder, made)
        builder.store(made, record)
    return as_pointer(builder, builder.load(record))


def _read_text(context: Any, builder: ir.IRBuilder, native: Any, f: BuilderField) -> ir.Value:
    """A copy, which stays as it is when the builder is cleared and its memory filled anew."""
    default = f.definition.default
    raw = default if isinstance(default, bytes) else str(default).encode("utf-8", "surrogatepass")
    pointer = cgutils.alloca_once_value(builder, constant_bytes(builder, raw))
    nbytes = cgutils.alloca_once_value(builder, I64(len(raw)))
    owner = cgutils.alloca_once_value(builder, NULL)
    with builder.if_then(has(builder, native.record, f)):
        held = load_word(builder, native.record, f.slot + 8)
        record = context.nrt.meminfo_alloc(builder, held)
        copy = context.nrt.meminfo_data(builder, record)
        source = as_pointer(builder, load_word(builder, native.record, f.slot))
        cgutils.raw_memcpy(builder, copy, source, held, 1)
        for value, variable in ((copy, pointer), (held, nbytes), (record, owner)):
            builder.store(value, variable)
    typ = owned_text_type if f.kind == "string" else owned_bytes_type
    return make_text(context, builder, typ, *map(builder.load, (pointer, nbytes, owner)))


def _read_number(builder: ir.IRBuilder, native: Any, f: BuilderField) -> ir.Value:
    stored = load_word(builder, native.record, f.slot)
    if f.kind in ("sint32", "sint64"):
        sign = builder.neg(builder.and_(stored, I64(1)))
        stored = builder.xor(builder.lshr(stored, I64(1)), sign)
    elif f.kind == "sfixed32":
        stored = builder.sext(builder.trunc(stored, I32), I64)
    bits = builder.select(has(builder, native.record, f), stored, I64(_default_bits(f)))
    if f.kind == "bool":
        return builder.icmp_unsigned("!=", bits, I64(0))
    if f.kind == "double":
        return builder.bitcast(bits, ir.DoubleType())
    if f.kind == "float":
        return builder.fpext(builder.bitcast(builder.trunc(bits, I32), ir.FloatType()), ir.DoubleType())
    return bits


def _default_bits(f: BuilderField) -> int:
    default: Any = f.definition.default
    if f.kind in ("float", "double"):
        codes = ("<f", "<I") if f.kind == "float" else ("<d", "<q")
        bits: int = struct.unpack(codes[1], struct.pack(codes[0], default))[0]
        return bits
    return int(default)


# ---- methods ----


def _field(part: PartType, method: str, args: tuple[types.Type, ...], kws: Any) -> BuilderField:
    """The field whose name a method is called with."""
    if kws or len(args) != 1:
        raise refusal(CompileTypeError, f"{method}() takes one name")
    if not isinstance(args[0], types.StringLiteral):
        text = f"{method}() takes a name that is written in the code, not {shown(args[0])}"
        raise refusal(CompileTypeError, text)
    name = args[0].literal_value
    f = part.builds.by_name.get(name)
    if f is None:
        short = part.mp.full_name.rpartition(".")[2]
        near = near_names(name, part.builds.by_name)
        raise refusal(CompileValueError, f'Protocol message {short} has no "{name}" field{near}.')
    return f


class _HasField(AbstractTemplate):
    key = "yaffjit.builder.HasField"
    prefer_literal = True

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
        f = _field(self.this, "HasField", args, kws)
        if not f.definition.explicit:
            text = f"Field {self.this.mp.full_name}.{f.name} does not have presence."
            raise refusal(CompileValueError, text)
        return signature(types.boolean, *args, recvr=self.this)


class _ClearField(AbstractTemplate):
    key = "yaffjit.builder.ClearField"
    prefer_literal = True

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
        _field(self.this, "ClearField", args, kws)
        return signature(types.none, *args, recvr=self.this)


class _SetInParent(AbstractTemplate):
    key = "yaffjit.builder.SetInParent"

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
        if args or kws:
            raise refusal(CompileTypeError, "SetInParent() takes no arguments")
        return signature(types.none, recvr=self.this)


for _methods in (builder_methods, message_methods):
    _methods |= {"HasField": _HasField, "ClearField": _ClearField, "SetInParent": _SetInParent}


@lower_builtin(_HasField.key, PartType, types.StringLiteral)
def _lower_has_field(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    part = sig.recvr or sig.args[0]
    native = opened(context, builder, part, args[0])
    return has(builder, native.record, part.builds.by_name[sig.args[-1].literal_value])


@lower_builtin(_ClearField.key, PartType, types.StringLiteral)
def _lower_clear_field(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    part = sig.recvr or sig.args[0]
    native = opened(context, builder, part, args[0])
    f = part.builds.by_name[sig.args[-1].literal_value]
    if f.case:
        word = word_at(builder, native.record, f.case)
        counted = has(builder, native.record, f)
        builder.store(builder.select(counted, I64(0), builder.load(word)), word)
    word = word_at(builder, native.record, f.has_at)
    builder.store(builder.and_(builder.load(word), I64(~f.has_bit)), word)
    # Which updates ask for.
    word = word_at(builder, native.record, f.unset_at(part.builds.has_words))
    builder.store(builder.or_(builder.load(word), I64(f.has_bit)), word)
    unmarked = builder.icmp_unsigned("==", load_word(builder, native.record, tables.CHANGED), I64(0))
    with builder.if_then(unmarked):
        call(builder, "mark", [as_address(builder, native.record)])
    if f.op >= tables.PACKED and f.op not in (tables.MESSAGE, tables.GROUP):
        # Elements that were got before stay as they are, apart from the message.
        for at in range(0, f.nbytes, 8):
            builder.store(I64(0), word_at(builder, native.record, f.slot + at))
    return context.get_dummy_value()


@lower_builtin(_SetInParent.key, PartType)
def _lower_set_in_parent(
    context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]
) -> ir.Value:
    part = sig.recvr or sig.args[0]
    touch(context, builder, part, opened(context, builder, part, args[0]), None)
    return context.get_dummy_value()
