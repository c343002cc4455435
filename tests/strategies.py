"""Hypothesis strategies: random schemas that YaFF can hold, schemas that it can't, and messages of them.

Schemas are built as FileDescriptorProto, without protoc: proto2, proto3 and editions; every kind of field,
singular, repeated and as map; oneofs; nested and recursive messages; all layouts; id overrides, typed
reserves, gaps, deprecated fields, ignored messages; defaults that YaFF rounds.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import (
    EDITION_2023,
    DescriptorProto,
    EnumDescriptorProto,
    FeatureSet,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from hypothesis import strategies as st
from spec.compile import OPTIONS_PATH, compile_protos, pool_of

F = FieldDescriptorProto
Draw = Callable[..., Any]

INTEGERS = {
    F.TYPE_INT32: (-(2**31), 2**31 - 1),
    F.TYPE_SINT32: (-(2**31), 2**31 - 1),
    F.TYPE_SFIXED32: (-(2**31), 2**31 - 1),
    F.TYPE_UINT32: (0, 2**32 - 1),
    F.TYPE_FIXED32: (0, 2**32 - 1),
    F.TYPE_INT64: (-(2**63), 2**63 - 1),
    F.TYPE_SINT64: (-(2**63), 2**63 - 1),
    F.TYPE_SFIXED64: (-(2**63), 2**63 - 1),
    F.TYPE_UINT64: (0, 2**64 - 1),
    F.TYPE_FIXED64: (0, 2**64 - 1),
}
FLOATS = (F.TYPE_FLOAT, F.TYPE_DOUBLE)
KEYS = (*INTEGERS, F.TYPE_BOOL, F.TYPE_STRING)
SIMPLE = (*KEYS, *FLOATS, *FLOATS, F.TYPE_BYTES)  # floats twice: they have most rules
LAYOUT_NUMBERS = {"fixed": 1, "flat": 2, "sparse": 3, "dynamic": 4}
PROTO2, PROTO3, EDITIONS = "proto2", "proto3", "editions"
MAX_ID = 8190


@dataclass
class RandomSchema:
    """A file with what it imports; ``roots`` are the full names of messages that can be roots."""

    file: FileDescriptorProto = field(repr=False)
    roots: list[str] = field(default_factory=list)

    @cached_property
    def descriptor_set(self) -> FileDescriptorSet:
        return FileDescriptorSet(file=[*options_set().file, self.file])

    @cached_property
    def pool(self) -> DescriptorPool:
        return pool_of(self.descriptor_set)

    def descriptor(self, full_name: str) -> Descriptor:
        return self.pool.FindMessageTypeByName(full_name)

    def message_class(self, full_name: str) -> type[Message]:
        return message_factory.GetMessageClass(self.descriptor(full_name))


@cache
def options_set() -> FileDescriptorSet:
    return compile_protos([OPTIONS_PATH / "yaff" / "proto" / "options.proto"], [OPTIONS_PATH])


@cache
def option_class(extension: str) -> tuple[Any, Any, Any]:
    """(options class, extension handle, class of its entries) in a pool that knows YaFF's options."""
    pool = pool_of(options_set())
    handle = pool.FindExtensionByName(f"yaff.proto.{extension}")
    options = message_factory.GetMessageClass(handle.containing_type)
    message_factory.GetMessageClassesForFiles(["yaff/proto/options.proto"], pool)
    return options, handle, message_factory.GetMessageClass(handle.message_type)


def add_option(proto: Any, extension: str, **values: Any) -> None:
    """Appends a `yaff.proto.message` or `yaff.proto.field` entry to a message's or field's options."""
    options_class, handle, entry_class = option_class(extension)
    options = options_class()
    options.Extensions[handle].append(entry_class(**values))
    proto.options.MergeFromString(options.SerializeToString())


# --- schemas ---


@dataclass
class Enum:
    proto: EnumDescriptorProto
    full_name: str
    closed: bool

    @property
    def zero_first(self) -> bool:
        return self.proto.value[0].number == 0


@dataclass
class Type:
    """A message type that is being built."""

    proto: DescriptorProto
    full_name: str
    layout: str
    ignored: bool
    empty: bool  # without any field


@dataclass
class Building:
    """What the parts of one file share while it's drawn."""

    draw: Draw
    syntax: str
    plain: bool
    enums: list[Enum] = field(default_factory=list)
    types: list[Type] = field(default_factory=list)

    def chance(self, one_in: int) -> bool:
        return self.draw(st.integers(0, one_in - 1)) == one_in - 1


@st.composite
def schemas(draw: Draw, plain: bool = False) -> RandomSchema:
    """A schema whose roots YaFF can hold; if ``plain``, most messages are dynamic and without gaps."""
    building = Building(draw, draw(st.sampled_from([PROTO2, PROTO3, EDITIONS])), plain)
    file = FileDescriptorProto(name="random.proto", package=draw(st.sampled_from(["", "p", "p.q"])))
    file.dependency.append("yaff/proto/options.proto")
    file.syntax = building.syntax
    if building.syntax == EDITIONS:
        file.edition = EDITION_2023
        if building.chance(3):
            file.options.features.field_presence = FeatureSet.IMPLICIT
    prefix = f".{file.package}" if file.package else ""
    add_enums(building, file, prefix)
    add_types(building, file, prefix)
    for type in building.types:
        if not type.empty:
            add_fields(building, type, file)
    roots = [t for t in building.types if not t.ignored and not (t.layout == "fixed" and t.empty)]
    return RandomSchema(file, [type.full_name.lstrip(".") for type in roots])


def add_enums(building: Building, file: FileDescriptorProto, prefix: str) -> None:
    for i in range(2):
        closed = building.syntax == PROTO2 or (building.syntax == EDITIONS and building.chance(3))
        first = building.draw(st.sampled_from([0, 1, -3] if closed and i else [0]))
        numbers = [
            first,
            *building.draw(st.lists(st.sampled_from([0, 2, 5, -1, 2**31 - 1, -(2**31)]), max_size=4)),
        ]
        proto = file.enum_type.add(name=f"Enum{i}")
        for k, number in enumerate(numbers):
            proto.value.add(name=f"E{i}_{k}", number=number)
        if len(set(numbers)) < len(numbers):
            proto.options.allow_alias = True
        if building.syntax == EDITIONS and closed:
            proto.options.features.enum_type = FeatureSet.CLOSED
        building.enums.append(Enum(proto, f"{prefix}.Enum{i}", closed))


def add_types(building: Building, file: FileDescriptorProto, prefix: str) -> None:
    draw = building.draw
    outer: Type | None = None
    for i in range(draw(st.integers(1, 4))):
        if outer is not None and building.chance(3):
            proto, owner = outer.proto.nested_type.add(), outer.full_name
        else:
            proto, owner = file.message_type.add(), prefix
        proto.name = f"Message{i}"
        dynamic = ["dynamic"] * (9 if building.plain else 2)
        layout = draw(st.sampled_from([*dynamic, "flat", "sparse", "fixed"]))
        ignored = i > 0 and building.chance(8)
        type = Type(proto, f"{owner}.{proto.name}", layout, ignored, i > 0 and building.chance(10))
        building.types.append(type)
        outer = outer or type


@dataclass
class Plan:
    """One field to be: where it goes and what it is."""

    id: int
    role: str  # "live", "deprecated", "reserved", "ignored"
    repeated: bool = False


def add_fields(building: Building, type: Type, file: FileDescriptorProto) -> None:
    draw = building.draw
    plans = [Plan(id, "live") for id in draw(ids("flat" if building.plain else type.layout))]
    ignored_types = [other for other in building.types if other.ignored]
    for plan in plans:
        if building.chance(30 if building.plain else 8):
            plan.role = draw(st.sampled_from(["deprecated", "reserved"]))
        elif ignored_types and type.layout in ("dynamic", "sparse") and building.chance(6):
            plan.role = "ignored"
    reserved = []
    oneofs: list[str] = []
    optionals: list[FieldDescriptorProto] = []
    for i, plan in enumerate(draw(st.permutations(plans))):
        if plan.role == "reserved":
            kind = draw(st.sampled_from([*SIMPLE, F.TYPE_MESSAGE, F.TYPE_ENUM]))
            label = draw(st.sampled_from([F.LABEL_OPTIONAL, F.LABEL_REPEATED]))
            reserved.append({"id": plan.id, "type": kind, "label": label})
            continue
        name = draw(st.sampled_from(["f", "Mixed_Case", "class", "with_underscores", "_f"])) + str(i)
        proto = type.proto.field.add(name=name, number=plan.id)
        if plan.role == "live" and building.chance(6):
            proto.number = 20000 + i
            add_option(proto, "field", id=plan.id)
        if plan.role == "deprecated":
            proto.options.deprecated = True
        target = draw(st.sampled_from(ignored_types)).full_name if plan.role == "ignored" else None
        fill_field(building, type, proto, target, oneofs)
        if proto.proto3_optional:
            optionals.append(proto)
    for i, proto in enumerate(optionals):  # synthetic oneofs come last
        proto.oneof_index = len(oneofs) + i
        type.proto.oneof_decl.add(name=f"_opt_{proto.name}")
    add_message_options(building, type, reserved)


def ids(layout: str) -> st.SearchStrategy[list[int]]:
    """Ids of all slots of one message: without gaps where the layout demands it."""
    dense = st.integers(3, 10).map(lambda count: list(range(1, count + 1)))
    if layout in ("fixed", "flat"):
        return dense
    few = st.sets(st.integers(1, 12), min_size=3, max_size=8).map(sorted)
    far = st.sets(st.sampled_from([1, 2, 3, 31, 32, 33, 34, 300, MAX_ID]), min_size=4, max_size=8).map(sorted)
    return st.one_of(few, far) if layout == "sparse" else st.one_of(dense, dense, few, far)


def add_message_options(building: Building, type: Type, reserved: list[dict[str, int]]) -> None:
    values: dict[str, Any] = {}
    if type.layout != "dynamic" or building.chance(2):
        values["layout"] = LAYOUT_NUMBERS[type.layout]
    if type.ignored:
        values["ignore"] = True
    if reserved:
        values["reserved_fields"] = reserved
    if values:
        add_option(type.proto, "message", **values)


def fill_field(
    building: Building, type: Type, proto: FieldDescriptorProto, target: str | None, oneofs: list[str]
) -> None:
    """Kind, label, presence and default of a field; ``target`` is the message type it must have."""
    draw, syntax = building.draw, building.syntax
    if building.chance(6):
        make_map(building, type, proto, target)
        return
    repeated = building.chance(4)
    choose_kind(building, proto, target, repeated)
    proto.label = F.LABEL_REPEATED if repeated else F.LABEL_OPTIONAL
    if repeated:
        return
    is_message = proto.type == F.TYPE_MESSAGE
    if type.layout != "fixed" and building.chance(3):
        join_oneof(building, type, proto, oneofs)
    elif syntax == PROTO2 and building.chance(8):
        proto.label = F.LABEL_REQUIRED
    elif syntax == PROTO3 and not is_message:
        if building.chance(3):
            proto.proto3_optional = True
    elif syntax == EDITIONS and not is_message:
        presence = [FeatureSet.EXPLICIT, FeatureSet.LEGACY_REQUIRED]
        if not uses_closed_enum(building, proto):
            presence += [FeatureSet.IMPLICIT] * 2
        proto.options.features.field_presence = draw(st.sampled_from(presence))
    if may_have_default(building, proto) and building.chance(2):
        proto.default_value = draw(default_text(building, proto))


def uses_closed_enum(building: Building, proto: FieldDescriptorProto) -> bool:
    return any(enum.closed for enum in building.enums if enum.full_name == proto.type_name)


def may_have_default(building: Building, proto: FieldDescriptorProto) -> bool:
    implicit = proto.options.features.field_presence == FeatureSet.IMPLICIT
    return building.syntax != PROTO3 and proto.type != F.TYPE_MESSAGE and not implicit


def join_oneof(building: Building, type: Type, proto: FieldDescriptorProto, oneofs: list[str]) -> None:
    index = building.draw(st.integers(0, min(len(oneofs), 1)))
    if index == len(oneofs):
        oneofs.append(f"oneof{index}")
        type.proto.oneof_decl.add(name=oneofs[index])
    proto.oneof_index = index


def choose_kind(building: Building, proto: FieldDescriptorProto, target: str | None, repeated: bool) -> None:
    draw = building.draw
    messages = [t.full_name for t in building.types if not t.ignored]
    if repeated:  # an array of fixed messages without fields is refused
        messages = [
            t.full_name for t in building.types if not t.ignored and not (t.empty and t.layout == "fixed")
        ]
    proto.type = (
        F.TYPE_MESSAGE if target else draw(st.sampled_from([*SIMPLE, F.TYPE_ENUM, *[F.TYPE_MESSAGE] * 4]))
    )
    if proto.type == F.TYPE_MESSAGE:
        proto.type_name = target or draw(st.sampled_from(messages))
        if building.syntax == EDITIONS and building.chance(4):
            proto.options.features.message_encoding = FeatureSet.DELIMITED
    elif proto.type == F.TYPE_ENUM:
        proto.type_name = draw(st.sampled_from(building.enums)).full_name
    elif proto.type == F.TYPE_STRING and building.syntax == EDITIONS and building.chance(4):
        proto.options.features.utf8_validation = FeatureSet.NONE


def make_map(building: Building, type: Type, proto: FieldDescriptorProto, target: str | None) -> None:
    draw = building.draw
    words = proto.name.split("_")
    entry = type.proto.nested_type.add(name="".join(word[:1].upper() + word[1:] for word in words) + "Entry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=F.LABEL_OPTIONAL, type=draw(st.sampled_from(KEYS)))
    value = entry.field.add(name="value", number=2, label=F.LABEL_OPTIONAL)
    choose_kind(building, value, target, False)
    value.options.Clear()
    if value.type == F.TYPE_ENUM:
        value.type_name = next(enum for enum in building.enums if enum.zero_first).full_name
    proto.type, proto.label = F.TYPE_MESSAGE, F.LABEL_REPEATED
    proto.type_name = f"{type.full_name}.{entry.name}"


def default_text(building: Building, proto: FieldDescriptorProto) -> st.SearchStrategy[str]:
    """A default as FileDescriptorProto holds it."""
    if proto.type in INTEGERS:
        low, high = INTEGERS[proto.type]
        return st.sampled_from([low, high, 0, 1, high // 3]).map(str)
    if proto.type == F.TYPE_FLOAT:
        return st.sampled_from(
            [
                "1.5",
                "-4",
                "0",
                "-0",
                "inf",
                "-inf",
                "nan",
                "1e-9",
                "-1e-9",
                "3.14159274",
                "0.333333343",
                "1e21",
            ]
        )
    if proto.type == F.TYPE_DOUBLE:
        return st.sampled_from(
            [
                "1.5",
                "-2.25",
                "0",
                "-0",
                "inf",
                "-inf",
                "nan",
                "1e-9",
                "-1e-9",
                "3.141592653589793",
                "1e21",
                "1e300",
            ]
        )
    if proto.type == F.TYPE_BOOL:
        return st.sampled_from(["true", "false"])
    if proto.type == F.TYPE_STRING:
        return st.sampled_from(["", "anise", "caf\u00e9", 'a "quoted" one', "a\\b'c"])
    if proto.type == F.TYPE_BYTES:
        return st.sampled_from(["", "raw", "b\\303\\251\\000\\377", '\\"'])
    enum = next(enum for enum in building.enums if enum.full_name == proto.type_name)
    return st.sampled_from([value.name for value in enum.proto.value])


# --- messages ---


@st.composite
def messages(draw: Draw, message_class: type[Message], depth: int = 3) -> Message:
    """A message of a class, nested ``depth`` deep; now and then with an unknown field."""
    message = message_class()
    fill(draw, message, depth)
    if draw(st.integers(0, 9)) == 9:
        message.MergeFromString(b"\xf8\xff\xff\x0f\x2a")  # field 33554431, a number that no schema here has
    return message


def fill(draw: Draw, message: Message, depth: int) -> None:
    fields = message.DESCRIPTOR.fields
    chosen = draw(st.lists(st.integers(0, 2), min_size=len(fields), max_size=len(fields)))
    for descriptor, choice in zip(fields, chosen, strict=True):
        if choice:
            fill_value(draw, message, descriptor, depth)


def fill_value(draw: Draw, message: Message, descriptor: FieldDescriptor, depth: int) -> None:
    name = descriptor.name
    if descriptor.is_repeated and descriptor.message_type and descriptor.message_type.GetOptions().map_entry:
        fill_map(draw, getattr(message, name), descriptor.message_type.fields_by_name, depth)
    elif descriptor.is_repeated:
        held = getattr(message, name)
        for _ in range(draw(st.integers(0, 3 if depth > 1 else 1))):
            if descriptor.message_type is None:
                held.append(draw(values(descriptor)))
            elif depth > 0:
                fill(draw, held.add(), depth - 1)
    elif descriptor.message_type is None:
        setattr(message, name, draw(values(descriptor)))
    elif depth > 0:
        child = getattr(message, name)
        child.SetInParent()
        fill(draw, child, depth - 1)


def fill_map(draw: Draw, held: Any, entry: Any, depth: int) -> None:
    for key in draw(st.lists(values(entry["key"]), max_size=4 if depth > 1 else 1)):
        if entry["value"].message_type is None:
            held[key] = draw(values(entry["value"]))
        elif depth > 0:
            held[key].SetInParent()
            fill(draw, held[key], depth - 1)


def values(descriptor: FieldDescriptor) -> st.SearchStrategy[Any]:
    """Values of one element: its edges, and for integers any other."""
    kind = descriptor.type
    if kind in INTEGERS:
        return st.one_of(st.sampled_from(edges(descriptor)), st.integers(*INTEGERS[kind]))
    if kind in FLOATS and near_default(descriptor):
        return st.one_of(st.sampled_from(near_default(descriptor)), st.sampled_from(edges(descriptor)))
    return st.sampled_from(edges(descriptor))


def edges(descriptor: FieldDescriptor) -> list[Any]:
    """Extremes of one element, its default and what is near it."""
    kind, default = descriptor.type, descriptor.default_value
    if kind in INTEGERS:
        low, high = INTEGERS[kind]
        return sorted({0, 1, low, high, high // 2 + 1, default or 0})
    if kind in FLOATS:
        return [*float_edges(kind), *near_default(descriptor)]
    if kind == F.TYPE_BOOL:
        return [False, True]
    if kind == F.TYPE_ENUM:
        numbers = sorted({value.number for value in descriptor.enum_type.values})
        return numbers if descriptor.enum_type.is_closed else [*numbers, 7, 2**31 - 1, -(2**31)]
    if kind == F.TYPE_STRING:
        texts = ["", "a", "a\0", "aa", "Z", "~", "\x7f", "caf\u00e9", "\U0001d11e", "x" * 40, "\0"]
        return [*texts, default] if isinstance(default, str) else texts
    blobs = [b"", b"\0", b"\xff\xfe", b"a", b"x" * 300]
    return [*blobs, default] if isinstance(default, bytes) else blobs


def float_edges(kind: int) -> list[float]:
    other_nan = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_2000_0000))[0]  # quiet, with other bits
    extremes = [3.4028234663852886e38, 1e-45] if kind == F.TYPE_FLOAT else [1.7976931348623157e308, 5e-324]
    return [0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan, 1e-9, other_nan, *extremes]


def near_default(descriptor: FieldDescriptor) -> list[float]:
    """The default of a float, what it's rounded to, their negatives, and neighbours."""
    default = descriptor.default_value
    if not isinstance(default, float) or not descriptor.has_default_value:
        return []
    if not math.isfinite(default):
        return [default, -default]
    rounded = float(f"{default:f}")
    ulp = abs(rounded) * (2.0**-23 if descriptor.type == F.TYPE_FLOAT else 2.0**-52)
    return [default, -default, rounded, -rounded, rounded + ulp, rounded - ulp, rounded + 2 * ulp]
