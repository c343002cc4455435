"""What columns hold apart from plain numbers: the classes, what was asked for after a colon, and refusals."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import yaffjit as yj
from yaffjit.columns import Columns, DictionaryColumn, ListColumn, MapColumn, TextColumn
from yaffjit.errors import NumberError, NumberOverflowError, RowError, SchemaError
from yaffjit.plan.columns import column_path, expand, presence_path
from yaffjit.plan.model import MessagePlan
from yaffjit.rows import Records

pytestmark = pytest.mark.slow

SCHEMAS = Path(__file__).parent / "schemas"


@pytest.fixture(scope="module")
def numbers_type() -> yj.MessageType:
    return yj.load_schema(SCHEMAS / "column_forms.proto")["forms.Numbers"]


@pytest.fixture(scope="module")
def all_type() -> yj.MessageType:
    return yj.load_schema(SCHEMAS / "paths.proto")["paths.All"]


@pytest.fixture(scope="module")
def plan(all_type: yj.MessageType) -> MessagePlan:
    return all_type.plan


ROWS: list[dict[str, Any]] = [
    {
        "id": 1,
        "title": "été",
        "tags": ["a", "", "bc"],
        "ints": [1, -2],
        "weights": {"b": 0.5, "a": 2.0},
        "raw": b"\xff",
    },
    {
        "id": 2,
        "items": [{"name": "x", "tags": ["p", "q"]}, {"name": "", "price": 0.25}],
        "word": "w",
        "grades": [3, 9],
    },
    {"id": 3, "title": "été", "number": 7, "by_id": {5: {"name": "five"}}, "flags": {True: b"t"}},
    {},
]
PATHS = (
    "id",
    "title",
    "raw",
    "tags",
    "ints",
    "items.name",
    "items.tags",
    "weights",
    "by_id.name",
    "flags",
    "title:dictionary",
    "tags:dictionary",
    "grades:category",
    "pick:category",
    "len(tags)",
)


@pytest.fixture(scope="module")
def recs(all_type: yj.MessageType) -> Records:
    return yj.records(all_type, [all_type.encode(row) for row in ROWS])


@pytest.fixture(scope="module")
def cols(recs: Records) -> Columns:
    return recs.columns(*PATHS)


# ---- the classes ----


def test_text(cols: Columns) -> None:
    title = cols["title"]
    assert isinstance(title, TextColumn)
    assert (title.offsets.dtype, title.data.dtype) == (np.int64, np.uint8)
    assert title.offsets.tolist() == [0, 5, 5, 10, 10]
    assert title.data.tobytes() == "étéété".encode()
    assert (len(title), title[0], title[-1], list(title[1:3])) == (4, "été", "", ["", "été"])
    assert list(cols["raw"]) == [b"\xff", b"", b"", b""]
    assert title.to_numpy().tolist() == ["été", "", "été", ""]
    assert not title.offsets.flags.writeable  # columns of one list share them
    assert repr(title) == "<TextColumn of 4 rows, text: ['été', '', 'été', '']>"
    assert repr(cols["raw"][:1]) == "<TextColumn of 1 rows, bytes: [b'\\xff']>"
    for row in (4, -5, 2**70):
        with pytest.raises(RowError) as caught:
            title[row]
        assert str(caught.value) == f"row {row} is out of range: there are 4 rows"
    for key, name in (("a", "str"), (1.5, "float"), ([0], "list")):
        with pytest.raises(TypeError) as unfit:
            title[key]  # type: ignore[call-overload]
        sentence = "columns of text, lists and maps are indexed by row numbers and slices, not by"
        assert str(unfit.value) == f"{sentence} {name}"


def test_lists(cols: Columns) -> None:
    tags, ints, nested = cols["tags"], cols["ints"], cols["items.tags"]
    assert isinstance(tags, ListColumn)
    assert isinstance(tags.values, TextColumn)
    assert [list(row) for row in tags] == [["a", "", "bc"], [], [], []]
    assert tags.lengths.tolist() == [3, 0, 0, 0]
    assert isinstance(ints[0], np.ndarray)
    assert ints[0].tolist() == [1, -2]
    assert ints.values.dtype == np.int32
    assert [[list(inner) for inner in row] for row in nested] == [[], [["p", "q"], []], [], []]
    assert isinstance(nested.values, ListColumn)
    assert nested.offsets is cols["items.name"].offsets
    assert [row.tolist() for row in ints.to_numpy()] == [[1, -2], [], [], []]
    assert repr(tags) == "<ListColumn of 4 rows, list of text: [['a', '', 'bc'], [], [], []]>"
    assert repr(nested) == "<ListColumn of 4 rows, list of list of text: [[], [['p', 'q'], []], [], []]>"
    assert [list(row) for row in tags[1:]] == [[], [], []]


def test_maps(cols: Columns) -> None:
    weights = cols["weights"]
    assert isinstance(weights, MapColumn)
    assert list(weights.keys) == ["a", "b"]
    assert weights.values.tolist() == [2.0, 0.5]
    assert weights[0] == {"a": 2.0, "b": 0.5}
    assert list(cols["by_id.name"]) == [{}, {}, {5: "five"}, {}]
    assert list(cols["flags"]) == [{}, {}, {True: b"t"}, {}]
    assert weights.lengths.tolist() == [2, 0, 0, 0]
    assert weights.to_numpy().tolist() == list(weights)
    assert repr(weights) == "<MapColumn of 4 rows, map of text to float64: [{'a': 2, 'b': 0.5}, {}, {}, {}]>"


def test_codes(cols: Columns) -> None:
    title, grades, pick = cols["title:dictionary"], cols["grades:category"], cols["pick:category"]
    assert isinstance(title, DictionaryColumn)
    assert (title.codes.tolist(), title.codes.dtype) == ([0, 1, 0, 1], np.int32)
    assert list(title.values) == ["été", ""]
    assert list(title) == list(cols["title"])
    assert list(grades.values.values) == ["NONE", "HIGH", "9"]
    assert [list(row) for row in grades] == [[], ["HIGH", "9"], [], []]
    assert (pick.codes.tolist(), list(pick.values)) == ([-1, 1, 0, -1], ["number", "word"])
    assert pick.to_numpy().tolist() == list(pick) == [None, "word", "number", None]
    assert [list(row) for row in cols["tags:dictionary"]] == [["a", "", "bc"], [], [], []]
    assert (
        repr(pick) == "<DictionaryColumn of 4 rows, dictionary of 2 values: [None, 'word', 'number', None]>"
    )


def test_aliases_and_negative_numbers_have_names(numbers_type: yj.MessageType) -> None:
    rows = [{"size": 5}, {"size": 3}, {}]
    recs = yj.records(numbers_type, [numbers_type.encode(row) for row in rows])
    size = recs.columns("size:category")["size:category"]
    assert list(size.values) == ["SMALL", "LARGE"]
    assert list(size) == ["LARGE", "SMALL", "SMALL"]


@pytest.mark.parametrize("path", PATHS[1:-1])
def test_columns_do_not_compare(cols: Columns, path: str) -> None:
    name = type(cols[path]).__name__
    with pytest.raises(TypeError) as caught:
        cols[path] == 5  # noqa: B015
    assert str(caught.value) == f"a {name} doesn't compare: compare its arrays, or to_numpy()"
    with pytest.raises(TypeError):
        hash(cols[path])
    with pytest.raises(ValueError) as refused:
        cols[path][::2]
    assert str(refused.value) == "columns of text, lists and maps are sliced with step 1 only"


def test_columns_print_as_a_table(cols: Columns) -> None:
    part = Columns({path: cols[path] for path in ("id", "title", "weights")}, 4, cols.present)
    assert repr(part).split("\n") == [
        "<Columns: 4 rows>",
        "id (int64)  title (text)  weights (map of text to float64)",
        "----------  ------------  --------------------------------",
        "         1  'été'         {'a': 2, 'b': 0.5}",
        "         2  ''            {}",
        "         3  'été'         {}",
        "         0  ''            {}",
    ]


# ---- other libraries ----


def test_arrow(cols: Columns) -> None:
    table = cols.to_arrow()
    text, binary = pa.large_string(), pa.large_binary()
    expected = {
        "id": pa.int64(),
        "title": text,
        "raw": binary,
        "tags": pa.large_list(text),
        "ints": pa.large_list(pa.int32()),
        "items.name": pa.large_list(text),
        "items.tags": pa.large_list(pa.large_list(text)),
        "weights": pa.map_(text, pa.float64()),
        "by_id.name": pa.map_(pa.uint64(), text),
        "flags": pa.map_(pa.bool_(), binary),
        "title:dictionary": pa.dictionary(pa.int32(), text),
        "tags:dictionary": pa.large_list(pa.dictionary(pa.int32(), text)),
        "grades:category": pa.large_list(pa.dictionary(pa.int32(), text)),
        "pick:category": pa.dictionary(pa.int32(), text),
        "len(tags)": pa.int64(),
    }
    assert {name: table.schema.field(name).type for name in table.column_names} == expected
    table.validate(full=True)
    assert table["items.tags"].to_pylist() == [[], [["p", "q"], []], [], []]
    assert table["weights"].to_pylist() == [[("a", 2.0), ("b", 0.5)], [], [], []]
    assert table["pick:category"].to_pylist() == [None, "word", "number", None]
    assert pa.table(cols).equals(table)


def test_arrow_shares_memory(cols: Columns) -> None:
    table = cols.to_arrow()
    for array, chunk, number in (
        (cols["title"].data, table["title"].chunk(0), 2),
        (cols["title"].offsets, table["title"].chunk(0), 1),
        (cols["ints"].values, table["ints"].chunk(0).values, 1),
        (cols["ints"].offsets, table["ints"].chunk(0), 1),
        (cols["id"], table["id"].chunk(0), 1),
    ):
        assert chunk.buffers()[number].address == array.__array_interface__["data"][0]


def test_slices_go_to_arrow(cols: Columns) -> None:
    for path in PATHS[1:-1]:
        whole = cols[path].to_arrow().to_pylist()
        part = cols[path][1:3].to_arrow()
        part.validate(full=True)
        assert part.to_pylist() == whole[1:3]


def test_pandas(cols: Columns) -> None:
    frame = cols.to_pandas()
    assert list(frame.columns) == list(cols)
    assert frame["title"].tolist() == ["été", "", "été", ""]
    assert frame["weights"].tolist() == list(cols["weights"])
    assert isinstance(frame["pick:category"].dtype, pd.CategoricalDtype)
    assert frame["pick:category"].tolist()[1:3] == ["word", "number"]
    assert frame["pick:category"].isna().tolist() == [True, False, False, True]
    assert frame["ints"][0].tolist() == [1, -2]


def test_structured_arrays(cols: Columns) -> None:
    part = Columns({path: cols[path] for path in ("id", "title", "pick:category")}, 4, cols.present)
    structured = part.to_numpy()
    assert structured["title"].tolist() == ["été", "", "été", ""]
    assert structured["pick:category"].tolist() == [None, "word", "number", None]
    for path, kind in (("tags", "list of text"), ("weights", "map of text to float64")):
        with pytest.raises(TypeError) as caught:
            Columns({path: cols[path]}, 4, cols.present).to_numpy()
        assert str(caught.value) == (
            f"column {path!r} is a {kind}, for which a structured array has no room: "
            f"leave it out, and take cols[{path!r}].offsets and .values"
        )


# ---- text that isn't UTF-8 ----


def test_text_is_decoded_where_it_is_read(numbers_type: yj.MessageType) -> None:
    payloads = [numbers_type.encode({"text": text}) for text in ("ab", "xyz", "é")]
    payloads[1] = payloads[1].replace(b"xyz", b"x\xc3z")
    recs = yj.records(numbers_type, payloads)  # proto2: no UTF-8 is checked
    text = recs.columns("text")["text"]
    assert (text[0], text[2]) == ("ab", "é")
    assert text.data.tobytes() == b"abx\xc3z\xc3\xa9"
    for read in (lambda: text[1], lambda: list(text), text.to_numpy, text.to_arrow):
        with pytest.raises(UnicodeDecodeError):
            read()
    assert text[2:].to_arrow().to_pylist() == ["é"]
    with pytest.raises(UnicodeDecodeError) as caught:
        recs.columns("len(text)")
    assert str(caught.value).endswith("invalid continuation byte (path 'len(text)' of forms.Numbers, row 1)")


def test_characters_that_reach_over_rows_are_not_utf8_for_arrow() -> None:
    data = np.frombuffer("aé".encode(), np.uint8)
    column = TextColumn(np.array([0, 2, 3]), data, True)
    with pytest.raises(UnicodeDecodeError):
        column.to_arrow()


# ---- dtypes that are asked for ----


def test_requests_that_fit(numbers_type: yj.MessageType) -> None:
    row = {
        "signed": -5,
        "unsigned": 2**53,
        "real": 0.1,
        "flag": True,
        "list": [1, -1],
        "size": 5,
        "single": 0.5,
    }
    recs = yj.records(numbers_type, [numbers_type.encode(row), numbers_type.encode({})])
    wanted = {
        "signed:int8": [-5, 0],
        "unsigned:float64": [2.0**53, 0],
        "unsigned:float32": [2.0**53, 0],
        "real:float32": [float(np.float32(0.1)), 0],
        "single:float64": [0.5, 0],
        "flag:int8": [1, 0],
        "flag:bool": [True, False],
        "size:uint8": [5, 3],
        "seven:uint16": [7, 7],
        "len(list):int32": [2, 0],
        "choice:int16": [0, 0],
    }
    cols = recs.columns(*wanted, "list:int16")
    for path, values in wanted.items():
        assert cols[path].dtype == np.dtype(path.split(":")[1])
        assert cols[path].tolist() == values, path
    assert cols["list:int16"].values.dtype == np.int16
    assert cols["list:int16"].values.tolist() == [1, -1]
    out = np.zeros(2, np.int8)
    assert recs.columns("signed:int8", out={"signed:int8": out})["signed:int8"] is out
    assert out.tolist() == [-5, 0]


FLOAT_LIMIT = "3.4028234663852886e+38"
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("signed:int8", {"signed": 128}, "128 doesn't fit: int8 holds -128 to 127"),
    ("signed:int8", {"signed": -129}, "-129 doesn't fit: int8 holds -128 to 127"),
    ("signed:uint8", {"signed": -1}, "-1 doesn't fit: uint8 holds 0 to 255"),
    ("signed:uint64", {"signed": -1}, "-1 doesn't fit: uint64 holds 0 to 18446744073709551615"),
    ("signed:int32", {"signed": 2**31}, "2147483648 doesn't fit: int32 holds -2147483648 to 2147483647"),
    (
        "unsigned:int64",
        {"unsigned": 2**63},
        "9223372036854775808 doesn't fit: int64 holds -9223372036854775808 to 9223372036854775807",
    ),
    ("unsigned:uint32", {"unsigned": 2**32}, "4294967296 doesn't fit: uint32 holds 0 to 4294967295"),
    (
        "signed:float64",
        {"signed": 2**53 + 1},
        "9007199254740993 doesn't fit: float64 holds all integers only up to 9007199254740992",
    ),
    (
        "signed:float64",
        {"signed": -(2**63) + 1},
        "-9223372036854775807 doesn't fit: float64 holds all integers only up to 9007199254740992",
    ),
    (
        "unsigned:float64",
        {"unsigned": 2**64 - 1},
        "18446744073709551615 doesn't fit: float64 holds all integers only up to 9007199254740992",
    ),
    (
        "seven:float32",
        {"seven": 2**24 + 1},
        "16777217 doesn't fit: float32 holds all integers only up to 16777216",
    ),
    ("real:float32", {"real": 1e300}, f"1e+300 doesn't fit: float32 holds -{FLOAT_LIMIT} to {FLOAT_LIMIT}"),
    ("size:int8", {"size": 5, "list": [1]}, ""),
    ("list:int8", {"list": [1, 2, 300, 400]}, "300 doesn't fit: int8 holds -128 to 127"),
    ("many.signed:int8", {"many": [{}, {"signed": 200}]}, "200 doesn't fit: int8 holds -128 to 127"),
    ("map:int8", {"map": {"k": -200}}, "-200 doesn't fit: int8 holds -128 to 127"),
    ('map["k"]:int8', {"map": {"k": -200}}, "-200 doesn't fit: int8 holds -128 to 127"),
    ("many[-1].signed:int8", {"many": [{}, {"signed": 200}]}, "200 doesn't fit: int8 holds -128 to 127"),
    ("len(list):int8", {"list": [0] * 128}, "128 doesn't fit: int8 holds -128 to 127"),
]


@pytest.mark.parametrize(("path", "row", "sentence"), REFUSED)
def test_requests_that_do_not_fit(
    numbers_type: yj.MessageType, path: str, row: dict[str, Any], sentence: str
) -> None:
    recs = yj.records(numbers_type, [numbers_type.encode({}), numbers_type.encode(row)])
    if not sentence:
        assert recs.columns(path)[path].tolist() == [3, 5]
        return
    with pytest.raises(NumberOverflowError) as caught:
        recs.columns(path)
    assert str(caught.value) == f"path {path!r} of forms.Numbers, row 1: {sentence}"
    assert isinstance(caught.value, OverflowError)


def test_edges_that_fit(numbers_type: yj.MessageType) -> None:
    rows = [
        {"signed": 127, "unsigned": 2**63 - 1, "real": float("inf")},
        {"signed": -128, "unsigned": 0, "real": float("nan")},
        {"signed": 0, "unsigned": 5, "real": -3.4028234663852886e38},
    ]
    recs = yj.records(numbers_type, [numbers_type.encode(row) for row in rows])
    cols = recs.columns("signed:int8", "unsigned:int64", "real:float32")
    assert cols["signed:int8"].tolist() == [127, -128, 0]
    assert cols["unsigned:int64"].tolist() == [2**63 - 1, 0, 5]
    assert [str(value) for value in cols["real:float32"]] == ["inf", "nan", "-3.4028235e+38"]
    exact = [2**53, -(2**53), 2**62, -(2**63)]
    recs = yj.records(numbers_type, [numbers_type.encode({"signed": value}) for value in exact])
    assert recs.columns("signed:float64")["signed:float64"].tolist() == [float(value) for value in exact]


# ---- times ----


@pytest.fixture(scope="module")
def times_type() -> yj.MessageType:
    return yj.load_schema(SCHEMAS / "column_forms.proto")["forms.Times"]


def times_of(times_type: yj.MessageType, field: str, seconds: int, nanos: int = 0) -> Records:
    time = {"seconds": seconds, "nanos": nanos}
    return yj.records(times_type, [times_type.encode({}), times_type.encode({field: time})])


def test_times(times_type: yj.MessageType) -> None:
    cols = times_of(times_type, "at", 1_700_000_000, 123_456_789).columns("at", "took", "at:datetime64[ms]")
    assert str(cols["at"][1]) == "2023-11-14T22:13:20.123456789"
    assert np.isnat(cols["at"]).tolist() == [True, False]
    assert cols["took"].dtype == np.dtype("timedelta64[ns]")
    assert str(cols["at:datetime64[ms]"][1]) == "2023-11-14T22:13:20.123"
    table = cols.to_arrow()
    assert [str(field.type) for field in table.schema] == ["timestamp[ns]", "duration[ns]", "timestamp[ms]"]
    assert table["at"].null_count == 1
    assert table["at"][1].as_py() == pd.Timestamp("2023-11-14T22:13:20.123456789")
    assert table["took"].to_pylist() == [None, None]
    assert cols.to_pandas()["at"][1] == pd.Timestamp("2023-11-14T22:13:20.123456789")
    assert repr(cols).split("\n")[3].split() == ["NaT", "NaT", "NaT"]


SECOND_LIMIT = 2**63 // 10**9


@pytest.mark.parametrize(
    ("path", "seconds", "nanos", "sentence"),
    [
        (
            "at",
            9_223_372_037,
            1,
            "9223372037 seconds and 1 nanoseconds don't fit datetime64[ns], which holds 9223372036 seconds: "
            "ask for a coarser unit, as at:datetime64[us] or at:datetime64[ms] or at:datetime64[s]",
        ),
        (
            "took:timedelta64[us]",
            9_223_372_036_855,
            0,
            "9223372036855 seconds and 0 nanoseconds don't fit timedelta64[us], which holds 9223372036854 "
            "seconds: ask for a coarser unit, as took:timedelta64[ms] or took:timedelta64[s]",
        ),
        (
            "took",
            -9_223_372_036,
            -854_775_808,  # numpy's own "not a time"
            "-9223372036 seconds and -854775808 nanoseconds don't fit timedelta64[ns], which holds "
            "9223372036 seconds: ask for a coarser unit, as took:timedelta64[us] or took:timedelta64[ms] or "
            "took:timedelta64[s]",
        ),
    ],
)
def test_times_that_do_not_fit(
    times_type: yj.MessageType, path: str, seconds: int, nanos: int, sentence: str
) -> None:
    recs = times_of(times_type, path.split(":")[0], seconds, nanos)
    with pytest.raises(NumberOverflowError) as caught:
        recs.columns(path)
    assert str(caught.value) == f"path {path!r} of forms.Times, row 1: {sentence}"


def test_the_longest_times_that_fit(times_type: yj.MessageType) -> None:
    recs = times_of(times_type, "took", -9_223_372_036, -854_775_807)
    assert recs.columns("took")["took"][1] == np.timedelta64(-(2**63) + 1, "ns")
    recs = times_of(times_type, "at", -62135596800)
    assert str(recs.columns("at:datetime64[s]")["at:datetime64[s]"][1]) == "0001-01-01T00:00:00"


@pytest.mark.parametrize(
    ("seconds", "nanos", "fault"),
    [
        (-62135596801, 0, "seconds -62135596801 must be in -62135596800 to 253402300799"),
        (253402300800, 0, "seconds 253402300800 must be in -62135596800 to 253402300799"),
        (0, -1, "nanos -1 must be in 0 to 999999999"),
        (0, 10**9, "nanos 1000000000 must be in 0 to 999999999"),
    ],
)
def test_timestamps_that_are_not_valid(
    times_type: yj.MessageType, seconds: int, nanos: int, fault: str
) -> None:
    recs = times_of(times_type, "at", seconds, nanos)
    with pytest.raises(NumberError) as caught:
        recs.columns("at:datetime64[s]")
    assert str(caught.value) == (
        f"path 'at:datetime64[s]' of forms.Times, row 1: Timestamp is not valid: {fault}"
    )


def test_times_are_those_of_protobuf(times_type: yj.MessageType) -> None:
    message = times_type.message_class()
    message.at.FromDatetime(datetime(1969, 12, 31, 23, 59, 59, 999_999))
    message.took.FromTimedelta(timedelta(days=-1, microseconds=1))
    cols = yj.records(times_type, [times_type.encode(message)]).columns(
        "at:datetime64[us]", "took:timedelta64[us]"
    )
    at = cols["at:datetime64[us]"][0].item()
    assert at.replace(tzinfo=timezone.utc) == message.at.ToDatetime(timezone.utc)
    assert cols["took:timedelta64[us]"][0].item() == message.took.ToTimedelta()


# ---- paths ----


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("one", "path 'one' of paths.All is a message: name a field of paths.Item"),
        (
            "items",
            "path 'items' of paths.All: field items is repeated paths.Item: name a field of all, as "
            "items.name, or an element, as items[0].name",
        ),
        (
            "by_id",
            "path 'by_id' of paths.All: field by_id is a map of paths.Item: name a field of all, as "
            "by_id.name, or a key, as by_id[5].name",
        ),
        ("items[0]", "path 'items[0]' of paths.All is a message: name a field of paths.Item"),
        (
            "len(id)",
            "path 'len(id)' of paths.All: len() is for repeated fields, maps, text and bytes, but "
            "field id is of kind int64",
        ),
        (
            "len(ints[0])",
            "path 'len(ints[0])' of paths.All: len() is for repeated fields, maps, text and bytes, "
            "but field ints has elements of kind int32",
        ),
        (
            "len(pick)",
            "path 'len(pick)' of paths.All: paths.All has no field 'pick': it's a oneof, of number, word",
        ),
        (
            "len(tags",
            "path 'len(tags' of paths.All: expected '.', '[' or ')' at position 8, but the path ends",
        ),
        (
            "len(tags[0]",
            "path 'len(tags[0]' of paths.All: expected '.' or ')' at position 11, but the path ends",
        ),
        ("len(tags)x", "path 'len(tags)x' of paths.All: expected ':' or the end at position 9, not 'x'"),
        ("len(*)", "path 'len(*)' of paths.All: expected a field's name at position 4, not '*'"),
        ("id x", "path 'id x' of paths.All: expected '.', '[', ':' or the end at position 2, not ' '"),
        (
            "pick.x",
            "path 'pick.x' of paths.All: paths.All has no field 'pick': it's a oneof, of number, word",
        ),
        ("*x", "path '*x' of paths.All: expected ':' or the end at position 1, not 'x'"),
        ("tags.*", "path 'tags.*' of paths.All: expected a field's name at position 5, not '*'"),
        ("items.na", "path 'items.na' of paths.All: paths.Item has no field 'na' (did you mean 'name'?)"),
        (
            "title:int8",
            "path 'title:int8' of paths.All: ':int8' isn't for values of kind string; what fits: dictionary",
        ),
        ("tags:", "path 'tags:' of paths.All: ':' isn't for values of kind string; what fits: dictionary"),
        (
            "items.price:int32",
            "path 'items.price:int32' of paths.All: ':int32' isn't for values of kind double; "
            "what fits: float32, float64",
        ),
        (
            "grades:float16",
            "path 'grades:float16' of paths.All: ':float16' isn't for values of kind enum; what fits: "
            "int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64, category",
        ),
        (
            "pick:float32",
            "path 'pick:float32' of paths.All: ':float32' isn't for values of a oneof; what fits: "
            "int8, int16, int32, int64, uint8, uint16, uint32, uint64, category",
        ),
        (
            "len(ids):category",
            "path 'len(ids):category' of paths.All: ':category' isn't for values of len(); what "
            "fits: int8, int16, int32, int64, uint8, uint16, uint32, uint64",
        ),
    ],
)
def test_what_is_no_column(plan: MessagePlan, path: str, sentence: str) -> None:
    with pytest.raises(SchemaError) as caught:
        for one in expand(plan, path):
            column_path(plan, one)
    assert str(caught.value) == sentence


def test_globs(plan: MessagePlan) -> None:
    assert expand(plan, "id") == ("id",)
    assert expand(plan, "weights['*']") == ("weights['*']",)
    assert expand(plan, "items.*") == ("items.name", "items.price", "items.amount", "items.tags")
    assert expand(plan, 'by_id.parts["*.x"].*')[:1] == ('by_id.parts["*.x"].name',)
    assert expand(plan, "one.*:float32") == (
        "one.name:float32",
        "one.price:float32",
        "one.amount:float32",
        "one.tags:float32",
    )
    everything = expand(plan, "*")
    assert everything[:5] == ("id", "title", "raw", "note", "number")
    assert not {"one", "items", "by_id", "pick", "gone"} & set(everything)
    for ask in (column_path, presence_path):
        with pytest.raises(SchemaError) as caught:
            ask(plan, "one.*")
        assert str(caught.value) == "path 'one.*' of paths.All: it stands for several columns"


def test_globs_follow_the_declaration() -> None:
    times = yj.load_schema(SCHEMAS / "column_forms.proto")["forms.Numbers"].plan
    names = expand(times, "*")
    assert names.index("b") + 1 == names.index("single")  # as in the file; their numbers are 15 and 14


def test_a_glob_without_a_match() -> None:
    kit = yj.load_schema(SCHEMAS / "golden" / "wkt.proto")["golden.wkt.Kit"].plan
    with pytest.raises(SchemaError) as caught:
        expand(kit, "nil.*")
    assert str(caught.value) == (
        "path 'nil.*' of golden.wkt.Kit: google.protobuf.Empty has no field that can be a column"
    )


def test_globs_in_columns(recs: Records) -> None:
    cols = recs.columns("items.*", "id", "items.price")
    assert list(cols) == ["items.name", "items.price", "items.amount", "items.tags", "id"]


# ---- arrays to fill, memory ----


@pytest.mark.parametrize("path", ["title", "tags", "pick:category", "weights", "title:dictionary"])
def test_arrays_for_what_has_no_width(recs: Records, path: str) -> None:
    with pytest.raises(ValueError) as caught:
        recs.columns(path, out={path: np.zeros(len(recs), np.int32)})
    assert str(caught.value) == (
        f"out[{path!r}]: only columns of one number or time a row are filled, not this one"
    )


def test_more_than_the_memory(all_type: yj.MessageType, monkeypatch: pytest.MonkeyPatch) -> None:
    recs = yj.records(all_type, [all_type.encode({"title": "x" * 5000})] * 3)
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_PHYS_PAGES": 3, "SC_PAGE_SIZE": 4096}[name])
    with pytest.raises(MemoryError) as caught:
        recs.columns("title")
    assert str(caught.value) == (
        "these columns take 15,000 bytes, and this machine has 12,288: read fewer rows at a time"
    )


def test_no_rows(recs: Records) -> None:
    cols = recs[:0].columns("id", "title", "items.tags", "weights", "pick:category")
    assert [len(column) for column in cols.values()] == [0] * 5
    assert cols.to_arrow().num_rows == 0
    assert repr(cols).startswith("<Columns: 0 rows>")


def test_slices_of_records(recs: Records) -> None:
    for part in (recs[1:3], recs[::-1]):
        assert list(part.columns("title")["title"]) == [view.title for view in part]
        assert part.columns("items.tags")["items.tags"].to_arrow().to_pylist() == [
            [list(item.tags) for item in view.items] for view in part
        ]


@pytest.mark.parametrize("nbytes", [*range(70), 127, 1000])
def test_texts_of_each_length(all_type: yj.MessageType, nbytes: int) -> None:
    """They are copied in pieces; what is before and behind in the column stays."""
    texts = ["<", bytes(33 + i % 90 for i in range(nbytes)).decode(), ">"]
    column = yj.records(all_type, [all_type.encode({"title": text}) for text in texts]).columns("title")[
        "title"
    ]
    assert list(column) == texts
    assert column.data.size == nbytes + 2
