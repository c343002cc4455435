"""What follows ``--where``: comparisons of columns with literals, joined by ``and``.

    price > 1.5 and stats.clicks != 0 and title startswith "Free"
    state in [ACTIVE, PAUSED] and tags contains "new" and not present(geo.lat)

A path is one of `yaffjit columns`, without a form. A literal is a number, text in single or double quotes
with Python's plain escapes, bytes as in Python (``b"\\xff"``), ``true`` or ``false``, or a bare name: that of
an enum's value or of a oneof's field. Nothing else of any language is understood, and nothing is evaluated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from yaffjit.errors import YaffjitError

SYMBOLS = ("==", "!=", "<=", ">=", "<", ">")
WORDS = ("in", "contains", "startswith")
OPERATORS = (*SYMBOLS, "in", "not in", *WORDS[1:])
_PRESENT = "present"

_SPACE = re.compile(r"\s*")
_NAME = re.compile(r"[^\W\d]\w*")
_PATH_REST = re.compile(r"[\w.*]*")
_FORM = re.compile(r":[\w\[\]]*")
_NUMBER = re.compile(r"[-+]?(?:inf\b|nan\b|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"|' + r"'(?:[^'\\]|\\.)*'", re.DOTALL)
_BYTES_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)|[^\x00-\x7f]", re.DOTALL)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_PLAIN_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", '"': '"', "'": "'"}


class Name(str):
    """A bare word: the name of an enum's value or of a oneof's field."""

    __slots__ = ()


Literal = int | float | bool | str | bytes


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison.

    Attributes:
        path: of the column.
        operator: one of `OPERATORS`; "present" or "not present".
        literals: what it's compared with: several after "in" and "not in", none after "present".
        at: where it starts in the text, from 0.
    """

    path: str
    operator: str
    literals: tuple[Literal, ...]
    at: int


class WhereError(YaffjitError, ValueError):
    """A condition that makes no sense; says at which character, counted from 1."""

    def __init__(self, at: int, fault: str) -> None:
        super().__init__(f"--where, character {at + 1}: {fault}")


def parse_where(text: str) -> tuple[Condition, ...]:
    """The conditions of a text, all of which must hold.

    Raises:
        WhereError: it isn't of this language.
    """
    return _Reader(text).conditions()


class _Reader:
    """Reads a text from left to right; ``at`` is the position of what is read next."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def conditions(self) -> tuple[Condition, ...]:
        found = [self.condition()]
        while self.skip() < len(self.text):
            if not self.word("and"):
                if self.peek_word() == "or":
                    self.refuse("'or' isn't supported, but 'in [...]' is; what follows is 'and' or the end")
                self.expected("'and' or the end")
            found.append(self.condition())
        return tuple(found)

    def condition(self) -> Condition:
        start = self.skip()
        negated = self.word("not")
        self.skip()
        if self.peek_word() == _PRESENT and self.text.startswith("(", self.at + len(_PRESENT)):
            self.at += len(_PRESENT) + 1
            self.skip()
            path = self.path()
            self.skip()
            if not self.symbol(")"):
                self.expected("')'")
            return Condition(path, "not present" if negated else "present", (), start)
        if negated:
            self.expected("present(...)")
        path = self.path()
        operator = self.operator()
        literals = self.several() if operator in ("in", "not in") else (self.literal(),)
        return Condition(path, operator, literals, start)

    def path(self) -> str:
        """A column's path: names, what is in brackets, ``len(...)``; `columns` says what is wrong in it."""
        start = self.at
        if _NAME.match(self.text, start) is None:
            self.expected("a path, as stats.ctr")
        depth = 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in "([":
                depth += 1
            elif char in ")]" and depth:
                depth -= 1
            elif depth and char in "'\"":
                self.at = self.quoted().end()
                continue
            elif not depth and char == ":":
                form = _FORM.match(self.text, self.at)
                assert form is not None
                self.refuse(f"{form[0]!r} is a form for tables: conditions compare exact values, without one")
            elif not (depth and char != ")") and not _PATH_REST.fullmatch(char):
                break
            self.at += 1
        if depth:
            self.expected("the end of what is in brackets")
        return self.text[start : self.at]

    def operator(self) -> str:
        self.skip()
        for symbol in SYMBOLS:
            if self.symbol(symbol):
                return symbol
        if self.word("not"):
            self.skip()
            if not self.word("in"):
                self.expected("'in'")
            return "not in"
        for word in WORDS:
            if self.word(word):
                return word
        if self.text.startswith("=", self.at):
            self.refuse("'=' compares nothing; '==' does")
        self.expected(", ".join(OPERATORS))

    def several(self) -> tuple[Literal, ...]:
        self.skip()
        closing = "]" if self.symbol("[") else ")" if self.symbol("(") else ""
        if not closing:
            self.expected("a list, as [1, 2]")
        found: list[Literal] = []
        while True:
            self.skip()
            if self.symbol(closing):
                return tuple(found)
            if found and not self.symbol(","):
                self.expected(f"',' or '{closing}'")
            self.skip()
            if found and self.symbol(closing):
                return tuple(found)
            found.append(self.literal())

    def literal(self) -> Literal:
        self.skip()
        if self.text[self.at : self.at + 1] in ("'", '"') and self.at < len(self.text):
            found = self.quoted()
            start, self.at = self.at, found.end()
            return _ESCAPE.sub(lambda match: self.unescaped(start + match.start(), match[1]), found[0][1:-1])
        if self.text[self.at : self.at + 2] in ("b'", 'b"'):
            self.at += 1
            found = self.quoted()
            start, self.at = self.at, found.end()
            inner = _BYTES_ESCAPE.sub(lambda match: self.byte(start + match.start(), match), found[0][1:-1])
            return inner.encode("latin-1")
        number = _NUMBER.match(self.text, self.at)
        if number is not None:
            self.at = number.end()
            if self.at < len(self.text) and (self.text[self.at].isalnum() or self.text[self.at] in "_."):
                self.expected("the end of the number")
            try:
                return int(number[0])
            except ValueError:
                return float(number[0])
        name = _NAME.match(self.text, self.at)
        if name is None or name[0] in ("and", "or", "not", *WORDS):
            self.expected("a number, text in quotes, true, false, or the name of an enum's value")
        self.at = name.end()
        return {"true": True, "false": False}.get(name[0].lower(), Name(name[0]))

    def quoted(self) -> re.Match[str]:
        """The text in quotes here, which isn't passed."""
        found = _TEXT.match(self.text, self.at)
        if found is None:
            self.refuse(f"the text that begins here has no closing {self.text[self.at]}")
        return found

    def unescaped(self, at: int, escape: str) -> str:
        if escape in _PLAIN_ESCAPES:
            return _PLAIN_ESCAPES[escape]
        number = int(escape[1:], 16) if len(escape) > 1 else -1
        if 0xD800 <= number <= 0xDFFF:
            text = f"'\\{escape}' is half of a surrogate pair, which isn't text: write the character itself"
            raise WhereError(at + 1, text)
        if 0 <= number <= 0x10FFFF:
            return chr(number)
        raise WhereError(at + 1, f"'\\{escape}' isn't an escape")

    def byte(self, at: int, found: re.Match[str]) -> str:
        escape: str | None = found[1]
        if escape is None:
            raise WhereError(at + 1, f"{found[0]!r} isn't ASCII: write its bytes, as \\xff")
        if len(escape) > 1:
            return chr(int(escape[1:], 16))
        if escape not in _PLAIN_ESCAPES:
            raise WhereError(at + 1, f"'\\{escape}' isn't an escape of bytes")
        return _PLAIN_ESCAPES[escape]

    def skip(self) -> int:
        """Pass white space; returns the position."""
        found = _SPACE.match(self.text, self.at)
        assert found is not None
        self.at = found.end()
        return self.at

    def symbol(self, symbol: str) -> bool:
        """Whether a symbol is here; then it's passed."""
        if not self.text.startswith(symbol, self.at):
            return False
        self.at += len(symbol)
        return True

    def peek_word(self) -> str:
        found = _NAME.match(self.text, self.at)
        return found[0] if found else ""

    def word(self, word: str) -> bool:
        """Whether a word is here; then it's passed."""
        if self.peek_word() != word:
            return False
        self.at += len(word)
        return True

    def expected(self, what: str) -> NoReturn:
        found = self.text[self.at : self.at + 20]
        self.refuse(f"{what} is expected" + (f", not {found!r}" if found else " before the end"))

    def refuse(self, fault: str) -> NoReturn:
        raise WhereError(self.at, fault)
