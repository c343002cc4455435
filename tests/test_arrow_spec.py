"""Records as Arrow against the specification, over random messages and random schemas."""

from __future__ import annotations

import contextlib
import itertools
from functools import cache
from pathlib import Path

import arrow_spec
import pytest
from google.protobuf.message import Message
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st
from strategies import messages, schemas

import yaffjit as yj

pytestmark = pytest.mark.slow

SCHEMAS = Path(__file__).parent / "schemas"
SCHEMA_EXAMPLES = max(5, settings.default.max_examples // 25)
REPRESENTATIONS = ("yaff", "protobuf")
ENUMS = ("dictionary", "integer")


@cache
def loaded(file: str, name: str) -> yj.MessageType:
    return yj.load_schema(SCHEMAS / file)[name]


def check(message_type: yj.MessageType, held: list[Message | None], paths: list[str] | None) -> None:
    """Both representations, in rows as they lie and selected, hold what the specification says."""
    plan = message_type.plan
    for representation, enums in itertools.product(REPRESENTATIONS, ENUMS):
        partial = message_type.message_class.SerializePartialToString
        encode = message_type.encode if representation == "yaff" else partial
        payloads = [None if one is None else encode(one) for one in held]
        recs = yj.records(message_type, payloads, representation=representation)
        made = recs.to_arrow(paths, enums=enums)
        assert made.schema == message_type.arrow_schema(paths, enums=enums)
        arrow_spec.check(made, held, plan, enums)
        backwards = recs[::-1].to_arrow(paths, enums=enums)
        arrow_spec.check(backwards, held[::-1], plan, enums)


def without_recursion(message_type: yj.MessageType) -> list[str] | None:
    """The fields of a message that Arrow can hold; None if it's all of them."""
    try:
        message_type.arrow_schema()
    except yj.SchemaError as error:
        assert "holds itself" in str(error)
    else:
        return None
    names = []
    for f in message_type.plan.fields:
        with contextlib.suppress(yj.SchemaError):
            message_type.arrow_schema(f.name)
            names.append(f.name)
    return names


# Each schema is compiled twice, so a failing one isn't made smaller.
@settings(max_examples=SCHEMA_EXAMPLES, phases=[Phase.generate])
@given(st.data())
def test_random_schemas(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    note(f"{schema.file}")
    full_name = max(schema.roots, key=lambda name: len(schema.descriptor(name).fields))
    message_type = yj.load_schema(schema.descriptor_set.SerializeToString())[full_name]
    paths = without_recursion(message_type)
    if paths == []:
        return
    held: list[Message | None] = [None]
    for _ in range(6):
        message = data.draw(messages(message_type.message_class))
        with contextlib.suppress(yj.EncodeError):
            # What YaFF doesn't carry isn't read either.
            held.append(message_type.decode(message_type.encode(message)))
    check(message_type, held, paths)
