"""The specification of columns: plain Python that follows a path through google.protobuf messages."""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from yaffjit.columns import DictionaryColumn, ListColumn, MapColumn, TextColumn
from yaffjit.plan.model import FieldPlan, MessagePlan

TOKEN = re.compile(r"""\.?([A-Za-z_]\w*)|\[("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^]]*)\]""", re.DOTALL)
REQUEST = re.compile(r":([a-z0-9\[\]]+)$")
WRAPPER = re.compile(r"google\.protobuf\.\w+Value")
NOT_A_TIME = {
    "google.protobuf.Timestamp": np.datetime64("NaT", "ns"),
    "google.protobuf.Duration": np.timedelta64("NaT", "ns"),
}
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class Path:
    """A path in pieces: names, each perhaps with an index or key."""

    def __init__(self, text: str) -> None:
        found = REQUEST.search(text)
        self.request = found.group(1) if found else ""
        text = text[: found.start()] if found else text
        self.is_length = text.startswith("len(")
        text = text[4:-1] if self.is_length else text
        self.names: list[tuple[str, Any]] = []
        for name, literal in TOKEN.findall(text):
            if name:
                self.names.append((name, None))
            else:
                key = ast.literal_eval(literal.replace("true", "True").replace("false", "False"))
                self.names[-1] = (self.names[-1][0], key)


def value(message: Message, text: str) -> Any:
    """What a column holds of a message: a value, a list, a dict."""
    path = Path(text)
    return follow(message, path, path.names)


def follow(message: Message, path: Path, names: list[tuple[str, Any]]) -> Any:
    (name, index), rest = names[0], names[1:]
    descriptor = message.DESCRIPTOR
    if name in descriptor.oneofs_by_name and name not in descriptor.fields_by_name:
        return member(message, name, path.request)
    field = descriptor.fields_by_name[name]
    held = getattr(message, name)
    is_map = is_map_field(field)
    if path.is_length and not rest and index is None:
        return len(held)
    one = field.message_type.fields_by_name["value"] if is_map else field
    if index is not None:
        there = index in held if is_map else -len(held) <= index < len(held)
        return of_one(held[index] if there else missing(one), one, there, path, rest)
    if is_map:
        return {key: of_one(held[key], one, True, path, rest) for key in held}
    if field.is_repeated:
        return [of_one(each, one, True, path, rest) for each in held]
    there = not field.has_presence or message.HasField(name)
    return of_one(held, field, there, path, rest)


def of_one(held: Any, field: FieldDescriptor, there: bool, path: Path, rest: list[tuple[str, Any]]) -> Any:
    """What comes of one value of a field."""
    if rest:
        return follow(held, path, rest)
    if path.is_length:
        return len(held)
    if field.message_type is not None:
        full_name = field.message_type.full_name
        if full_name in NOT_A_TIME:
            return time(held, path.request) if there else NOT_A_TIME[full_name]
        assert WRAPPER.fullmatch(full_name)
        held = held.value
    if path.request == "category":
        known = field.enum_type.values_by_number
        return known[held].name if held in known else str(held)
    if path.request == "float32":
        return float(np.float32(held))
    return int(held) if path.request and path.request[0] in "iu" else held


def time(held: Any, request: str) -> Any:
    unit = request.partition("[")[2].rstrip("]") or "ns"
    part = int(math.copysign(abs(held.nanos) // (10**9 // PER_SECOND[unit]), held.nanos))
    count = held.seconds * PER_SECOND[unit] + part
    is_timestamp = held.DESCRIPTOR.full_name.endswith("Timestamp")
    return (np.datetime64 if is_timestamp else np.timedelta64)(count, unit)


def member(message: Message, oneof: str, request: str) -> Any:
    name = message.WhichOneof(oneof)
    if request == "category":
        return name
    return message.DESCRIPTOR.fields_by_name[name].number if name else 0


def missing(field: FieldDescriptor) -> Any:
    """What is read where there's no element, or no such key."""
    if field.message_type is not None:
        return message_factory.GetMessageClass(field.message_type)()
    if field.enum_type is not None:
        return field.enum_type.values[0].number
    kinds = {field.TYPE_BYTES: b"", field.TYPE_STRING: "", field.TYPE_BOOL: False}
    kinds |= dict.fromkeys((field.TYPE_DOUBLE, field.TYPE_FLOAT), 0.0)
    return kinds.get(field.type, 0)


def present(message: Message, text: str) -> bool:
    """Whether all of a path is set."""
    names = Path(text).names
    for i, (name, index) in enumerate(names):
        descriptor = message.DESCRIPTOR
        if name in descriptor.oneofs_by_name and name not in descriptor.fields_by_name:
            return message.WhichOneof(name) is not None
        field = descriptor.fields_by_name[name]
        held = getattr(message, name)
        if index is not None:
            if not (index in held if is_map_field(field) else -len(held) <= index < len(held)):
                return False
            held = held[index]
        elif field.is_repeated:
            return len(held) > 0
        elif field.has_presence:
            if not message.HasField(name):
                return False
        else:
            assert i == len(names) - 1
            return bool(held) or (isinstance(held, float) and math.copysign(1, held) < 0)
        message = held
    return True


def is_map_field(field: FieldDescriptor) -> bool:
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


# ---- what is compared ----


def rows(column: Any) -> list[Any]:
    """A column's rows as Python values."""
    if isinstance(column, np.ndarray):
        return list(column) if column.dtype.kind in "mM" else column.tolist()
    if isinstance(column, (TextColumn, DictionaryColumn)):
        return list(column)
    starts = column.offsets.tolist()
    spans = [slice(begin, end) for begin, end in itertools.pairwise(starts)]
    values = rows(column.values)
    if isinstance(column, MapColumn):
        keys = rows(column.keys)
        assert all(len(set(keys[span])) == len(keys[span]) for span in spans)
        return [dict(zip(keys[span], values[span], strict=True)) for span in spans]
    assert isinstance(column, ListColumn)
    return [values[span] for span in spans]


def exact(held: Any) -> Any:
    """A value that equals another only if both are the same to the bit, but for NaNs."""
    if isinstance(held, float):
        return "nan" if math.isnan(held) else held.hex()
    if isinstance(held, list):
        return [exact(each) for each in held]
    if isinstance(held, dict):
        return {repr(key): exact(each) for key, each in held.items()}
    if isinstance(held, (np.datetime64, np.timedelta64)):
        return str(held) if np.isnat(held) else repr(held)
    return held


def check(columns: Any, messages: list[Message], paths: list[str]) -> None:
    """Columns hold what the specification says; AssertionError names the path."""
    for path in paths:
        found = [exact(row) for row in rows(columns[path])]
        assert found == [exact(value(message, path)) for message in messages], path


def check_presence(columns: Any, messages: list[Message], paths: list[str]) -> None:
    for path in paths:
        found = columns.present(path)
        assert found.dtype == np.bool_
        assert found.tolist() == [present(message, path) for message in messages], path


# ---- all paths of a schema ----

LITERALS = {"string": ('"a"', "''", '"caf\\u00e9"'), "bool": ("true", "false")}


def all_paths(mp: MessagePlan, depth: int = 3) -> Iterator[str]:
    """The paths of columns of a message and of those in it, down to a depth."""
    for f in mp.fields:
        yield from field_paths(mp, f, depth)
    for oneof in mp.oneofs:
        if oneof.fields:
            yield oneof.name
            yield f"{oneof.name}:category"


def field_paths(mp: MessagePlan, f: FieldPlan, depth: int) -> Iterator[str]:
    if not f.repeated:
        yield from value_paths(mp, f, f.name, depth)
        return
    yield f"len({f.name})"
    if f.is_map:
        entry = mp.child(f)
        key, one = entry.fields
        literals = LITERALS.get(key.kind, ("0", "1"))
        indexed = [f"{f.name}[{literal}]" for literal in literals]
        mp = entry
    else:
        one = f
        indexed = [f"{f.name}[{index}]" for index in (0, -1, 1)]
    for start in (f.name, *indexed):
        yield from value_paths(mp, one, start, depth)


def value_paths(mp: MessagePlan, f: FieldPlan, start: str, depth: int) -> Iterator[str]:
    """Of one value of a field, or of each."""
    if f.kind == "message":
        child = mp.child(f)
        if child.full_name in NOT_A_TIME or WRAPPER.fullmatch(child.full_name):
            yield start
        if depth:
            for path in all_paths(child, depth - 1):
                yield f"len({start}.{path[4:]}" if path.startswith("len(") else f"{start}.{path}"
        return
    yield start
    if f.kind in ("string", "bytes"):
        yield f"{start}:dictionary"
        if not f.repeated or start != f.name:
            yield f"len({start})"
    elif f.kind == "enum":
        yield f"{start}:category"
    elif f.kind == "bool":
        yield f"{start}:uint8"
    elif f.kind not in ("float", "double"):
        yield f"{start}:{'u' if f.kind in UNSIGNED else ''}int64"


UNSIGNED = ("uint32", "fixed32", "uint64", "fixed64")
