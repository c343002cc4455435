"""The language of paths: what each means, and the sentence for what isn't one."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import yaffjit
from yaffjit.errors import SchemaError
from yaffjit.plan.columns import column_path
from yaffjit.plan.model import MessagePlan
from yaffjit.plan.paths import parse_path


@pytest.fixture(scope="module")
def mp() -> MessagePlan:
    return yaffjit.load_schema(Path(__file__).parent / "schemas" / "paths.proto")["paths.All"].plan


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("id", [("id", None)]),
        ("one.part.part.name", [("one", None), ("part", None), ("part", None), ("name", None)]),
        ("tags", [("tags", None)]),
        ("items[0].price", [("items", 0), ("price", None)]),
        ("items[-12].tags[ 3 ]", [("items", -12), ("tags", 3)]),
        ('weights["size"]', [("weights", "size")]),
        ("""weights['a "b" \\'c\\' ä \\u00e4\\n]["\\'].x']""", [("weights", "a \"b\" 'c' ä ä\n][\"'].x")]),
        ('weights[""]', [("weights", "")]),
        ("names[-5]", [("names", -5)]),
        ("names[2147483647]", [("names", 2**31 - 1)]),
        (
            "by_id[18446744073709551615].parts['x'].price",
            [("by_id", 2**64 - 1), ("parts", "x"), ("price", None)],
        ),
        ("flags[true]", [("flags", True)]),
        ("flags[False]", [("flags", False)]),
    ],
)
def test_steps(mp: MessagePlan, path: str, steps: Any) -> None:
    made = parse_path(mp, path)
    assert [(step.f.name, step.index) for step in made] == steps
    assert [type(step.index) for step in made] == [type(index) for _, index in steps]
    for before, step in pairwise(made):
        owner, target = before.target
        assert owner.child(target) == step.mp


def test_what_a_step_leads_to(mp: MessagePlan) -> None:
    for path, full_name, name, kind in [
        ("id", "paths.All", "id", "int64"),
        ("ints[0]", "paths.All", "ints", "int32"),
        ("pairs[1]", "paths.All", "pairs", "message"),
        ('weights["k"]', "paths.All.WeightsEntry", "value", "double"),
        ("by_id[5]", "paths.All.ByIdEntry", "value", "message"),
    ]:
        owner, target = parse_path(mp, path)[-1].target
        assert (owner.full_name, target.name, target.kind, target.repeated) == (full_name, name, kind, False)
    assert parse_path(mp, "pairs[1]")[-1].target[1].width == 8
    assert parse_path(mp, "tags")[-1].target[1].repeated


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("", "expected a field's name at position 0, but the path ends"),
        (".id", "expected a field's name at position 0, not '.'"),
        ("one.", "expected a field's name at position 4, but the path ends"),
        ("one..name", "expected a field's name at position 4, not '.'"),
        ("one.*", "expected a field's name at position 4, not '*'"),
        ("one name", "expected '.', '[' or the end at position 3, not ' '"),
        ("items[0]]", "expected '.' or the end at position 8, not ']'"),
        ("items[0][1]", "expected '.' or the end at position 8, not '[1]'"),
        ("items[0", "expected an index in brackets at position 5, not '[0'"),
        ("items[]", "expected an index in brackets at position 5, not '[]'"),
        ("items[1:2]", "expected an index in brackets at position 5, not '[1:2]'"),
        ("items[0x1]", "expected an index in brackets at position 5, not '[0x1]'"),
        ("weights[size]", "expected a key in brackets at position 7, not '[size]'"),
        ('weights["a]', "expected a key in brackets at position 7, not '[\"a]'"),
        ("weights['it''s']", "expected a key in brackets at position 7, not \"['it''s']\""),
        (
            'weights["\\xz"]',
            "the text at position 8 has an escape or character that a string of Python can't have",
        ),
        (
            'weights["\\ud800"]',
            "the text at position 8 has half of a surrogate pair, which UTF-8 can't hold",
        ),
        ("one.nam", "paths.Item has no field 'nam' (did you mean 'name'?)"),
        ("pick", "paths.All has no field 'pick': it's a oneof, of number, word"),
        ("gone", "paths.All has no field 'gone' under YaFF: deprecated"),
        ("id.x", "field id is of kind int64, and has no field 'x'"),
        ("title[0]", "field title is of kind string, and has no elements"),
        ("one[0]", "field one is of kind message, and has no elements"),
        ("items.name", "field items is repeated, and has no field 'name': name an element, as items[0]"),
        ("weights.x", "field weights is a map, and has no field 'x': name a key, as weights[\"key\"]"),
        ("by_id.name", "field by_id is a map, and has no field 'name': name a key, as by_id[5]"),
        ("flags.x", "field flags is a map, and has no field 'x': name a key, as flags[true]"),
        ("ints[0].x", "field ints has elements of kind int32, without a field 'x'"),
        ('weights["k"].x', "field weights has values of kind double, without a field 'x'"),
        ('items["0"]', "field items is repeated: an element is named by its index, as items[0]"),
        ("items[true]", "field items is repeated: an element is named by its index, as items[0]"),
        ("items[2147483648]", "index 2147483648 of field items is beyond all that a message holds"),
        ("weights[5]", 'field weights is a map with keys of kind string, as in weights["key"]'),
        ('names["5"]', "field names is a map with keys of kind int32, as in names[5]"),
        ("names[true]", "field names is a map with keys of kind int32, as in names[5]"),
        ("flags[1]", "field flags is a map with keys of kind bool, as in flags[true]"),
        ("names[2147483648]", "key 2147483648 of field names is out of range for int32"),
        ("by_id[-1]", "key -1 of field by_id is out of range for uint64"),
    ],
)
def test_what_is_no_path(mp: MessagePlan, path: str, sentence: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_path(mp, path)
    assert str(caught.value) == f"path {path!r} of paths.All: {sentence}"


@pytest.mark.parametrize("path", [5, None, b"id", ("id",)])
def test_what_is_no_text(mp: MessagePlan, path: Any) -> None:
    with pytest.raises(TypeError) as caught:
        parse_path(mp, path)
    assert str(caught.value) == f'a path is text, as "stats.ctr", not {type(path).__name__}'


def test_paths_end_where_messages_do(mp: MessagePlan) -> None:
    """Nothing is compiled for what no message holds."""
    for way, deep in ((".part", 1), ('.parts["x"]', 2)):
        most = (100 - 1) // deep
        assert len(parse_path(mp, "one" + way * most + ".name")) == most + 2
        path = "one" + way * (most + 1) + ".name"
        at = len(path) - len("name")
        sentence = f"position {at} is {1 + deep * (most + 1)} messages deep, and 100 is the most"
        for parse in (parse_path, column_path):
            with pytest.raises(SchemaError) as caught:
                parse(mp, path)
            assert str(caught.value) == f"path {path!r} of paths.All: {sentence}"
