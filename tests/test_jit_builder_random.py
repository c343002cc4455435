"""Builders over random schemas: messages copied field by field are google.protobuf's deterministic bytes."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from builder_code import copying, imported
from google.protobuf.message import Message
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st
from strategies import RandomSchema, messages, schemas

import yaffjit as yj

pytestmark = pytest.mark.slow

DEPTH = 1
_numbers = itertools.count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("copies")


def keep(message: Message, carried: dict[str, set[str]]) -> None:
    """Clear what a view doesn't have."""
    message.DiscardUnknownFields()
    for f, held in message.ListFields():
        is_map = f.message_type is not None and f.message_type.GetOptions().map_entry
        if f.name not in carried[message.DESCRIPTOR.full_name]:
            message.ClearField(f.name)
        elif is_map and f.message_type.fields_by_name["value"].message_type is not None:
            for key in held:
                keep(held[key], carried)
        elif f.message_type is not None and not is_map:
            for part in held if f.is_repeated else [held]:
                keep(part, carried)


@settings(
    max_examples=max(1, settings().max_examples // 50),
    phases=[Phase.explicit, Phase.generate],  # each example compiles, so a smaller one would take minutes
)
@given(st.data())
def test_copies(folder: Path, data: st.DataObject) -> None:
    schema: RandomSchema = data.draw(schemas(plain=True))
    loaded = yj.load_schema(schema.descriptor_set.SerializeToString())
    carried = {
        name: {f.name for f in loaded[name].plan.fields}
        for name, message in loaded.definition.messages.items()
        if name in loaded.messages and name not in loaded.unsupported
    }
    root = max(schema.roots, key=lambda name: len(schema.descriptor(name).fields))
    note(f"{schema.file}")
    message_type = loaded[root]
    made_by = message_type.message_class
    source = copying(made_by.DESCRIPTOR, carried, DEPTH, data.draw(st.integers(0, 99)))
    module = imported(source, folder, f"copy{next(_numbers)}", message_type)
    buffer = np.zeros(1 << 16, np.uint8)
    for _ in range(8):
        message = made_by.FromString(
            data.draw(messages(schema.message_class(root), depth=DEPTH)).SerializePartialToString()
        )
        keep(message, carried)
        payload = message.SerializePartialToString(deterministic=True)
        view = message_type.view_protobuf(payload)
        assert bytes(module.build(view)).hex() == payload.hex()
        assert bytes(module.build_twice(view, buffer)).hex() == payload.hex()
