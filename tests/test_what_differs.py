"""The page "What differs in jit" is true line by line: its tables are what is tested here.

`test_project` runs its examples, as of all pages.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.errors import NumbaError, UnsupportedBytecodeError

import yaffjit as yj
from yaffjit.errors import CompileError

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "what-differs-in-jit.md"
NAMES = {"math": math, "np": np, "Counter": Counter, "nan": math.nan}
ANY_NUMBER = "any number"


def table(heading: str) -> list[tuple[str, ...]]:
    """The rows of the table under a heading, code between backticks."""
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = re.findall(r"^\| (.*) \|$", section, re.MULTILINE)
    return [tuple(line.split(" | ")) for line in lines[1:]]


def parameters(heading: str) -> list[Any]:
    return [pytest.param(*row, id=f"{row[0]}, x = {row[2]}".replace("`", "")) for row in table(heading)]


@cache
def case() -> yj.MessageType:
    return yj.load_schema(TESTS / "schemas" / "parity.proto")["parity.Case"]


def field_name(field: str) -> str:
    """The field of parity.Case of a kind."""
    plain = {"string": "text", "repeated string": "texts"}
    return plain.get(field) or (field.replace("repeated ", "") + "s" if "repeated" in field else field)


def function(code: str, field: str) -> Callable[[Any], Any]:
    namespace = dict(NAMES)
    exec(f"def f(v):\n    x = v.{field_name(field)}\n    return {code.strip('`')}", namespace)
    return namespace["f"]


def objects(field: str, x: str) -> tuple[Any, Any]:
    """A message with the field set to a value, and a view of it."""
    content = {field_name(field): eval(x.strip("`"), dict(NAMES))}
    return case().message_class(**content), case().view(case().encode(content))


def result(f: Callable[[Any], Any], argument: Any) -> str:
    """As the page says it: the value, or the name of the exception."""
    try:
        value = f(argument)
        return repr(value.item() if isinstance(value, np.generic) else value)
    except (ArithmeticError, ValueError, MemoryError) as error:
        return type(error).__name__


def said(cell: str) -> str:
    code = cell.strip("`")
    return code if code.endswith("Error") else repr(eval(code, dict(NAMES)))


@pytest.mark.parametrize(("code", "field", "x", "python", "jitted"), parameters("Other results"))
def test_other_results(code: str, field: str, x: str, python: str, jitted: str) -> None:
    f = function(code, field)
    message, view = objects(field, x)
    assert result(f, message) == result(f, view) == said(python)
    if jitted == ANY_NUMBER:
        assert isinstance(numba.njit(f)(view), int)
    else:
        assert result(numba.njit(f), view) == said(jitted)
        assert said(jitted) != said(python) or "sum(" in python  # before Python 3.12 sums are equal


@pytest.mark.parametrize(("code", "field", "x", "instead"), parameters("What doesn't compile"))
def test_what_does_not_compile(code: str, field: str, x: str, instead: str) -> None:
    message, view = objects(field, x)
    python = result(function(code, field), message)
    assert result(function(code, field), view) == python
    with pytest.raises((NumbaError, UnsupportedBytecodeError, CompileError)):
        numba.njit(function(code, field))(view)
    if instead.startswith("`"):
        f = function(instead, field)
        assert result(f, message) == result(f, view) == result(numba.njit(f), view) == python


# What needs no characters, of text that isn't UTF-8 and of a list of such.
OF_BYTES = (
    "bool(v.text)",
    "not v.text",
    "v.text == 'ab'",
    "v.text != v.text",
    "v.text < 'b'",
    "v.text >= 'ab'",
    "v.text in ('q', 'z')",
    "'b' in v.text",
    "v.text.startswith('ab')",
    "v.text.endswith('q')",
    "'q' in v.texts",
    "v.texts.count('q')",
    "v.texts.index('q')",
    "min(v.texts)",
    "v.texts == ['a', 'q']",
    "v.by_text == v.by_text",
)
OF_CHARACTERS = (
    "v.text",
    "len(v.text)",
    "v.text[0]",
    "hash(v.text)",
    "v.text.find('b')",
    "v.text + 'a'",
    "sorted(v.texts)",
)


def test_text_that_is_not_utf8() -> None:
    buf = case().encode({"text": "abXX", "texts": ["XX", "q"], "by_text": {"XX": 1, "q": 2}})
    assert b"XX" in buf
    view = case().view_unchecked(buf.replace(b"XX", b"\xff\xfe"))
    of_bytes, of_characters = (
        [eval(f"lambda v: {code}") for code in codes] for codes in (OF_BYTES, OF_CHARACTERS)
    )
    for f in (*of_bytes, *of_characters):
        with pytest.raises(UnicodeDecodeError):
            f(view)
    namespace: dict[str, Any] = {}
    exec(f"def f(v):\n    return {', '.join(OF_BYTES)}", namespace)
    assert numba.njit(namespace["f"])(view) == (
        *(True, False, False, False, True, True, False, True, True, False),
        *(True, 1, 1, "q", False, True),
    )
    for f in of_characters:
        with pytest.raises(UnicodeDecodeError):
            numba.njit(f)(view)


@numba.njit(parallel=True)
def first_weights(records, out):
    for row in numba.prange(len(records)):
        out[row] = records[row].doubles[0]


def test_an_error_in_a_users_prange_does_not_arrive() -> None:
    payloads = [case().encode({"doubles": [1.0]}), case().encode({})] * 50
    out = np.zeros(len(payloads))
    try:
        first_weights(yj.records(case(), payloads), out)
    except SystemError as error:
        assert isinstance(error.__cause__, IndexError)
    assert not out.all()


def test_a_dict_with_uint64_keys_comes_out() -> None:
    @numba.njit
    def counts(v):
        found = {}
        for n in v.uint64s:
            found[n] = found.get(n, 0) + 1
        return found

    found = counts(case().view(case().encode({"uint64s": [2**63 + 5, 2**63 + 5]})))
    assert list(found) == [2**63 + 5]
    assert found[np.uint64(2**63 + 5)] == 2


def test_a_oneof_as_a_key() -> None:
    @numba.njit
    def counts(v):
        kind = v.WhichOneof("pick")
        return {str(kind): 1}

    for content in ({}, {"number": 5}):
        kind = str(case().message_class(**content).WhichOneof("pick"))
        assert dict(counts(case().view(case().encode(content)))) == {kind: 1}
