"""Columns of all paths against the specification, over random messages and random schemas."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import columns_spec
import numpy as np
import pytest
from google.protobuf.message import Message
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st
from strategies import messages, schemas

import yaffjit as yj
from yaffjit.plan.columns import presence_path
from yaffjit.plan.model import MessagePlan

pytestmark = pytest.mark.slow

SCHEMAS = Path(__file__).parent / "schemas"
PATHS_OF_ALL = 32  # compiled once
PATHS_OF_RANDOM = 10  # compiled for each schema
SCHEMA_EXAMPLES = max(5, settings.default.max_examples // 25)
LAYOUTS = ("flat", "sparse")


@cache
def loaded(file: str, name: str) -> yj.MessageType:
    return yj.load_schema(SCHEMAS / file)[name]


@cache
def some_paths(file: str, name: str, count: int) -> list[str]:
    """As many paths of a message, always the same."""
    paths = list(columns_spec.all_paths(loaded(file, name).plan, 2))
    return sorted(random.Random(4).sample(paths, min(count, len(paths))))


def single(mp: MessagePlan, paths: list[str]) -> list[str]:
    """Those that are about one value a row, so that presence can be asked."""

    def is_single(path: str) -> bool:
        try:
            presence_path(mp, path)
        except yj.SchemaError as error:
            assert "presence is for one value a row" in str(error)
            return False
        return True

    return [path for path in paths if is_single(path)]


def check(message_type: yj.MessageType, held: list[Message], layouts: list[str], paths: list[str]) -> None:
    payloads = [message_type.encode(one, layout=layout) for one, layout in zip(held, layouts, strict=True)]
    columns_spec.check(yj.records(message_type, payloads).columns(*paths), held, paths)


def test_there_are_paths_of_every_kind() -> None:
    paths = list(columns_spec.all_paths(loaded("paths.proto", "paths.All").plan, 2))
    assert len(paths) > 500
    for path in (
        'by_id.parts["a"].tags[-1]',
        "len(items[0].part.tags)",
        "pick:category",
        "weights",
        "flags[true]",
    ):
        assert path in paths


@settings(max_examples=40)
@given(st.data())
def test_random_messages(data: st.DataObject) -> None:
    message_type = loaded("paths.proto", "paths.All")
    held = [data.draw(messages(message_type.message_class)) for _ in range(data.draw(st.integers(0, 4)))]
    layouts = [data.draw(st.sampled_from(LAYOUTS)) for _ in held]
    check(message_type, held, layouts, some_paths("paths.proto", "paths.All", PATHS_OF_ALL))


def test_presence_of_random_messages() -> None:
    message_type = loaded("paths.proto", "paths.All")
    paths = single(message_type.plan, some_paths("paths.proto", "paths.All", PATHS_OF_ALL))
    paths = [
        "one",
        "one.part",
        "items",
        "by_id",
        "title",
        "raw",
        "note",
        "items[0]",
        "by_id[1].part",
        *paths,
    ][:12]

    @settings(max_examples=1)
    @given(st.lists(messages(message_type.message_class), min_size=40, max_size=40))
    def compare(held: list[Message]) -> None:
        payloads = [message_type.encode(one) for one in held]
        columns_spec.check_presence(yj.records(message_type, payloads).columns("id"), held, paths)

    compare()


# Each schema is compiled, so a failing one isn't made smaller.
@settings(max_examples=SCHEMA_EXAMPLES, phases=[Phase.generate])
@given(st.data())
def test_random_schemas(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    note(f"{schema.file}")
    full_name = max(schema.roots, key=lambda name: len(schema.descriptor(name).fields))
    message_type = yj.load_schema(schema.descriptor_set.SerializeToString())[full_name]
    every = list(columns_spec.all_paths(message_type.plan, 2))
    if not every:
        return
    paths = data.draw(st.permutations(every))[:PATHS_OF_RANDOM]
    held = []
    payloads = []
    for _ in range(6):
        message = data.draw(messages(message_type.message_class))
        try:
            payloads.append(message_type.encode(message, layout=data.draw(st.sampled_from(LAYOUTS))))
        except yj.EncodeError:
            continue
        # What YaFF doesn't carry isn't read either.
        held.append(message_type.decode(payloads[-1]))
    columns_spec.check(yj.records(message_type, payloads).columns(*paths), held, paths)


# ---- times and wrappers ----

SECONDS = [0, 1, -1, 1700000000, -62135596800, 9223372035, -9223372036]
NANOS = [0, 1, 999_999_999, 500]


def times(draw: random.Random, message: Any, depth: int = 1) -> Any:
    def often() -> bool:
        return draw.random() < 0.7

    def fill(time: Any, signed: bool) -> None:
        time.seconds = draw.choice(SECONDS[:4])
        sign = -1 if signed and time.seconds < 0 else 1
        time.nanos = sign * draw.choice(NANOS)

    if often():
        fill(message.at, False)
    if often():
        fill(message.took, True)
    for _ in range(draw.randrange(3)):
        fill(message.ats.add(), False)
    for key in draw.sample(["a", "b", "café"], 2):
        fill(message.tooks[key], True)
    if often():
        message.count.value = draw.choice([0, 5, -(2**63)])
    if often():
        message.name.value = draw.choice(["", "né"])
    if often():
        message.flag.value = draw.choice([False, True])
    for _ in range(draw.randrange(3)):
        message.rates.add(value=draw.choice([0.0, -0.0, 1.5]))
    for key in range(draw.randrange(3)):
        message.raws[key].value = draw.choice([b"", b"\0\xff"])
    if depth and often():
        times(draw, message.inner, depth - 1)
    return message


@pytest.mark.parametrize("layout", LAYOUTS)
def test_times_and_wrappers(layout: str) -> None:
    message_type = loaded("column_forms.proto", "forms.Times")
    draw = random.Random(3)
    held = [times(draw, message_type.message_class()) for _ in range(60)]
    paths = ["at", "took", "ats", "tooks", "count", "name", "rates", "raws", "flag", "at.seconds", "inner.at"]
    paths += [
        "ats[0]",
        "ats[-1]",
        'tooks["a"]',
        "at:datetime64[s]",
        "took:timedelta64[ms]",
        "ats:datetime64[us]",
    ]
    paths += [
        "raws[0]",
        "rates[0]",
        "count:float32",
        "name:dictionary",
        "inner.ats",
        "inner.took:timedelta64[us]",
    ]
    check(message_type, held, [layout] * len(held), paths)
    columns = yj.records(message_type, [message_type.encode(one, layout=layout) for one in held]).columns(
        *paths
    )
    columns_spec.check_presence(
        columns, held, ["at", "took", "count", 'tooks["a"]', "inner.at", "ats[1]", "at.seconds"]
    )
    assert columns["at"].dtype == np.dtype("datetime64[ns]")
    assert columns["took:timedelta64[ms]"].dtype == np.dtype("timedelta64[ms]")
    assert np.isnat(columns["at"]).any()
    assert columns["tooks"].values.dtype == np.dtype("timedelta64[ns]")
