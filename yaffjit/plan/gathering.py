"""What two passes over rows store for columns: which values and counts, in which arrays.

What has one value a row is stored by the first pass, together with the counts of what has more: elements of
repeated fields and maps, bytes of text. The counts of rows before a row are where its part begins in the
arrays that the second pass fills. Within lists, each kind of count is summed up a row:

    items.tags       starts of items (n + 1), by rows: these are the list's offsets
                     starts of items.tags (n + 1), by rows; its offsets by items
                     starts of their text (n + 1), by rows; its offsets by tags; and the bytes
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from yaffjit.plan.columns import ColumnPath, column_path, presence_path
from yaffjit.plan.model import FieldPlan, MessagePlan
from yaffjit.plan.paths import Step

NO_SLOT = -1
ROWS = -1


@dataclass(frozen=True, slots=True)
class Slot:
    """One array.

    Attributes:
        dtype: numpy's name of it.
        count_of: the slot of starts whose last number is its length; `ROWS` for one a row.
        more: elements beyond that: 1 for starts and offsets, which begin with a 0.
        second: the second pass fills it; the first one can't know its length.
    """

    dtype: str
    count_of: int
    more: int
    second: bool


@dataclass(frozen=True, slots=True)
class Leaf:
    """Values of one field.

    Attributes:
        steps: to it from the message, or the element, that its `Scope` is about; none if that is it. Of a
            oneof, to the message that has it.
        owner, f: the message that has the field, and the field, or one like its elements; None of a oneof.
        what, dtype, oneof: as in `ColumnPath`.
        values: the slot of numbers; of text that of the bytes.
        starts: of text, the slot of where each row's bytes begin; otherwise `NO_SLOT`.
        offsets: of text in lists, the slot of where each one's bytes begin.
        path: the first path that has it.
    """

    steps: tuple[Step, ...]
    owner: MessagePlan
    f: FieldPlan | None
    what: str
    dtype: str
    oneof: str
    values: int
    starts: int
    offsets: int
    path: str

    @property
    def all_offsets(self) -> int:
        """The slot of where each value's bytes begin."""
        return self.starts if self.offsets == NO_SLOT else self.offsets


@dataclass(frozen=True, slots=True)
class Loop:
    """All elements of a repeated field, or pairs of a map.

    Attributes:
        steps: to it from the outer scope; the last one is the field.
        starts: the slot of where each row's elements begin.
        offsets: within another loop, the slot of where each outer element's begin; otherwise `NO_SLOT`.
        keys: of a map.
        scope: what is stored for each element, or value of a pair.
    """

    steps: tuple[Step, ...]
    starts: int
    offsets: int
    keys: Leaf | None
    scope: Scope

    @property
    def all_offsets(self) -> int:
        """The slot of where the elements of each row, or outer element, begin."""
        return self.starts if self.offsets == NO_SLOT else self.offsets

    @property
    def has_counts(self) -> bool:
        """Whether elements differ in what they take, so that the first pass goes through them."""
        texts = any(leaf.what == "text" for leaf in self.leaves)
        return texts or bool(self.scope.loops)

    @property
    def leaves(self) -> list[Leaf]:
        """All that is stored for each element, keys first."""
        return [*([self.keys] if self.keys is not None else []), *self.scope.leaves]

    def inner_starts(self) -> Iterator[int]:
        """The slots of starts of what is within the elements."""
        for leaf in self.leaves:
            if leaf.starts != NO_SLOT:
                yield leaf.starts
        for inner in self.scope.loops:
            yield inner.starts
            yield from inner.inner_starts()


@dataclass(slots=True)
class Scope:
    """What is stored for each message, or element, of one kind.

    Attributes:
        count_of: the slot of starts of its elements; `ROWS` for the rows' own messages.
    """

    count_of: int
    leaves: list[Leaf] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Found:
    """Where a column's values are: in lists from the outermost, then a leaf.

    Of how many keys a map has, the last list is the map, and the leaf its keys.
    """

    column: ColumnPath
    loops: tuple[Loop, ...]
    leaf: Leaf


class Gathering:
    """What is stored for columns of one message type.

    Args:
        mp: the message type.
        values: paths of columns.
        presences: paths whose presence is asked.
        repeated_keys: maps may have a key more than once. Then how many keys they have is known only when
            all are: what ``len(map)`` stores is the keys.

    Attributes:
        root: what is stored for each row.
        slots: all arrays.
        columns, presences: where each path's values are.

    Raises:
        SchemaError: a path isn't one of a column, or has no presence.
    """

    def __init__(
        self,
        mp: MessagePlan,
        values: Sequence[str],
        presences: Sequence[str] = (),
        repeated_keys: bool = False,
    ) -> None:
        self.mp = mp
        self._repeated_keys = repeated_keys
        self.slots: list[Slot] = []
        self.leaves: list[Leaf] = []
        self.root = Scope(ROWS)
        self.columns = [self._add(column_path(mp, path)) for path in values]
        self.presences = [self._add(presence_path(mp, path)) for path in presences]

    @property
    def is_fixed(self) -> bool:
        """Each column has one number a row, so one pass is all."""
        return not any(slot.second for slot in self.slots)

    def _add(self, column: ColumnPath) -> Found:
        scope = self.root
        begin = 0
        loops = []
        for i in column.loops:
            loop = self._loop(scope, column.steps[begin : i + 1], column.path)
            loops.append(loop)
            scope, begin = loop.scope, i + 1
        if self._repeated_keys and column.what == "length" and column.steps[-1].target[1].is_map:
            keyed = self._loop(scope, column.steps[begin:], column.path)
            assert keyed.keys is not None
            return Found(column, (*loops, keyed), keyed.keys)
        return Found(column, tuple(loops), self._leaf(scope, column, column.steps[begin:]))

    def _loop(self, scope: Scope, steps: tuple[Step, ...], path: str) -> Loop:
        for loop in scope.loops:
            if loop.steps == steps:
                return loop
        starts, offsets = self._counts(scope)
        inner = Scope(starts)
        keys = None
        if steps[-1].f.is_map:
            entry = steps[-1].mp.child(steps[-1].f)
            keys = self._keys(inner, entry, path)
        made = Loop(steps, starts, offsets, keys, inner)
        scope.loops.append(made)
        return made

    def _keys(self, scope: Scope, entry: MessagePlan, path: str) -> Leaf:
        key = entry.fields[0]
        column = column_path(entry, key.name)
        return self._made(scope, column, (), entry, key, path)

    def _leaf(self, scope: Scope, column: ColumnPath, steps: tuple[Step, ...]) -> Leaf:
        f = None if column.oneof else column.steps[-1].each[1]
        if column.what in ("length", "present") and not column.oneof:
            f = column.steps[-1].target[1]
        if column.what == "text":
            for leaf in scope.leaves:  # text has one form only, so all who ask share it
                if leaf.what == "text" and leaf.steps == steps:
                    return leaf
        made = self._made(scope, column, steps, column.owner, f, column.path)
        scope.leaves.append(made)
        return made

    def _made(
        self,
        scope: Scope,
        column: ColumnPath,
        steps: tuple[Step, ...],
        owner: MessagePlan,
        f: FieldPlan | None,
        path: str,
    ) -> Leaf:
        starts, offsets = self._counts(scope) if column.what == "text" else (NO_SLOT, NO_SLOT)
        is_text = column.what == "text"
        count_of = starts if is_text else scope.count_of
        values = self._slot(column.dtype, count_of, 0, count_of != ROWS)
        made = Leaf(steps, owner, f, column.what, column.dtype, column.oneof, values, starts, offsets, path)
        self.leaves.append(made)
        return made

    def _counts(self, scope: Scope) -> tuple[int, int]:
        """Slots of starts and offsets of what is in a scope."""
        starts = self._slot("int64", ROWS, 1, False)
        offsets = NO_SLOT if scope.count_of == ROWS else self._slot("int64", scope.count_of, 1, True)
        return starts, offsets

    def _slot(self, dtype: str, count_of: int, more: int, second: bool) -> int:
        self.slots.append(Slot(dtype, count_of, more, second))
        return len(self.slots) - 1


def gathering(
    mp: MessagePlan,
    values: tuple[str, ...],
    presences: tuple[str, ...] = (),
    repeated_keys: bool = False,
) -> Gathering:
    """A `Gathering`, made once: it takes longer than reading a thousand rows."""
    memo = mp.plan.memo
    key = (Gathering, mp.full_name, values, presences, repeated_keys)
    made: Gathering | None = memo.get(key)
    if made is None:
        made = memo.setdefault(key, Gathering(mp, values, presences, repeated_keys))
    return made
