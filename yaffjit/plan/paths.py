"""The language of paths: which value of a message, or of the messages in it, one means.

    stats.ctr            a field, through messages
    tags                 a whole repeated field
    items[0].price       a field of an element; items[-1] is the last one
    attrs["size"]        the value of a key of a map; scores[5] where keys are integers, flags[true]
    attrs["a.b"].name    a field of a message that is a map's value

A key of text is written as a string of Python or JSON is, between single or double quotes. What more the path
of a column can be is in `yaffjit.plan.columns`.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from typing import NoReturn, TypeAlias

from yaffjit.errors import SchemaError, near_names
from yaffjit.plan.limits import MAX_DEPTH
from yaffjit.plan.model import SCALAR_WIDTH, FieldPlan, MessagePlan

Index: TypeAlias = int | str | bool

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INDEX = re.compile(
    r"""\[ [ ]* (?: (?P<number>-?[0-9]{1,20}) | (?P<bool>[Tt]rue|[Ff]alse)
        | (?P<text>"(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*') ) [ ]* \]""",
    re.VERBOSE | re.DOTALL,
)
_UNSIGNED = ("uint32", "fixed32", "uint64", "fixed64")
_MOST_ELEMENTS = 2**31


@dataclass(frozen=True, slots=True)
class Step:
    """One field on a path.

    Attributes:
        mp: the message that it's in.
        f: the field.
        index: of an element of a repeated field, or the key of a map; None where the field itself is meant.
    """

    mp: MessagePlan
    f: FieldPlan
    index: Index | None = None

    @property
    def target(self) -> tuple[MessagePlan, FieldPlan]:
        """A field like what the step leads to, and its message: the value in a map's pairs, one element."""
        return (self.mp, self.f) if self.index is None else self.each

    @property
    def each(self) -> tuple[MessagePlan, FieldPlan]:
        """A field like one of what the step leads to, and its message, whether it has an index or not."""
        if not self.f.repeated:
            return self.mp, self.f
        if self.f.is_map:
            entry = self.mp.child(self.f)
            return entry, entry.fields[1]
        return self.mp, replace(self.f, repeated=False, width=self.f.element_width)


def parse_path(mp: MessagePlan, path: str) -> tuple[Step, ...]:
    """The steps of a path, at least one.

    Args:
        mp: the message that the path starts in.
        path: as the module describes.

    Raises:
        SchemaError: it isn't a path (with the position, counted from 0), a name isn't in its message (with
            near names), or a step isn't for a field of its kind.
        TypeError: it isn't text.
    """
    if not isinstance(path, str):
        raise TypeError(f'a path is text, as "stats.ctr", not {type(path).__name__}')
    return Parser(mp, path).steps()


class Parser:
    """Reads a path from left to right.

    Args:
        mp: the message that it starts in.
        path: the whole text.
        through: whether it may go on behind repeated messages and maps, into all of their elements.

    Attributes:
        at: the position of what is read next.
    """

    def __init__(self, mp: MessagePlan, path: str, through: bool = False) -> None:
        self.mp = mp
        self.path = path
        self.through = through
        self.at = 0
        self._depth = 0

    def steps(self) -> tuple[Step, ...]:
        """All steps, to the end of the text."""
        made = [self.step(self.mp)]
        while self.at < len(self.path):
            if self.path[self.at] != ".":
                self.expected("'.' or the end" if made[-1].index is not None else "'.', '[' or the end")
            self.at += 1
            made.append(self.step(self.entered(made[-1])))
        return tuple(made)

    def name(self) -> str:
        """The name here, which is behind the parser then."""
        found = _NAME.match(self.path, self.at)
        if found is None:
            self.expected("a field's name")
        self.at = found.end()
        return found.group()

    def step(self, mp: MessagePlan) -> Step:
        """The step here, whose field is in a message."""
        name = self.name()
        f = mp.by_name.get(name)
        if f is None:
            self.refuse(f"{mp.full_name} has no field {name!r}{_instead(mp, name)}")
        return Step(mp, f, self._index(mp, f) if self.path.startswith("[", self.at) else None)

    def entered(self, step: Step) -> MessagePlan:
        """The message that the next name is in."""
        owner, target = step.each if self.through else step.target
        if target.kind == "message" and not target.repeated:
            self._depth += 2 if step.f.is_map else 1
            if self._depth > MAX_DEPTH:
                self.refuse(f"position {self.at} is {self._depth} messages deep, and {MAX_DEPTH} is the most")
            return owner.child(target)
        following = _NAME.match(self.path, self.at)
        if following is None:
            self.expected("a field's name")
        name = following.group()
        if step.index is not None or (self.through and step.f.repeated):
            part = "values" if step.f.is_map else "elements"
            self.refuse(f"field {step.f.name} has {part} of kind {target.kind}, without a field {name!r}")
        text = f"field {step.f.name} is {_kind(step.f)}, and has no field {name!r}"
        if step.f.repeated:
            text += f": name {'a key' if step.f.is_map else 'an element'}, as {example(step.mp, step.f)}"
        self.refuse(text)

    def _index(self, mp: MessagePlan, f: FieldPlan) -> Index:
        found = _INDEX.match(self.path, self.at)
        if not f.repeated:
            self.refuse(f"field {f.name} is {_kind(f)}, and has no elements")
        if found is None:
            self.expected("a key in brackets" if f.is_map else "an index in brackets")
        given = self._literal(found)
        self.at = found.end()
        if f.is_map:
            self._check_key(mp, f, given)
        elif isinstance(given, (str, bool)):
            self.refuse(f"field {f.name} is repeated: an element is named by its index, as {f.name}[0]")
        elif not -_MOST_ELEMENTS <= given < _MOST_ELEMENTS:
            self.refuse(f"index {given} of field {f.name} is beyond all that a message holds")
        return given

    def _literal(self, found: re.Match[str]) -> Index:
        if found["number"] is not None:
            return int(found["number"])
        if found["bool"] is not None:
            return found["bool"].lower() == "true"
        try:
            text: str = ast.literal_eval(found["text"])
            text.encode()
        except UnicodeEncodeError:
            fault = "half of a surrogate pair, which UTF-8 can't hold"
        except (SyntaxError, ValueError):
            fault = "an escape or character that a string of Python can't have"
        else:
            return text
        self.refuse(f"the text at position {found.start('text')} has {fault}")

    def _check_key(self, mp: MessagePlan, f: FieldPlan, given: Index) -> None:
        key = mp.child(f).fields[0]
        if key.kind == "string":
            wanted: type = str
        else:
            wanted = bool if key.kind == "bool" else int
        if type(given) is not wanted:
            self.refuse(f"field {f.name} is a map with keys of kind {key.kind}, as in {example(mp, f)}")
        if wanted is int:
            bits = 8 * SCALAR_WIDTH[key.kind]
            low, high = (0, 2**bits) if key.kind in _UNSIGNED else (-(2 ** (bits - 1)), 2 ** (bits - 1))
            if not low <= int(given) < high:
                self.refuse(f"key {given} of field {f.name} is out of range for {key.kind}")

    def expected(self, what: str) -> NoReturn:
        """Refuse what is here, where something else had to be."""
        rest = self.path[self.at :]
        found = f"not {rest[0]!r}" if rest else "but the path ends"
        if rest.startswith("["):
            found = f"not {rest!r}"
        self.refuse(f"expected {what} at position {self.at}, {found}")

    def refuse(self, text: str) -> NoReturn:
        """Raise an error that names the path."""
        raise SchemaError(f"path {self.path!r} of {self.mp.full_name}: {text}")


def _kind(f: FieldPlan) -> str:
    """What a field is, for a sentence."""
    if f.is_map:
        return "a map"
    return "repeated" if f.repeated else f"of kind {f.kind}"


def example(mp: MessagePlan, f: FieldPlan) -> str:
    """How an element of a repeated field, or a value of a map, is named: ``items[0]``, ``attrs["key"]``."""
    if not f.is_map:
        return f"{f.name}[0]"
    kind = mp.child(f).fields[0].kind
    key = {"string": '"key"', "bool": "true"}.get(kind, "5")
    return f"{f.name}[{key}]"


def _instead(mp: MessagePlan, name: str) -> str:
    """Why there's no field of a name, or near names."""
    for field, reason in mp.lost:
        if field == name:
            return f" under YaFF: {reason}"
    members = [f.name for f in mp.fields if f.oneof == name]
    if members:
        return f": it's a oneof, of {', '.join(members)}"
    return near_names(name, mp.by_name)
