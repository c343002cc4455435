"""The compiled codec beside the plain one, which specifies it: the same bytes, objects and sentences."""

from __future__ import annotations

import ast
import contextlib
import gc
import mmap
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from universal_mutants import documents, mutants

from yaffjit.errors import DecodeError, EncodeError
from yaffjit.kernels.objects import NEW_INTS, OLD_INTS, UNKNOWN, layout, missing_symbols
from yaffjit.universal import codec as public
from yaffjit.universal import compiled
from yaffjit.universal.compiled import Codec
from yaffjit.universal.plain_read import Reader
from yaffjit.universal.plain_write import MAX_SUBSTITUTES, Writer

pytestmark = pytest.mark.slow

Default = Callable[[Any], Any] | None


@pytest.fixture(scope="module")
def codecs() -> list[Codec]:
    """One that knows how objects lie in memory, and one that asks functions for all."""
    return [Codec(), Codec(UNKNOWN)]


def outcome(function: Callable[[], Any], show: Callable[[Any], str] = repr) -> str:
    try:
        return show(function())
    except (EncodeError, DecodeError, ArithmeticError) as error:
        return f"{type(error).__name__}: {error}"


def write_options(**given: Any) -> Any:
    options = {"compact": True, "width": "java", "order": "swapped", "strings": "utf8", "null": False}
    return public.write_options(*{**options, "max_depth": 512, **given}.values())


def read_options(**given: Any) -> Any:
    options = {"compact": True, "order": "swapped", "null": False, "strict": False, "max_items": None}
    return public.read_options(*{**options, "max_depth": 512, **given}.values())


def writings(
    codecs: list[Codec], make: Callable[[], Any], make_default: Any = None, **given: Any
) -> list[str]:
    """What the plain codec and the compiled ones make of an object that is made anew for each."""
    options, flags = write_options(**given)

    def default() -> Default:
        return make_default() if make_default is not None else None

    def compiled_write(codec: Codec) -> bytes:
        made = default()
        return codec.write(make(), flags, lambda value: compiled.lower(value, made))

    return [outcome(lambda: Writer(options, default()).write(make()))] + [
        outcome(lambda codec=codec: compiled_write(codec)) for codec in codecs
    ]


def readings(
    codecs: list[Codec], data: Any, whole: bool = True, show: Callable[[Any], str] = repr, **given: Any
) -> list[str]:
    options, flags = read_options(**given)
    flags |= compiled.WHOLE if whole else 0

    def plain() -> Any:
        value, end = Reader(data, options).read(0, whole)
        return value if whole else (value, end)

    return [outcome(plain, show)] + [
        outcome(lambda codec=codec: codec.read(data, 0, flags, options.max_items), show) for codec in codecs
    ]


def agree(outcomes: list[str]) -> str:
    assert outcomes[1:] == outcomes[:1] * (len(outcomes) - 1)
    return outcomes[0]


def test_this_interpreter_is_known() -> None:
    assert missing_symbols() == []
    assert layout() == (OLD_INTS if sys.version_info < (3, 12) else NEW_INTS)


# ---- writing ----

TEXTS = st.text(st.characters(), max_size=8) | st.text("ab\xe9\u0439\U0001f600", min_size=100, max_size=200)
KEYS = TEXTS | st.sampled_from(["a", "b", "value"])
INTS = st.integers(-(2**66), 2**66) | st.sampled_from(
    [-(2**n) + d for n in (7, 15, 31, 63) for d in (-1, 0, 1)]
)
SCALARS: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | INTS
    | INTS.map(abs)
    | st.floats()
    | TEXTS
    | st.binary(max_size=3)
    | st.sampled_from(
        [
            np.int8(-3),
            np.uint16(65535),
            np.float32(0.1),
            np.bool_(False),
            np.str_("x"),
            np.uint64(2**63),
            {1},
            1j,
        ]
    )
    | st.sampled_from(["b1", "i1", "u1", "<i2", ">u2", "i4", "u4", "i8", "f2", "f4", "f8"]).map(
        lambda dtype: np.arange(300)[::-7].astype(dtype)
    )
)
OBJECTS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.lists(inner, max_size=6).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=6)
        | st.dictionaries(st.integers() | st.binary(max_size=2) | KEYS, inner, max_size=3)
    ),
    max_leaves=30,
)
WRITE_OPTIONS = st.fixed_dictionaries(
    {
        "compact": st.booleans(),
        "width": st.sampled_from(["java", "smallest"]),
        "order": st.sampled_from(["swapped", "little", "big"]),
        "strings": st.sampled_from(["utf8", "latin1", "utf16"]),
        "null": st.booleans(),
        "max_depth": st.sampled_from([1, 2, 3, 512]),
    }
)


def fails(value: Any) -> Any:
    raise ArithmeticError(f"no substitute for {type(value).__name__}")


DEFAULTS: list[Any] = [
    None,
    None,
    lambda: repr,
    lambda: fails,
    lambda: lambda value: [value, "x"],
    lambda: lambda v: v,
]


@given(obj=OBJECTS, options=WRITE_OPTIONS, make_default=st.sampled_from(DEFAULTS))
def test_any_object_becomes_the_same_bytes(
    codecs: list[Codec], obj: Any, options: dict[str, Any], make_default: Any
) -> None:
    found = agree(writings(codecs, lambda: obj, make_default, **options))
    if found[0] == "b":  # bytes
        data = ast.literal_eval(found)
        reading = {name: options[name] for name in ("compact", "order", "null")}
        value = agree(readings(codecs, data, strict=True, **reading))
        assert not value.startswith(("Document", "Truncated"))
        agree(readings(codecs, data + data, False, **reading))


def nested(depth: int, around: Callable[[Any], Any]) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = around(value)
    return value


@pytest.mark.parametrize(
    "around", [lambda v: [v], lambda v: (v,), lambda v: {"k": v}, lambda v: ["", {"k": v}]]
)
def test_depth(codecs: list[Codec], around: Any) -> None:
    def show(value: Any) -> str:  # not by recursion
        return Writer(write_options(max_depth=1000)[0], None).write(value).hex()

    levels = 2 if len(around(1)) == 2 else 1
    for max_depth in (2, 512, 1000):
        deepest = partial(nested, max_depth // levels, around)
        data = ast.literal_eval(agree(writings(codecs, deepest, max_depth=max_depth)))
        agree(readings(codecs, data, show=show, max_depth=max_depth))
        deeper = partial(nested, max_depth // levels + 1, around)
        refused = agree(writings(codecs, deeper, max_depth=max_depth))
        assert f"nesting is deeper than {max_depth} (max_depth)" in refused
        refused = agree(readings(codecs, data, max_depth=max_depth - 1))
        assert f"nesting is deeper than {max_depth - 1} (max_depth) at byte" in refused


def test_large_outputs_grow(codecs: list[Codec]) -> None:
    for obj in (
        list(range(50_000)),
        {f"key {i}": "\u0439" * 100 for i in range(3_000)},
        ["x" * 100_000, "\xe9" * 100_000],
        [[]] * 40_000,
        np.arange(30_000),
        ["x" * 100] * 1000,
        [1],
        ["x" * 300_000],
        [1],
    ):
        for options in ({}, {"strings": "latin1", "compact": False}):
            plain, flags = write_options(**options)
            data = Writer(plain, None).write(obj)
            reading = read_options(compact=plain.compact)
            value = Reader(data, reading[0]).read()[0]
            for codec in codecs:
                assert codec.write(obj, flags, compiled.lower_without_default) == data
                read = codec.read(data, 0, reading[1] | compiled.WHOLE, reading[0].max_items)
                assert read == value


# ---- objects that change while they are written ----


def changing(change: Callable[[Any, int], Any]) -> tuple[list[Any], Any]:
    """Room for containers, and what makes a ``default`` that changes the last one there."""
    made: list[Any] = []

    def default() -> Default:
        calls = [0]

        def substitute(value: Any) -> Any:
            calls[0] += 1
            return change(made[-1], calls[0])

        return substitute

    return made, default


def clear(container: Any, call: int) -> Any:
    container["list"].clear()
    container["dict"].clear()
    container.clear()
    gc.collect(0)
    return [1, 2]


def grow(container: Any, call: int) -> Any:
    container["list"].append(b"")
    container["dict"][str(call)] = b""
    return {"x": call}


def exchange(container: Any, call: int) -> Any:
    container["list"][-1:] = [None]
    if container["dict"]:
        container["dict"].pop(next(iter(container["dict"])))
    container["dict"][f"new {call}"] = b"new"
    return str(call)


def again(container: Any, call: int) -> Any:
    """Writes and reads within a call."""
    return [str(public.loads(public.dumps({"inner": call})))]


def raises(container: Any, call: int) -> Any:
    container["list"].clear()
    if call == 2:
        raise ArithmeticError("at the second call")
    return call


@pytest.mark.parametrize("change", [clear, grow, exchange, again, raises])
@pytest.mark.parametrize("where", ["list", "dict", "keys", "both"])
def test_containers_that_change(codecs: list[Codec], change: Any, where: str) -> None:
    if where == "keys":  # which text takes the place of
        made, default = changing(lambda container, call: str(change(container, call)))
    else:
        made, default = changing(change)

    def make() -> Any:
        obj: dict[Any, Any] = {"list": [], "dict": {}}
        if where in ("list", "both"):
            obj["list"] += [b"1", "x", b"2", [b"3", "y" * 50]]
        if where in ("dict", "both"):
            obj["dict"].update({"k1 " * 9: b"1", "k2": 2, "k3": [b"3"], "k4": "z"})
        if where == "keys":
            obj["dict"].update({b"k1": ["v"] * 3, b"k2": b"2", "k3": 3})
        made.append(obj)
        return obj

    for _ in range(5):
        found = agree(writings(codecs, make, default))
    assert found[0] == "b" or "while it was written" in found or "at the second call" in found


def test_changes_are_told(codecs: list[Codec]) -> None:
    for change, kind, numbers in (
        (lambda c: c.append(1), list, "went from 2 to 3 items"),
        (lambda c: c.clear(), list, "went from 2 to 0 items"),
    ):
        holder: list[Any] = []

        def make(kind: Any = kind, holder: Any = holder) -> Any:
            holder[:] = [kind([b"", 1])]
            return {"a": holder[0]}

        def default(change: Any = change, holder: Any = holder) -> Default:
            return lambda value: change(holder[0])

        found = agree(writings(codecs, make, default, null=True))
        assert found == f"EncodeError: a: the list {numbers} while it was written"


def test_substitutes_that_need_substitutes(codecs: list[Codec]) -> None:
    def countdown() -> Default:
        left = [MAX_SUBSTITUTES]

        def substitute(value: Any) -> Any:
            left[0] -= 1
            return "done" if left[0] < 0 else {left[0]}

        return substitute

    def for_ever() -> Default:
        return lambda value: {1}

    assert agree(writings(codecs, lambda: {"a": [b""]}, countdown)).startswith("b'")
    text = f"default= gave {MAX_SUBSTITUTES + 1} substitutes for one value, none of which has a code"
    assert agree(writings(codecs, lambda: {"a": [b""]}, for_ever)) == f"EncodeError: a[0]: {text}"
    assert agree(writings(codecs, lambda: {"a": {b"": 1}}, for_ever)) == f"EncodeError: a: {text}"
    assert agree(writings(codecs, lambda: {b"": 1}, countdown)).startswith("b'")


# ---- reading ----


def test_every_cut_is_refused_alike(codecs: list[Codec]) -> None:
    for data in documents():
        for compact in (True, False):
            for nbytes in range(0, len(data) + 1, 3):
                agree(readings(codecs, data[:nbytes], null=True, compact=compact))


def test_mutants_are_read_alike(codecs: list[Codec]) -> None:
    rng = random.Random(5)
    for data in mutants(6_000, seed=1):
        agree(
            readings(
                codecs,
                rng.choice([data, bytearray(data)]) if data else b"",
                rng.random() < 0.7,
                compact=rng.random() < 0.5,
                null=rng.random() < 0.7,
                strict=rng.random() < 0.5,
                order=rng.choice(["swapped", "little", "big"]),
                max_items=rng.choice([None, None, 0, 5]),
                max_depth=rng.choice([512, 3]),
            )
        )


def test_mutants_between_pages_that_cannot_be_read() -> None:
    for what, status in (("behind", -signal.SIGSEGV), ("before", -signal.SIGSEGV), ("read", 0)):
        done = subprocess.run(
            [sys.executable, Path(__file__).with_name("universal_mutants.py"), what],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == status, done.stderr
    values, refused = map(int, done.stdout.split())
    assert values > 10_000 and refused > 50_000


def test_look_ups_and_columns_between_pages_that_cannot_be_read() -> None:
    script = Path(__file__).with_name("universal_mutants.py")
    done = subprocess.run(
        [sys.executable, script, "look", "10000"], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    values, refused = map(int, done.stdout.split())
    assert values > 5_000 and refused > 20_000


# ---- references ----


def counts(objects: list[Any]) -> list[int]:
    return [sys.getrefcount(one) for one in objects]


def test_references_are_given_back(codecs: list[Codec]) -> None:
    text, other, number, single = "text" * 9, "\u0439" * 9, 10**15, 1.5e300
    marker = object()
    inner: dict[Any, Any] = {text: number, other: single, "list": [text, (number, None)]}
    substituted: dict[Any, Any] = {text: [marker, b"x"], marker: marker}
    bad: list[Any] = [inner, [{text: [marker]}], [{marker: 1}], [text + "\ud800"], [2**70]]
    held: list[Any] = [
        text,
        other,
        number,
        single,
        marker,
        inner,
        substituted,
        None,
        True,
        int,
        str,
        list,
        dict,
    ]
    array = np.arange(100)

    def no_substitute(value: Any) -> Any:
        raise ArithmeticError

    def rounds(codec: Codec, count: int) -> None:
        flags = write_options(null=True)[1]
        strict = write_options(max_depth=2)[1]
        reading = read_options(null=True)[1] | compiled.WHOLE
        names = {marker: "m", b"x": "x"}
        lowers = [lambda v: compiled.lower(v, names.__getitem__), lambda v: compiled.lower(v, no_substitute)]
        data = codec.write([inner, substituted, array, np.int8(3)], flags, lowers[0])
        strict_reading = read_options(null=True, strict=True)[1]
        duplicates = bytes.fromhex("d1 01 61 55 dd 01 62 01 61 26")
        for _ in range(count):
            codec.write([inner, substituted, array, np.int8(3)], flags, lowers[0])
            codec.read(data, 0, reading, 1000)
            codec.read(memoryview(data), 0, reading & ~compiled.WHOLE, 1000)
            for obj in bad:
                for one, lower in ((flags, lowers[1]), (strict, compiled.lower_without_default)):
                    with contextlib.suppress(EncodeError, ArithmeticError):
                        codec.write([obj], one, lower)
                        codec.write([[[obj]]], strict, lower)
            for nbytes in range(0, len(data), 17):
                with contextlib.suppress(DecodeError):
                    codec.read(data[:nbytes], 0, reading, 1000)
            for items in (0, 5):
                with contextlib.suppress(DecodeError):
                    codec.read(data, 0, reading, items)
            with contextlib.suppress(DecodeError):
                codec.read(duplicates, 0, strict_reading, 1000)

    for codec in codecs:
        rounds(codec, 3)
        gc.collect()
        before, blocks = counts(held), sys.getallocatedblocks()
        rounds(codec, 300)
        gc.collect()
        assert counts(held) == before
        assert sys.getallocatedblocks() - blocks < 200  # one a round would be 300


def resident_nbytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def test_failing_loads_keep_no_memory(codecs: list[Codec]) -> None:
    data = public.dumps([{"a": "\u0439" * 50, "b": [1.5, 10**12, {"c": "d" * 40}]}] * 3)
    many = public.dumps([10**12] * 3000)[:-1]  # more values than there is room for on the stack
    reading = read_options()[1] | compiled.WHOLE

    def failing(count: int) -> None:
        for i in range(count):
            with contextlib.suppress(DecodeError):
                codecs[0].read(data[: 1 + i % (len(data) - 1)], 0, reading, 10_000)
            if i % 100 == 0:
                with contextlib.suppress(DecodeError):
                    codecs[0].read(many, 0, reading, 10_000)

    failing(1000)
    gc.collect()
    blocks, resident = sys.getallocatedblocks(), resident_nbytes()
    failing(100_000)
    gc.collect()
    assert abs(sys.getallocatedblocks() - blocks) < 100
    assert resident_nbytes() - resident < 8 * 2**20  # 1,000 stacks would be 48 MiB
