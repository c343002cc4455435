"""Pictures of buffers: each byte is told, in all layouts and of protobuf; bytes from anywhere are drawn."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from mutants import Seed, cuts, mutants, seeds
from vectors import load_vectors

import yaffjit as yj
from yaffjit.codec.anatomy import MOST_PARTS, draw
from yaffjit.drawing import ROLES, SHOWN_BYTES, Drawing
from yaffjit.plan.model import MessagePlan
from yaffjit.view.anatomy import draw_protobuf

PLACES = """
syntax = "proto3";
package places;
enum State { CLOSED = 0; OPEN = 1; }
message Place {
  optional sint32 height = 1;
  string name = 2;
  repeated State states = 3;
  map<string, double> rates = 4;
  Place inner = 5;
  repeated Place others = 6;
}
"""
IN_YAFF = """\
places.Place, 72 bytes of YaFF
0x0000  06 00 00 00                                      root offset  -> 0x0006
0x0004  02 aa                                            presence     sizes
0x0006  1a 80                                            header       flat, ids to 5
0x0008  ff ff ff ff                                      slot         height  -1
0x000c  3a 00 00 00                                      offset       name  -> 0x0040
0x0010  2e 00 00 00                                      offset       states  -> 0x0034
0x0014  18 00 00 00                                      offset       rates  -> 0x001e
0x0018  16 00 00 00                                      offset       inner  -> 0x001c
0x001c  00 80                                            header       inner  flat, ids to 0
0x001e  01 00 00 00                                      length       rates  1 pair
0x0022  0c 00 00 00                                      offset       rates[0].key  -> 0x002e
0x0026  00 00 00 00 00 00 e0 3f                          slot         rates[0].value  0.5
0x002e  01 00 00 00                                      length       rates[0].key  1
0x0032  61                                               text         rates[0].key  'a'
0x0033  00                                               text         rates[0].key  terminator
0x0034  02 00 00 00                                      length       states  2 elements
0x0038  01 00 00 00 07 00 00 00                          elements     states  [OPEN (1), 7]
0x0040  03 00 00 00                                      length       name  3
0x0044  64 c3 a9                                         text         name  'dé'
0x0047  00                                               text         name  terminator
"""
IN_PROTOBUF = """\
places.Place, 19 bytes of protobuf
0x0000  08                                               tag          height  1, varint
0x0001  01                                               value        height  -1
0x0002  12                                               tag          name  2, bytes
0x0003  03                                               length       name  3
0x0004  64 c3 a9                                         text         name  'dé'
0x0007  1a                                               tag          states  3, bytes
0x0008  02                                               length       states  2
0x0009  01 07                                            elements     states  [OPEN (1), 7]
0x000b  2a                                               tag          inner  5, bytes
0x000c  02                                               length       inner  2
0x000d  08                                               tag          inner.height  1, varint
0x000e  06                                               value        inner.height  3
0x000f  fa 01                                            tag          #31  31, bytes
0x0011  01                                               length       #31  1
0x0012  78                                               text         #31  b'x'
"""
UNKNOWN = b"\xfa\x01\x01x"  # field 31


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("places") / "places.proto"
    path.write_text(PLACES)
    return yj.load_schema(path)["places.Place"]


def test_as_text(place: Any) -> None:
    message = {"height": -1, "name": "d\u00e9", "states": [1, 7], "rates": {"a": 0.5}, "inner": {}}
    drawing = place.draw(place.encode(message))
    assert f"{drawing}\n" == IN_YAFF
    assert repr(drawing) == "<Drawing of places.Place, 72 bytes of YaFF>"
    coloured = drawing.text(color=True).splitlines()
    assert coloured[1] == "0x0000  \x1b[38;5;16;48;5;183m06 00 00 00\x1b[0m" + IN_YAFF.splitlines()[1][19:]


def test_protobuf_as_text(place: Any) -> None:
    message = {"height": -1, "name": "d\u00e9", "states": [1, 7], "inner": {"height": 3}}
    data = place.message_class(**message).SerializeToString() + UNKNOWN
    assert f"{place.draw(data, representation='protobuf')}\n" == IN_PROTOBUF
    with pytest.raises(
        ValueError, match=r"^representation 'json' isn't supported; supported: 'yaff', 'protobuf'$"
    ):
        place.draw(data, representation="json")


def test_as_svg(place: Any, tmp_path: Path) -> None:
    drawing = place.draw(bytearray(place.encode({"name": "<b>&\n"})))
    root = ET.fromstring(drawing.svg())
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "name '<b>&\\n'" in "; ".join(filter(None, texts))
    cells = [text for text in texts if text and len(text) == 2 and int(text, 16) < 256]
    assert bytes.fromhex("".join(cells)) == drawing.data
    drawing.save(tmp_path / "place.svg")
    assert (tmp_path / "place.svg").read_text() == drawing.svg() == drawing._repr_svg_()


# ---- each byte of what the C++ library wrote ----


def told(drawing: Drawing) -> set[int]:
    return {pos for part in drawing.parts if part.role != "unused" for pos in range(part.begin, part.end)}


def has_dead_slots(mp: MessagePlan) -> bool:
    reached, waiting = set(), [mp]
    while waiting:
        mp = waiting.pop()
        if mp.full_name not in reached:
            reached.add(mp.full_name)
            waiting += [mp.child(f) for f in mp.fields if f.message]
            if sum(width > 0 for width in mp.widths) > len(mp.fields):
                return True
    return False


@pytest.mark.slow
def test_each_byte_of_the_vectors_is_told() -> None:
    whole = 0
    for seed in seeds()[::2]:
        if len(seed.buf) > 10_000:
            continue
        drawing = draw(seed.plans[0], seed.buf)
        assert drawing.fault == "" and {part.role for part in drawing.parts} <= set(ROLES)
        if len(drawing.parts) < MOST_PARTS and not has_dead_slots(seed.plans[0]):
            assert told(drawing) == set(range(len(seed.buf))), seed.name
            whole += 1
    assert whole > 200


def test_each_byte_of_protobuf_is_told() -> None:
    for seed, record in zip(seeds(), (r for r in load_vectors() if r["yaff"] is not None), strict=True):
        if record["proto"] is None:
            continue
        plan = seed.plans[0].plan
        drawing = draw_protobuf(plan, seed.plans[0].full_name, record["proto"])
        assert drawing.fault == ""
        if len(drawing.parts) < MOST_PARTS:
            ends = [0, *(part.end for part in drawing.parts)]
            assert [part.begin for part in drawing.parts] == ends[:-1], seed.name  # no gap, nothing twice
            assert ends[-1] == len(record["proto"])


# ---- bytes from anywhere ----


@pytest.mark.slow
def test_damaged_buffers_are_drawn_with_the_reason() -> None:
    faults = 0
    for seed in seeds()[::8]:
        for buf in (*mutants(seed, 12), *list(cuts(seed.buf))[:12]):
            for mp in seed.plans:
                faults += check_drawn(mp, buf)
    assert faults > 700


def check_drawn(mp: MessagePlan, buf: bytes) -> bool:
    drawing = draw(mp, buf)
    try:
        mp.plan.memo["schema"][mp.full_name].verify(buf)
        fault = ""
    except yj.VerifyError as error:
        fault = str(error)
    assert drawing.fault == fault
    assert all(0 <= part.begin <= part.end <= len(buf) for part in drawing.parts)
    assert ("not well-formed: " in str(drawing)) == bool(fault)
    ET.fromstring(drawing.svg())
    return bool(fault)


@pytest.mark.slow
def test_damaged_protobuf_is_drawn_with_the_reason() -> None:
    faults = 0
    records = [record for record in load_vectors() if record["yaff"] is not None]
    for seed, record in list(zip(seeds(), records, strict=True))[::5]:
        mp = seed.plans[0]
        if not record["proto"]:
            continue
        for buf in mutants(Seed(seed.name, seed.plans, record["proto"]), 20):
            drawing = draw_protobuf(mp.plan, mp.full_name, buf)
            ET.fromstring(drawing.svg())
            assert all(0 <= part.begin <= part.end <= len(buf) for part in drawing.parts)
            faults += bool(drawing.fault)
    assert faults > 500


def test_pictures_are_bounded(place: Any) -> None:
    long = place.draw(place.encode({"name": "x" * 1_000_000}))
    assert len(long.svg()) < 2_000_000 and len(str(long)) < 10_000
    assert f"the first {SHOWN_BYTES:,} of 1,000,020 bytes" in str(long)
    many = place.draw(place.encode({"others": [{"name": f"n{number}"} for number in range(20_000)]}))
    assert len(many.parts) <= 2 * MOST_PARTS + 1
    deep: dict[str, Any] = {}
    for _ in range(90):
        deep = {"inner": deep}
    assert place.draw(place.encode(deep)).fault == ""
    assert place.draw(b"").fault and place.draw(b"", representation="protobuf").parts == ()


def test_show_bytes(place: Any, tmp_path: Path) -> None:
    index = tmp_path / "places.arrow"
    yj.build_index(
        index,
        place,
        [place.message_class(height=-1, name="d\u00e9", states=[1, 7], rates={"a": 0.5}, inner={})],
    )
    command = [sys.executable, "-m", "yaffjit", "show", str(index), "0", "--bytes"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == f"# row 0\n{IN_YAFF}"
    refused = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=120)
    assert refused.returncode == 2
    assert "--bytes prints rows, as text: it goes with neither --json nor --where" in refused.stderr
