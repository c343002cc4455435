"""The text of `yaffjit layout`: the table, what a layout costs, what it can't hold, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

import yaffjit as yj
from yaffjit.errors import SchemaError
from yaffjit.render import layout_text, losses, schema_text, text_table, warnings

GOLDEN = Path(__file__).parent / "schemas" / "golden"

PROTO2 = """
syntax = "proto2";
package shop;
import "yaff/proto/options.proto";
enum Size { SMALL = 3; LARGE = 5; }
message Price {
  option (yaff.proto.message) = {layout: LAYOUT_FIXED};
  optional double value = 1 [default = 0.123456789];
  optional Size size = 2;
  optional string note = 3;
  optional bool net = 4;
}
message Item {
  option (yaff.proto.message) = {reserved_fields: {id: 3, type: TYPE_UINT64}};
  optional string name = 1 [default = "?"];
  optional uint32 old = 2 [deprecated = true];
  repeated Price prices = 4;
  map<string, float> sizes = 5;
  repeated Item parts = 6;
  oneof owner { string shop = 7; uint64 person = 8; }
}
"""


def load_text(folder: Path, text: str) -> yj.Schema:
    path = folder / "shop.proto"
    path.write_text(text)
    return yj.load_schema(path)


@pytest.fixture(scope="module")
def gaps() -> yj.Schema:
    return yj.load_schema(GOLDEN / "gaps.proto")


def test_table_of_a_message(tmp_path: Path) -> None:
    assert layout_text(load_text(tmp_path, PROTO2)["shop.Item"].plan) == (
        """\
shop.Item: dynamic layout, 6 fields, ids 1 to 8, slots of 40 bytes

name    number  id  kind                 presence  layout   width  offset  default  notes
------  ------  --  -------------------  --------  -------  -----  ------  -------  -------------------------
name         1   1  string               explicit               4       0  '?'
old          2   2  uint32                                      4       4           deprecated: an empty slot
-                3                                              8       8           reserved slot
prices       4   4  repeated shop.Price  implicit  fixed        4      16           17 bytes each, inlined
sizes        5   5  map<string, float>   implicit               4      20           8 bytes each, inlined
parts        6   6  repeated shop.Item   implicit  dynamic      4      24
shop         7   7  string               explicit               4      28           oneof owner
person       8   8  uint64               explicit               8      32           oneof owner

Can't be held:
  - 'old': deprecated.
  - prices (shop.Price): A fixed message has no presence bits: \
'value', 'size', 'net' set to the default reads back as not set.
  - prices (shop.Price): YaFF keeps another default than the declared one \
for 'value', 'size' (see the notes); \
encode refuses a value that equals it."""
    )


def test_table_of_a_fixed_message(tmp_path: Path) -> None:
    text = layout_text(load_text(tmp_path, PROTO2)["shop.Price"].plan)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0] == "shop.Price: fixed layout, 4 fields, ids 1 to 4, 17 bytes"
    assert lines[4] == "value 1 1 double explicit 8 0 0.123456789 YaFF's own default is 0.123457"
    assert lines[5] == "size 2 2 enum shop.Size explicit 4 8 SMALL YaFF's own default is 0"
    assert lines[6] == "note 3 3 string explicit 4 12"


def test_gaps_force_sparse_and_ids_would_close_them(gaps: yj.Schema) -> None:
    assert warnings(gaps["golden.gaps.Holes"].plan) == [
        "Ids 2, 4 to 6 have no slot, so messages of this type are always written sparse, never flat.",
        "Sparse messages have 6 bytes of header and up to 7 bytes of table, "
        "which messages of one buffer share where theirs are the same.",
        "Without gaps it would be written flat: "
        "b [(yaff.proto.field) = {id: 2}], c [(yaff.proto.field) = {id: 3}]. "
        "Ids are part of the bytes: change them before data is written, not after.",
    ]


def test_one_hole() -> None:
    plan = yj.load_schema(GOLDEN / "gaps.proto")["golden.gaps.StartsAtTwo"].plan
    assert warnings(plan)[0].startswith("Id 1 has no slot, so")


def test_high_ids_cost_a_table(gaps: yj.Schema) -> None:
    lines = warnings(gaps["golden.gaps.SparseBig"].plan)
    assert "up to 16349 bytes of table" in lines[1]  # 8190 ids, one byte each up to 31 and two above


def test_suggested_ids_do_what_they_promise(tmp_path: Path) -> None:
    text = 'syntax = "proto3"; package g; import "yaff/proto/options.proto"; message M {{ {} }}'
    gapped = load_text(tmp_path, text.format("int32 a = 2; string b = 40; bool c = 9;"))["g.M"].plan
    suggestion = warnings(gapped)[2]
    a, c, b = (f"[(yaff.proto.field) = {{id: {id}}}]" for id in (1, 2, 3))
    assert f": a {a}, c {c}, b {b}. " in suggestion
    closed = load_text(tmp_path, text.format(f"int32 a = 2 {a}; string b = 40 {b}; bool c = 9 {c};"))[
        "g.M"
    ].plan
    assert not closed.gapped
    assert warnings(closed) == []


def test_a_dead_slot_that_keeps_the_gaps_open(tmp_path: Path) -> None:
    text = 'syntax = "proto3"; package g; message M { int32 a = 1; int32 b = 9 [deprecated = true]; }'
    assert warnings(load_text(tmp_path, text)["g.M"].plan)[-1] == (
        "The empty slot at id 9 keeps the gaps open: remove the deprecated or reserved field."
    )


def test_implicit_scalars_beside_presence_are_always_written(tmp_path: Path) -> None:
    text = 'syntax = "proto3"; package g; message M { optional int32 a = 1; double b = 2; string c = 3; }'
    message_type = load_text(tmp_path, text)["g.M"]
    assert warnings(message_type.plan) == [
        "Some fields have presence, so scalars without it are written even where they are 0: "
        "an empty flat message takes 14 bytes, up to 'b' (id 2), and its presence bits."
    ]
    presence_bytes = 1  # ids 1 and 2, three bits each
    assert len(message_type.encode({})) == 4 + presence_bytes + 14


def test_plain_messages_cost_and_lose_nothing() -> None:
    plan = yj.load_schema(GOLDEN / "layouts.proto")["golden.layouts.Dyn"].plan
    assert warnings(plan) == losses(plan) == []
    assert layout_text(plan).endswith("d          4   4  double  implicit              8       9")


def test_all_messages_of_a_schema(gaps: yj.Schema) -> None:
    ignored = "golden.gaps.Ignored"
    plans = [
        ("golden.gaps.Deprec", gaps["golden.gaps.Deprec"].plan),
        ("golden.gaps.HasIgnored", gaps["golden.gaps.HasIgnored"].plan),
        (ignored, SchemaError(gaps.unsupported[ignored])),
    ]
    assert schema_text(gaps.definition, plans) == (
        """\
message                 layout   fields  max id  notes
----------------------  -------  ------  ------  ------------------------------------------------
golden.gaps.Deprec      dynamic       4       7  3 fields lost
golden.gaps.HasIgnored  dynamic       2       3  has gaps, always written sparse, 2 fields lost
golden.gaps.Ignored                   1          can't be held: golden.gaps.Ignored: it is ignored by its \
(yaff.proto.message) option""".replace("-" * 48, "-" * 84)
    )


def test_losses_name_the_reason(gaps: yj.Schema) -> None:
    assert losses(gaps["golden.gaps.HasIgnored"].plan) == [
        "'b': golden.gaps.Ignored is ignored.",
        "'d': golden.gaps.Ignored is ignored.",
    ]


def test_recursive_messages_end(tmp_path: Path) -> None:
    text = 'syntax = "proto2"; package g; message M { optional M m = 1; repeated M n = 2; }'
    assert losses(load_text(tmp_path, text)["g.M"].plan) == []


def test_text_table_pads_and_aligns() -> None:
    assert (
        text_table(("a", "bb"), [("xyz", "1"), ("x", "22")], right=("bb",))
        == "a    bb\n---  --\nxyz   1\nx    22"
    )
