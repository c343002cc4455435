"""Protobuf bytes without a schema: what `yaffjit show --raw` makes of them, and of a file of one message."""

from __future__ import annotations

import io
import json
import os
import random
import struct
import threading
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format
from vectors import TESTS
from wire_campaign import batches
from wire_messages import varint

import yaffjit as yj
from yaffjit.build import payloads as build_payloads
from yaffjit.cli import main
from yaffjit.cli.raw import MAX_FIELDS
from yaffjit.view.raw import RawField, Unreadable, raw_fields

VIEWS = str(TESTS / "schemas" / "views.proto")


def counted(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def show(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(["show", *arguments]) == code
    captured = capsys.readouterr()
    return captured.err if code else captured.out


GUESSES = [
    (b"\x08\x96\x01", "1: varint 150"),
    (b"\x08" + b"\xff" * 9 + b"\x01", "1: varint 18446744073709551615 (-1)"),
    (b"\x11" + struct.pack("<d", 0.25), "2: fixed64 4598175219545276416, 0.25 as double"),
    (b"\x11" + b"\xff" * 8, "2: fixed64 18446744073709551615"),
    (b"\x1d" + struct.pack("<f", 1.5), "3: fixed32 1069547520, 1.5 as float"),
    (counted(4, "café\n".encode()), '4: bytes[6], text "café\\n"'),
    (counted(4, b""), '4: bytes[0], text ""'),
    (counted(4, b"x" * 300), f'4: bytes[300], text "{"x" * 200}" ...'),
    (counted(5, b"\x08\x01\x12\x01a"), '5: bytes[5], message\n  1: varint 1\n  2: bytes[1], text "a"'),
    (counted(6, b"\x01\x02\xac\x02"), "6: bytes[4], packed varint 1, 2, 300"),
    (counted(6, bytes(range(2)) * 20), "6: bytes[40], packed varint " + ", ".join(["0, 1"] * 8) + " ..."),
    (counted(7, struct.pack("<3d", 1.5, -2.0, 1e6)), "7: bytes[24], packed double 1.5, -2.0, 1000000.0"),
    (counted(7, struct.pack("<f", -2.5)), "7: bytes[4], packed float -2.5"),
    (counted(8, b"\xff\xfe\xfd"), "8: bytes[3] ff fe fd"),
    (counted(8, b"\xff" * 40), "8: bytes[40] " + "ff " * 32 + "..."),
    (
        b"\x9b\x06\x08\x01\x9b\x06\x9c\x06\x9c\x06\x08\x02",
        "99: group\n  1: varint 1\n  99: group\n1: varint 2",
    ),
]


@pytest.mark.parametrize(("data", "text"), GUESSES)
def test_guesses(capsys: pytest.CaptureFixture[str], tmp_path: Path, data: bytes, text: str) -> None:
    path = tmp_path / "raw"
    path.write_bytes(data)
    assert show(capsys, "--raw", str(path)) == text + "\n"


LEFT = "a varint doesn't end within the 0 bytes that are left"
FAR = "  " * 100
UNREADABLE = [
    (b"\x08\x01\x10", f"# can't be read from byte 2 on, 1 byte: field #2: {LEFT}"),
    (
        b"\x08\x01\x12\x05a",
        "# can't be read from byte 2 on, 3 bytes: field #2: a size of 5 bytes, but 1 are left",
    ),
    (b"\x0f", "# can't be read from byte 0 on, 1 byte: field #1: wire type 7 (at most 5)"),
    (b"\x00\x01", "# can't be read from byte 0 on, 2 bytes: field number 0 (at least 1)"),
    (b"\x0c", "# can't be read from byte 0 on, 1 byte: end of group 1 without its beginning"),
    (b"\x0b\x08\x02", "  # can't be read from byte 3 on, 0 bytes: field #1: group 1 has no end"),
    (b"\x0b\x14\x08\x02", "  # can't be read from byte 1 on, 3 bytes: end of group 2 without its beginning"),
    (
        b"\x0b" * 101 + b"\x0c" * 101,
        f"{FAR}# can't be read from byte 100 on, 102 bytes: field #1: messages nested 101 deep (at most 100)",
    ),
]


@pytest.mark.parametrize(("data", "line"), UNREADABLE)
def test_says_where_it_cannot_be_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, data: bytes, line: str
) -> None:
    path = tmp_path / "raw"
    path.write_bytes(data)
    assert show(capsys, "--raw", str(path)).splitlines()[-1] == line


def test_goes_on_behind_what_cannot_be_read() -> None:
    """A guess looks at the first 200 fields only; what is behind a nested message is known all the same."""
    nested = b"\x08\x01" * 300 + b"\x0f"
    found = list(raw_fields(counted(1, nested) + b"\x10\x05"))
    assert isinstance(found[0], RawField)
    assert found[0].guess == "message"
    assert isinstance(found[-2], Unreadable)
    assert (found[-2].depth, found[-2].position, found[-2].nbytes) == (1, 603, 1)
    assert found[-2].fault.position == 603
    assert found[-1] == (0, 2, 0, 604, 1, "varint", 5, False)


def test_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "raw"
    path.write_bytes(
        b"\x08\x01" + counted(5, b"\x1b\x12\x01a\x1c") + counted(8, b"\xff" * 40) + b"\x0b\x10\x02"
    )
    assert json.loads(show(capsys, "--raw", str(path), "--json")) == [
        {"number": 1, "wire_type": 0, "position": 0, "nbytes": 1, "guess": "varint", "value": 1},
        {
            **{"number": 5, "wire_type": 2, "position": 2, "nbytes": 5, "guess": "message"},
            "fields": [
                {
                    **{"number": 3, "wire_type": 3, "position": 4, "guess": "group"},
                    "fields": [
                        {
                            **{"number": 2, "wire_type": 2, "position": 5, "nbytes": 1},
                            "guess": "text",
                            "value": "a",
                        }
                    ],
                }
            ],
        },
        {
            **{"number": 8, "wire_type": 2, "position": 9, "nbytes": 40},
            **{"guess": "bytes", "value": "ff" * 32, "cut": True},
        },
        {
            **{"number": 1, "wire_type": 3, "position": 51, "guess": "group"},
            "fields": [
                {"number": 2, "wire_type": 0, "position": 52, "nbytes": 1, "guess": "varint", "value": 2},
                {"unreadable_from": 54, "nbytes": 0, "fault": "field #1: group 1 has no end"},
            ],
        },
    ]


def leaves(fields: list[dict[str, Any]]) -> int:
    return sum(1 + leaves(field.get("fields", [])) for field in fields)


def test_is_limited(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "raw"
    path.write_bytes(b"\x08\x01" * (MAX_FIELDS + 1))
    assert main(["show", "--raw", str(path), "--json"]) == 0
    captured = capsys.readouterr()
    assert leaves(json.loads(captured.out)) == MAX_FIELDS
    assert captured.err == "yaffjit: there are more than 5000 fields; the first 5000 are printed\n"
    path.write_bytes(b"\x08\x01" * MAX_FIELDS)
    assert main(["show", "--raw", str(path)]) == 0
    assert capsys.readouterr().err == ""


def test_any_bytes() -> None:
    """Every byte is in a field or in what can't be read; depths fit; guesses of messages hold together."""
    chance = random.Random(5)
    made: list[bytes] = []
    for _, payloads in batches(chance):
        made += payloads
        if len(made) > 3000:
            break
    made += [chance.randbytes(chance.randrange(60)) for _ in range(3000)]
    unreadable = 0
    for data in made:
        depth = 0
        for found in raw_fields(data):
            assert 0 <= found.depth <= depth + 1
            depth = found.depth
            assert 0 <= found.position <= len(data)
            if isinstance(found, Unreadable):
                unreadable += 1
                assert found.position + found.nbytes <= len(data)
                assert found.fault.position is not None
                assert found.fault.text
            elif found.nbytes is not None:
                assert found.position + found.nbytes < len(data)
    assert unreadable > 1000


def test_deep_bytes_end_soon() -> None:
    nested = b"\xff"
    for _ in range(300):
        nested = counted(1, nested)
    found = list(raw_fields(nested))
    assert max(field.depth for field in found) == 100
    assert isinstance(found[-1], RawField)
    assert found[-1].guess != "message"


# --- a file of one message ---


@pytest.fixture
def message_file(tmp_path: Path) -> Path:
    message_type = yj.load_schema(VIEWS)["views.Banner"]
    message = text_format.Parse('id: 7 title: "tea" leaf { n: 3 }', message_type.message_class())
    path = tmp_path / "message.pb"
    path.write_bytes(message.SerializeToString() + b"\xa0\x06\x05")
    return path


def test_show_as(capsys: pytest.CaptureFixture[str], message_file: Path) -> None:
    shown = show(capsys, str(message_file), "--as", VIEWS, "views.Banner")
    assert shown == 'id: 7\ntitle: "tea"\nleaf {\n  n: 3\n}\n100: 5\n'
    assert json.loads(show(capsys, str(message_file), "--as", VIEWS, "views.Banner", "--json")) == {
        "id": "7",
        "title": "tea",
        "leaf": {"n": 3},
    }
    message_file.write_bytes(b"\x3a\x01\x08")
    assert show(capsys, str(message_file), "--as", VIEWS, "views.Banner", code=1) == (
        f"yaffjit: error: {message_file}: views.Banner, field leaf.n: "
        "a varint doesn't end within the 0 bytes that are left at byte 3\n"
    )


def test_what_has_no_end_is_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(build_payloads, "MAX_NBYTES", 3 << 20)
    sentence = "over 3,145,728 bytes, which is the most that a message has"
    for more in (("--raw",), ("--as", VIEWS, "views.Leaf")):
        assert show(capsys, "/dev/zero", *more, code=1) == f"yaffjit: error: /dev/zero: {sentence}\n"
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(counted(1, bytes(3 << 19))))
    writer.start()
    assert show(capsys, "--raw", str(tmp_path / "pipe")).startswith("1: bytes[1572864]")
    writer.join(60)


def test_standard_input_and_empty_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\x08\x05")))
    assert show(capsys, "--raw", "-") == "1: varint 5\n"
    path = tmp_path / "empty"
    path.write_bytes(b"")
    assert show(capsys, "--raw", str(path)) == ""
    assert show(capsys, "--raw", str(path), "--json") == "[]\n"
    assert show(capsys, "--raw", str(tmp_path / "gone"), code=1) == (
        f"yaffjit: error: {tmp_path / 'gone'}: No such file or directory\n"
    )


@pytest.mark.parametrize("more", [["0"], ["--where", "id > 1"], ["--as", VIEWS, "views.Banner"]])
def test_wrong_usage(capsys: pytest.CaptureFixture[str], message_file: Path, more: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["show", "--raw", str(message_file), *more])
    assert caught.value.code == 2
    assert (
        "--raw and --as print one file, so they go with neither rows nor --where" in capsys.readouterr().err
    )
