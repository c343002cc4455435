"""Names that are numbers, in jitted code: enum constants and field numbers as protobuf's classes have them.

``M.ACTIVE``, ``M.State.Value("ACTIVE")``, ``M.State.Name(number)``, ``M.ID_FIELD_NUMBER`` of a message class,
the same of a view, and ``State.ACTIVE`` of an enum by itself. The types hold the names and numbers, so
they are the same in every process that has the same enum.
"""

from __future__ import annotations

import hashlib
import weakref
from typing import Any, NoReturn

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message
from llvmlite import ir
from numba import njit
from numba.core import types
from numba.core.datamodel import models, register_default
from numba.core.imputils import lower_builtin, lower_constant, lower_getattr_generic
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    Signature,
    infer_getattr,
    signature,
)
from numba.core.typing.typeof import typeof_impl
from numba.extending import NativeValue, unbox

from yaffjit.errors import CompileAttributeError, CompileTypeError, CompileValueError, NumberError, near_names
from yaffjit.jit.integers import uint64_exact
from yaffjit.jit.integers.type import operand
from yaffjit.jit.keys import PlainType, PlanType, source_hash
from yaffjit.jit.refusals import Method, is_probed, refusal, shown
from yaffjit.plan.model import MessagePlan

Numbers = tuple[tuple[str, int], ...]


class _NamesType(PlainType):
    """A type without a value at run time, known by its content.

    Args:
        full_name: of the enum or message.
        numbers: the constants that are attributes.
        inner: other attributes: types of enums and message classes.
    """

    label = "names"

    def __init__(
        self,
        full_name: str,
        numbers: Numbers,
        inner: tuple[tuple[str, _NamesType], ...] = (),
    ) -> None:
        self.full_name = full_name
        self.numbers = dict(numbers)
        self.inner = dict(inner)
        content = repr((full_name, numbers, inner, source_hash()))
        digest = hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8)
        super().__init__(f"{self.label}[{full_name} #{digest.hexdigest()}]", full_name, numbers, inner)

    def attribute(self, name: str) -> types.Type | None:
        """The type of an attribute, or None."""
        number = self.numbers.get(name)
        return self.inner.get(name) if number is None else types.literal(number)


class EnumType(_NamesType):
    """An enum as protobuf's Python code has it (``EnumTypeWrapper``)."""

    label = "enum"

    @property
    def short(self) -> str:
        return self.full_name.rpartition(".")[2]


class MessageClassType(_NamesType, types.Callable):
    """A message class of google.protobuf."""

    label = "class"

    def get_call_type(self, context: Any, args: Any, kws: Any) -> NoReturn:
        text = f"messages can't be made in jitted code: {self.full_name}() is for outside"
        raise refusal(CompileTypeError, text)

    def get_call_signatures(self) -> tuple[tuple[()], bool]:
        return (), False

    def get_impl_key(self, sig: Signature) -> NoReturn:
        raise NotImplementedError


register_default(EnumType)(models.OpaqueModel)
register_default(MessageClassType)(models.OpaqueModel)


# ---- from protobuf's objects ----

_of_objects: weakref.WeakKeyDictionary[Any, _NamesType] = weakref.WeakKeyDictionary()


def _enum_type(descriptor: Any) -> EnumType:
    return EnumType(descriptor.full_name, tuple((value.name, value.number) for value in descriptor.values))


def _class_type(descriptor: Any, nested: bool = True) -> MessageClassType:
    """The type of a message class; ``nested``: also what it has of the messages declared in it."""
    numbers = {f"{f.name.upper()}_FIELD_NUMBER": f.number for f in descriptor.fields}
    inner: dict[str, _NamesType] = {}
    for enum in descriptor.enum_types:
        inner[enum.name] = _enum_type(enum)
        numbers.update((value.name, value.number) for value in enum.values)
    if nested:
        for message in descriptor.nested_types:
            inner[message.name] = _class_type(message)
    return MessageClassType(descriptor.full_name, tuple(numbers.items()), tuple(inner.items()))


def of_message(mp: MessagePlan) -> MessageClassType:
    """What the views of a message have: enums, their constants, and field numbers."""
    key = ("jit.constants", mp.full_name)
    made: MessageClassType | None = mp.plan.memo.get(key)
    if made is None:
        descriptor: Any = mp.plan.schema.pool.FindMessageTypeByName(mp.full_name)
        made = mp.plan.memo[key] = _class_type(descriptor, nested=False)
    return made


@typeof_impl.register(EnumTypeWrapper)
def _typeof_enum(value: EnumTypeWrapper, c: Any) -> types.Type:
    made = _of_objects.get(value)
    if made is None:
        made = _of_objects[value] = _enum_type(value.DESCRIPTOR)
    return made


@typeof_impl.register(type(FileDescriptorProto))
def _typeof_class(value: Any, c: Any) -> types.Type | None:
    if not issubclass(value, Message) or getattr(value, "DESCRIPTOR", None) is None:
        return None
    made = _of_objects.get(value)
    if made is None:
        made = _of_objects[value] = _class_type(value.DESCRIPTOR)
    return made


@unbox(EnumType)
@unbox(MessageClassType)
def _unbox(typ: types.Type, obj: ir.Value, c: Any) -> NativeValue:
    return NativeValue(c.context.get_dummy_value())


@lower_constant(EnumType)
@lower_constant(MessageClassType)
def _constant(context: Any, builder: ir.IRBuilder, typ: types.Type, value: Any) -> ir.Value:
    return context.get_dummy_value()


# ---- attributes ----


@infer_getattr
class _ClassAttributes(AttributeTemplate):
    key = MessageClassType

    def generic_resolve(self, cls: MessageClassType, name: str) -> types.Type | None:
        found = cls.attribute(name)
        if found is not None or is_probed() or name.startswith("__"):
            return found
        if name in dir(Message):
            text = f"{name} of {cls.full_name} isn't available in jitted code: use it outside"
            raise refusal(CompileTypeError, text)
        near = near_names(name, [*cls.numbers, *cls.inner])
        text = f"the class of {cls.full_name} has no constant, enum or message {name!r}{near}"
        raise refusal(CompileAttributeError, text)


@infer_getattr
class _EnumAttributes(AttributeTemplate):
    key = EnumType

    def generic_resolve(self, enum: EnumType, name: str) -> types.Type | None:
        if name == "Value":
            return Method(_Value, enum)
        if name == "Name":
            return Method(_Name, enum)
        found = enum.attribute(name)
        if found is not None or is_probed():
            return found
        if name in ("keys", "values", "items", "DESCRIPTOR"):
            text = f"{name} of enum {enum.full_name} isn't available in jitted code: use it outside"
            raise refusal(CompileTypeError, text)
        near = near_names(name, enum.numbers)
        text = f"Enum {enum.short} has no value defined for name {name!r}{near}"
        raise refusal(CompileAttributeError, text)


@lower_getattr_generic(MessageClassType)
@lower_getattr_generic(EnumType)
def _get_attribute(
    context: Any, builder: ir.IRBuilder, typ: _NamesType, value: ir.Value, name: str
) -> ir.Value:
    return lower_attribute(context, builder, typ, name)


def lower_attribute(context: Any, builder: ir.IRBuilder, typ: _NamesType, name: str) -> ir.Value:
    """The native value of an attribute that is a constant, an enum or a class."""
    number = typ.numbers.get(name)
    if number is None:
        return context.get_dummy_value()
    declares = (
        inner for inner in typ.inner.values() if isinstance(inner, EnumType) and name in inner.numbers
    )
    _refuse_stale_cache(context, builder, next(declares, typ))
    return context.get_constant(types.literal(number).literal_type, number)


def _refuse_stale_cache(context: Any, builder: ir.IRBuilder, typ: _NamesType) -> None:
    """Keep numba from caching a function on disk whose argument types don't tell these numbers.

    Such a cached function would be taken again after the schema has changed.
    """
    if not any(_tells(arg, typ) for arg in context.fndesc.argtypes):
        refuse_disk_cache(builder)


def refuse_disk_cache(builder: ir.IRBuilder) -> None:
    """Keep numba from caching the function that is being lowered on disk."""
    name = "numba.dynamic.globals.yaffjit"  # what numba looks for
    if name not in builder.module.globals:
        mark = ir.GlobalVariable(builder.module, ir.IntType(8), name)
        mark.initializer = ir.IntType(8)(0)
        mark.linkage = "weak_odr"


def _tells(arg: types.Type, typ: _NamesType) -> bool:
    """Whether the type of an argument changes whenever an enum or the field numbers of a message do."""
    if isinstance(arg, types.BaseTuple):
        return any(_tells(part, typ) for part in arg.types)
    if isinstance(arg, _NamesType):
        return arg == typ or any(_tells(part, typ) for part in arg.inner.values())
    if not isinstance(arg, PlanType):
        return False
    enums, messages = _reached(arg.mp)
    if isinstance(typ, EnumType):
        return enums.get(typ.full_name) == typ.numbers
    numbers = messages.get(typ.full_name, {})
    return all(typ.numbers.get(name) == number for name, number in numbers.items()) and bool(numbers)


def _reached(mp: MessagePlan) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]]:
    """The enums and constants of all messages that a message reaches, and the enums of their fields.

    They are what the message's fingerprint tells.
    """
    key = ("jit.constants.reached", mp.full_name)
    known: Any = mp.plan.memo.get(key)
    if known is None:
        enums: dict[str, dict[str, int]] = {}
        messages: dict[str, dict[str, int]] = {}
        waiting = [mp]
        while waiting:
            at = waiting.pop()
            own = of_message(at)
            messages[at.full_name] = own.numbers
            for inner in own.inner.values():
                enums[inner.full_name] = inner.numbers
            for f in at.fields:
                if f.enum:
                    enums[f.enum] = dict(mp.plan.schema.enums[f.enum].values)
                if f.message and f.message not in messages:
                    waiting.append(at.child(f))
        known = mp.plan.memo[key] = enums, messages
    return known


# ---- Value and Name ----


def _one(method: str, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> types.Type:
    if kws or len(args) != 1:
        raise refusal(CompileTypeError, f"{method}() takes one argument")
    return args[0]


class _Value(AbstractTemplate):
    key = "yaffjit.Enum.Value"

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
        enum = self.this
        name = _one("Value", args, kws)
        if not isinstance(name, types.StringLiteral):
            text = f"Value() takes a name that is written in the code, not {shown(name)}"
            raise refusal(CompileTypeError, text)
        number = enum.numbers.get(name.literal_value)
        if number is None:
            near = near_names(name.literal_value, enum.numbers)
            text = f"Enum {enum.short} has no value defined for name {name.literal_value!r}{near}"
            raise refusal(CompileValueError, text)
        return signature(types.literal(number), name, recvr=enum)


class _Name(AbstractTemplate):
    key = "yaffjit.Enum.Name"

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        number = operand(_one("Name", args, kws))
        if number is types.uint64:
            number = uint64_exact
        if number in (types.int64, uint64_exact):
            return signature(types.unicode_type, number, recvr=self.this)
        if types.none in args:  # perhaps an optional number, when more is known
            return None
        text = f"Enum value for {self.this.short} must be an int, but got {shown(args[0])}."
        raise refusal(CompileTypeError, text)


@lower_builtin(_Value.key, EnumType, types.StringLiteral)
def _lower_value(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    enum = sig.recvr or sig.args[0]
    _refuse_stale_cache(context, builder, enum)
    return context.get_constant(types.int64, enum.numbers[sig.args[-1].literal_value])


@njit
def _raise_no_name(text, number):  # type: ignore[no-untyped-def]
    raise NumberError(text, number)


@lower_builtin(_Name.key, EnumType, types.int64)
@lower_builtin(_Name.key, EnumType, uint64_exact)
def _lower_name(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    from yaffjit.jit.records import raise_jitted

    enum = sig.recvr or sig.args[0]
    _refuse_stale_cache(context, builder, enum)
    names: dict[int, str] = {}
    for name, number in enum.numbers.items():
        if number >= 0 or sig.args[-1] != uint64_exact:
            names.setdefault(number, name)  # of aliases, the first
    text = context.get_value_type(types.unicode_type)
    number = args[-1]
    found = builder.alloca(text)
    unknown = builder.append_basic_block("enum.unknown")
    end = builder.append_basic_block("enum.end")
    switch = builder.switch(number, unknown)
    for value, name in names.items():
        with builder.goto_block(builder.append_basic_block("enum.name")):
            switch.add_case(number.type(value), builder.block)
            builder.store(context.get_constant_generic(builder, types.unicode_type, name), found)
            builder.branch(end)
    builder.position_at_end(unknown)
    message = f"Enum {enum.short} has no name defined for value {{}}"
    constant = context.get_constant_generic(builder, types.unicode_type, message)
    raise_jitted(context, builder, _raise_no_name, (types.unicode_type, sig.args[-1]), [constant, number])
    builder.position_at_end(end)
    return builder.load(found)
