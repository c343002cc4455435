"""The commands for indexes that grow: append, head, show --where, verify of directories."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import yaffjit as yj
from yaffjit.cli import main
from yaffjit.cli.matches import Where
from yaffjit.cli.where import Condition, Name, WhereError, parse_where

Capture = pytest.CaptureFixture[str]

SOURCE = """
syntax = "proto3";
package w;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
enum Color { NONE = 0; RED = 1; BLUE = 2; }
message Point { double lat = 1; optional int64 height = 2; }
message M {
  int64 id = 1;
  uint64 big = 2;
  float share = 3;
  double price = 4;
  string title = 5;
  bytes raw = 6;
  bool on = 7;
  Color color = 8;
  Point point = 9;
  repeated string tags = 10;
  repeated int32 numbers = 11;
  map<string, double> attrs = 12;
  repeated Point points = 13;
  google.protobuf.Timestamp seen = 14;
  google.protobuf.Duration took = 15;
  oneof contact { string email = 16; int32 phone = 17; }
  map<int32, Point> by_id = 18;
  map<string, Many> many = 19;
  map<bool, Empty> empty = 20;
  map<string, google.protobuf.Timestamp> stamps = 21;
  repeated bytes parts = 22;
  map<string, bytes> blobs = 23;
}
message Many { repeated string tags = 1; map<string, Point> inner = 2; map<string, int32> counts = 3; }
message Empty {}
"""


MANY = {
    "k": {"tags": ["x", "y"], "inner": {"i": {"lat": 1}, "j": {}}, "counts": {"c": 1}},
    "l": {"inner": {"m": {}}},
}


@pytest.fixture(scope="module")
def message_type(tmp_path_factory: Any) -> yj.MessageType:
    source = tmp_path_factory.mktemp("where") / "w.proto"
    source.write_text(SOURCE)
    return yj.load_schema(source)["w.M"]


@pytest.fixture(scope="module")
def messages(message_type: yj.MessageType) -> list[Any]:
    make = message_type.message_class
    made = [
        make(id=1, big=2**63 + 1, share=0.1, price=1.5, title="Free", raw=b"\xff\0", on=True, color=1),
        make(id=-5, title="Gr\u00fc\u00dfe, \"x\" 'y'\n", tags=["a", "bc"], numbers=[1, 2], color=7),
        make(
            id=2**53 + 1,
            price=-0.0,
            title="free",
            tags=["", "new"],
            attrs={"k": 0.5, "l": 2},
            phone=0,
            by_id={5: {"lat": 1}, -7: {}},
            parts=[b"\xff", b"a"],
            blobs={"k": b"\xfe"},
        ),
        make(
            price=float("nan"),
            points=[{"lat": 1.5}, {"lat": 2.5, "height": 0}],
            email="x@y",
            many=MANY,
            stamps={"t": {"seconds": 5}},
            empty={True: {}},
        ),
        make(
            point={"lat": 4},
            seen={"seconds": 1_714_564_800, "nanos": 5},
            took={"seconds": 2, "nanos": 500_000_000},
        ),
        make(color=2, point={"height": 3}, share=float("inf")),
    ]
    return made * 2


@pytest.fixture(scope="module")
def path(message_type: yj.MessageType, messages: list[Any], tmp_path_factory: Any) -> Path:
    path: Path = tmp_path_factory.mktemp("index") / "rows"
    yj.build_index(path, message_type, messages, part_rows=5)
    return path


@pytest.fixture(scope="module")
def index(path: Path, message_type: yj.MessageType) -> Any:
    return yj.open_index(path, message_type)


def matching(index: Any, text: str) -> list[int]:
    return list(Where(index.plan, parse_where(text)).rows(index))


def text_of(literal: Any) -> str:
    """A literal as the language writes it."""
    if isinstance(literal, list):
        return f"[{', '.join(map(text_of, literal))}]"
    if isinstance(literal, bool):
        return str(literal).lower()
    return repr(literal)


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda value, several: value in several,
    "not in": lambda value, several: value not in several,
    "contains": lambda value, part: part in value,
    "startswith": lambda value, start: value.startswith(start),
}

NUMBERS = st.one_of(
    st.sampled_from([0, 1, -5, 7, 1.5, 0.1, -0.5, 2**53, 2**53 + 1, 2.0**53, 2**63 + 1, 2**70, -(2**70)]),
    st.integers(-9, 9),
    st.floats(allow_nan=True, allow_infinity=True),
)
TEXTS = st.one_of(
    st.sampled_from(
        ["", "Free", "free", "Fr", "e", "\u00fc", "\n", "'", '"', "new", "a", "\\", "\U0001f600"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
)
VALUES: dict[str, Any] = {
    "id": NUMBERS,
    "big": NUMBERS,
    "share": NUMBERS,
    "price": NUMBERS,
    "color": NUMBERS,
    "point.lat": NUMBERS,
    "len(tags)": NUMBERS,
    "title": TEXTS,
    "email": TEXTS,
    "on": st.booleans(),
}
READ: dict[str, Callable[[Any], Any]] = {
    "point.lat": lambda message: message.point.lat,
    "len(tags)": lambda message: len(message.tags),
}


# Paths that are compared together; each group has its columns compiled.
TOGETHER = (
    ("id",),
    ("title",),
    ("id", "share", "email"),
    ("price", "color", "price"),
    ("on", "len(tags)", "big"),
    ("point.lat", "title", "color"),
)


@st.composite
def comparisons(draw: Any, path: str) -> tuple[str, str, Any]:
    values = VALUES[path]
    known = ["==", "!=", "<", "<=", ">", ">=", "in", "not in"]
    operator_ = draw(st.sampled_from([*known, "contains", "startswith"] if values is TEXTS else known))
    return path, operator_, draw(st.lists(values, max_size=3) if "in" in operator_.split() else values)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(TOGETHER).flatmap(lambda paths: st.tuples(*map(comparisons, paths))))
def test_comparisons_are_pythons(index: Any, messages: list[Any], wanted: tuple[Any, ...]) -> None:
    text = " and ".join(f"{path} {op} {text_of(literal)}" for path, op, literal in wanted)
    expected = [
        row
        for row, message in enumerate(messages)
        if all(
            OPERATORS[op](READ.get(path, lambda m, name=path: getattr(m, name))(message), literal)
            for path, op, literal in wanted
        )
    ]
    assert matching(index, text) == expected, text


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("color == RED", [0]),
        ("color in [RED, BLUE, 7]", [0, 1, 5]),
        ("color not in (NONE, RED,)", [1, 5]),
        ("contact == phone", [2]),
        ("contact in [email]", [3]),
        ("tags contains 'new'", [2]),
        ("tags contains ''", [2]),
        ("numbers contains 2", [1]),
        ("points.lat contains 2.5", [3]),
        ("attrs contains 'k'", [2]),
        ("attrs['l'] == 2", [2]),
        ("by_id contains 5", [2]),
        ("by_id contains -7 and by_id[5].lat == 1", [2]),
        ("by_id contains 0", []),
        ("by_id.lat contains 1", [2]),
        ("many contains 'l'", [3]),
        ("many contains 'i'", []),
        ("many contains 'x'", []),
        ("many.tags contains 'y'", [3]),
        ("many.inner contains 'm'", [3]),
        ("many.inner contains 'k'", []),
        ("many.counts contains 'c'", [3]),
        ("many.counts contains 'k'", []),
        ("stamps contains 't'", [3]),
        ("raw == b'\\xff\\0'", [0]),
        ("raw startswith b'\\xff'", [0]),
        ('raw in [b"", b"\\n\\""]', [1, 2, 3, 4, 5]),
        ("raw > b'a'", [0]),
        ("parts contains b'\\xff'", [2]),
        ("parts contains b'b'", []),
        ("blobs['k'] == b'\\xfe' and blobs contains 'k'", [2]),
        ('attrs[ "]" ] == 0 and attrs["k"] > 0.4', [2]),
        ("tags[1] == 'bc'", [1]),
        ("raw startswith '\\xff'", []),  # text is compared by its UTF-8
        ("raw contains '\\0'", [0]),
        ("present(point)", [4, 5]),
        ("present( point.height )", [5]),
        ("not present(point) and present(email)", [3]),
        ("present(contact)", [2, 3]),
        ("present(id)and not  present(price)", [0, 1, 2]),
        ("seen > '2024-05-01T12:00:00'", [4]),
        ("seen <= '2024-05-01T12:00:00.000000005Z' and seen > '2000-01-01'", [4]),
        ("seen >= '2024-05-01 14:00+02:00' and seen < '2024-05-01T12:00:01Z'", [4]),
        ("seen >= '2024-05-01T12:00:00+00'", [4]),
        ("seen > '2024-05-01T08:30:00-0330'", [4]),
        ("seen > '2024-05-01T08:30:00.1-0330'", []),
        ("seen > '2024-05-01T08:29:59.999999999-03:30'", [4]),
        ("seen > '2024-04'", [4]),
        ("took == 2.5", [4]),
        ("took > 2", [4]),
        ("price == nan", []),
        ("share == inf", [5]),
        ("share == 0.1", []),
        ("on == TRUE", [0]),
        ("title == 'Gr\\u00fc\\xdfe, \\\"x\\\" \\'y\\'\\n'", [1]),
    ],
)
def test_what_matches(index: Any, messages: list[Any], text: str, rows: Any) -> None:
    if text.startswith("present(id)"):
        expected = [
            row for row, m in enumerate(messages[:6]) if m.id != 0 and m.price == 0 and str(m.price) == "0.0"
        ]
    else:
        expected = rows
    assert matching(index, text) == expected + [row + 6 for row in expected]


@pytest.mark.parametrize(
    ("text", "at", "fault"),
    [
        ("", 1, "a path, as stats.ctr is expected before the end"),
        ("3 == id", 1, "a path, as stats.ctr is expected, not '3 == id'"),
        ("id", 3, "==, !=, <=, >=, <, >, in, not in, contains, startswith is expected before the end"),
        ("id = 3", 4, "'=' compares nothing; '==' does"),
        (
            "id == ",
            7,
            "a number, text in quotes, true, false, or the name of an enum's value is expected before the",
        ),
        ("id == 3 4", 9, "'and' or the end is expected, not '4'"),
        (
            "id == 3 or id == 4",
            9,
            "'or' isn't supported, but 'in [...]' is; what follows is 'and' or the end",
        ),
        ("id == 3 and", 12, "a path, as stats.ctr is expected before the end"),
        ("id == 3x", 8, "the end of the number is expected, not 'x'"),
        ("id == 1.2.3", 10, "the end of the number is expected, not '.3'"),
        ("id == 1_000", 8, "the end of the number is expected, not '_000'"),
        ("id in 3", 7, "a list, as [1, 2] is expected, not '3'"),
        ("id in [3", 9, "',' or ']' is expected before the end"),
        ("id in (3]", 9, "',' or ')' is expected, not ']'"),
        ("id not 3", 8, "'in' is expected, not '3'"),
        ("not id == 3", 5, "present(...) is expected, not 'id == 3'"),
        ("present(id", 11, "')' is expected before the end"),
        ("title == 'x", 10, "the text that begins here has no closing '"),
        ("title == 'a\\qb'", 12, "'\\q' isn't an escape"),
        ("title == '\\U00110000'", 11, "'\\U00110000' isn't an escape"),
        (
            "title == '\\ud800'",
            11,
            "'\\ud800' is half of a surrogate pair, which isn't text: write the character itself",
        ),
        ("attrs['k' == 3", 15, "the end of what is in brackets is expected before the end"),
        ("id == __import__('os')", 17, "'and' or the end is expected, not \"('os')\""),
        (
            "id.__class__ == 3",
            1,
            "path 'id.__class__' of w.M: ",
        ),
        (
            "title == and",
            10,
            "a number, text in quotes, true, false, or the name of an enum's value is expected, not 'and'",
        ),
        ("tilte == 'x'", 1, "path 'tilte' of w.M: w.M has no field 'tilte' (did you mean 'title'?)"),
        ("id == 3 and point == 3", 13, "path 'point' of w.M is a message: name a field of w.Point"),
        ("id == 'x'", 1, "id is a number, so it isn't compared with 'x'"),
        ("id == true", 1, "id is a number, so it isn't compared with true"),
        ("on == 1", 1, "on is a bool, so it isn't compared with 1"),
        ("title == 1", 1, "title is text, so it isn't compared with 1"),
        ("title == Free", 1, "title is text, so it isn't compared with Free"),
        ("id == RED", 1, "id is compared with RED, a name, which only enums and oneofs have"),
        ("color == RAD", 1, "color is compared with RAD, no name of its values (did you mean 'RED'?)"),
        (
            "contact == emial",
            1,
            "contact is compared with emial, no name of its values (did you mean 'email'?)",
        ),
        (
            "seen > 3",
            1,
            "seen is a time, as '2024-05-01T12:00:00' or '2024-05-01 14:00+02:00', "
            "so it isn't compared with 3",
        ),
        (
            "seen > 'soon'",
            1,
            "seen is a time, as '2024-05-01T12:00:00' or '2024-05-01 14:00+02:00', "
            "so it isn't compared with 'soon'",
        ),
        (
            "seen > ''",
            1,
            "seen is a time, as '2024-05-01T12:00:00' or '2024-05-01 14:00+02:00', "
            "so it isn't compared with ''",
        ),
        (
            "seen < '2999-01-01'",
            1,
            "seen is a time, as '2024-05-01T12:00:00' or '2024-05-01 14:00+02:00', "
            "so it isn't compared with '2999-01-01'",
        ),
        ("took > 'x'", 1, "took is a duration in seconds, so it isn't compared with 'x'"),
        ("took > inf", 1, "took is a duration in seconds, so it isn't compared with inf"),
        ("took > 1e30", 1, "took is a duration in seconds, so it isn't compared with 1e+30"),
        ("id contains 3", 1, "id: 'contains' is for text, and 'contains' for lists"),
        ("on startswith 3", 1, "on: 'startswith' is for text, and 'contains' for lists"),
        ("tags == 'x'", 1, "tags: it has several values a row, for which only 'contains' is"),
        ("color:category == RED", 6, "':category' is a form for tables: conditions compare exact values, w"),
        ("id:int8 > 5", 3, "':int8' is a form for tables: conditions compare exact values, without one"),
        ("attrs['a:b']:int8 > 5", 13, "':int8' is a form for tables: "),
        ("seen:datetime64[s] > '2024'", 5, "':datetime64[s]' is a form for tables: "),
        ("present(id:int8)", 11, "':int8' is a form for tables: "),
        ("id: > 5", 3, "':' is a form for tables: "),
        (
            "seen > 'now'",
            1,
            "seen is a time, as '2024-05-01T12:00:00' or '2024-05-01 14:00+02:00', so it isn't c",
        ),
        ("seen > 'today'", 1, "seen is a time, "),
        ("seen > 'NaT'", 1, "seen is a time, "),
        ("seen > '2024'", 1, "seen is a time, "),
        ("seen > '2024-13-01'", 1, "seen is a time, "),
        ("seen > '2024-05-01T12'", 1, "seen is a time, "),
        ("seen > '2024-05-01T12:00+24:00'", 1, "seen is a time, "),
        ("seen > '2024-05-01T12:00+2'", 1, "seen is a time, "),
        ("seen > b'2024-05-01'", 1, "seen is a time, "),
        ("title == b'x'", 1, "title is text, so it isn't compared with b'x'"),
        ("attrs contains b'k'", 1, "attrs is text, so it isn't compared with b'k'"),
        ("id == b'x'", 1, "id is a number, so it isn't compared with b'x'"),
        ("on == b'x'", 1, "on is a bool, so it isn't compared with b'x'"),
        ("raw == b'\\u1234'", 10, "'\\u' isn't an escape of bytes"),
        ("raw == b'a\u00fc'", 11, "'\u00fc' isn't ASCII: write its bytes, as \\xff"),
        ("raw == b'x", 9, "the text that begins here has no closing '"),
        ("raw == b", 1, "raw is text, so it isn't compared with b"),
        ("by_id == 5", 1, "path 'by_id' of w.M: field by_id is "),
        ("empty contains true", 1, "path 'empty' of w.M: field empty is "),
        ("by_id contains 'x'", 1, "by_id is a number, so it isn't compared with 'x'"),
        ("points contains 1", 1, "path 'points' of w.M: field points is "),
        ("point contains 1", 1, "path 'point' of w.M "),
        ("present(points.lat)", 1, "path 'points.lat' of w.M: presence is for one value a row: "),
    ],
)
def test_conditions_that_make_no_sense(index: Any, text: str, at: int, fault: str) -> None:
    with pytest.raises(WhereError) as caught:
        matching(index, text)
    assert str(caught.value).startswith(f"--where, character {at}: {fault}")


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=30) | st.text("idpresent()[]'\"\\ =<>!and.,0123", max_size=40))
def test_whatever_the_text_it_ends(text: str) -> None:
    try:
        parse_where(text)
    except WhereError as error:
        assert str(error).startswith("--where, character ")


def test_what_is_read() -> None:
    assert parse_where("a.b>-1.5e3 and c not in ['x',Y] and present(d)") == (
        Condition("a.b", ">", (-1500.0,), 0),
        Condition("c", "not in", ("x", Name("Y")), 15),
        Condition("d", "present", (), 36),
    )


# The commands


def run(capsys: Capture, *arguments: object) -> tuple[str, str]:
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert code == 0, err
    return out, err


def fails(capsys: Capture, *arguments: object) -> str:
    assert main([str(argument) for argument in arguments]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    return err.removeprefix("yaffjit: error: ").removesuffix("\n")


def misused(capsys: Capture, *arguments: object) -> str:
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    assert caught.value.code == 2
    return capsys.readouterr().err.splitlines()[-1].partition("error: ")[2]


@pytest.fixture
def files(tmp_path: Path, message_type: yj.MessageType, messages: list[Any], monkeypatch: Any) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("w.proto").write_text(SOURCE)
    yj.write_delimited("x.pb", messages[:4])
    return tmp_path


def test_build_and_append(capsys: Capture, files: Path) -> None:
    out, _ = run(capsys, "build", "w.proto", "w.M", "x.pb", "-o", "rows", "--part-rows", 3)
    nbytes = [Path(f"rows/part-00000{number}.arrow").stat().st_size for number in range(2)]
    assert out.startswith(f"rows: 4 w.M messages in 2 parts, {sum(nbytes):,} bytes\n")
    out, _ = run(capsys, "append", "rows", "x.pb", "x.pb")
    assert out.startswith(f"rows: 8 messages more, {Path('rows/part-000002.arrow').stat().st_size:,} bytes\n")
    assert len(yj.open_index("rows")) == 12
    assert run(capsys, "verify", "rows")[0] == "rows: 12 w.M messages in 3 parts, all well-formed\n"
    out, err = run(capsys, "verify", "rows", "--progress")
    assert (out, "verify rows" in err) == ("rows: 12 w.M messages in 3 parts, all well-formed\n", True)
    Path("rows/part-000001.arrow").unlink()
    assert fails(capsys, "verify", "rows").startswith("rows/part-000001.arrow is missing: ")


def test_a_file_becomes_a_part(capsys: Capture, files: Path) -> None:
    run(capsys, "build", "w.proto", "w.M", "x.pb", "-o", "x.arrow")
    sentence = fails(capsys, "append", "x.arrow", "x.pb")
    assert sentence.startswith("x.arrow is a single file, which doesn't grow: make it ")
    command = sentence.split("`")[1].split()
    assert command == ["yaffjit", "append", "x", "--adopt", "x.arrow"]
    assert run(capsys, *command[1:])[0] == "x: x.arrow is a part of it now\n"
    assert run(capsys, "append", "x", "x.pb")[0].startswith("x: 4 messages more, ")
    assert len(yj.open_index("x")) == 8


def test_a_bad_message_is_named(capsys: Capture, files: Path) -> None:
    run(capsys, "build", "w.proto", "w.M", "x.pb", "-o", "rows")
    Path("bad.pb").write_bytes(b"\1\x0f")
    assert fails(capsys, "append", "rows", "x.pb", "bad.pb").startswith("bad.pb: record 0 at byte 0: w.M")
    assert len(yj.open_index("rows")) == 4


def test_wrong_usage(capsys: Capture, files: Path) -> None:
    both = "name the inputs, or say --adopt, and not both"
    assert misused(capsys, "append", "rows") == both
    assert misused(capsys, "append", "rows", "x.pb", "--adopt", "x.arrow") == both
    both = "name the rows, or say --where, and not both"
    assert misused(capsys, "show", "rows") == both
    assert misused(capsys, "show", "rows", 1, "--where", "id == 3") == both
    for arguments in (
        ("head", "rows", "-n", 0),
        ("show", "rows", "--limit", 0),
        ("build", "w.proto", "w.M", "x.pb", "-o", "rows", "--part-rows", 0),
    ):
        assert misused(capsys, *arguments).endswith(": at least 1 is needed")


def test_head(capsys: Capture, path: Path) -> None:
    out, _ = run(capsys, "head", path, "-n", 2)
    assert out.startswith("# row 0\nid: 1\n")
    assert "# row 1\nid: -5\n" in out
    assert "# row 2" not in out
    assert run(capsys, "head", path)[0].count("# row ") == 5
    assert run(capsys, "head", path, "-n", 100)[0].count("# row ") == 12
    assert run(capsys, "head", path, "-n", 1, "--json")[0].startswith('{\n  "id": "1",')


def test_show(capsys: Capture, path: Path) -> None:
    out, _ = run(capsys, "show", path, 0)
    assert out.startswith("id: 1\n")
    out, _ = run(capsys, "show", path, -1, 1)
    assert out.startswith("# row -1\nshare: inf\n")
    assert "# row 1\nid: -5\n" in out


def test_show_where(capsys: Capture, path: Path) -> None:
    out, err = run(capsys, "show", path, "--where", "color == RED")
    assert [line for line in out.splitlines() if line.startswith("#")] == ["# row 0", "# row 6"]
    assert err == ""
    out, err = run(capsys, "show", path, "--where", "price < 5", "--limit", 2)
    assert out.count("# row ") == 2
    assert err == "yaffjit: more records match than the 2 that --limit allows\n"
    assert run(capsys, "show", path, "--where", "id == 77") == ("", "")
    assert fails(capsys, "show", path, "--where", "idd == 7") == (
        "--where, character 1: path 'idd' of w.M: w.M has no field 'idd' (did you mean 'id'?)"
    )
