"""String and bytes fields in jitted code: equal results on a message, its view, and its view in jit."""

from __future__ import annotations

import functools
import gc
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba import typed
from numba.core.runtime import _nrt_python, rtsys

import yaffjit
from yaffjit.errors import CompileAttributeError, CompileError, CompileTypeError, EscapeError

REPOSITORY = Path(__file__).parents[1]
LAYOUTS = ("fixed", "flat", "sparse", "dynamic")
# One character of each width and each kind of str, and those at the limits.
CHARACTERS = "a~\x00\x7f\x80éÿĀ߿ࠀ€\ud7ff\ue000\uffff\U00010000𝄞\U0010ffff"
TEXTS = (
    "",
    "a",
    "de",
    "abcd",
    "héllo",
    "abcdefg",
    "abcdefgh",
    "a\x00b",
    "ÿé",
    "Ā€ab",
    "a𝄞b€é",
    "the quick brown fox jumps over",
    "€" * 40,
    CHARACTERS,
    "x" * 31 + "é",
    "x" * 100,
)


def source() -> str:
    lines = ['syntax = "proto2"; package texts; import "yaff/proto/options.proto";']
    for layout in LAYOUTS:
        lines += [
            f"message {layout.title()} {{",
            f"  option (yaff.proto.message) = {{layout: LAYOUT_{layout.upper()}}};",
            "  optional string a = 1; optional string b = 2; optional int32 n = 3; optional bytes raw = 4;",
            r'  optional string greeting = 5 [default = "h\303\251\000llo"];',
            r'  optional bytes magic = 6 [default = "\377\000Y"]; optional bytes other = 7;',
        ]
        if layout != "fixed":
            lines.append("  oneof pick { string name = 8; bytes blob = 9; int32 number = 10; }")
        lines.append("}")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> yaffjit.Schema:
    path = tmp_path_factory.mktemp("schema") / "texts.proto"
    path.write_text(source())
    return yaffjit.load_schema(path)


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    try:
        found = function(*args)
    except (ValueError, IndexError, TypeError) as error:
        return type(error), error.args if isinstance(error, UnicodeDecodeError) else str(error)
    return [(int if isinstance(v, (bool, int, np.integer)) else type(v), v) for v in plain(found)]


def plain(found: Any) -> list[Any]:
    if isinstance(found, (tuple, list)):
        return [part for value in found for part in plain(value)]
    return [found]


@functools.cache
def compiled(function: Callable[..., Any]) -> Any:
    return numba.njit(function)


def check(
    schema: yaffjit.Schema,
    function: Callable[..., Any],
    contents: list[dict[str, Any]],
    layouts: tuple[str, ...] = ("dynamic",),
) -> None:
    """Equal results and errors on a protobuf message, its view, and its view in jitted code."""
    jitted = compiled(function)
    for layout in layouts:
        message_type = schema[f"texts.{layout.title()}"]
        for content in contents:
            message = message_type.message_class(**content)
            view = message_type.view(message_type.encode(message))
            expected = outcome(function, message)
            assert outcome(function, view) == expected, (layout, content)
            assert outcome(jitted, view) == expected, (layout, content)


def pairs(seed: int = 3, count: int = 40) -> list[dict[str, Any]]:
    """Contents with every text of the list, and pairs of texts that share beginnings."""
    choose = random.Random(seed)
    contents = [{"a": text, "b": TEXTS[i - 1], "raw": text.encode()} for i, text in enumerate(TEXTS)]
    for _ in range(count):
        shared, a, b = ("".join(choose.choices(CHARACTERS, k=choose.randrange(9))) for _ in range(3))
        a, b = shared + a, choose.choice([shared + b, shared, b])
        contents.append(
            {"a": a, "b": b, "raw": a.encode(), "other": b.encode(), "n": choose.randrange(-9, 9)}
        )
    return contents


def read(m: Any) -> Any:
    return m.a, m.greeting, m.raw, m.magic, len(m.a), len(m.greeting), len(m.raw), bool(m.a), not m.magic


def test_a_field_is_read_in_each_layout_with_its_default(texts: yaffjit.Schema) -> None:
    contents = [{}, {"a": "", "raw": b""}, *pairs(count=2), {"greeting": "", "magic": b""}]
    check(texts, read, contents, LAYOUTS)


def read_oneof(m: Any) -> Any:
    return m.name, m.blob, len(m.name), len(m.blob), m.name == "é", m.blob == b"\x00"


def test_a_oneofs_member_that_is_not_set_is_empty(texts: yaffjit.Schema) -> None:
    check(texts, read_oneof, [{}, {"name": "é"}, {"blob": b"\x00"}, {"number": 1}], LAYOUTS[1:])


def compare(m: Any) -> Any:
    a, b = m.a, m.b
    ordered = (a == b, a != b, a < b, a <= b, a > b, a >= b)
    with_literal = (a == "de", "de" != a, a < "héllo", "€" <= a, a > "\uffff", a >= "", a == m.greeting)  # noqa: SIM300
    members = (a in ("de", "a\x00b"), a in {"x", "€", "de"}, a in ["abcd"], a not in ("", "a"), a in (b, "a"))
    return ordered, with_literal, members, min(a, b), max(a, b, "b"), min(a, "b") == a


def test_comparisons_are_those_of_code_points(texts: yaffjit.Schema) -> None:
    check(texts, compare, pairs(), ("flat", "fixed"))


def compare_with(m: Any, s: str) -> Any:
    same = (m.a == s, s == m.a, m.a != s, m.a in (s, "q"))
    return same, m.a < s, s < m.a, m.a <= s, s >= m.a, m.a in s, s in m.a, m.a.startswith(s), m.a.find(s)


def test_a_str_that_is_an_argument_compares_as_well(texts: yaffjit.Schema) -> None:
    message_type = texts["texts.Flat"]
    jitted = numba.njit(compare_with)
    others = [*TEXTS, "a\ud800", "hélla", "€" * 39]
    for text in TEXTS:
        view = message_type.view(message_type.encode({"a": text}))
        for other in others:
            assert jitted(view, other) == compare_with(text_holder(text), other), (text, other)


def in_tuples(m: Any) -> Any:
    text = None
    raw = None
    if m.n > 0:
        text = m.b
        raw = m.other
    name = m.a
    return (
        (name in (text, "q"), name in (None, "n"), name not in (text, None), name in ("q", text, m.greeting)),
        (m.raw in (raw, b"q"), m.raw in (None, b"n"), m.raw in (raw, None)),
    )


def test_none_in_a_tuple_is_equal_to_no_text(texts: yaffjit.Schema) -> None:
    contents = [
        {"n": n, "a": a, "raw": a.encode(), "b": b, "other": b.encode()}
        for n in (0, 1)
        for a in ("", "n", "q", "héllo")
        for b in ("", a, "no")
    ]
    check(texts, in_tuples, contents)


def text_holder(text: str) -> Any:
    class Holder:
        a = text

    return Holder


def characters(m: Any) -> Any:
    a = m.a
    total = 0
    joined = ""
    for c in a:
        total = (total * 31 + ord(c)) % 1000003
        joined = c + joined
        if c == "é":
            total += 1
    positions = 0
    for i, c in enumerate(m.b):
        if c >= "b":
            positions += i
    slices = (a[1:], a[:2], a[:-1], a[-3:-1], a[2:1], a[5:2], a[:], a[::2], a[::-1], a[1:4][1:], a[1:4:2])
    return total, joined, positions, slices, len(a[1:]), len(a[:-1])


def test_characters_and_slices(texts: yaffjit.Schema) -> None:
    check(texts, characters, pairs(), ("dynamic",))


def item(m: Any) -> Any:
    return m.a[m.n], m.a[m.n] == "a", ord(m.a[m.n])


def raw_item(m: Any) -> Any:
    return m.raw[m.n]


def test_an_index_counts_characters_and_raises(texts: yaffjit.Schema) -> None:
    contents = [
        {"a": text, "raw": text.encode(), "n": n} for text in ("", "a", "aé€𝄞z", "abc") for n in range(-6, 6)
    ]
    check(texts, item, contents)
    check(texts, raw_item, contents)


def search(m: Any) -> Any:
    a, b = m.a, m.b
    inside = (b in a, a in b, "é" in a, "" in a, a in "héllo abcd", "a" not in a)
    found = (a.find(b), a.rfind(b), a.find("é"), a.rfind("a"), a.find(""), a.rfind(""), "xaéy".find(a))
    counts = (a.count(b), a.count("a"), a.count(""), a.count("€€"))
    ends = (
        a.startswith(b),
        a.endswith(b),
        a.startswith("hé"),
        a.endswith(("o", "é", b)),
        a.startswith(("x", "")),
    )
    return (
        inside,
        found,
        counts,
        ends,
        a.find("a", 1),
        a.rfind("é", 0, 3),
        a.count("e", 2),
        a.startswith("b", 1),
    )


def position(m: Any) -> Any:
    return m.a.index(m.b)


def last_position(m: Any) -> Any:
    return m.a.rindex(m.b)


def test_search_counts_characters(texts: yaffjit.Schema) -> None:
    contents = pairs()
    check(texts, search, [*contents, {"a": "aXaXaaé", "b": "aa"}, {"a": "éaéaé", "b": "é"}])
    check(texts, position, contents)
    check(texts, last_position, contents)


def hashes(m: Any) -> Any:
    return (
        hash(m.a),
        hash(m.a[1:]),
        hash(m.greeting),
        hash(m.raw),
        hash(m.magic),
        hash((m.a, 3)),
        hash(str(m.a)),
    )


def test_hashes_are_cpythons(texts: yaffjit.Schema) -> None:
    check(texts, hashes, [*pairs(), *({"a": "x" * n, "raw": b"\xff" * n} for n in range(40))])


def strings(m: Any) -> Any:
    a, b = m.a, m.b
    made = (str(a), f"<{a}|{m.n}|{b}>", a + "!", "!" + a, a + b, a * 2, "-".join([a, b]))
    cleaned = (a.lower(), a.strip(), a.replace("l", b), a.split("l"))
    return made, cleaned, list(a), [c for c in b if c != "a"], sorted([a, b])


@pytest.mark.slow
def test_a_text_becomes_a_string_where_numba_needs_one(texts: yaffjit.Schema) -> None:
    contents = [{"a": text, "b": TEXTS[i - 3]} for i, text in enumerate(TEXTS)]
    check(texts, strings, contents)


def containers(m: Any) -> Any:
    counts = {}
    for key in (m.a, m.b, m.a[:1], m.a):
        counts[key] = counts.get(key, 0) + 1
    by_pair = {}
    by_pair[(m.a, m.n)] = m.b
    seen = set()
    seen.add(m.a)
    kept = [m.a]
    kept.append(m.b)
    known = {"de": 1, "a": 2}
    total = 0
    for key in counts:
        total += len(key) * counts[key]
    return (
        (counts[m.a], counts[m.a[:1]], len(counts), total, m.b in counts, m.a[1:] in counts),
        (by_pair[(m.a, m.n)], m.a in seen, m.b in seen, "de" in seen, kept, m.b in kept),
        (known.get(m.a, 0), m.a in known, known["a"]),
    )


def variables(m: Any) -> Any:
    best = ""
    for _ in range(2):
        if len(m.a) > len(best):
            best = m.a
    lowered = m.a.lower() if m.n > 0 else m.b
    name = m.a if m.a else "none"
    maybe = None
    for _ in range(2):
        if m.n < 3:
            maybe = m.b
    raw = None
    for _ in range(2):
        if m.n < 3:
            raw = m.raw
    length = 0 if maybe is None else len(maybe)
    compared = (maybe == "de", maybe != m.b, m.b == maybe, maybe == None, maybe == maybe)  # noqa: E711
    raws = (raw == m.raw, raw != b"de")
    return best, lowered, name, maybe, length, compared, (m.a, (m.b, m.n), m.raw), raws, raw


def test_containers_and_variables_keep_text(texts: yaffjit.Schema) -> None:
    check(texts, containers, pairs(count=8))
    check(texts, variables, pairs(count=8))


def test_a_missing_key_raises(texts: yaffjit.Schema) -> None:
    def look_up(m: Any) -> Any:
        known = {"de": 1}
        return known[m.a]

    message_type = texts["texts.Flat"]
    jitted = numba.njit(look_up)
    assert jitted(message_type.view(message_type.encode({"a": "de"}))) == 1
    with pytest.raises(KeyError):
        jitted(message_type.view(message_type.encode({"a": "fr"})))


def test_dictionaries_of_python_are_looked_up_by_text(texts: yaffjit.Schema) -> None:
    @numba.njit
    def look_up(messages, known):  # type: ignore[no-untyped-def]
        found = 0
        for m in messages:
            if m.a in known:
                found += known[m.a]
            found += known.get(m.b, 100)
        return found

    message_type = texts["texts.Dynamic"]
    known = typed.Dict()
    known["é"] = 1
    known["x"] = 10
    contents = [{"a": "é", "b": "x"}, {"a": "x"}, {"a": "y", "b": "é"}]
    records = yaffjit.records(message_type, [message_type.encode(content) for content in contents])
    assert look_up(records, known) == 1 + 10 + 10 + 100 + 1


def raw_bytes(m: Any) -> Any:
    x, y = m.raw, m.other
    total = 0
    for number in x:
        total = (total * 31 + number) % 1000003
    ordered = (
        x == y,
        x != y,
        x < y,
        x <= y,
        x > y,
        x >= y,
        x == b"de",
        b"\x00" < x,  # noqa: SIM300
        x in (y, b"a"),
        min(x, y),
    )
    found = (x.find(y), x.rfind(b"a"), x.count(b"\xc3"), y in x, b"" in x, 97 in x, 0 in x, x.find(b""))
    ends = (x.startswith(y), x.endswith(b"o"), x.startswith((b"a", y)), len(x[1:]), bytes(x), x[1:3], x[-2:])
    return total, ordered, found, ends, np.frombuffer(x, np.uint8).sum() + 0 * len(y)


def test_bytes(texts: yaffjit.Schema) -> None:
    contents = [*pairs(), {"raw": b"abab", "other": b"ab"}, {"raw": bytes(range(256)), "other": b"\xfe\xff"}]
    check(texts, raw_bytes, contents, ("flat", "sparse"))


def test_numbas_own_bytes_are_read_again(texts: yaffjit.Schema) -> None:
    """A call is part of what LLVM may leave out, and do once, only if nothing that it reads can change."""
    view = texts["texts.Flat"].view(texts["texts.Flat"].encode({"raw": b"abc", "other": b"b"}))

    def effects(function: Callable[..., Any]) -> str:
        jitted = numba.njit(function)
        assert jitted(view, b"bc") is True
        code = jitted.inspect_llvm(jitted.signatures[0])
        (group,) = re.findall(r"define .*@yaffjit\.bytes\.find\..* #(\d+) \{", code)
        (found,) = re.findall(rf"attributes #{group} = .* memory\((.*)\)", code)
        return str(found)

    assert effects(lambda m, raw: raw in m.raw) == "read"
    assert effects(lambda m, raw: m.other in m.raw) == "none"


def test_a_number_that_is_no_byte(texts: yaffjit.Schema) -> None:
    check(texts, lambda m: m.n in m.raw, [{"raw": b"a", "n": n} for n in (97, 98, 0, 255, 256, -1)])


def test_an_array_over_bytes_keeps_them(texts: yaffjit.Schema) -> None:
    @numba.njit
    def arrays(m):  # type: ignore[no-untyped-def]
        return (
            np.frombuffer(m.raw, dtype=np.uint8),
            np.frombuffer(m.raw, np.int32),
            np.frombuffer(m.magic, np.uint8),
        )

    message_type = texts["texts.Flat"]
    raw = np.arange(5, dtype=np.int32).tobytes()
    made, numbers, default = arrays(message_type.view(message_type.encode({"raw": raw})))
    gc.collect()
    assert made.tobytes() == raw
    assert numbers.tolist() == [0, 1, 2, 3, 4]
    assert default.tobytes() == b"\xff\x00Y"
    assert not made.flags.writeable
    with pytest.raises(ValueError, match=r"^buffer size must be a multiple of element size$"):
        arrays(message_type.view(message_type.encode({"raw": b"abc"})))


def test_an_array_over_an_absent_fields_default_owns_a_copy(texts: yaffjit.Schema) -> None:
    """The default is part of the machine code, which goes when nobody has the function any more."""
    message_type = texts["texts.Flat"]
    view = message_type.view(message_type.encode({"raw": b"abc"}))

    def lend(m):  # type: ignore[no-untyped-def]
        return (
            np.frombuffer(m.magic, np.uint8),
            np.frombuffer(m.magic, np.uint8),
            np.frombuffer(m.magic[1:], np.uint8),
            np.frombuffer(m.raw, np.uint8),
            np.frombuffer(m.raw, np.uint8),
        )

    first, second, rest, raw, again = numba.njit(lend)(view)
    gc.collect()
    assert [a.tobytes() for a in (first, second, rest, raw)] == [b"\xff\0Y", b"\xff\0Y", b"\0Y", b"abc"]
    assert first.ctypes.data != second.ctypes.data  # each is a copy
    assert raw.ctypes.data == again.ctypes.data  # bytes of the message aren't copied


# ---- text that isn't UTF-8 ----

INVALID = (
    b"abc\x80",
    b"\xc0\x80",
    b"\xc1\xbf",
    b"a\xe2\x82",
    b"\xe2\x28\xa1",
    b"\xe2\x82\x28",
    b"\xf0\x9f\x98",
    b"\xf0\x9f\x41\x80",
    b"\xf0\x9f\x98\x41",
    b"\xf0\x8f\xbf\xbf",
    b"\xf4\x90\x80\x80",
    b"\xf5abc",
    b"\xed\xa0\x80",
    b"\xe0\x80",
    b"\xe0\x9f\xbf",
    b"\xc3",
    b"0123456789012345678901234567890123456789\xff",
)


def unchecked(message_type: Any, raw: bytes) -> Any:
    mark = b"q" * len(raw)
    buf = message_type.encode({"a": mark.decode(), "n": 1})
    assert buf.count(mark) == 1
    return message_type.view_unchecked(buf.replace(mark, raw))


def iterated(m: Any) -> Any:
    count = 0
    for _ in m.a:
        count += 1
    return count


DECODING: tuple[Callable[[Any], Any], ...] = (
    lambda m: len(m.a),
    lambda m: m.a,
    lambda m: (m.n, (m.a, m.n)),
    lambda m: str(m.a),
    lambda m: hash(m.a),
    lambda m: m.a[0] == "a",
    lambda m: m.a[1:] == "a",
    lambda m: m.a.find("zz"),
    lambda m: m.a + "x",
    iterated,
)


def test_decoding_invalid_text_raises_what_python_raises(texts: yaffjit.Schema) -> None:
    message_type = texts["texts.Flat"]
    functions = [numba.njit(function) for function in DECODING]
    for raw in INVALID:
        view = unchecked(message_type, raw)
        with pytest.raises(UnicodeDecodeError) as expected:
            str(raw, "utf-8")
        for function in functions:
            with pytest.raises(UnicodeDecodeError) as found:
                function(view)
            assert found.value.args == expected.value.args, raw


def test_random_bytes_are_text_for_jit_if_and_only_if_they_are_for_python(texts: yaffjit.Schema) -> None:
    message_type = texts["texts.Flat"]
    jitted = numba.njit(lambda m: (len(m.a), m.a))
    choose = random.Random(8)
    valid = 0
    for _ in range(3000):
        parts = [choose.choice(CHARACTERS).encode() for _ in range(choose.randrange(1, 7))]
        raw = bytearray(b"".join(parts))
        if choose.random() < 0.5:
            raw[choose.randrange(len(raw))] = choose.randrange(256)
        view = unchecked(message_type, bytes(raw))
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            with pytest.raises(UnicodeDecodeError) as found:
                jitted(view)
            assert found.value.args == error.args
        else:
            valid += 1
            assert jitted(view) == (len(text), text)
    assert 1000 < valid < 2900


def test_comparing_decodes_nothing(texts: yaffjit.Schema) -> None:
    view = unchecked(texts["texts.Flat"], b"abc\x80")
    compared = numba.njit(lambda m: (m.a == "abc", m.a < "abd", m.a.startswith("ab"), "bc" in m.a, bool(m.a)))
    assert compared(view) == (False, True, True, True, True)


# ---- lifetime, memory, threads, caches, errors ----


def test_what_jitted_code_keeps_is_a_copy(texts: yaffjit.Schema) -> None:
    message_type = texts["texts.Dynamic"]

    @numba.njit
    def keep(messages):  # type: ignore[no-untyped-def]
        kept = typed.List()
        found = typed.Dict()
        for m in messages:
            kept.append(m.a)
            found[m.a] = m.b
        return kept, found, [m.a for m in messages], messages[0].a

    wanted = [f"text {i} é" for i in range(50)]
    buffers = [message_type.encode({"a": text, "b": text[::-1]}) for text in wanted]
    records = yaffjit.records(message_type, buffers)
    kept, found, listed, first = keep(records)
    del records, buffers
    gc.collect()
    assert list(kept) == wanted == listed
    assert dict(found) == {text: text[::-1] for text in wanted}
    assert first == wanted[0]


def test_a_generator_of_text_stays_inside(texts: yaffjit.Schema) -> None:
    @numba.njit
    def each(m):  # type: ignore[no-untyped-def]
        for c in m.a:  # noqa: UP028
            yield c

    @numba.njit
    def count(m):  # type: ignore[no-untyped-def]
        found = 0
        for c in each(m):
            found += c == "é"
        return found

    message_type = texts["texts.Flat"]
    view = message_type.view(message_type.encode({"a": "éaé"}))
    assert count(view) == 2
    with pytest.raises(EscapeError, match="the jitted generator each holds a"):
        each(view)


@pytest.mark.slow
def test_references_are_counted(texts: yaffjit.Schema) -> None:
    message_type = texts["texts.Flat"]
    view = message_type.view(message_type.encode({"a": "abcé", "b": "de"}))
    jitted = [compiled(function) for function in (containers, variables, strings, search)]
    had_stats = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    try:
        for function in jitted:
            function(view)
        before = rtsys.get_allocation_stats()
        for function in jitted:
            function(view)
        after = rtsys.get_allocation_stats()
    finally:
        if not had_stats:
            _nrt_python.memsys_disable_stats()
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free > 20
    assert after.alloc - before.alloc == after.free - before.free


def test_text_in_a_parallel_loop(texts: yaffjit.Schema) -> None:
    @numba.njit(parallel=True)
    def total(messages):  # type: ignore[no-untyped-def]
        found = 0
        for i in numba.prange(len(messages)):
            m = messages[i]
            if m.a.startswith("é") and m.b != "x":
                found += len(m.a)
        return found

    message_type = texts["texts.Flat"]
    buffers = [message_type.encode({"a": "é" * (i % 5), "b": "xy"[i % 2]}) for i in range(200)]
    assert total(yaffjit.records(message_type, buffers)) == sum(i % 5 for i in range(200) if i % 2)


CACHED = """
import sys
import numba
import yaffjit

@numba.njit(cache=True)
def read(m):
    return m.a, hash(m.a), len(m.a), m.a == "é€"

message_type = yaffjit.load_schema(sys.argv[1])["texts.Flat"]
view = message_type.view(message_type.encode({"a": "é€"}))
assert read(view) == ("é€", hash("é€"), 2, True)
mark = message_type.encode({"a": "abc"}).replace(b"abc", b"ab\\xff")
try:
    read(message_type.view_unchecked(mark))
except UnicodeDecodeError as error:
    assert error.args == ("utf-8", b"ab\\xff", 2, 3, "invalid start byte")
else:
    raise AssertionError
print(sum(read.stats.cache_hits.values()))
"""


@pytest.mark.slow
def test_a_cached_function_hashes_and_raises_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "texts.proto").write_text(source())
    (tmp_path / "script.py").write_text(CACHED)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    hits = [
        subprocess.run(
            [sys.executable, tmp_path / "script.py", tmp_path / "texts.proto"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert hits == ["0\n", "1\n"]


def test_numbers_are_not_made_of_text(texts: yaffjit.Schema) -> None:
    message_type = texts["texts.Flat"]
    view = message_type.view(message_type.encode({"a": "7"}))
    for name, function in (("int", lambda m: int(m.a)), ("float", lambda m: float(m.a))):
        with pytest.raises(CompileTypeError) as found:
            numba.njit(function)(view)
        assert found.value.text == (
            f"{name}() of a text isn't available in jitted code, as it isn't for numba's own strings: "
            "convert outside, or from ord(c) of each character"
        )


def set_character(m: Any) -> None:
    m.a[0] = "x"


def delete_byte(m: Any) -> None:
    del m.raw[0]


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda m: m.raw.hex(), "hex() of bytes isn't available in jitted code: call it outside"),
        (lambda m: m.a.encode(), "encode() of text isn't available in jitted code: call it outside"),
        (lambda m: m.a.nme, "text has no 'nme' in jitted code"),
        (lambda m: m.a.uper(), "text has no 'uper' in jitted code (did you mean 'upper', 'isupper'?)"),
        (lambda m: m.raw.fnd(b"a"), "bytes has no 'fnd' in jitted code (did you mean 'find', 'rfind'?)"),
        (lambda m: m.a + 1, "str + int64 isn't supported in jitted code"),
        (lambda m: m.a > 3, "str > int64 isn't supported in jitted code"),
        (lambda m: m.a * 2.0, "str * float64 isn't supported in jitted code"),
        (lambda m: m.raw + m.raw, "bytes + bytes isn't supported in jitted code"),
        (lambda m: m.raw * 2, "bytes * int64 isn't supported in jitted code"),
        (lambda m: m.raw < m.a, "bytes < str isn't supported in jitted code"),
        (lambda m: 3 in m.a, "int64 in str isn't supported in jitted code"),
        (lambda m: -m.a, "- isn't for str"),
        (lambda m: m.a % 1, "% isn't available in jitted code: write an f-string"),
        (lambda m: m.a[0.5], "str indices must be integers, not float64"),
        (lambda m: m.raw["a"], "bytes indices must be integers, not str"),
        (lambda m: m.raw[::2], "a slice of bytes takes no step in jitted code"),
        (lambda m: abs(m.a), "abs(str) isn't supported in jitted code"),
        (lambda m: max(m.a, 1), "max(str, int64) isn't supported in jitted code"),
        (lambda m: np.sqrt(m.raw), "np.sqrt(bytes) isn't supported in jitted code"),
        (set_character, "str can't be changed: make another"),
        (delete_byte, "bytes can't be changed: make another"),
    ],
)
def test_what_is_refused(texts: yaffjit.Schema, function: Any, sentence: str) -> None:
    view = texts["texts.Flat"].view(texts["texts.Flat"].encode({"a": "7"}))
    with pytest.raises(CompileError) as found:
        numba.njit(function)(view)
    assert found.value.text == sentence
    assert found.value.file == __file__
    named = " has no '" in sentence or "() of" in sentence
    assert isinstance(found.value, CompileAttributeError if named else CompileTypeError)


def test_names_of_text_that_are_only_tried(texts: yaffjit.Schema) -> None:
    view = texts["texts.Flat"].view(texts["texts.Flat"].encode({"a": "7"}))
    assert numba.njit(lambda m: (hasattr(m.a, "hex"), hasattr(m.a, "upper")))(view) == (False, True)


def test_numbas_own_strings_compare_and_hash_as_before() -> None:
    @numba.njit
    def compare_and_hash(a, b):  # type: ignore[no-untyped-def]
        joined = a + b
        cut = joined[: len(a)]  # of the kind that the longer one has
        return a == b, a != b, a == "de", b != "é", hash(a), hash(b), cut == a, joined != a

    for a in TEXTS:
        for b in (*TEXTS, a + "x"):
            found = compare_and_hash(a, "".join(list(b)))
            assert found == (a == b, a != b, a == "de", b != "é", hash(a), hash(b), True, b != ""), (a, b)


def test_sums_of_text_are_found_again(texts: yaffjit.Schema) -> None:
    """Keys made of text and of strings are the same keys."""

    @numba.njit
    def count(messages, extra):  # type: ignore[no-untyped-def]
        counts = {}
        for m in messages:
            counts[m.a] = counts.get(m.a, 0) + 1
        counts[extra] = counts.get(extra, 0) + 100
        counts["é" + extra] = counts.get("é" + extra, 0) + 1000
        return counts

    message_type = texts["texts.Flat"]
    wanted = ["é", "x", "éx", "€", "é", "x", "é", ""]
    records = yaffjit.records(message_type, [message_type.encode({"a": text}) for text in wanted])
    assert dict(count(records, "x")) == {"é": 3, "x": 102, "éx": 1001, "€": 1, "": 1}
