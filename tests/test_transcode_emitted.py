"""Code emitted for a schema: the same bytes as `encode`, what it leaves to the kernel, and when it's made."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from evolution import evolutions
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import RandomSchema, messages, schemas
from test_corpora import SOURCES
from vectors import TESTS, load_vectors
from wire_checks import by_kernel, check_transcoding, check_uncarried, joined, outcomes
from wire_messages import Maker, expected, varint

import yaffjit as yj
from benchmarks import transcode as benchmark
from benchmarks.timing import check_equal
from yaffjit.codec import stretches, tiers, transcode
from yaffjit.codec.emitted import engine
from yaffjit.codec.emitted.messages import MAX_DEPTH
from yaffjit.codec.encode import LAYOUTS
from yaffjit.codec.transcode import transcode_many
from yaffjit.codec.work import Work
from yaffjit.demo import SCHEMA_FILE, banners

pytestmark = pytest.mark.slow

SCHEMAS = TESTS / "schemas"


@pytest.fixture(autouse=True, scope="module")
def quick_compilation() -> Iterator[None]:
    """LLVM's optimisation takes most of the time, and has tests of its own."""
    level = engine.SPEED_LEVEL
    engine.SPEED_LEVEL = 0
    yield
    engine.SPEED_LEVEL = level


@cache
def everything() -> yj.MessageType:
    return yj.load_schema(SCHEMAS / "wire.proto")["wire.Everything"]


@cache
def everything3() -> yj.MessageType:
    return yj.load_schema(SCHEMAS / "wire3.proto")["wire3.Everything"]


@cache
def golden(slice: str | None) -> yj.Schema:
    return yj.load_schema(sorted((SCHEMAS / "golden").glob("*.proto")), slice=slice)


class Kernel:
    """The kernel, which tells how many rows were left to it."""

    def __init__(self) -> None:
        self.kernel = transcode._load()
        self.given: set[int] = set()

    @property
    def rows(self) -> int:
        return len(self.given)

    def run(self, request: int, first: int, last: int) -> int:
        self.given.update(range(first, last))
        done: int = self.kernel.run(request, first, last)
        return done


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    kernel = Kernel()
    work = Work(lambda: kernel, lambda: True)
    work.load()
    monkeypatch.setattr(transcode, "work", work)
    return kernel


def tag(number: int, wire_type: int) -> bytes:
    return varint(number << 3 | wire_type)


def counted(number: int, data: bytes) -> bytes:
    return tag(number, 2) + varint(len(data)) + data


# --- the same bytes as encode ---


@pytest.mark.parametrize("speed_level", [0, 2])
def test_what_serializers_write_is_not_left(
    left: Kernel, monkeypatch: pytest.MonkeyPatch, speed_level: int
) -> None:
    monkeypatch.setattr(engine, "SPEED_LEVEL", speed_level)
    banner = yj.load_schema(SCHEMA_FILE)["ads.Banner"]  # another plan, so that code is made anew
    payloads = [message.SerializeToString() for message in banners(banner.message_class, 300)]
    check_transcoding(banner, payloads, tier="emitted")
    assert left.rows == 0
    if speed_level:
        return  # compiling more would take long
    message_type = yj.load_schema(SCHEMAS / "wire3.proto")["wire3.Everything"]
    maker = Maker(random.Random(5))
    payloads = []
    for _ in range(60):
        message = message_type.message_class()
        try:
            message.ParseFromString(maker.message(message_type.message_class.DESCRIPTOR))
        except Exception:
            continue
        message.DiscardUnknownFields()
        payloads.append(message.SerializeToString())
    told = check_transcoding(message_type, payloads, tier="emitted")
    assert (left.rows, told["written"]) == (0, 4 * len(payloads))


def test_golden_vectors(left: Kernel) -> None:
    """Every other message type, in one of the layouts: the campaign has all in all."""
    by_type: dict[tuple[str | None, str], list[bytes]] = {}
    for record in load_vectors():
        if "error" not in record:
            by_type.setdefault((record.get("slice"), record["message"]), []).append(record["proto"])
    rows = given = 0
    for index, ((slice, name), payloads) in enumerate([*by_type.items()][::2]):
        left.given.clear()
        check_transcoding(golden(slice)[name], payloads, (LAYOUTS[index % 4],), "emitted")
        rows += len(payloads)
        given += left.rows
    assert given < rows // 10


def check_random(data: st.DataObject, schema: RandomSchema, writer: RandomSchema) -> None:
    loaded = yj.load_schema(schema.descriptor_set.SerializeToString())
    root = data.draw(st.sampled_from(schema.roots))
    maker = Maker(random.Random(data.draw(st.integers(0, 2**32))))
    payloads = [data.draw(messages(writer.message_class(root))).SerializePartialToString() for _ in range(4)]
    payloads += [maker.message(writer.descriptor(root)) for _ in range(8)]
    payloads += [maker.damaged(payload) for payload in payloads]
    layout = data.draw(st.sampled_from(LAYOUTS))
    check_transcoding(loaded[root], payloads, (layout,), "emitted")
    if layout == "flat":
        check_uncarried(loaded[root], payloads, "emitted")


@settings(max_examples=max(15, settings().max_examples // 5))
@given(st.data())
def test_random_schemas(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    check_random(data, schema, schema)


@settings(max_examples=max(10, settings().max_examples // 8))
@given(st.data())
def test_messages_of_other_versions(data: st.DataObject) -> None:
    """Fields that are unknown, deprecated, or no longer members of a oneof."""
    writer, reader = data.draw(evolutions())
    check_random(data, reader, writer)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_kinds(layout: str) -> None:
    maker = Maker(random.Random(7))
    for message_type in (everything(), everything3()):
        payloads = [maker.message(message_type.message_class.DESCRIPTOR) for _ in range(150)]
        payloads += [maker.damaged(payload) for payload in payloads]
        check_transcoding(message_type, payloads, (layout,), "emitted")
        check_uncarried(message_type, payloads, "emitted")


def test_nothing_outside_is_touched() -> None:
    """Damaged messages, arena and output lie before pages that can't be read."""
    folder = Path(__file__).parent
    paths = f"import sys; sys.path[:0] = {[str(folder.parent), str(folder)]!r}"
    quick = "from yaffjit.codec.emitted import engine; engine.SPEED_LEVEL = 0"
    code = f"{paths}; {quick}; import wire_guard; wire_guard.MESSAGES = 600; wire_guard.main('emitted', True)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert " guarded arrays" in done.stdout


# --- what is left to the kernel ---

CHILD = counted(17, tag(1, 0) + b"\x03")
LEFT = {
    "merged": CHILD * 2,
    "merged in a oneof": counted(30, b"") * 2,
    "another member": counted(31, b"x") + tag(33, 0) + b"\x01",
    "parts of a list": counted(24, b"") + CHILD + counted(24, b""),
    "packed twice": counted(18, b"\x01") * 2,
    "mixed": counted(18, b"\x01") + tag(18, 0) + b"\x03",
    "closed enum": tag(32, 0) + b"\x63",
    "strange pair": counted(26, tag(9, 0) + b"\x01"),
    "a key twice": counted(26, tag(1, 0) + b"\x01") * 2,
    "group": tag(77, 3) + tag(77, 4),
    "padded tag": b"\x88\x80\x00\x05",
    "padded size": tag(16, 2) + b"\x81\x80\x80\x80\x80\x00x",
    "cut": b"\x08",
    "nothing after a long tag": tag(200000, 0),
    "unsorted": b"".join(counted(26, tag(1, 0) + varint(i)) for i in range(400, 200, -1)),
}
NOT_LEFT = {
    "numbers last first": tag(14, 0) + varint(2**32 + 1) + tag(2, 0) + varint(2**63 + 1),
    "twice": (tag(1, 0) + b"\x01") * 2,
    "unknown": tag(300000, 0) + b"\x05" + tag(300001, 5) + b"abcd" + counted(300002, b"xy"),
    "a few unsorted": b"".join(counted(26, tag(1, 0) + varint(i * 7 % 31)) for i in range(31)),
    "not carried": counted(36, tag(1, 0) + b"\x08"),
    "not packed": (tag(18, 0) + b"\x03") * 3,
    "padded number": tag(1, 0) + b"\x81\x80\x00",
}


@pytest.mark.parametrize(("cases", "rows"), [(LEFT, 1), (NOT_LEFT, 0)])
def test_what_is_left(left: Kernel, cases: dict[str, bytes], rows: int) -> None:
    for name, payload in cases.items():
        left.given.clear()
        check_transcoding(everything(), [payload], ("flat",), "emitted")
        assert left.rows == rows, name
        check_uncarried(everything(), [payload], "emitted")


def test_rows_that_are_left_are_given_in_runs(left: Kernel) -> None:
    """All in one order, whoever does them."""
    odd = counted(17, tag(1, 0) + b"\x03") * 2
    payloads = [odd] * 3 + [b""] + [odd] * 700 + [tag(1, 0) + b"\x01"] * 5
    check_transcoding(everything(), payloads, ("flat",), "emitted")
    assert 703 <= left.rows < 703 + tiers._MOST_ROWS


def test_depth(left: Kernel) -> None:
    def nested(depth: int, number: int) -> bytes:
        inner = b""
        for _ in range(depth):
            inner = counted(number, inner)
        return inner

    for number in (17, 24, 30, 36):
        for depth in (MAX_DEPTH, MAX_DEPTH + 1, 99, 100, 101, 5000):
            left.given.clear()
            check_transcoding(everything(), [nested(depth, number)], ("flat",), "emitted")
            assert left.rows == (depth > MAX_DEPTH), (number, depth)


def test_rows_that_need_more_room(monkeypatch: pytest.MonkeyPatch, left: Kernel) -> None:
    monkeypatch.setattr(stretches, "_WORK_NBYTES", 64)
    monkeypatch.setattr(stretches, "_SHARED", 8)
    message_type = everything3()
    message = message_type.message_class(texts=[str(i) for i in range(3000)], raw=b"x" * 50000)
    message.names.update({f"{i:04}": str(i) for i in range(50)})
    payloads = [b"", message.SerializeToString(), b"", *[tag(1, 0) + b"\x05"] * 3]
    check_transcoding(message_type, payloads, tier="emitted")
    assert left.rows == 0


def test_rows_that_need_too_much_room(monkeypatch: pytest.MonkeyPatch, left: Kernel) -> None:
    """Work areas have a limit: sizes of what is written aren't known before."""
    from yaffjit.codec.emitted import rows

    monkeypatch.setattr(rows, "_MOST_WORK", 2**12)
    monkeypatch.setattr(stretches, "_WORK_NBYTES", 64)
    message_type = yj.load_schema(SCHEMAS / "wire3.proto")["wire3.Everything"]
    check_transcoding(message_type, [counted(15, bytes(2**13)), b""], ("flat",), "emitted")
    assert left.rows == 1


def test_buffers_over_the_limit_are_left(monkeypatch: pytest.MonkeyPatch, left: Kernel) -> None:
    message_type = everything3()
    monkeypatch.setattr(stretches, "MAX_OFFSET", 50)
    check_transcoding(
        message_type, [message_type.message_class(raw=b"x" * 100).SerializeToString()], ("flat",)
    )
    assert left.rows == 1


def test_without_a_kernel_rows_are_left_to_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcode, "work", SimpleNamespace(load=lambda: None, kernel=lambda seconds: None))
    payloads = [b"", *LEFT.values(), b""]
    made = transcode_many(everything().plan, *joined(payloads), keep_errors=True, tier="emitted")
    assert outcomes(made) == [expected(everything(), payload, "flat") for payload in payloads]


def test_the_race_compares_equal_bytes() -> None:
    message_type, payloads = benchmark.trees(20)
    for layout in benchmark.LAYOUTS:
        check_equal(benchmark.race("trees", message_type, payloads, layout, benchmark.TREE_LIMITS))
    compiled = benchmark.compile_seconds(message_type, "flat").contenders["emitted"]()
    assert isinstance(compiled, engine.MachineCode)


# --- when it's made ---


@pytest.mark.parametrize("name", SOURCES)
def test_corpora_by_both_tiers(corpora: Path, name: str) -> None:
    """Bytes of `encode`, of real data, under every layout."""
    source, full_name = SOURCES[name]
    given = corpora / source if source.endswith(".proto") else import_module(source)
    message_type = yj.load_schema(given)[full_name]
    payloads = [payload for payload, _ in zip(yj.read_delimited(corpora / name), range(300), strict=False)]
    messages = [message_type.message_class.FromString(payload) for payload in payloads]
    for layout in LAYOUTS:
        expected = [message_type.encode(message, layout) for message in messages]
        for tier in ("table", "emitted"):
            made = by_kernel(message_type, payloads, layout, tier)
            assert outcomes(made) == expected, (layout, tier)


def code_of(message_type: yj.MessageType, payloads: list[bytes]) -> tiers.Code:
    job = transcode._ToYaff(message_type.plan, *joined(payloads), "flat", 0, False)
    return tiers._code_of(job.mp, job.wire, job.mode)


def test_code_is_made_when_it_pays(left: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    message_type = yj.load_schema(SCHEMA_FILE)["ads.Banner"]
    payloads = [message.SerializeToString() for message in banners(message_type.message_class, 100)]
    wanted = transcode_many(message_type.plan, *joined(payloads), tier="table")
    code = code_of(message_type, payloads)
    transcode_many(message_type.plan, *joined(payloads))
    assert code.loaded is None and left.rows == 100
    left.given.clear()
    costs = tiers.compile_seconds(code._wire, 0)
    assert code.repaid(0.9 * costs) is None
    assert code.repaid(0.2 * costs) is not None
    made = transcode_many(message_type.plan, *joined(payloads))
    assert np.array_equal(made.data, wanted.data) and left.rows == 0
    assert code_of(message_type, payloads) is code


def test_nobody_waits_for_what_others_make(monkeypatch: pytest.MonkeyPatch) -> None:
    message_type = yj.load_schema(SCHEMA_FILE)["ads.Banner"]
    code = code_of(message_type, [b""])
    begun, go_on = threading.Event(), threading.Event()
    made = []

    class Slow(engine.MachineCode):
        def __init__(self, text: str) -> None:
            begun.set()
            assert go_on.wait(60)
            super().__init__(text)
            made.append(self)

    monkeypatch.setattr(engine, "MachineCode", Slow)
    threads = [threading.Thread(target=code.make, args=(True,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert begun.wait(60)
    assert code.repaid(1e9) is None
    go_on.set()
    for thread in threads:
        thread.join()
    assert [code.loaded] == made


def test_a_fixed_message_without_fields_has_no_code() -> None:
    from yaffjit.codec.emitted.rows import can_write

    nothing, something = SimpleNamespace(layout=0, limit=0), SimpleNamespace(layout=0, limit=4)
    assert (can_write([nothing]), can_write([something])) == (False, True)  # type: ignore[list-item]


def test_unknown_tier() -> None:
    sentence = r"^tier must be one of 'auto', 'table', 'emitted', 'plain', not 'x'$"
    with pytest.raises(ValueError, match=sentence):
        transcode_many(everything().plan, b"", np.zeros(1, np.int64), tier="x")


def test_plain_tier(left: Kernel) -> None:
    transcode_many(everything().plan, b"", np.zeros(2, np.int64), tier="plain")
    assert left.rows == 0


def test_many_threads() -> None:
    message_type = everything3()
    payloads = [message_type.message_class(raw=b"t" * (i % 50)).SerializeToString() for i in range(300)]
    wanted = transcode_many(message_type.plan, *joined(payloads), "auto", threads=1, tier="table")
    stretch = stretches._STRETCH_NBYTES
    try:
        stretches._STRETCH_NBYTES = 64
        made = transcode_many(message_type.plan, *joined(payloads), "auto", threads=3, tier="emitted")
    finally:
        stretches._STRETCH_NBYTES = stretch
    assert np.array_equal(made.data, wanted.data)
    assert np.array_equal(made.offsets, wanted.offsets)
