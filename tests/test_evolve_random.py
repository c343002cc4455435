"""Random changes of random schemas: what is judged safe reads equal in both directions, in both formats."""

from __future__ import annotations

import math
import struct
from collections import Counter
from typing import Any

import pytest
import spec
from evolution_steps import changed
from hypothesis import given, note, settings
from hypothesis import strategies as st
from strategies import Building, RandomSchema, messages, schemas

import yaffjit as yj

STEPS = 4
LAYOUTS = ("flat", "sparse")
ZEROS = ("0", "0.0", "False", "''", "b''")  # not -0.0

pytestmark = pytest.mark.slow


def loaded(schema: RandomSchema) -> yj.Schema | None:
    try:
        return yj.load_schema(schema.descriptor_set.SerializeToString())
    except yj.SchemaError:  # the change made no sense
        return None


# How many changes were judged so.
kept: Counter[str] = Counter()


@settings(max_examples=settings().max_examples // 3)
@given(st.data())
def test_what_is_judged_safe_reads_equal(data: st.DataObject) -> None:
    first = data.draw(schemas(plain=data.draw(st.booleans())))
    format = data.draw(st.sampled_from(["yaff", "yaff", "protobuf"]))
    building = Building(data.draw, first.file.syntax, True)
    old = loaded(first)
    assert old is not None
    last, new = first, old
    for _ in range(data.draw(st.integers(1, STEPS))):
        candidate = changed(building, last)
        made = loaded(candidate)
        if made is None or candidate.file == last.file:
            continue
        grade = yj.compare_schemas(old, made).grade([format])
        kept[grade] += 1
        if grade == "safe":
            last, new = candidate, made
    if last is first:
        return
    note(f"{format}, old {first.file}\nnew {last.file}")
    for writer, reader, source in ((old, new, first), (new, old, last)):
        for root in set(first.roots) - old.unsupported.keys() - new.unsupported.keys():
            message = data.draw(messages(source.message_class(root)))
            if format == "protobuf":
                read = reader[root].message_class.FromString(message.SerializePartialToString())
                check(message, read, root)
                continue
            for layout in LAYOUTS:
                try:
                    buf = writer[root].encode(message, layout=layout)
                except yj.EncodeError:
                    continue
                reader[root].verify(buf)
                check(spec.carried(message), reader[root].view(buf), root)


def test_changes_are_of_all_grades() -> None:
    """The test above, where it has run, took some changes and left some."""
    assert not kept or min(kept["safe"], kept["unsafe"]) > 3


def check(written: Any, found: Any, path: str) -> None:
    """Each field that both schemas have reads as it was written; the others aren't there."""
    lost = found._access_.lost if isinstance(found, yj.View) else {}
    by_number = {f.number: f for f in written.DESCRIPTOR.fields}
    by_name = {f.name: f for f in written.DESCRIPTOR.fields}
    listed = {f.name for f, _ in found.ListFields()}
    for f in found.DESCRIPTOR.fields:
        if f.name in lost:
            continue
        partner = by_name.get(f.name, by_number.get(f.number))
        if partner is None:
            assert f.name not in listed, f"{path}.{f.name}"
            continue
        here = f"{path}.{f.name}"
        value, read = getattr(written, partner.name), getattr(found, f.name)
        if f.has_presence:
            is_set = written.HasField(partner.name) if partner.has_presence else repr(value) not in ZEROS
            assert found.HasField(f.name) == is_set, here
            if f.message_type is not None and not is_set:
                continue
        check_value(value, read, here)


def check_value(value: Any, found: Any, path: str) -> None:
    if hasattr(value, "ListFields"):
        check(value, found, path)
    elif hasattr(value, "items"):
        assert set(value) == set(found), path
        for key in value:
            check_value(value[key], found[key], f"{path}[{key!r}]")
    elif isinstance(value, float):
        assert struct.pack("<d", value) == struct.pack("<d", found) or math.isnan(value + found), path
    elif isinstance(value, (int, str, bytes)):
        assert value == found, path
    else:
        assert len(value) == len(found), path
        for row, (ours, theirs) in enumerate(zip(value, found, strict=True)):
            check_value(ours, theirs, f"{path}[{row}]")
