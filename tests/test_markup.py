"""What notebooks show: of every object, bounded, with its text escaped, and of broken bytes too."""

from __future__ import annotations

import html.parser
from pathlib import Path
from typing import Any

import pytest

import yaffjit as yj
from yaffjit.demo import SCHEMA_FILE, banners
from yaffjit.markup import CELL_WIDTH, Shown, table

Banner = yj.load_schema(SCHEMA_FILE)["ads.Banner"]
ROWS = 20


class Cells(html.parser.HTMLParser):
    """The texts of a page's elements; fails where one isn't closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(page)
        self.close()
        assert not self.opened

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.opened.append(tag)
        self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.opened:
            self.texts[self.opened[-1]][-1] += data


def shown(thing: Any) -> dict[str, list[str]]:
    bundle = thing._repr_mimebundle_()
    assert bundle == {"text/plain": repr(thing), "text/html": thing._repr_html_()}
    return Cells(bundle["text/html"]).texts


@pytest.fixture(scope="module")
def messages() -> list[Any]:
    return list(banners(Banner.message_class, ROWS))


@pytest.fixture(scope="module")
def recs(messages: list[Any]) -> Any:
    return yj.records(Banner, [Banner.encode(message) for message in messages])


def test_schemas_and_types() -> None:
    schema = Banner.schema
    texts = shown(schema)
    assert texts["b"] == ["Schema of 3 messages: ads.Stats, ads.Geo, ads.Banner"]
    assert texts["td"][-5:] == ["ads.Banner", "dynamic", "15", "15", ""]
    texts = shown(Banner)
    assert texts["b"] == ["ads.Banner: dynamic layout, 15 fields, ids 1 to 15, slots of 76 bytes"]
    assert texts["th"][:3] == ["name", "number", "id"]
    assert texts["td"][:8] == ["id", "1", "1", "uint64", "implicit", "", "8", "0"]


def test_types_that_yaff_cannot_hold(tmp_path: Path) -> None:
    path = tmp_path / "strange.proto"
    path.write_text(
        'syntax = "proto3"; package strange; import "yaff/proto/options.proto";\n'
        "message Empty { option (yaff.proto.message) = {layout: LAYOUT_FIXED}; }\n"
    )
    schema = yj.load_schema(path)
    assert (
        "can't be held: strange.Empty as a root message: it is FIXED and has no fields" in shown(schema)["td"]
    )
    texts = shown(schema["strange.Empty"])
    assert texts["pre"] == ["<MessageType strange.Empty>"]
    assert texts["p"][-1].startswith("It can only be shown so: YaFF can't hold strange.Empty as a root")


def test_records_and_views(recs: Any, messages: list[Any]) -> None:
    texts = shown(recs)
    assert texts["b"] == [repr(recs)[1:-1]]
    assert texts["th"][:6] == ["", "id", "campaign_id", "price", "state", "title"]
    first = messages[0]
    assert texts["td"][:6] == [
        "0",
        str(first.id),
        str(first.campaign_id),
        str(first.price),
        "STATE_ACTIVE (1)",
        first.title,
    ]
    assert texts["p"][-1] == f"{ROWS - 5} more rows; more fields: phone, email, account_id"
    assert shown(recs[0])["pre"] == [repr(recs[0])]
    assert len(shown(recs[:0])["th"]) == 13 and "td" not in shown(recs[:0])


def test_an_index_and_columns(recs: Any, tmp_path: Path) -> None:
    yj.build_index(tmp_path / "banners.arrow", Banner, recs)
    index = yj.open_index(tmp_path / "banners.arrow")
    assert shown(index)["b"] == [
        repr(index)[1:-1][:CELL_WIDTH] + ("..." if len(repr(index)) - 2 > CELL_WIDTH else "")
    ]
    texts = shown(recs.columns("id", "title", "tags"))
    assert texts["b"] == [f"Columns: {ROWS} rows"]
    assert texts["th"] == ["id (uint64)", "title (text)", "tags (list of text)"]
    assert texts["td"][-3:] == ["...", "...", "..."]


def test_null_rows_and_broken_bytes(messages: list[Any]) -> None:
    raw = [messages[0].SerializeToString(), None, b"\xff", messages[0].SerializeToString()[:-3]]
    texts = shown(yj.records(Banner, raw, representation="protobuf"))
    rows = [texts["td"][i : i + 13] for i in range(0, len(texts["td"]), 13)]
    assert rows[1][1:] == ["null"] * 12
    assert rows[2][1].startswith("can't be read: row 2: ads.Banner: ") and rows[2][2:] == [""] * 11
    bad = bytearray(Banner.encode({"title": "x\ud7ffy", "id": 1}))
    bad[bad.index(b"x") + 1] = 0xFF
    texts = shown(yj.records_unchecked(Banner, [bytes(bad)]))
    assert any(text.startswith("can't be read: ") for text in texts["td"])
    assert "can't be shown" in shown(Banner.view_unchecked(bytes(bad)))["pre"][0]


def test_text_is_escaped_and_bounded() -> None:
    recs = yj.records(Banner, [Banner.encode({"title": "<script>" + "x" * 10**6, "tags": ["<b>"] * 10_000})])
    page = recs._repr_html_()
    assert "<script" not in page and "<b>&" not in page and len(page) < 10_000
    cells = shown(recs)["td"]
    assert max(map(len, cells)) <= CELL_WIDTH + 3
    assert "[<b>, <b>, <b>, ... 10,000 in all]" in cells
    assert len(recs[0]._repr_html_()) < 100_000


def test_wide_types_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "wide.proto"
    fields = "\n".join(f"  uint32 f{number} = {number};" for number in range(1, 1001))
    others = "\n".join(f"message M{number} {{ uint32 a = 1; }}" for number in range(100))
    path.write_text(f'syntax = "proto3"; package wide;\nmessage Row {{\n{fields}\n}}\n{others}\n')
    schema = yj.load_schema(path)
    assert shown(schema)["p"][-1] == "51 more messages"
    assert shown(schema["wide.Row"])["p"][-1] == "800 more fields"


def test_what_fails_is_shown_by_its_repr() -> None:
    class Broken(Shown):
        def _html_(self) -> str:
            raise yj.IndexFileError("the <file> is gone")

    texts = shown(Broken())
    assert (
        texts["pre"] == [repr(texts)] or texts["pre"][0].startswith("<tests") or "Broken" in texts["pre"][0]
    )
    assert texts["p"] == ["It can only be shown so: the <file> is gone"]


def test_tables() -> None:
    page = table("a & b", ("x", "share"), [("1\n2", "12.5%")], right=("share",), more="more", bar="share")
    texts = Cells(page).texts
    assert texts["b"] == ["a & b"] and texts["td"] == ["1 2", "12.5%"] and texts["p"][-1] == "more"
    assert page.count("linear-gradient(to right, #bcd8f5 12.5%, transparent 0)") == 1
