"""Building indexes in bulk: the same files as message by message, whatever they come from; bad messages."""

from __future__ import annotations

import logging
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest
from framings import CASES
from pyarrow import ipc, parquet
from test_corpora import SOURCES
from vectors import TESTS

import yaffjit as yj
from yaffjit.codec import transcode
from yaffjit.codec.encode import LAYOUTS
from yaffjit.codec.tiers import _code_of, code_ahead
from yaffjit.demo import SCHEMA_FILE, banners
from yaffjit.index import batches, feed, flush, part, sources
from yaffjit.index.ordered import Ordered
from yaffjit.plan.wire_tables import transcode_table
from yaffjit.rows import ProtobufPayloads

pytestmark = pytest.mark.slow

SCHEMA = TESTS / "schemas" / "columns.proto"
ROWS = 3000


@cache
def banner_type() -> Any:
    return yj.load_schema(SCHEMA_FILE)["ads.Banner"]


@cache
def messages() -> list[Any]:
    return list(banners(banner_type().message_class, ROWS))


@cache
def payloads() -> list[bytes]:
    return [message.SerializeToString() for message in messages()]


@cache
def row_type() -> Any:
    return yj.load_schema(SCHEMA)["columns.Row"]


def joined(items: list[bytes]) -> tuple[bytes, Any]:
    return b"".join(items), np.cumsum([0, *map(len, items)])


@pytest.fixture
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small units, as of a large file."""
    monkeypatch.setattr(sources, "FIRST_NBYTES", 5000)
    monkeypatch.setattr(sources, "GROWTH", 1)
    monkeypatch.setattr(sources, "CAST_ROWS", 700)


@pytest.fixture(scope="module")
def files(tmp_path_factory: Any) -> Path:
    """The banners as messages in an index, by layout, and in files of all forms."""
    folder: Path = tmp_path_factory.mktemp("build")
    for layout in LAYOUTS:
        yj.build_index(folder / f"{layout}.arrow", banner_type(), messages(), layout=layout)
    for number, case in enumerate(CASES):
        (folder / f"case{number}").write_bytes(b"".join(map(case.framed, payloads())))
    column = pa.table({"id": range(ROWS), "payload": pa.array(payloads(), pa.binary())})
    parquet.write_table(column, folder / "x.parquet")
    with ipc.new_file(folder / "x.arrow", column.schema) as writer:
        writer.write_table(column, 700)
    (folder / "one").mkdir()
    for row, payload in enumerate(payloads()[:20]):
        (folder / "one" / f"{row:02}.pb").write_bytes(payload)
    return folder


def built(tmp_path: Path, given: Any, **options: Any) -> bytes:
    path = tmp_path / "x.arrow"
    yj.build_index(path, banner_type(), given, **options)
    return path.read_bytes()


# --- the same files ---


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_are_those_of_messages(
    files: Path, tmp_path: Path, few_at_once: None, layout: str, threads: int
) -> None:
    options = {"layout": layout, "threads": threads}
    expected = (files / f"{layout}.arrow").read_bytes()
    assert built(tmp_path, yj.read_delimited(files / "case0"), **options) == expected
    assert built(tmp_path, payloads(), **options) == expected
    mixed = [m if row % 3 else p for row, (m, p) in enumerate(zip(messages(), payloads(), strict=True))]
    assert built(tmp_path, iter(mixed), **options) == expected


def test_the_kernel_makes_the_same_files(files: Path, tmp_path: Path, few_at_once: None) -> None:
    transcode.work.load()
    assert built(tmp_path, payloads(), threads=3) == (files / "flat.arrow").read_bytes()


def test_code_is_made_ahead_of_a_large_file(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a thread, while the first messages are transcoded without it, and where it pays."""
    begun: list[threading.Thread | None] = []

    def told(*args: Any) -> threading.Thread | None:
        begun.append(code_ahead(*args))
        return begun[-1]

    monkeypatch.setattr(transcode, "code_ahead", told)
    message_type = yj.load_schema(SCHEMA_FILE)["ads.Banner"]  # whose code isn't there yet
    given = yj.read_delimited(files / "case0")
    for nbytes in (given.nbytes, 10_000_000_000, 10_000_000_000):
        given.nbytes = nbytes
        yj.build_index(tmp_path / "x.arrow", message_type, given)
        assert (tmp_path / "x.arrow").read_bytes() == (files / "flat.arrow").read_bytes()
    made = begun[1]
    assert begun[0] is None and begun[2] is None  # too few messages, and it's there
    assert made is not None and not made.is_alive()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("yaffjit")]
    wire = transcode_table(message_type.plan)
    assert _code_of(message_type.plan, wire, LAYOUTS.index("flat")).loaded is not None


FORMS: dict[str, Any] = {
    "tuple": lambda: joined(payloads()),
    "tuple of lists": lambda: (joined(payloads())[0], joined(payloads())[1].tolist()),
    "memoryviews": lambda: map(memoryview, payloads()),
    "binary": lambda: pa.array(payloads(), pa.binary()),
    "large_binary": lambda: pa.array(payloads(), pa.large_binary()),
    "sliced": lambda: pa.array([b"x", *payloads(), b"y"], pa.binary()).slice(1, ROWS),
    "chunked": lambda: pa.chunked_array([payloads()[:1000], [], payloads()[1000:]], pa.binary()),
    "dictionary": lambda: pa.array(payloads(), pa.binary()).dictionary_encode(),
    "views": lambda: pa.array(payloads(), pa.binary_view()),
    "transcoded": lambda: ProtobufPayloads(
        np.frombuffer(joined(payloads())[0], np.uint8).copy(), joined(payloads())[1]
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_bytes(files: Path, tmp_path: Path, few_at_once: None, form: str) -> None:
    assert built(tmp_path, FORMS[form]()) == (files / "flat.arrow").read_bytes()


def test_readers(files: Path, tmp_path: Path, few_at_once: None) -> None:
    expected = (files / "flat.arrow").read_bytes()
    for number, case in enumerate(CASES):
        assert built(tmp_path, case.read(files / f"case{number}")) == expected
    assert built(tmp_path, yj.read_parquet(files / "x.parquet", "payload")) == expected
    assert built(tmp_path, yj.read_arrow(files / "x.arrow", "payload")) == expected
    with open(files / "case0", "rb") as file:
        assert built(tmp_path, yj.read_delimited(file)) == expected
    few = built(tmp_path, payloads()[:20])
    assert built(tmp_path, yj.read_files(str(files / "one" / "*.pb"))) == few


def test_parts_are_cut_where_they_should_be(files: Path, tmp_path: Path, few_at_once: None) -> None:
    for name, given in (("messages", messages()), ("bytes", yj.read_delimited(files / "case0"))):
        made = yj.build_index(tmp_path / name, banner_type(), given, part_rows=777)
        added = yj.append_index(tmp_path / name, given, part_rows=2000)
        assert (made.rows, len(made.parts), added.rows, len(added.parts)) == (ROWS, 4, ROWS, 2)
    for name in sorted(os.listdir(tmp_path / "messages")):
        assert (tmp_path / "bytes" / name).read_bytes() == (tmp_path / "messages" / name).read_bytes()


@pytest.mark.parametrize("given", [3, "text", b"bytes", {"a": 1}, pa.array([1, 2])])
def test_what_is_no_messages(tmp_path: Path, given: Any) -> None:
    with pytest.raises(
        TypeError, match=r"^(messages must be an iterable|an Arrow column of messages must be)"
    ):
        yj.build_index(tmp_path / "x.arrow", banner_type(), given)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("offsets", [[0, 5, 3], [0, 100], [-1, 2]])
def test_offsets_that_do_not_fit(tmp_path: Path, offsets: list[int]) -> None:
    with pytest.raises(ValueError):
        yj.build_index(tmp_path / "x.arrow", banner_type(), (b"abc", np.array(offsets)))
    assert os.listdir(tmp_path) == []


# --- layouts ---


def check_sizes(message_type: Any, given: list[bytes], folder: Path) -> None:
    found = {
        layout: yj.build_index(folder / "x.arrow", message_type, given, layout=layout) for layout in LAYOUTS
    }
    least = min(found["flat"].nbytes, found["sparse"].nbytes)
    assert found["auto"].nbytes <= 1.1 * least
    assert found["smallest"].nbytes <= 1.01 * least
    for made in found.values():
        assert sum(made.layouts.values()) == made.rows == len(given)
    smallest = [len(message_type.encode(message_type.message_class.FromString(p), "sparse")) for p in given]
    flat = [len(message_type.encode(message_type.message_class.FromString(p))) for p in given]
    if message_type.plan.layout == "dynamic" and not message_type.plan.gapped:
        fewer = sum(s < f for s, f in zip(smallest, flat, strict=True))
        assert found["smallest"].layouts == {"flat": len(given) - fewer, "sparse": fewer}
        assert found["sparse"].layouts == {"flat": 0, "sparse": len(given)}


def test_sizes_of_layouts(tmp_path: Path) -> None:
    check_sizes(banner_type(), payloads()[:1000], tmp_path)
    few = [row_type().message_class(id=row, **{"name": "x"} if row % 3 else {}) for row in range(200)]
    check_sizes(row_type(), [message.SerializeToString() for message in few], tmp_path)


@pytest.mark.parametrize("name", SOURCES)
def test_sizes_of_layouts_of_real_data(corpora: Path, tmp_path: Path, name: str) -> None:
    from importlib import import_module

    source, full_name = SOURCES[name]
    schema = yj.load_schema(corpora / source if source.endswith(".proto") else import_module(source))
    given = [payload for payload, _ in zip(yj.read_delimited(corpora / name), range(400), strict=False)]
    check_sizes(schema[full_name], given, tmp_path)


# --- bad messages ---

BAD = {5: b"\x08", 2000: b"\xff\xff", 2001: b"\x2a\x01\xff"}
FAULTS = (
    "ads.Banner, field id: a varint doesn't end within the 0 bytes that are left at byte 1",
    "ads.Banner: a varint doesn't end within the 2 bytes that are left at byte 0",
    "ads.Banner, field title: text isn't UTF-8 from byte 0xff on at byte 2",
)


def spoilt() -> list[bytes]:
    return [BAD.get(row, payload) for row, payload in enumerate(payloads())]


@pytest.mark.parametrize("threads", [1, 2])
def test_the_first_bad_message_is_raised(tmp_path: Path, few_at_once: None, threads: int) -> None:
    path = tmp_path / "x.pb"
    yj.write_delimited(path, spoilt())
    position = sum(len(CASES[0].framed(payload)) for payload in payloads()[:5])
    for given, where in (
        (yj.read_delimited(path), f"{path}: record 5 at byte {position}"),
        (spoilt(), "row 5"),
        (joined(spoilt()), "row 5"),
        (pa.array(spoilt(), pa.binary()), "row 5"),
    ):
        with pytest.raises(yj.DecodeError) as caught:
            yj.build_index(tmp_path / "x.arrow", banner_type(), given, threads=threads)
        assert str(caught.value) == f"{where}: {FAULTS[0]}"
    assert os.listdir(tmp_path) == ["x.pb"]


def test_bad_messages_are_left_out(
    tmp_path: Path, few_at_once: None, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "x.arrow"
    with caplog.at_level(logging.WARNING, "yaffjit"):
        made = yj.build_index(path, banner_type(), spoilt(), on_error="skip", columns={"row": range(ROWS)})
    said = tuple(f"row {row}: {fault}" for row, fault in zip(BAD, FAULTS, strict=True))
    assert (made.rows, made.bad, made.nulls, made.errors) == (ROWS - 3, 3, 0, said)
    assert caplog.messages == [
        f"{path}: 3 bad messages are left out:" + "".join(f"\n  {text}" for text in said)
    ]
    index = yj.open_index(path)
    kept = [row for row in range(ROWS) if row not in BAD]
    assert index.column("row").to_pylist() == kept
    assert index.columns("id")["id"].tolist() == [messages()[row].id for row in kept]
    assert index.valid.all()
    good = tmp_path / "good.arrow"
    yj.build_index(good, banner_type(), [payloads()[row] for row in kept], columns={"row": kept})
    assert path.read_bytes() == good.read_bytes()
    with pytest.raises(ValueError, match=r"^column 'row' has 2999 values for 3000 messages$"):
        yj.build_index(path, banner_type(), spoilt(), on_error="skip", columns={"row": range(ROWS - 1)})


def price(banner: Any) -> float:
    return banner.price  # type: ignore[no-any-return]


@numba.njit
def total(banners: Any) -> float:
    found = 0.0
    for banner in banners:
        found += banner.price
    return found


def test_bad_messages_become_null_rows(tmp_path: Path, few_at_once: None) -> None:
    path = tmp_path / "x.arrow"
    made = yj.build_index(path, banner_type(), spoilt(), on_error="null", columns={"row": range(ROWS)})
    assert (made.rows, made.bad, made.nulls, len(made.errors)) == (ROWS, 3, 3, 3)
    prices = np.array([0.0 if row in BAD else m.price for row, m in enumerate(messages())])
    for verify in ("open", "batch"):
        index = yj.open_index(path, verify=verify)
        assert np.flatnonzero(~index.valid).tolist() == list(BAD)
        assert index.payload(5) is None and index[5].title == "" and index[6] == messages()[6]
        assert np.flatnonzero(~index[1995:2005].valid).tolist() == [5, 6]
        assert index.take([2000, 1, 5]).valid.tolist() == [False, True, False]
        assert index.take(np.arange(1, 2100)).valid.sum() == 2099 - 3
        assert [row is None for row in map(index[4:7].payload, range(3))] == [False, True, False]
        assert index.columns("price")["price"].tolist() == prices.tolist()
        assert total(index) == pytest.approx(prices.sum())
        mapped = index.map(price)
        assert np.flatnonzero(np.isnan(mapped)).tolist() == list(BAD)
        back = banner_type().transcode(index, representation="protobuf")
        assert (back[5], back[6]) == (None, messages()[6].SerializeToString())
    # As nulls of Arrow come in, and of messages that can't be encoded.
    column = pa.array(
        [None if row in BAD else payload for row, payload in enumerate(payloads())], pa.binary()
    )
    same = tmp_path / "same.arrow"
    assert yj.build_index(same, banner_type(), column, columns={"row": range(ROWS)}).nulls == 3
    assert same.read_bytes() == path.read_bytes()
    items = [{"id": "x"} if row in BAD else message for row, message in enumerate(messages())]
    made = yj.build_index(same, banner_type(), items, on_error="null", columns={"row": range(ROWS)})
    assert made.errors[0].startswith("row 5: ")
    assert same.read_bytes() == path.read_bytes()


def test_views_null_and_not(tmp_path: Path) -> None:
    column = pa.array([None, payloads()[1], None, payloads()[3]], pa.binary_view())
    yj.build_index(tmp_path / "x.arrow", banner_type(), column)
    assert yj.open_index(tmp_path / "x.arrow").valid.tolist() == [False, True, False, True]


@pytest.mark.parametrize("representation", ["yaff", "protobuf"])
def test_null_rows_of_records_stay_null(tmp_path: Path, representation: str) -> None:
    banner = banner_type()
    given: list[bytes | None] = [payloads()[row % 50] for row in range(700)]
    nulls = (0, 255, 256, 300, 699)
    for row in nulls:
        given[row] = None
    valid = [payload is not None for payload in given]
    protobuf = yj.records(banner, given, representation="protobuf")
    yaff = banner.transcode(given)
    yj.build_index(tmp_path / "nulls.arrow", banner, yaff)
    expected = [None if payload is None else banner.message_class.FromString(payload) for payload in given]
    for number, recs in enumerate((protobuf, yaff, yj.open_index(tmp_path / "nulls.arrow"), yaff[::-1])):
        path = tmp_path / f"{number}.arrow"
        made = yj.build_index(path, banner, recs, representation=representation)
        index = yj.open_index(path, banner)
        turn = -1 if number == 3 else 1
        assert (made.rows, made.nulls, index.valid.tolist()) == (700, 5, valid[::turn])
        for row, message in enumerate(expected[::turn]):
            assert index[row].to_message() == (banner.message_class() if message is None else message)
            assert (index.payload(row) is None) == (message is None)
        if representation == "protobuf" and recs is protobuf:
            assert [index.payload(row) for row in range(700)] == given
    whole = yaff[np.array(valid)]
    assert yj.build_index(tmp_path / "x.arrow", banner, whole).nulls == 0
    yj.build_index(tmp_path / "x", banner, yaff[:300])
    yj.append_index(tmp_path / "x", yaff[300:])
    assert yj.open_index(tmp_path / "x").valid.tolist() == valid


def test_all_messages_bad(tmp_path: Path) -> None:
    made = yj.build_index(tmp_path / "x.arrow", banner_type(), [b"\x08"] * 30, on_error="skip")
    assert (made.rows, made.bad, len(made.errors)) == (0, 30, feed.SHOWN_ERRORS)
    assert len(yj.open_index(tmp_path / "x.arrow")) == 0
    yj.build_index(tmp_path / "x", banner_type(), [], part_rows=5)
    assert yj.append_index(tmp_path / "x", [b"\x08"] * 30, on_error="skip").parts == ()


@pytest.mark.parametrize("on_error", feed.ON_ERROR)
def test_a_damaged_framing_is_always_raised(tmp_path: Path, few_at_once: None, on_error: str) -> None:
    path = tmp_path / "cut.pb"
    path.write_bytes(b"".join(map(CASES[0].framed, payloads()))[:-1])
    with pytest.raises(
        yj.DecodeError, match=rf"^{path}: record {ROWS - 1} at byte \d+ claims \d+ bytes, but"
    ):
        yj.build_index(tmp_path / "x.arrow", banner_type(), yj.read_delimited(path), on_error=on_error)
    path.write_bytes(b"".join(map(CASES[0].framed, spoilt()))[:-1])
    if on_error == "raise":  # what comes first
        with pytest.raises(yj.DecodeError, match=rf"^{path}: record 5 at byte \d+: ads.Banner, field id: "):
            yj.build_index(tmp_path / "x.arrow", banner_type(), yj.read_delimited(path))
    assert os.listdir(tmp_path) == ["cut.pb"]


def test_what_comes_first_is_raised(tmp_path: Path) -> None:
    def given(error: type[BaseException]) -> Iterator[bytes]:
        yield from spoilt()[:10]
        raise error

    with pytest.raises(yj.DecodeError, match=r"^row 5: "):
        yj.build_index(tmp_path / "x.arrow", banner_type(), given(ZeroDivisionError))
    with pytest.raises(ZeroDivisionError):
        yj.build_index(tmp_path / "x.arrow", banner_type(), given(ZeroDivisionError), on_error="skip")
    with pytest.raises(KeyboardInterrupt):
        yj.build_index(tmp_path / "x.arrow", banner_type(), given(KeyboardInterrupt))
    assert os.listdir(tmp_path) == []


def test_wrong_options(tmp_path: Path) -> None:
    for options, sentence in (
        ({"on_error": "ignore"}, "on_error must be one of 'raise', 'skip', 'null', not 'ignore'"),
        ({"compression": "gzip"}, "compression must be one of None, 'lz4', 'zstd', not 'gzip'"),
        ({"memory": 0}, "memory must be at least 1, not 0"),
        ({"threads": 0}, "threads must be at least 1, not 0"),
    ):
        with pytest.raises(ValueError) as caught:
            yj.build_index(tmp_path / "x.arrow", banner_type(), [], **options)  # type: ignore[arg-type]
        assert str(caught.value) == sentence
    with pytest.raises(TypeError, match=r"^memory must be an int, not str$"):
        yj.build_index(tmp_path / "x.arrow", banner_type(), [], memory="512M")  # type: ignore[arg-type]


# --- what isn't carried ---


def test_declared_fields_that_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "d.proto").write_text(
        'syntax = "proto3"; package d; message M { int32 a = 1; int32 old = 2 [deprecated = true];'
        " M inner = 3; repeated M gone = 4 [deprecated = true];"
        " repeated int32 packed = 5 [deprecated = true]; }"
    )
    message_type = yj.load_schema(tmp_path / "d.proto")["d.M"]
    inner = message_type.message_class(old=3, gone=[{"old": 1}, {}], packed=[1, 2])
    message = message_type.message_class(a=1, old=2, inner=inner)
    expected = {"d.M #2": 4, "d.M #4": 4, "d.M #5": 2}
    payload = message.SerializeToString() + b"\xf8\x06\x01"  # 111: 1
    for given in ([payload, payload], [message_type.message_class.FromString(payload)] * 2):
        made = yj.build_index(tmp_path / "x.arrow", message_type, given)
        assert (dict(made.dropped_fields), dict(made.unknown_fields)) == (expected, {"d.M #111": 2})
        assert (made.rows, made.uncounted) == (2, 0)


# --- batches of large messages ---


@numba.njit
def sum_first(rows: Any) -> int:
    found = 0
    for row in rows:
        found += row.first
    return found


def test_batches_of_large_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (batches, part):
        monkeypatch.setattr(module, "BATCH_NBYTES", 500)
    path = tmp_path / "x.arrow"
    rows = [row_type().message_class(first=row, name="n" * (row % 50)) for row in range(1000)]
    rows[3].name = "n" * 2000
    yj.build_index(path, row_type(), rows)
    by_bytes = tmp_path / "y.arrow"
    yj.build_index(by_bytes, row_type(), [message.SerializeToString() for message in rows])
    assert by_bytes.read_bytes() == path.read_bytes()
    with ipc.open_file(path) as reader:
        sizes = [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]
    assert sum(sizes) == 1000 and len(sizes) > 50
    for verify in ("open", "batch"):
        index = yj.open_index(path, verify=verify)
        assert not index._store.scattered
        assert sum_first(index) == sum_first(index.take(np.arange(1000))) == 999 * 500
        assert [view.first for view in index[990:]] == list(range(990, 1000))
        assert index[3].name == "n" * 2000
    index = yj.open_index(path, verify="batch")
    assert index[3].first == 3
    assert sum(index._files._checked) == 1
    monkeypatch.setattr(part, "BATCH_NBYTES", 1 << 20)
    with pytest.raises(
        yj.IndexFileError, match=rf"batch 0 of {len(sizes)} has {sizes[0]} rows, but an index "
    ):
        yj.open_index(path)


# --- threads and disks ---


def test_results_come_in_order() -> None:
    started = threading.Event()

    def work(number: int) -> int:
        if number == 0:
            assert started.wait(60)  # until others are done
        if number == 5:
            started.set()
        if number == 7:
            raise ZeroDivisionError
        return number

    before = threading.active_count()
    with Ordered(work, 3) as ordered:
        for number in range(8):
            ordered.put(number)
        ordered.give(100)
        assert len(ordered) == 9
        assert [ordered.take() for _ in range(7)] == list(range(7))
        with pytest.raises(ZeroDivisionError):
            ordered.take()
        assert ordered.take() == 100
    with Ordered(work, 1) as ordered:
        ordered.put(5)
        ordered.put(1)
        assert (ordered.take(), threading.active_count()) == (5, before)
    assert threading.active_count() == before


@pytest.mark.parametrize("fails", [False, True])
def test_the_disk_is_fed_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    monkeypatch.setattr(flush, "STEP_NBYTES", 10_000)
    monkeypatch.setattr(flush, "MOST_NBYTES", 50_000)
    monkeypatch.setattr(batches, "BATCH_ROWS", 100)
    done = []

    def fdatasync(fd: int) -> None:
        done.append(fd)
        if fails and len(done) == 2:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(flush.os, "fdatasync", fdatasync)
    before = threading.active_count()
    if fails:
        with pytest.raises(yj.IndexFileError) as caught:
            yj.build_index(tmp_path / "x.arrow", banner_type(), payloads())
        assert str(caught.value) == f"{tmp_path / 'x.arrow'} can't be written: Input/output error"
        assert os.listdir(tmp_path) == []
    else:
        yj.build_index(tmp_path / "x.arrow", banner_type(), payloads())
        assert len(done) > 5
    assert threading.active_count() == before


# Of messages on their way, the transcoder, and LLVM, which makes code for them; all that are read and
# written take 600 MB.
MORE_MEMORY = 320 << 20
MEASURED = """
import re, sys
import yaffjit as yj
Row = yj.load_schema(sys.argv[1])["columns.Row"]
def peak():  # getrusage also counts what the parent had before this program began
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024
yj.build_index(sys.argv[3], Row, [b""] * 100)
before = peak()
made = yj.build_index(sys.argv[3], Row, yj.read_delimited(sys.argv[2]), memory=1)
print(made.rows, made.nbytes, peak() - before, peak())
"""


def test_memory_is_bounded(tmp_path: Path) -> None:
    """Of messages of which 65,536 are 6.5 GB."""
    source = tmp_path / "x.pb"
    large = CASES[0].framed(row_type().message_class(name="n" * 100_000).SerializeToString())
    with open(source, "wb") as file:
        for _ in range(3000):
            file.write(large)
    for _ in range(2):  # the first time the transcoder may be compiled, which takes memory too
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, str(SCHEMA), str(source), str(tmp_path / "x.arrow")],
            env={**os.environ, "PYTHONPATH": str(TESTS.parent)},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    rows, nbytes, more, peak = map(int, done.stdout.split())
    assert (rows, nbytes > 300_000_000) == (3000, True)
    assert more < MORE_MEMORY, (more, peak)
    assert peak < 450 << 20


def test_small_messages_that_become_large() -> None:
    sizes = sources.Sizes(1 << 20, 2 << 20)
    offsets = np.arange(0, 2_000_002, 2)
    made = []
    for first, last in sizes.stretches(offsets):
        made.append((last - first) * 4000)
        sizes.learn(last - first, 2 * (last - first), made[-1])
    assert sum(made) == 4000 * 1_000_000
    assert max(made) <= 4000 * sources.FIRST_ROWS
    assert max(made[1:]) <= 2 << 20


INTERRUPTED = """
import itertools, sys, threading, time
import yaffjit as yj
from yaffjit.demo import SCHEMA_FILE
class Endless:
    def __iter__(self):
        end = time.monotonic() + 60
        for row in itertools.count():
            if row == 50_000:
                print("now", flush=True)
            if time.monotonic() > end:
                return
            yield payload
payload = bytes.fromhex(sys.argv[1])
try:
    yj.build_index(sys.argv[2], yj.load_schema(SCHEMA_FILE)["ads.Banner"], Endless(), threads=3)
except KeyboardInterrupt:
    print([thread.name for thread in threading.enumerate()], flush=True)
"""


def test_control_c_ends_a_build(tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    yj.build_index(path, banner_type(), payloads()[:3])
    before = path.read_bytes()
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, payloads()[0].hex(), str(path)],
        env={**os.environ, "PYTHONPATH": str(TESTS.parent)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "now\n"
        process.send_signal(2)
        assert process.stdout.read() == "['MainThread']\n"
    assert os.listdir(tmp_path) == ["x.arrow"]
    assert path.read_bytes() == before


def test_a_bar_of_bytes(files: Path, tmp_path: Path, capfd: Any) -> None:
    yj.build_index(tmp_path / "x.arrow", banner_type(), yj.read_delimited(files / "case0"), progress=True)
    assert "bytes/s]" in capfd.readouterr().err
    yj.build_index(tmp_path / "x.arrow", banner_type(), payloads(), progress=True)
    assert "0.00/3.00k [00:00<?, ? rows/s]" in capfd.readouterr().err


# --- compressed files ---


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
@pytest.mark.parametrize("name", ["x.arrow", "x"])
def test_compressed_files(tmp_path: Path, compression: str, name: str) -> None:
    options: Any = {"on_error": "null", "columns": {"row": range(ROWS), "odd": [None, "x"] * (ROWS // 2)}}
    if name == "x":
        options["part_rows"] = 1100
    plain, packed, unpacked = (tmp_path / f"{kind}{name}" for kind in ("plain", "packed", "unpacked"))
    made = yj.build_index(plain, banner_type(), spoilt(), **options)
    small = yj.build_index(packed, banner_type(), spoilt(), compression=compression, **options)
    assert small.nbytes < 0.7 * made.nbytes
    index = yj.open_packed(packed)
    how = f"compressed ({compression}), not zero-copy"
    assert repr(index) == f"<PackedIndex of ads.Banner: {ROWS:,} rows, {how}, {str(packed)!r}>"
    assert (len(index), index.message_type.full_name, index.compression) == (ROWS, "ads.Banner", compression)
    prices = [value for batch in index.batches() for value in batch.columns("price")["price"].tolist()]
    assert prices == yj.open_index(plain).columns("price")["price"].tolist()
    assert [row for row, view in enumerate(index) if not view.id] == list(BAD)
    index.verify()
    for opening in (yj.open_index, yj.open_index_unchecked):
        with pytest.raises(yj.IndexFileError) as caught:
            opening(packed)
        file = packed if name == "x.arrow" else packed / small.parts[0]
        assert str(caught.value) == (
            f"{file} is compressed ({compression}), so it can't be read in place: "
            f"yj.open_packed({str(packed)!r}).batches() unpacks a batch at a time, and "
            f"`yaffjit unpack {packed} -o OUTPUT` or yj.unpack_index the whole"
        )
    yj.unpack_index(packed, unpacked)
    if name == "x.arrow":
        assert unpacked.read_bytes() == plain.read_bytes()
    else:
        for part_name in made.parts:
            assert (unpacked / part_name).read_bytes() == (plain / part_name).read_bytes()
        assert yj.open_index(unpacked).payload(-1) == yj.open_index(plain).payload(-1)


def test_what_is_not_compressed_is_read_so_too(tmp_path: Path) -> None:
    yj.build_index(tmp_path / "x", banner_type(), payloads()[:10], part_rows=10)
    yj.append_index(tmp_path / "x", payloads()[10:20], compression="zstd")
    assert yj.open_packed(tmp_path / "x").compression == "zstd"
    assert [view.id for view in yj.open_packed(tmp_path / "x")] == [m.id for m in messages()[:20]]
    yj.build_index(tmp_path / "y.arrow", banner_type(), payloads()[:10])
    assert "not compressed" in repr(yj.open_packed(tmp_path / "y.arrow"))


def unpacking_fault(path: Path) -> str:
    with pytest.raises(yj.IndexFileError) as caught:
        list(yj.open_packed(path).batches())
    return str(caught.value).removeprefix(str(path))


def test_compressed_files_that_lie(tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    yj.build_index(path, banner_type(), payloads()[:1000], compression="zstd")
    data = path.read_bytes()
    offsets, content = (
        struct.pack("<q", size)
        for size in (8 * 1001, sum(len(banner_type().encode(message)) for message in messages()[:1000]))
    )
    assert data.count(offsets) == 1
    places = {offsets: data.find(offsets), content: data.rfind(content)}
    where = ": batch 0 (rows 0 to 999): "
    for old, size, sentence in (
        (offsets, 8 * 1001 + 65, "its offsets say that they become 8073 bytes, but 8008 are enough"),
        (offsets, -2, " compressed bytes say that they become -2, at most "),
        (content, 1 << 50, f" compressed bytes say that they become {1 << 50}, at most "),
        (content, (1 << 31) + (1 << 26) + 65, "its messages say that they become 2214592577 bytes, but"),
    ):
        path.write_bytes(data[: places[old]] + struct.pack("<q", size) + data[places[old] + 8 :])
        said = unpacking_fault(path)
        assert said.startswith(where) and sentence in said
    for size in (8 * 1000, 8 * 1001 + 8):
        path.write_bytes(data.replace(offsets, struct.pack("<q", size)))
        assert unpacking_fault(path).startswith(where)


def test_damaged_compressed_files(tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    for compression in ("lz4", "zstd"):
        yj.build_index(path, banner_type(), payloads()[:50], compression=compression)
        data = path.read_bytes()
        whole = [view.id for view in yj.open_packed(path)]
        for at in range(0, len(data), 37):
            path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
            try:
                found = [view.id for view in yj.open_packed(path)]
            except yj.IndexFileError:
                continue
            assert found == whole  # padding
