"""Real data as it came, as Arrow: what protobuf's own objects hold. Skipped where the folder is missing."""

from __future__ import annotations

import contextlib
from importlib import import_module
from pathlib import Path

import arrow_spec
import pytest
from test_corpora import SOURCES, SPEC_STRIDE

import yaffjit as yj

pytestmark = pytest.mark.slow

# Values of OpenTelemetry's attributes hold themselves.
CHOSEN = {"otlp-spans.delim": ["attributes.key", "events.attributes.value.string_value"]}


@pytest.mark.parametrize("name", SOURCES)
def test_tables_are_those_of_protobuf(name: str, corpora: Path) -> None:
    source, full_name = SOURCES[name]
    schema = yj.load_schema(corpora / source if source.endswith(".proto") else import_module(source))
    message_type = schema[full_name]
    payloads = list(yj.read_delimited(corpora / name))[::SPEC_STRIDE]
    held = [message_type.message_class.FromString(payload) for payload in payloads]
    wire = yj.records(message_type, payloads, representation="protobuf")
    paths = None
    if name in CHOSEN:
        paths = []
        for f in message_type.plan.fields:
            with contextlib.suppress(yj.SchemaError):
                message_type.arrow_schema(f.name)
                paths.append(f.name)
        assert "attributes" not in paths
        chosen = wire.to_arrow(CHOSEN[name])
        for row, message in enumerate(held):
            keys = [attribute.key for attribute in message.attributes]
            assert chosen["attributes.key"][row].as_py() == keys
    made = wire.to_arrow(paths)
    arrow_spec.check(made, held, message_type.plan)
    assert message_type.transcode(wire).to_arrow(paths) == made
