"""Dicts into protobuf messages, so that encoding knows messages only.

protobuf itself judges the values; what it refuses is said again with the path of the field.
"""

from __future__ import annotations

import datetime
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from yaffjit.codec.writer import Refused
from yaffjit.errors import EncodeError, near_names
from yaffjit.plan import Plan
from yaffjit.plan.limits import INT64_MAX, INT64_MIN, MAX_DEPTH, UINT64_MAX
from yaffjit.plan.model import MessagePlan
from yaffjit.schema.model import FieldDef, SchemaDef

REFUSALS = (TypeError, ValueError, OverflowError)
SHOWN = 80  # characters of a value in an error

INT_RANGE = {
    "int32": (-(2**31), 2**31 - 1),
    "sint32": (-(2**31), 2**31 - 1),
    "sfixed32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "fixed32": (0, 2**32 - 1),
    "int64": (INT64_MIN, INT64_MAX),
    "sint64": (INT64_MIN, INT64_MAX),
    "sfixed64": (INT64_MIN, INT64_MAX),
    "uint64": (0, UINT64_MAX),
    "fixed64": (0, UINT64_MAX),
}
NOUN = {"float": "a number", "double": "a number", "bool": "a bool", "string": "a string", "bytes": "bytes"}

# (message, value, depth) -> None; raises Refused
Setter = Callable[[Any, Any, int], None]


def message_from_dict(mp: MessagePlan, value: Any) -> Any:
    """A message of the schema's own class from a dict (or, for their types, a datetime or timedelta).

    Names are those of the `.proto` or of protobuf's JSON; None means not set. Raises EncodeError with the
    path of the value that can't be written.
    """
    message = mp.plan.schema.message_class(mp.full_name)()
    try:
        Filler.of(mp.plan).fill(mp.full_name, message, value, 0)
    except Refused as refused:
        raise EncodeError(refused.sentence(mp.full_name)) from None
    return message


class Filler:
    """Sets the fields of a schema's messages; the setters of a type are made when it's first met."""

    def __init__(self, schema: SchemaDef) -> None:
        self.schema = schema
        self.setters: dict[str, dict[str, tuple[FieldDef, Setter]]] = {}

    @staticmethod
    def of(plan: Plan) -> Filler:
        key = "codec.from_dict"
        filler = plan.memo.get(key) or plan.memo.setdefault(key, Filler(plan.schema))
        assert isinstance(filler, Filler)
        return filler

    def known(self, full_name: str) -> dict[str, tuple[FieldDef, Setter]]:
        """The fields of a type by their names and their JSON names, and how they are set."""
        known = self.setters.get(full_name)
        if known is None:
            fields = [(f, self.setter(f)) for f in self.schema.messages[full_name].fields]
            known = {f.json_name: (f, setter) for f, setter in fields}
            known.update({f.name: (f, setter) for f, setter in fields})
            self.setters[full_name] = known
        return known

    def fill(self, full_name: str, message: Any, value: Any, depth: int) -> None:
        """Set a message to a dict, another message, a view, a datetime or a timedelta."""
        if depth > MAX_DEPTH:
            raise Refused(f"messages nested deeper than {MAX_DEPTH}")
        if isinstance(value, Mapping):
            self.fill_fields(full_name, message, value, depth)
        elif full_name == "google.protobuf.Timestamp" and isinstance(value, datetime.datetime):
            try:
                message.FromDatetime(value)
            except REFUSALS as error:
                raise Refused(f"{shown(value)}: {error}") from None
        elif full_name == "google.protobuf.Duration" and isinstance(value, datetime.timedelta):
            message.FromTimedelta(value)
        else:
            copy_message(full_name, message, value)

    def fill_fields(self, full_name: str, message: Any, value: Mapping[Any, Any], depth: int) -> None:
        known = self.known(full_name)
        given: dict[str, Any] = {}
        oneofs: dict[str, str] = {}
        for name, held in value.items():
            if name not in known:
                if not isinstance(name, str):
                    raise Refused(f"{shown(name)} is not the name of a field of {full_name}")
                names = [f.name for f in self.schema.messages[full_name].fields]
                raise Refused(f"{full_name} has no such field{near_names(name, names)}").within(name)
            if held is None:
                continue
            f, setter = known[name]
            if f.name in given:
                raise Refused(f"given twice, as {given[f.name]!r} and as {name!r}").within(f.name)
            given[f.name] = name
            if f.oneof and oneofs.setdefault(f.oneof, name) != name:
                both = f"{oneofs[f.oneof]!r} and {name!r}"
                raise Refused(f"{both} are both given, but only one field of oneof {f.oneof!r} can be set")
            try:
                setter(message, held, depth)
            except Refused as refused:
                raise refused.within(f.name) from None

    def setter(self, f: FieldDef) -> Setter:
        if f.is_map:
            return self.map_setter(f)
        if f.kind in ("message", "group"):
            return self.messages_setter(f) if f.repeated else self.message_setter(f)
        return self.scalars_setter(f) if f.repeated else self.scalar_setter(f)

    def reader(self, f: FieldDef) -> Callable[[Any], Any] | None:
        """What makes a given value one that protobuf may be given; None where protobuf takes any."""
        if f.kind == "bool":
            return safe_bool
        if f.kind != "enum":
            return None
        numbers = dict(self.schema.enums[f.type_name].values)
        return lambda value: number_of(f, numbers, value)

    def scalar_setter(self, f: FieldDef) -> Setter:
        name = f.name
        read = self.reader(f)

        def set_scalar(message: Any, value: Any, depth: int) -> None:
            try:
                setattr(message, name, value if read is None else read(value))
            except REFUSALS:
                raise self.refusal(f, value) from None

        return set_scalar

    def scalars_setter(self, f: FieldDef) -> Setter:
        name = f.name
        read = self.reader(f)
        checked = f.kind == "bool"

        def set_scalars(message: Any, value: Any, depth: int) -> None:
            values = elements(value)
            container = getattr(message, name)
            try:
                container.extend(map(safe_bool, values) if checked else values)
                return
            except REFUSALS:  # an enum's name, or a bad element: find out which
                del container[:]
            for i, element in enumerate(values):
                try:
                    container.append(element if read is None else read(element))
                except Refused as refused:
                    raise refused.within(f"[{i}]") from None
                except REFUSALS:
                    raise self.refusal(f, element).within(f"[{i}]") from None

        return set_scalars

    def message_setter(self, f: FieldDef) -> Setter:
        def set_message(message: Any, value: Any, depth: int) -> None:
            child = getattr(message, f.name)
            self.fill(f.type_name, child, value, depth + 1)
            type(child).SetInParent(child)  # by the class: a field may have the method's name

        return set_message

    def messages_setter(self, f: FieldDef) -> Setter:
        def set_messages(message: Any, value: Any, depth: int) -> None:
            container = getattr(message, f.name)
            for i, element in enumerate(elements(value)):
                try:
                    self.fill(f.type_name, container.add(), element, depth + 1)
                except Refused as refused:
                    raise refused.within(f"[{i}]") from None

        return set_messages

    def map_setter(self, f: FieldDef) -> Setter:
        key_field, value_field = self.schema.messages[f.type_name].fields
        read_key = self.reader(key_field)
        read = self.reader(value_field)
        is_message = value_field.kind == "message"

        def set_map(message: Any, value: Any, depth: int) -> None:
            if not isinstance(value, Mapping):
                raise Refused(f"{shown(value)} is not a dict")
            container = getattr(message, f.name)
            for i, (key, held) in enumerate(value.items()):
                try:
                    own_key = key if read_key is None else read_key(key)
                    if is_message:
                        self.fill(value_field.type_name, container[own_key], held, depth + 2)
                    else:
                        container[own_key] = held if read is None else read(held)
                except Refused as refused:
                    raise refused.within(f"[{key!r}]") from None
                except REFUSALS:
                    if is_message or not is_key(key_field.kind, key):
                        raise self.refusal(key_field, key, "key ") from None
                    raise self.refusal(value_field, held).within(f"[{key!r}]") from None
                if len(container) == i:
                    known = plain_key(key_field.kind, key)
                    first = next(other for other in value if plain_key(key_field.kind, other) == known)
                    raise Refused(f"given twice, as {first!r} and as {key!r}").within(f"[{known!r}]")

        return set_map

    def refusal(self, f: FieldDef, value: Any, what: str = "") -> Refused:
        """Why protobuf refused a scalar."""
        text = what + shown(value)
        if f.kind in INT_RANGE or f.kind == "enum":
            if isinstance(value, bool) or not is_integer(value):
                noun = "a name or number" if f.kind == "enum" else "an integer"
                return Refused(f"{text} is not {noun}")
            low, high = INT_RANGE.get(f.kind, INT_RANGE["int32"])
            if not low <= operator.index(value) <= high:
                return Refused(f"{text} is out of range for {f.kind} ({low} to {high})")
            return Refused(f"{text} is not a number of closed enum {f.type_name}")
        if f.kind == "string" and isinstance(value, (str, bytes)):
            return Refused(f"{text} is not valid UTF-8")
        if f.kind in ("float", "double") and is_integer(value):
            return Refused(f"{text} is out of range for {f.kind}")
        return Refused(f"{text} is not {NOUN[f.kind]}")


def copy_message(full_name: str, message: Any, value: Any) -> None:
    """Set a message to another one of its type, of whatever pool, or to a view."""
    from google.protobuf.message import DecodeError as UnreadableError
    from google.protobuf.message import EncodeError as UnwritableError
    from google.protobuf.message import Message

    from yaffjit.view import View

    if isinstance(value, View):
        value = View.to_message(value)
    if not isinstance(value, Message):
        raise Refused(f"{shown(value)} is not a dict or a message")
    found = type(value).DESCRIPTOR.full_name
    if found != full_name:
        raise Refused(f"{full_name} expected, but the message is a {found}")
    own = type(message)
    try:
        if type(value) is own:
            own.CopyFrom(message, value)
        else:
            own.MergeFromString(message, type(value).SerializePartialToString(value))
    except (UnreadableError, UnwritableError) as error:
        raise Refused(f"this schema can't read the message: {error}") from None


def number_of(f: FieldDef, numbers: Mapping[str, int], value: Any) -> Any:
    """The number of an enum value given by name; other values as they are."""
    if not isinstance(value, str):
        return value
    if value not in numbers:
        raise Refused(f"{shown(value)} is not a value of enum {f.type_name}{near_names(value, numbers)}")
    return numbers[value]


def safe_bool(value: Any) -> Any:
    """A value that protobuf may be given for a bool; TypeError for one that would crash the process.

    Protobuf compares the name of the module of the value's class with numpy's, as if it always were text.
    """
    if not isinstance(type(value).__module__, str):
        raise TypeError("not a bool")
    return value


def elements(value: Any) -> list[Any]:
    """The elements of a list, an array or another iterable that isn't text or a dict."""
    if isinstance(value, (str, bytes, bytearray, Mapping)) or not isinstance(value, Iterable):
        raise Refused(f"{shown(value)} is not a list")
    tolist = getattr(value, "tolist", None)  # of numpy, array and others: Python's own numbers
    values = tolist() if callable(tolist) else list(value)
    if not isinstance(values, list):  # as of an array without dimensions
        raise Refused(f"{shown(value)} is not a list")
    return values


def is_key(kind: str, key: Any) -> bool:
    """protobuf takes a map's key."""
    if kind == "string":
        return isinstance(key, (str, bytes)) and is_utf8(key)
    if kind == "bool":
        return type(key).__module__ == "numpy" or fits("int64", key)
    return not isinstance(key, bool) and fits(kind, key)


def fits(kind: str, key: Any) -> bool:
    low, high = INT_RANGE[kind]
    return is_integer(key) and low <= operator.index(key) <= high


def plain_key(kind: str, key: Any) -> Any:
    """A key that protobuf took, as protobuf gives it back."""
    if kind == "string":
        return key if isinstance(key, str) else key.decode()
    return bool(key) if kind == "bool" else operator.index(key)


def is_utf8(text: str | bytes) -> bool:
    try:
        _ = text.encode() if isinstance(text, str) else text.decode()
    except UnicodeError:
        return False
    return True


def is_integer(value: Any) -> bool:
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def shown(value: Any) -> str:
    # Not the text of a message, which may be empty, or huge.
    name = getattr(getattr(type(value), "DESCRIPTOR", None), "full_name", None)
    text = f"a {name} message" if isinstance(name, str) else repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
