"""Random schemas and messages: yaffjit against the plain-Python specification and against google.protobuf.

Deterministic and short by default. A long campaign: YAFFJIT_HYPOTHESIS=long YAFFJIT_EXAMPLES=20000 pytest ...
"""

from __future__ import annotations

from typing import Any

import pytest
import spec
from evolution import evolutions, sliced_schemas
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from hypothesis import given, note, settings
from hypothesis import strategies as st
from refusals import FAULTS, refusals
from strategies import RandomSchema, messages, schemas
from walk import check_view, wire

import yaffjit as yj

pytestmark = pytest.mark.slow

LAYOUTS = st.sampled_from(["flat", "sparse"])


def load(schema: RandomSchema, slice: str | None = None) -> yj.Schema:
    note(f"read under {schema.file}")
    return yj.load_schema(schema.descriptor_set.SerializeToString(), slice=slice)


def draw_root(data: st.DataObject, schema: RandomSchema) -> tuple[str, Message]:
    """The name of a root and a message of it, in the specification's pool."""
    largest = max(schema.roots, key=lambda name: len(schema.descriptor(name).fields))
    root = data.draw(st.sampled_from([*[largest] * 3, *schema.roots]))
    return root, data.draw(messages(schema.message_class(root)))


def written(message: Message, layout: str, slice: str | None = None) -> bytes | None:
    """The specification's bytes, None where it says that the value can't be held."""
    try:
        return spec.write(message, layout, slice)
    except spec.SpecError:
        return None


@given(st.data())
def test_encode(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    loaded = load(schema)
    assert not set(schema.roots) & loaded.unsupported.keys()
    for _ in range(3):
        root, message = draw_root(data, schema)
        layout = data.draw(LAYOUTS)
        expected = written(message, layout)
        if expected is None:
            with pytest.raises(yj.EncodeError):
                loaded[root].encode(message, layout=layout)
        else:
            assert loaded[root].encode(message, layout=layout).hex() == expected.hex()
            assert loaded[root].encode(as_dict(message), layout=layout).hex() == expected.hex()


def as_dict(message: Message) -> dict[str, Any]:
    """The set fields of a message, in plain Python."""
    fields: dict[str, Any] = {}
    for field, held in message.ListFields():
        if field.message_type is None:
            fields[field.name] = list(held) if field.is_repeated else held
        elif field.message_type.GetOptions().map_entry:
            of_messages = field.message_type.fields_by_name["value"].message_type is not None
            fields[field.name] = {key: as_dict(held[key]) if of_messages else held[key] for key in held}
        else:
            fields[field.name] = [as_dict(child) for child in held] if field.is_repeated else as_dict(held)
    return fields


@given(st.data())
def test_decode(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    loaded = load(schema)
    for _ in range(3):
        root, message = draw_root(data, schema)
        layout = data.draw(LAYOUTS)
        buffer = written(message, layout)
        if buffer is not None:
            loaded[root].verify(buffer)
            decoded = loaded[root].decode(buffer)
            assert wire(decoded) == wire(spec.read(message.DESCRIPTOR, buffer))
            assert wire(decoded) == wire(spec.carried(message))
            assert loaded[root].encode(decoded, layout=layout).hex() == buffer.hex()


@given(st.data())
def test_view(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    loaded = load(schema)
    for _ in range(2):
        root, message = draw_root(data, schema)
        layout = data.draw(LAYOUTS)
        buffer = written(message, layout)
        if buffer is not None:
            view = loaded[root].view(buffer)
            check_view(view, spec.carried(message))
            assert wire(view.to_message()) == wire(loaded[root].decode(buffer))
            assert loaded[root].encode(view, layout=layout).hex() == buffer.hex()


@settings(max_examples=settings().max_examples * 2 // 3)  # each takes twice as long as those of others
@given(st.data())
def test_evolution(data: st.DataObject) -> None:
    """Data of one schema under another: what the specification reads, or an error where it has one."""
    writer, reader = data.draw(evolutions())
    note(f"written under {writer.file}")
    loaded = load(reader)
    for _ in range(2):
        root, message = draw_root(data, writer)
        for layout in ("flat", "sparse"):
            buffer = written(message, layout)
            if buffer is not None:
                check_reading(loaded[root], reader.descriptor(root), buffer)


def check_reading(type: yj.MessageType, descriptor: Descriptor, buffer: bytes) -> None:
    try:
        expected = spec.read(descriptor, buffer)
    except spec.SpecError:
        check_unreadable(type, buffer)
        return
    type.verify(buffer)
    assert wire(type.decode(buffer)) == wire(expected)
    check_view(type.view(buffer), expected)


def check_unreadable(type: yj.MessageType, buffer: bytes) -> None:
    for read in (type.decode, type.verify, type.view):
        with pytest.raises(yj.DecodeError):
            read(buffer)


@given(st.data())
def test_slices(data: st.DataObject) -> None:
    schema = data.draw(sliced_schemas().filter(lambda schema: schema.roots))
    loaded = load(schema, slice="s")
    root, message = draw_root(data, schema)
    layout = data.draw(LAYOUTS)
    buffer = spec.write(message, layout, "s")
    assert loaded[root].encode(message, layout=layout).hex() == buffer.hex()
    assert wire(loaded[root].decode(buffer)) == wire(spec.carried(message, "s"))
    check_view(loaded[root].view(buffer), spec.carried(message, "s"))


@settings(max_examples=max(10, settings().max_examples // 20))
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@given(data=st.data())
def test_refused(fault: Any, data: st.DataObject) -> None:
    """A message that YaFF can't hold is listed, fails when it's used as YaFF, and doesn't stop the others."""
    schema = data.draw(refusals(fault))
    loaded = load(schema)
    assert "Refused" in loaded.unsupported["Refused"]
    with pytest.raises(yj.SchemaError, match=r"^YaFF can't hold Refused"):
        loaded["Refused"].encode(schema.message_class("Refused")())
    with pytest.raises(spec.SpecError):
        spec.write(schema.message_class("Refused")())
    root, message = draw_root(data, schema)
    assert loaded[root].encode(message) == spec.write(message)
