"""Views and messages as dicts and as JSON, and protobuf's helpers of well-known types."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from test_view import BANNER, message_of
from vectors import TESTS

import yaffjit as yj
from yaffjit.errors import JsonError


@cache
def message_type(name: str) -> yj.MessageType:
    return yj.load_schema(TESTS / "schemas" / "views.proto")[f"views.{name}"]


@pytest.fixture(params=["flat", "sparse"])
def banner(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    banner_type = message_type("Banner")
    message = message_of(banner_type, BANNER)
    return banner_type.view(banner_type.encode(message, layout=request.param)), message


def test_to_dict(banner: tuple[Any, Any]) -> None:
    expected = {
        "id": 2**64 - 1,
        "price": 0.25,
        "limit": 0,
        "color": -3,
        "title": "tea é",
        "raw": b"\0\xff",
        "leaf": {"n": -1, "text": "leaf"},
        "tags": ["a", ""],
        "weights": [1.5, -0.0],
        "leaves": [{}, {"n": 7}],
        "attrs": {"": 0.0, "x": 1.5},
        "by_id": {-1: {"n": 3}},
        "account": 5,
        "parent": {"id": 2, "parent": {"title": "far"}},
        "active": True,
    }
    view, message = banner
    assert yj.to_dict(view) == yj.to_dict(message) == expected
    assert list(yj.to_dict(view)) == list(expected)
    made = message_type("Banner").encode(yj.to_dict(view))
    assert made == message_type("Banner").encode(message)
    plain = yj.to_dict(view)
    assert {type(plain[name]) for name in ("leaf", "attrs", "by_id")} == {dict}
    assert type(plain["tags"]) is type(plain["leaves"]) is list


def test_to_dict_of_nothing() -> None:
    empty = message_type("Banner")
    assert yj.to_dict(empty.view(empty.encode({}))) == yj.to_dict(empty.message_class()) == {}


def test_to_json(banner: tuple[Any, Any]) -> None:
    view, message = banner
    assert json.loads(yj.to_json(view)) == json.loads(json_format.MessageToJson(message))
    assert yj.to_json(message) == json_format.MessageToJson(message)
    assert json.loads(yj.to_json(view))["byId"] == {"-1": {"n": 3}}
    options = {"preserving_proto_field_name": True, "indent": None, "use_integers_for_enums": True}
    flat = yj.to_json(view, **options)
    assert json.loads(flat)["by_id"] == {"-1": {"n": 3}}
    assert json.loads(flat)["color"] == -3
    assert "\n" not in flat


def test_to_json_finds_types_of_the_same_schema() -> None:
    times = message_type("Times")
    message = times.message_class()
    message.any.Pack(message_type("Leaf").message_class(n=5))
    view = times.view(times.encode(message))
    assert json.loads(yj.to_json(view)) == {"any": {"@type": "type.googleapis.com/views.Leaf", "n": 5}}


def test_well_known_types() -> None:
    times = message_type("Times")
    message = times.message_class()
    message.at.FromJsonString("2024-02-29T12:00:00.25Z")
    message.took.FromMilliseconds(1500)
    message.free.update({"a": 1, "b": ["x", None]})
    message.mask.FromJsonString("id,leafName")
    message.any.Pack(message_type("Leaf").message_class(n=5))
    view = times.view(times.encode(message))
    at = datetime.datetime(2024, 2, 29, 12, 0, 0, 250000)
    assert view.at.ToDatetime() == at
    assert view.at.ToDatetime(tzinfo=datetime.timezone.utc).tzinfo is datetime.timezone.utc
    assert view.at.ToJsonString() == "2024-02-29T12:00:00.250Z"
    assert view.at + datetime.timedelta(seconds=1) == message.at + datetime.timedelta(seconds=1)
    assert view.took.ToTimedelta() == datetime.timedelta(milliseconds=1500)
    assert view.took.ToJsonString() == "1.500s"
    assert view.free["a"] == 1.0
    assert sorted(view.free) == ["a", "b"]
    assert len(view.free) == 2
    assert list(view.free["b"].items()) == ["x", None]
    assert view.mask.ToJsonString() == "id,leafName"
    assert view.any.Is(message_type("Leaf").message_class.DESCRIPTOR)
    leaf = message_type("Leaf").message_class()
    assert view.any.Unpack(leaf)
    assert leaf.n == 5


def test_helpers_that_change_are_missing() -> None:
    times = message_type("Times")
    view = times.view(times.encode({}))
    for name in ("FromDatetime", "GetCurrentTime", "FromJsonString"):
        assert not hasattr(view.at, name)
    assert not hasattr(view.free, "update")
    assert not hasattr(view.any, "Pack")
    with pytest.raises(TypeError):
        view.free["a"] = 1


NO_JSON = [
    ({"any": {"type_url": "x/no.Type"}}, "Can not find message descriptor by type_url: x/no.Type"),
    ({"any": {"type_url": "x/views.Leaf", "value": b"\xff"}}, "Error parsing message"),
    ({"at": {"seconds": 10**15}}, "Timestamp is not valid"),
    ({"took": {"seconds": 10**15}}, "Duration is not valid"),
    ({"mask": {"paths": ["A b"]}}, "Fail to print FieldMask"),
    ({"free": {"fields": {"a": {"number_value": math.nan}}}}, "NaN"),
]


@pytest.mark.parametrize("given, reason", NO_JSON, ids=[reason for _, reason in NO_JSON])
def test_what_has_no_json_form(given: dict[str, Any], reason: str) -> None:
    times = message_type("Times")
    view = times.view(times.encode(given))
    with pytest.raises(JsonError) as caught:
        yj.to_json(view)
    assert isinstance(caught.value, (yj.YaffjitError, ValueError))
    assert str(caught.value).startswith("views.Times has no JSON form: ")
    assert reason in str(caught.value)


def test_wrong_options_of_to_json_are_type_errors(banner: tuple[Any, Any]) -> None:
    for value in banner:
        with pytest.raises(TypeError, match="unexpected keyword argument 'color'"):
            yj.to_json(value, color=True)


def test_json_of_fields_named_like_what_the_printer_calls(tmp_path: Path) -> None:
    path = tmp_path / "printer.proto"
    path.write_text(
        'syntax = "proto3"; package printer; import "google/protobuf/duration.proto";'
        "message M { int32 ListFields = 1; M DESCRIPTOR = 2; repeated M many = 3; map<string, M> by_name = 4;"
        "repeated int32 HasField = 5; google.protobuf.Duration took = 6; map<int32, string> names = 7; }"
    )
    held = yj.load_schema(path)["printer.M"]
    given = {
        "ListFields": 1,
        "DESCRIPTOR": {"ListFields": 2},
        "many": [{}, {"ListFields": 3}],
        "by_name": {"a": {"HasField": [4]}},
        "HasField": [5, 6],
        "took": {"seconds": 7},
        "names": {8: "b'"},
    }
    view = held.view(held.encode(given))
    wanted = given | {"took": "7s", "byName": given["by_name"], "names": {"8": "b'"}}
    del wanted["by_name"]
    assert json.loads(yj.to_json(view)) == json.loads(yj.to_json(held.decode(held.encode(given)))) == wanted


@pytest.mark.parametrize(
    "syntax", ['edition = "2023"; option features.utf8_validation = NONE;', 'syntax = "proto2";']
)
def test_text_that_is_not_utf8_where_nobody_asks_for_it(tmp_path: Path, syntax: str) -> None:
    path = tmp_path / "bad.proto"
    label = "" if "edition" in syntax else "optional"
    path.write_text(f"{syntax} package bad; message M {{ {label} string s = 1; repeated string r = 2; }}")
    held = yj.load_schema(path)["bad.M"]
    for wire, field in ((b"\x0a\x01\xff", "s"), (b"\x12\x01\xff", "r")):
        message = held.message_class.FromString(wire)
        view = held.view(held.encode(message))
        reads: list[Callable[[], Any]] = [
            lambda view=view, field=field: list(getattr(view, field)),
            lambda view=view: [list(value) for _, value in view.ListFields()],
            lambda view=view: yj.to_dict(view),
        ]
        for read in reads:
            with pytest.raises(UnicodeDecodeError):
                read()
        with pytest.raises(JsonError) as caught:
            yj.to_json(view)
        assert str(caught.value) == (
            "bad.M has no JSON form: its text isn't UTF-8 "
            "('utf-8' codec can't decode byte 0xff in position 0: invalid start byte)"
        )
        # Whatever doesn't need text keeps the bytes, as protobuf does.
        assert view == message
        assert view.SerializeToString() == wire
        assert repr(view) == f'# bad.M, view\n{field}: "\\377"'
        assert held.encode(view) == held.encode(message)
