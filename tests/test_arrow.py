"""Records as Arrow: types, paths, selections, streams, and what other libraries make of them."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import arrow_spec
import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import messages

import yaffjit as yj
from yaffjit.columns.arrow import assemble, convert

SCHEMA = Path(__file__).parent / "schemas" / "arrow.proto"
ROWS = 300


@cache
def types() -> yj.Schema:
    return yj.load_schema(SCHEMA)


def row_type() -> yj.MessageType:
    return types()["arrow.Row"]


@cache
def held(rows: int = ROWS) -> list[Message]:
    """Messages of which each has some of all that there is."""
    rng = random.Random(7)
    return [one(rng, row) for row in range(rows)]


def one(rng: random.Random, row: int) -> Message:
    made = row_type().message_class(
        id=2**64 - 1 - row, price=row / 4, flag=row % 3 == 0, name=f"caf\u00e9 {row}"
    )
    made.raw = bytes([row % 256, 255])
    made.colour = rng.choice([0, 1, 7])
    made.colours.extend(rng.choices([0, 1, 7], k=rng.randrange(3)))
    if rng.random() < 0.5:
        made.count = rng.randrange(2)
        made.seen_at.seconds = rng.randrange(-(10**9), 10**9)
        made.seen_at.nanos = rng.randrange(10**9)
        made.limit.value = rng.randrange(2)
    if rng.random() < 0.5:
        made.took.seconds = -rng.randrange(10**6)
        made.took.nanos = -rng.randrange(10**9)
        made.note.value = rng.choice(["", "a note"])
    pick = rng.randrange(4)
    if pick == 1:
        made.number = 0
    elif pick == 2:
        made.word = "w" * rng.randrange(3)
    elif pick == 3:
        made.leaf.SetInParent()
    if rng.random() < 0.7:
        fill(rng, made.branch)
    for _ in range(rng.randrange(3)):
        fill(rng, made.branches.add())
    made.weights.update({"a": 0.5, "b": -0.0} if rng.random() < 0.5 else {})
    made.moods["now"] = rng.choice([0, 7])
    for _ in range(rng.randrange(3)):
        made.scores.add(value=rng.random())
    made.waits["long"].seconds = rng.randrange(9)
    made.bits.extend(rng.choices([True, False], k=rng.randrange(4)))
    return made


def fill(rng: random.Random, branch: Any) -> None:
    branch.colour = rng.choice([0, 1])
    for i in range(rng.randrange(3)):
        branch.leaves.add(word="x" * i, numbers=range(i))
        branch.by_id[i].sure = bool(i)
        branch.times.add(seconds=i)


@cache
def records(representation: str, rows: int = ROWS) -> Any:
    encode = row_type().encode if representation == "yaff" else row_type().message_class.SerializeToString
    return yj.records(row_type(), [encode(message) for message in held(rows)], representation=representation)


@pytest.fixture(params=["yaff", "protobuf"])
def recs(request: pytest.FixtureRequest) -> Any:
    return records(request.param)


# ---- types ----


def test_types() -> None:
    schema = row_type().arrow_schema()
    names = pa.dictionary(pa.int32(), pa.string())
    leaf = pa.struct([("word", pa.string()), ("numbers", pa.list_(pa.int32())), ("sure", pa.bool_())])
    branch = pa.struct(
        [
            ("leaves", pa.list_(leaf)),
            ("by_id", pa.map_(pa.int32(), leaf)),
            ("colour", names),
            ("times", pa.list_(pa.timestamp("ns"))),
        ]
    )
    assert schema == pa.schema(
        [
            ("id", pa.uint64()),
            ("price", pa.float64()),
            ("flag", pa.bool_()),
            ("name", pa.string()),
            ("raw", pa.binary()),
            ("count", pa.uint32()),
            ("colour", names),
            ("colours", pa.list_(names)),
            ("seen_at", pa.timestamp("ns")),
            ("took", pa.duration("ns")),
            ("limit", pa.int64()),
            ("note", pa.string()),
            ("pick", names),
            ("number", pa.int32()),
            ("word", pa.string()),
            ("leaf", leaf),
            ("branch", branch),
            ("branches", pa.list_(branch)),
            ("weights", pa.map_(pa.string(), pa.float64())),
            ("moods", pa.map_(pa.string(), names)),
            ("scores", pa.list_(pa.float64())),
            ("waits", pa.map_(pa.string(), pa.duration("ns"))),
            ("bits", pa.list_(pa.bool_())),
        ]
    )
    integers = row_type().arrow_schema(enums="integer", unit="us")
    assert integers.field("pick").type == integers.field("colour").type == pa.int32()
    assert integers.field("moods").type == pa.map_(pa.string(), pa.int32())
    assert integers.field("seen_at").type == pa.timestamp("us")
    assert pa.schema(row_type()) == schema
    assert row_type().arrow_schema(["id", "branch.*"]).names == ["id", "branch.colour", "branch.times"]


def test_message_types_that_hold_themselves_are_refused() -> None:
    node = types()["arrow.Node"]
    with pytest.raises(yj.SchemaError) as caught:
        node.arrow_schema()
    assert str(caught.value) == (
        "path 'left' of arrow.Node: arrow.Node holds itself, which no type of Arrow does: name the paths "
        'that are wanted, as in to_arrow(["id", "stats.ctr"])'
    )
    with pytest.raises(yj.SchemaError, match=r"^path 'others' of arrow\.Node: arrow\.Node holds itself"):
        node.arrow_schema(["id", "others"])
    chosen = node.arrow_schema(["id", "left.left.id", "leaf", "others.leaf.word"])
    assert chosen.names == ["id", "left.left.id", "leaf", "others.leaf.word"]
    assert chosen.field("others.leaf.word").type == pa.list_(pa.string())


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"enums": "names"}, ValueError, "enums must be 'dictionary' or 'integer', not 'names'"),
        ({"unit": "h"}, ValueError, "unit must be one of 'ns', 'us', 'ms', 's', not 'h'"),
        ({"paths": []}, ValueError, 'name at least one path, as in to_arrow(["id", "stats.ctr"])'),
        ({"paths": 5}, TypeError, "paths must be None, a path, or a list of them, not int"),
        ({"paths": [5]}, TypeError, 'a path must be text, as "stats.ctr", not int'),
        (
            {"paths": "branch.colours"},
            yj.SchemaError,
            "path 'branch.colours' of arrow.Row: arrow.Branch has no field 'colours' "
            "(did you mean 'colour'?)",
        ),
        (
            {"paths": "branch:int8"},
            yj.SchemaError,
            "path 'branch:int8' of arrow.Row: ':int8' isn't for messages, which have one form only",
        ),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        row_type().arrow_schema(**arguments)
    assert str(caught.value) == text


# ---- values ----


def test_whole_messages(recs: Any) -> None:
    for enums in ("dictionary", "integer"):
        made = recs.to_arrow(enums=enums)
        assert made.schema == row_type().arrow_schema(enums=enums)
        arrow_spec.check(made, held(), row_type().plan, enums)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.none() | messages(types()["arrow.Row"].message_class), max_size=5))
def test_random_messages(made: list[Message | None]) -> None:
    for one in made:
        if one is not None:
            for name in ("seen_at", "took", "branch", "branches", "waits"):  # any number isn't a valid time
                one.ClearField(name)
    for representation in ("yaff", "protobuf"):
        encode = row_type().encode if representation == "yaff" else row_type().message_class.SerializeToString
        payloads = [None if one is None else encode(one) for one in made]
        recs = yj.records(row_type(), payloads, representation=representation)
        arrow_spec.check(recs.to_arrow(), made, row_type().plan)


def test_messages_without_fields() -> None:
    gaps = types()["arrow.Gaps"]
    made = [gaps.message_class(), gaps.message_class(one={}, several=[{}, {}], marks={3: {}})]
    for representation in ("yaff", "protobuf"):
        payloads = [gaps.encode(one) if representation == "yaff" else one.SerializeToString() for one in made]
        found = yj.records(gaps, payloads, representation=representation).to_arrow()
        found.validate(full=True)
        assert found.to_pylist() == [
            {"one": None, "several": [], "marks": []},
            {"one": {}, "several": [{}, {}], "marks": [(3, {})]},
        ]


def test_selections_and_null_rows(recs: Any) -> None:
    plan, rows = row_type().plan, held()
    for key in (slice(10, 20), slice(None, None, -7), slice(0, 0), [5, -1, 5]):
        known = rows[key] if isinstance(key, slice) else [rows[i] for i in key]
        arrow_spec.check(recs[key].to_arrow(), known, plan)
    mask = np.arange(ROWS) % 3 == 0
    arrow_spec.check(recs[mask].to_arrow(), rows[::3], plan)
    payloads = [recs.payload(0), None, recs.payload(2)]
    nulls = yj.records(row_type(), payloads, representation=recs.representation)
    made = nulls.to_arrow()
    arrow_spec.check(made, [rows[0], None, rows[2]], plan)
    assert [column.null_count > 0 for column in made.columns] == [True] * made.num_columns
    assert nulls.to_arrow(["id", "pick"])["id"].to_pylist() == [rows[0].id, None, rows[2].id]


def test_paths(recs: Any) -> None:
    paths = [
        *(
            "id",
            "name:dictionary",
            "colour:int8",
            "pick",
            "seen_at:datetime64[s]",
            "branch.colour",
            "branch.leaves.word",
        ),
        *(
            "branches.leaves.numbers",
            "branches.by_id.sure",
            'weights["a"]',
            "branches[0].colour",
            "len(moods)",
            "leaf",
        ),
        *("branches[-1].leaves", "len(branches)", "limit", "weights", "leaf.sure"),
    ]
    made = recs.to_arrow(paths)
    assert made.schema == row_type().arrow_schema(paths)
    assert made.column_names == paths
    made.validate(full=True)
    for i, message in enumerate(held()):
        found = {name: made[name][i].as_py() for name in paths}
        row = arrow_spec.row(message, row_type().plan)
        branch, branches = row["branch"], row["branches"]
        assert found["id"] == row["id"] and found["name:dictionary"] == row["name"]
        assert found["colour:int8"] == message.colour and found["pick"] == row["pick"]
        assert found["branch.colour"] == (branch and branch["colour"])
        assert found["branch.leaves.word"] == (branch and [leaf["word"] for leaf in branch["leaves"]])
        assert found["branches.leaves.numbers"] == [
            [leaf["numbers"] for leaf in each["leaves"]] for each in branches
        ]
        sure = [[(key, leaf["sure"]) for key, leaf in each["by_id"]] for each in branches]
        assert [sorted(each) for each in found["branches.by_id.sure"]] == [sorted(each) for each in sure]
        assert found['weights["a"]'] == dict(row["weights"]).get("a")
        assert found["branches[0].colour"] == (branches[0]["colour"] if branches else None)
        assert found["branches[-1].leaves"] == (branches[-1]["leaves"] if branches else None)
        assert found["len(moods)"] == 1 and found["len(branches)"] == len(branches)
        assert found["leaf"] == row["leaf"] and found["limit"] == row["limit"]
        assert found["leaf.sure"] is None
        assert (found["seen_at:datetime64[s]"] is None) == (row["seen_at"] is None)


def test_numbers_without_names_are_their_digits() -> None:
    made = [
        row_type().message_class(colour=number, colours=[1, number]) for number in (1, 5, -3, 7, 2**31 - 1)
    ]
    recs = yj.records(row_type(), [one.SerializeToString() for one in made], representation="protobuf")
    table = recs.to_arrow(["colour", "colours"])
    assert table["colour"].to_pylist() == ["RED", "5", "-3", "BLUE", "2147483647"]
    assert table["colours"].to_pylist()[1] == ["RED", "5"]
    assert table["colour"].chunk(0).dictionary.to_pylist() == ["NONE", "RED", "BLUE", "-3", "5", "2147483647"]


def test_batches(recs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = recs.to_arrow()
    monkeypatch.setattr(convert, "BATCH_ROWS", 64)
    for threads in (1, 3):
        made = recs.to_arrow(threads=threads)
        assert [chunk.num_rows for chunk in made.to_batches()] == [64, 64, 64, 64, 44]
        assert made == whole
    assert recs.to_arrow(["id", "price"]).to_batches()[0].num_rows == ROWS  # without offsets there's no need
    # Dictionaries are the same in all batches.
    made = [row_type().message_class(colour=200 - row) for row in range(200)]
    many = yj.records(row_type(), [one.SerializeToString() for one in made], representation="protobuf")
    table = many.to_arrow()
    assert {tuple(chunk.dictionary.to_pylist()) for chunk in table["colour"].chunks} == {
        ("NONE", "RED", "BLUE", *(str(n) for n in range(2, 201) if n != 7))
    }
    assert table["colour"].to_pylist()[-2:] == ["2", "RED"]


def test_what_32_bits_do_not_count_is_split(recs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = recs.to_arrow()
    monkeypatch.setattr(assemble, "MOST", 600)
    made = recs.to_arrow()
    assert len(made.to_batches()) > 4
    assert made == whole
    with pytest.raises(
        ValueError, match=r"^300 rows have more than 2\*\*31 - 1 bytes or elements in a column"
    ):
        pa.record_batch(recs)
    monkeypatch.setattr(assemble, "MOST", 3)
    with pytest.raises(
        ValueError, match=r"^arrow\.Row: row 0 has more than \d+ bytes or elements in a column"
    ):
        recs.to_arrow()


def test_many_rows(recs: Any) -> None:
    rows = np.arange(70_000) % ROWS
    made = recs.take(rows).to_arrow()
    assert [batch.num_rows for batch in made.to_batches()] == [65_536, 4_464]
    assert made.combine_chunks() == recs.to_arrow().take(pa.array(rows)).combine_chunks()


# ---- bad input ----


def test_broken_protobuf_bytes_name_row_and_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert, "BATCH_ROWS", 2)
    payloads = [message.SerializeToString() for message in held()[:4]] + [b"\x82\x01\x03\x1a\x05\x08"]
    recs = yj.records(row_type(), payloads, representation="protobuf")
    with pytest.raises(yj.DecodeError) as caught:
        recs.to_arrow()
    assert str(caught.value).startswith("row 4: arrow.Row, field branch.colour: ")
    with pytest.raises(yj.DecodeError, match=r"^row 4: arrow\.Row, field branch"):
        list(recs.arrow_reader())


def test_times_that_do_not_fit(recs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert, "BATCH_ROWS", 2)
    late = row_type().message_class()
    late.branch.times.add(seconds=253402300799)
    encode = (
        row_type().encode if recs.representation == "yaff" else row_type().message_class.SerializeToString
    )
    payloads = [encode(message) for message in [*held()[:3], late]]
    mine = yj.records(row_type(), payloads, representation=recs.representation)
    with pytest.raises(OverflowError) as caught:
        mine.to_arrow()
    assert str(caught.value).startswith(
        "path 'branch.times' of arrow.Row, row 3: 253402300799 seconds and 0 nanoseconds don't fit "
        "datetime64[ns], which holds 9223372036 seconds: ask for a coarser unit, as "
    )
    made = mine.to_arrow(unit="s")
    assert made.schema == row_type().arrow_schema(unit="s")
    assert str(made["branch"][3]["times"].values[0]) == "9999-12-31 23:59:59"


def test_text_that_is_not_utf8() -> None:
    recs = yj.records(row_type(), [b"", b"\x22\x04caf\xc3"], representation="protobuf")
    with pytest.raises(UnicodeDecodeError) as caught:
        recs.to_arrow()
    assert str(caught.value) == (
        "'utf-8' codec can't decode byte 0xc3 in position 3: unexpected end of data "
        "(path 'name' of arrow.Row, row 1)"
    )
    branch = (
        row_type().message_class(branches=[{"leaves": [{"word": "a"}, {"word": "bcd"}]}]).SerializeToString()
    )
    recs = yj.records(
        row_type(), [branch, branch.replace(b"bcd", b"\xff\xfe\xfd")], representation="protobuf"
    )
    with pytest.raises(UnicodeDecodeError, match=r"\(path 'branches\.leaves\.word' of arrow\.Row, row 1\)$"):
        recs.to_arrow()
