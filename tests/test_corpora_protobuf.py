"""Real data as it came: records of protobuf bytes lead to the known answers, by columns and jitted functions.

What reads them is that of `test_corpora`, which reads an index of YaFF. Skipped where the folder is missing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import columns_spec
import numpy as np
import pytest
from test_corpora import BY_COLUMNS, BY_JIT, NESTED, SOURCES, SPEC_STRIDE

import yaffjit as yj
from yaffjit.plan.columns import expand

pytestmark = pytest.mark.slow

JITTED = ("osm-ways.delim", "otlp-spans.delim")


@dataclass
class Corpus:
    name: str
    answers: dict[str, Any]
    type: yj.MessageType
    payloads: list[bytes]
    records: Any


@pytest.fixture(scope="module", params=SOURCES)
def corpus(request: pytest.FixtureRequest, corpora: Path) -> Corpus:
    name = request.param
    source, full_name = SOURCES[name]
    schema = yj.load_schema(corpora / source if source.endswith(".proto") else import_module(source))
    payloads = list(yj.read_delimited(corpora / name))
    offsets = np.cumsum([0, *map(len, payloads)])
    records = yj.records(schema[full_name], (b"".join(payloads), offsets), representation="protobuf")
    answers = json.loads((corpora / "answers.json").read_text())[name]
    return Corpus(name, answers, schema[full_name], payloads, records)


def test_answers_by_columns(corpus: Corpus) -> None:
    corpus.records.verify()
    BY_COLUMNS[corpus.name](corpus.records, corpus.answers)


def test_answers_by_a_jitted_function(corpus: Corpus) -> None:
    if corpus.name not in JITTED:
        pytest.skip("one of its form is enough: each takes seconds to compile")
    BY_JIT[corpus.name](corpus.records, corpus.answers)


def test_columns_are_those_of_protobuf(corpus: Corpus) -> None:
    """All of its own fields, and of what is in them, of some rows, which are scattered."""
    globs = NESTED.get(corpus.name, ("*",))
    paths = [path for glob in globs for path in expand(corpus.type.plan, glob)]
    held = [corpus.type.message_class.FromString(payload) for payload in corpus.payloads[::SPEC_STRIDE]]
    columns_spec.check(corpus.records[::SPEC_STRIDE].columns(*globs), held, paths)
