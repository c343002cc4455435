"""The paths of columns: those of `yaffjit.plan.paths`, and what is the same in all messages.

items.price          all elements' field: a list a row; attrs.price of all values of a map, beside the keys
tags, attrs          a list a row, keys and values a row
len(items)           how many elements, pairs of a map, characters of text, bytes
contact              a oneof: the number of the member that is set
stats.*              all fields of a message that can be columns
id:int32             another form of the same values; `yaffjit.plan.requests` knows which
"""

from __future__ import annotations

from dataclasses import dataclass

from yaffjit.errors import SchemaError
from yaffjit.plan.model import FieldPlan, MessagePlan
from yaffjit.plan.paths import Parser, Step, example
from yaffjit.plan.requests import CATEGORY, DICTIONARY, LENGTH, WHICH, Form, form_of, wrapped

_LENGTH_OF = "len("


@dataclass(frozen=True, slots=True)
class ColumnPath:
    """What one column holds.

    Attributes:
        path: as it was asked for.
        mp: the root message.
        steps: the fields on the way to the value, in the end that of a wrapper. A repeated field or map
            without an index stands for all of its elements. Of a oneof, to the message that has it.
        what: "number", "text", "time", "length", "which" or "present", as in `yaffjit.plan.requests.Form`.
        dtype: of what is stored.
        oneof: its name, of "which" and perhaps of "present".
        request: "category" and "dictionary", which are made of what is stored; else "".
        asked: the path says how values are wanted.
    """

    path: str
    mp: MessagePlan
    steps: tuple[Step, ...]
    what: str
    dtype: str
    oneof: str = ""
    request: str = ""
    asked: bool = False

    @property
    def loops(self) -> tuple[int, ...]:
        """Which of the steps stand for all elements, from the outermost."""
        steps = self.steps
        if self.what in ("length", "present") and steps and not self.oneof:
            steps = steps[:-1]
        return tuple(i for i, step in enumerate(steps) if step.f.repeated and step.index is None)

    @property
    def owner(self) -> MessagePlan:
        """The message that has the value's field, or the oneof."""
        if not self.steps:
            return self.mp
        mp, f = self.steps[-1].each
        return mp.child(f) if self.oneof else mp


def column_path(mp: MessagePlan, path: str) -> ColumnPath:
    """What a path of a column means.

    Args:
        mp: the root message.
        path: as the module describes, without ``*``.

    Raises:
        SchemaError: it isn't a path, leads to what can't be a column, or the values don't take the form that
            is asked for.
        TypeError: it isn't text.
    """
    _check_is_text(path)
    parser = Parser(mp, path, through=True)
    read = _read(parser)
    if read.star is not None:
        parser.refuse("it stands for several columns")
    form = _form(parser, read)
    steps = read.steps
    if not read.is_length and not read.oneof:
        steps = _unwrapped(steps)
    request = form.dtype
    asked = parser.at < len(path)
    if asked:
        request = path[parser.at + 1 :]
        if request not in form.fits:
            parser.refuse(f"':{request}' isn't for values of {read.kind}; what fits: {', '.join(form.fits)}")
    made = request in (CATEGORY, DICTIONARY)
    dtype = form.dtype if made else request
    return ColumnPath(path, mp, steps, form.what, dtype, read.oneof, request if made else "", asked)


def message_path(mp: MessagePlan, path: str) -> tuple[Step, ...] | None:
    """The steps of a path to a message, or to all messages of a repeated field or map; None of other paths.

    Raises:
        SchemaError: it isn't a path.
        TypeError: it isn't text.
    """
    _check_is_text(path)
    parser = Parser(mp, path, through=True)
    read = _read(parser)
    if read.oneof or read.is_length or read.star is not None or value_form(*read.steps[-1].each) is not None:
        return None
    if parser.at < len(path):
        parser.refuse(f"{path[parser.at :]!r} isn't for messages, which have one form only")
    return read.steps


def presence_path(mp: MessagePlan, path: str) -> ColumnPath:
    """What is asked by whether a path is present; the path of a column, a message, or ``len()`` of something.

    Raises:
        SchemaError: it isn't a path, or goes through all elements of a repeated field or map.
        TypeError: it isn't text.
    """
    _check_is_text(path)
    parser = Parser(mp, path, through=True)
    read = _read(parser)
    if read.star is not None:
        parser.refuse("it stands for several columns")
    made = ColumnPath(path, mp, read.steps, "present", "bool", read.oneof)
    for step in (read.steps[i] for i in made.loops):
        parser.refuse(
            f"presence is for one value a row: name {_one(step)} of field {step.f.name}, "
            f"as {example(step.mp, step.f)}"
        )
    return made


def expand(mp: MessagePlan, path: str) -> tuple[str, ...]:
    """A path itself or, where it has a ``*`` for a name, the paths that it stands for.

    They are in the order of declaration. Messages aren't gone into, oneofs aren't named.

    Raises:
        SchemaError: it has a ``*`` but isn't a path, or none of the message's fields can be a column.
        TypeError: it isn't text.
    """
    _check_is_text(path)
    if "*" not in path:
        return (path,)
    parser = Parser(mp, path, through=True)
    star = _read(parser).star
    if star is None:
        return (path,)
    before, after = path[: parser.at - 1], path[parser.at :]
    declared = (star.by_name.get(f.name) for f in mp.plan.schema.messages[star.full_name].fields)
    names = [f.name for f in declared if f is not None and value_form(*Step(star, f).each) is not None]
    if not names:
        parser.refuse(f"{star.full_name} has no field that can be a column")
    return tuple(f"{before}{name}{after}" for name in names)


@dataclass(frozen=True, slots=True)
class _Read:
    """A path as it is written.

    Attributes:
        steps: the fields that it names.
        oneof: that it names in the end.
        is_length: it's within ``len()``.
        star: the message whose fields are meant by a ``*``.
    """

    steps: tuple[Step, ...]
    oneof: str = ""
    is_length: bool = False
    star: MessagePlan | None = None

    @property
    def kind(self) -> str:
        """What its values are, for a sentence."""
        if self.oneof:
            return "a oneof"
        if self.is_length:
            return "len()"
        mp, f = self.steps[-1].each
        return mp.child(f).full_name if f.kind == "message" else f"kind {f.kind}"


def _check_is_text(path: object) -> None:
    if not isinstance(path, str):
        raise TypeError(f'a path must be text, as "stats.ctr", not {type(path).__name__}')


def _read(parser: Parser) -> _Read:
    """Read a path up to a colon or the end."""
    path = parser.path
    is_length = path.startswith(_LENGTH_OF)
    if is_length:
        parser.at = len(_LENGTH_OF)
    mp = parser.mp
    steps: list[Step] = []
    oneof, star = "", None
    while True:
        if path.startswith("*", parser.at) and not is_length:
            parser.at += 1
            star = mp
            break
        oneof = "" if is_length else _oneof(parser, mp)
        if oneof:
            break
        steps.append(parser.step(mp))
        if not path.startswith(".", parser.at):
            break
        parser.at += 1
        mp = parser.entered(steps[-1])
    brackets = "" if oneof or star or steps[-1].index is not None else "'[', "
    if is_length:
        if not path.startswith(")", parser.at):
            parser.expected("'.', '[' or ')'" if brackets else "'.' or ')'")
        parser.at += 1
    if parser.at < len(path) and path[parser.at] != ":":
        dot = "" if oneof or star or is_length else "'.', "
        parser.expected(f"{dot}{'' if is_length else brackets}':' or the end")
    return _Read(tuple(steps), oneof, is_length, star)


def _oneof(parser: Parser, mp: MessagePlan) -> str:
    """The name of a oneof, if there is one here, which is behind the parser then."""
    for oneof in mp.oneofs:
        rest = parser.path[parser.at + len(oneof.name) :]
        named = parser.path.startswith(oneof.name, parser.at) and rest[:1] in ("", ":")
        if named and oneof.fields and oneof.name not in mp.by_name:
            parser.at += len(oneof.name)
            return oneof.name
    return ""


def value_form(mp: MessagePlan, f: FieldPlan) -> Form | None:
    """How one value of a field is held, also within a wrapper; None if it can't be.

    Args:
        mp: the message that has the field.
        f: it, or one like its elements.
    """
    form = form_of(mp, f)
    if form is None and f.kind == "message":
        child = mp.child(f)
        inner = wrapped(child)
        return form_of(child, inner) if inner is not None else None
    return form


def _unwrapped(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps, and into a wrapper's value."""
    mp, f = steps[-1].each
    if f.kind != "message":
        return steps
    child = mp.child(f)
    inner = wrapped(child)
    return steps if inner is None else (*steps, Step(child, inner))


def _form(parser: Parser, read: _Read) -> Form:
    if read.oneof:
        return WHICH
    step = read.steps[-1]
    f = step.f
    if read.is_length:
        target = step.target[1]
        if not target.repeated and target.kind not in ("string", "bytes"):
            parser.refuse(f"len() is for repeated fields, maps, text and bytes, but {_what(step)}")
        return LENGTH
    mp, one = step.each
    form = value_form(mp, one)
    if form is not None:
        return form
    child = mp.child(one)
    if not f.repeated or step.index is not None:
        raise SchemaError(
            f"path {parser.path!r} of {parser.mp.full_name} is a message: name a field of {child.full_name}"
        )
    name = next((inner.name for inner in child.fields), "field")
    several = f"a map of {child.full_name}" if f.is_map else f"repeated {child.full_name}"
    parser.refuse(
        f"field {f.name} is {several}: name a field of all, as {f.name}.{name}, "
        f"or {_one(step)}, as {example(step.mp, f)}.{name}"
    )


def _what(step: Step) -> str:
    """What a step leads to, for a sentence."""
    if step.index is None:
        return f"field {step.f.name} is of kind {step.f.kind}"
    return f"field {step.f.name} has {'values' if step.f.is_map else 'elements'} of kind {step.each[1].kind}"


def _one(step: Step) -> str:
    return "a key" if step.f.is_map else "an element"
