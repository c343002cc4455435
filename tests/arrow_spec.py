"""The specification of Arrow columns: plain Python that makes rows of google.protobuf messages."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from columns_spec import NOT_A_TIME, WRAPPER, exact, is_map_field
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from yaffjit.plan.model import MessagePlan


def row(message: Message, mp: MessagePlan, enums: str = "dictionary") -> dict[str, Any]:
    """A message as a row of all fields that YaFF carries: what `pyarrow.array` takes for its struct."""
    made: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if field.name not in mp.by_name:
            continue
        oneof = field.containing_oneof
        if oneof is not None and any(known.name == oneof.name for known in mp.oneofs):
            made.setdefault(oneof.name, case(message, mp, oneof.name, enums))
        made[field.name] = value(message, field, mp, enums)
    return made


def case(message: Message, mp: MessagePlan, oneof: str, enums: str) -> Any:
    name = message.WhichOneof(oneof)
    if name is None or name not in mp.by_name:
        return None
    return name if enums == "dictionary" else message.DESCRIPTOR.fields_by_name[name].number


def value(message: Message, field: FieldDescriptor, mp: MessagePlan, enums: str) -> Any:
    held = getattr(message, field.name)
    f = mp.by_name[field.name]
    if is_map_field(field):
        one = field.message_type.fields_by_name["value"]
        child = mp.child(mp.child(f).fields[1]) if one.message_type is not None else None
        return [(key, of_one(held[key], one, child, enums)) for key in held]
    child = mp.child(f) if field.message_type is not None else None
    if field.is_repeated:
        return [of_one(each, field, child, enums) for each in held]
    if field.has_presence and not message.HasField(field.name):
        return None
    return of_one(held, field, child, enums)


def of_one(held: Any, field: FieldDescriptor, child: MessagePlan | None, enums: str) -> Any:
    """One value of a field that is there."""
    if field.message_type is not None:
        assert child is not None
        if field.message_type.full_name in NOT_A_TIME:
            return held.seconds * 10**9 + held.nanos
        return held.value if WRAPPER.fullmatch(field.message_type.full_name) else row(held, child, enums)
    if field.enum_type is not None and enums == "dictionary":
        known = field.enum_type.values_by_number
        return known[held].name if held in known else str(held)
    return held


def table(
    messages: list[Message | None], mp: MessagePlan, schema: pa.Schema, enums: str = "dictionary"
) -> pa.Table:
    """What `to_arrow` must hold of messages; None of null rows."""
    rows = [None if message is None else row(message, mp, enums) for message in messages]
    columns = [pa.array([None if one is None else one[f.name] for one in rows], f.type) for f in schema]
    return pa.table(columns, schema=schema)


def check(
    found: pa.Table, messages: list[Message | None], mp: MessagePlan, enums: str = "dictionary"
) -> None:
    """The table holds exactly what the messages do."""
    found.validate(full=True)
    known = table(messages, mp, found.schema, enums)
    for name in found.column_names:
        assert rows(found[name]) == rows(known[name]), name


def rows(column: pa.ChunkedArray) -> list[Any]:
    """Values that equal others only if they are the same to the bit."""
    return [exact(unordered(held)) for held in column.to_pylist()]


def unordered(held: Any) -> Any:
    """A value in which maps are dicts."""
    if isinstance(held, dict):
        return {name: unordered(each) for name, each in held.items()}
    if isinstance(held, list):
        if held and isinstance(held[0], tuple):
            assert len({key for key, _ in held}) == len(held)
            return {key: unordered(each) for key, each in held}
        return [unordered(each) for each in held]
    return held
