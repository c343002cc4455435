"""Messages as nested columns, as Arrow has them: structs, lists and maps of values, each with its presence.

A `Shaping` lays out what `Gathering` does, and beside it a tree that says which arrays a column is made of.
Null is what isn't there: a field with presence of its own that isn't set, all within a message that isn't.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from yaffjit.errors import SchemaError
from yaffjit.plan.columns import ColumnPath, column_path, message_path, value_form
from yaffjit.plan.gathering import Gathering, Leaf, Loop, Scope, gathering
from yaffjit.plan.model import MessagePlan
from yaffjit.plan.paths import Step
from yaffjit.plan.requests import CATEGORY, DICTIONARY, WHICH, wrapped

WHOLE = ""  # stands for a path: the message itself

Names: TypeAlias = tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Value:
    """One value: a number, text, a time.

    Attributes:
        leaf: its arrays.
        present: whether it's there; None if it always is, and of times and oneofs, whose values tell.
        names: of enums, and of which member of a oneof is set: numbers and names, if names may be shown.
        coded: a dictionary of names or texts is asked for by the path.
    """

    leaf: Leaf
    present: Leaf | None
    names: Names = ()
    coded: bool = False


@dataclass(frozen=True, slots=True)
class Lengths:
    """How many keys maps have, where only the offsets of their pairs tell.

    Attributes:
        loop: the pairs.
        dtype: of the numbers.
        path: as it was asked for.
        present: as in `Value`.
    """

    loop: Loop
    dtype: str
    path: str
    present: Leaf | None


@dataclass(frozen=True, slots=True)
class Several:
    """A list; a map, if the loop has keys.

    Attributes:
        loop: the elements, or pairs.
        item: an element, or the value of a pair.
        present: whether the message that has it is there; None if it always is.
    """

    loop: Loop
    item: Node
    present: Leaf | None


@dataclass(frozen=True, slots=True)
class Struct:
    """A message.

    Attributes:
        fields: by name, in the order of declaration; a oneof before its first member.
        present: whether it's there; None if it always is.
    """

    fields: tuple[tuple[str, Node], ...]
    present: Leaf | None


Node: TypeAlias = "Value | Lengths | Several | Struct"


class Shaping(Gathering):
    """What is stored for nested columns of one message type.

    Args:
        mp: the message type.
        paths: of columns, of messages, or `WHOLE`.
        unit: of times whose path doesn't say it: "ns", "us", "ms" or "s".
        repeated_keys: see `Gathering`.

    Attributes:
        shapes: what each path is made of.

    Raises:
        SchemaError: a path leads nowhere, or a message type holds itself.
    """

    def __init__(self, mp: MessagePlan, paths: Sequence[str], unit: str, repeated_keys: bool = False) -> None:
        super().__init__(mp, (), (), repeated_keys)
        self._unit = unit
        self._within = [mp.full_name]
        self.shapes = [self._shape(path) for path in paths]

    def _shape(self, path: str) -> Node:
        if path == WHOLE:
            return Struct(self._fields(self.root, self.mp, (), 0, ""), None)
        steps = message_path(self.mp, path)
        if steps is None:
            column = column_path(self.mp, path)
            return self._through(self.root, column.steps, 0, path, column)
        return self._through(self.root, steps, 0, path, None)

    # ---- what paths lead to ----

    def _through(
        self, scope: Scope, steps: tuple[Step, ...], begin: int, path: str, column: ColumnPath | None
    ) -> Node:
        """What steps lead to from a scope, which begins at one of them: through lists and maps."""
        several = column.loops if column is not None else _all_of(steps)
        for i in several:
            if i >= begin:
                present = self._present(scope, steps[begin:i], 0, path)
                loop = self._loop(scope, steps[begin : i + 1], path)
                return Several(loop, self._through(loop.scope, steps, i + 1, path, column), present)
        inner = steps[begin:]
        if column is not None:
            return self._asked(scope, inner, column)
        present = self._present(scope, inner, 0, path)
        return self._struct(scope, steps[-1], inner, path, present)

    def _asked(self, scope: Scope, steps: tuple[Step, ...], column: ColumnPath) -> Node:
        """A value in the form that a path asks for."""
        path = column.path
        if column.what == "length":
            present = self._present(scope, steps[:-1], 0, path)
            if self._repeated_keys and column.steps[-1].target[1].is_map:
                return Lengths(self._loop(scope, steps, path), column.dtype, path, present)
            return Value(self._leaf(scope, column, steps), present)
        if column.what == "time":
            if not column.asked:
                column = self._time(column.steps, path, column.dtype)
            return Value(self._leaf(scope, column, steps), None)
        leaf = self._leaf(scope, column, steps)
        named = not column.asked or column.request == CATEGORY
        present = None if column.what == "which" else self._present(scope, steps, 0, path)
        names = self._names(leaf) if named else ()
        return Value(leaf, present, names, column.request in (CATEGORY, DICTIONARY))

    # ---- whole messages ----

    def _struct(
        self, scope: Scope, last: Step, steps: tuple[Step, ...], path: str, present: Leaf | None
    ) -> Struct:
        """The message that steps lead to, of which the last one may be of an outer scope."""
        mp, f = last.each
        child = mp.child(f)
        if child.full_name in self._within:
            raise SchemaError(
                f"path {path!r} of {self.mp.full_name}: {child.full_name} holds itself, which no type of "
                'Arrow does: name the paths that are wanted, as in to_arrow(["id", "stats.ctr"])'
            )
        self._within.append(child.full_name)
        made = Struct(self._fields(scope, child, steps, len(steps), f"{path}."), present)
        self._within.pop()
        return made

    def _fields(
        self, scope: Scope, mp: MessagePlan, steps: tuple[Step, ...], outer: int, prefix: str
    ) -> tuple[tuple[str, Node], ...]:
        made: list[tuple[str, Node]] = []
        oneofs = {name: oneof.name for oneof in mp.oneofs for name in oneof.fields}
        named = set()
        for declared in mp.plan.schema.messages[mp.full_name].fields:
            f = mp.by_name.get(declared.name)
            if f is None:
                continue
            oneof = oneofs.get(f.name)
            if oneof is not None and oneof not in named:
                named.add(oneof)
                made.append((oneof, self._case(scope, mp, steps, prefix + oneof, oneof)))
            made.append((f.name, self._field(scope, (*steps, Step(mp, f)), outer, prefix + f.name)))
        return tuple(made)

    def _field(self, scope: Scope, steps: tuple[Step, ...], outer: int, path: str) -> Node:
        step = steps[-1]
        if not step.f.repeated:
            return self._one(scope, step, steps, outer, path)
        loop = self._loop(scope, steps, path)
        return Several(loop, self._one(loop.scope, step, (), 0, path), None)

    def _one(self, scope: Scope, last: Step, steps: tuple[Step, ...], outer: int, path: str) -> Node:
        """One value of the field that steps lead to."""
        mp, f = last.each
        form = value_form(mp, f)
        if form is None:
            return self._struct(scope, last, steps, path, self._present(scope, steps, outer, path))
        end = last
        if f.kind == "message" and form.what != "time":
            child = mp.child(f)
            value = wrapped(child)
            assert value is not None
            end = Step(child, value)
            steps = (*steps, end)
        if form.what == "time":
            return Value(self._leaf(scope, self._time((last,), path, form.dtype), steps), None)
        leaf = self._leaf(scope, ColumnPath(path, self.mp, (end,), form.what, form.dtype), steps)
        return Value(leaf, self._present(scope, steps, outer, path), self._names(leaf))

    def _case(self, scope: Scope, mp: MessagePlan, steps: tuple[Step, ...], path: str, oneof: str) -> Value:
        column = ColumnPath(path, self.mp, steps, WHICH.what, WHICH.dtype, oneof)
        leaf = self._made(scope, column, steps, mp, None, path)
        scope.leaves.append(leaf)
        return Value(leaf, None, self._names(leaf))

    def _time(self, steps: tuple[Step, ...], path: str, dtype: str) -> ColumnPath:
        """A column of times, as `column_path` makes it of a path that asks for the unit."""
        if self._unit != "ns":
            dtype = f"{dtype.partition('[')[0]}[{self._unit}]"
            path = f"{path}:{dtype}"
        return ColumnPath(path, self.mp, steps, "time", dtype)

    def _names(self, leaf: Leaf) -> Names:
        """What numbers of an enum or oneof stand for; empty of other values."""
        schema = leaf.owner.plan.schema
        if leaf.oneof:
            declared = schema.messages[leaf.owner.full_name].fields
            known = leaf.owner.by_name
            return tuple((f.number, f.name) for f in declared if f.oneof == leaf.oneof and f.name in known)
        if leaf.f is None or leaf.f.kind != "enum":
            return ()
        names: dict[int, str] = {}
        for name, number in schema.enums[leaf.f.enum].values:
            names.setdefault(number, name)
        return tuple(names.items())

    def _present(self, scope: Scope, steps: tuple[Step, ...], outer: int, path: str) -> Leaf | None:
        """Whether all of some steps are there; None if they always are.

        Args:
            outer: how many of them are known to be there, or don't matter where they aren't.
        """
        for end in range(len(steps), outer, -1):
            step = steps[end - 1]
            if step.index is None and not step.f.explicit:
                continue
            for leaf in scope.leaves:
                if leaf.what == "present" and leaf.steps == steps[:end]:
                    return leaf
            target = step.target
            column = ColumnPath(path, self.mp, steps[:end], "present", "bool")
            made = self._made(scope, column, steps[:end], target[0], target[1], path)
            scope.leaves.append(made)
            return made
        return None


def _all_of(steps: tuple[Step, ...]) -> tuple[int, ...]:
    return tuple(i for i, step in enumerate(steps) if step.f.repeated and step.index is None)


def stored_for(
    mp: MessagePlan,
    values: tuple[str, ...],
    presences: tuple[str, ...] = (),
    shaped: str = "",
    repeated_keys: bool = False,
) -> Gathering:
    """`gathering`, or where ``shaped`` is a unit a `Shaping`, also made once."""
    if not shaped:
        return gathering(mp, values, presences, repeated_keys)
    memo = mp.plan.memo
    key = (Shaping, mp.full_name, values, shaped, repeated_keys)
    made: Shaping | None = memo.get(key)
    if made is None:
        made = memo.setdefault(key, Shaping(mp, values, shaped, repeated_keys))
    return made
