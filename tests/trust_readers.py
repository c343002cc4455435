"""Every reader of ours over messages that `verify` accepted; what they read is compared between them.

Readers must not leave a message, and must agree. They may refuse text that isn't UTF-8 where the schema
doesn't ask for it, and what no protobuf message holds.
"""

from __future__ import annotations

import math
import pickle
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import columns_spec
import numba
import numpy as np

import yaffjit as yj
from yaffjit.codec.serialize import serialize_many
from yaffjit.columns import DictionaryColumn, ListColumn, MapColumn, TextColumn
from yaffjit.plan import MessagePlan
from yaffjit.plan.columns import presence_path
from yaffjit.plan.model import FieldPlan
from yaffjit.rows.records import Records
from yaffjit.rows.transcoded import protobuf_payloads
from yaffjit.view import View, to_dict, view_class

# What shares subtrees so that it's a larger protobuf message is only read in part.
MOST_NBYTES = 1 << 16
PATHS = 10  # of columns, compiled for a type in CI
PRESENT = 2  # of these paths in CI, since each is compiled by itself
ALL_PATHS = 240  # in the whole campaign
COMPARED = 16  # of so many rows one is compared with columns, path by path
NOT_UTF8 = "not UTF-8"
NO_TIME = ("google.protobuf.Timestamp", "google.protobuf.Duration")  # as columns they overflow
Tree = Any


class Reading:
    """Reads messages of one type whole, views and protobuf's alike."""

    def __init__(self, mp: MessagePlan) -> None:
        self.mp = mp
        self._fields = [(f, _one(mp, f)) for f in mp.fields]
        self._children: dict[str, Reading] = {}

    def of(self, message: Any) -> Tree:
        """Values, presence and oneofs by name; only those members of oneofs that are set.

        Of an absent message nothing but that; the default that it reads as is looked at for scalars.
        """
        told: dict[str, Tree] = {}
        members = {name for oneof in self.mp.oneofs for name in oneof.fields}
        for f, one in self._fields:
            name = f.name
            value = _read(message, name)
            if f.explicit:
                there = View.HasField(message, name) if isinstance(message, View) else message.HasField(name)
                told[f"{name}?"] = there
                if not there and (f.kind == "message" or name in members):
                    if f.kind == "message" and isinstance(message, View):
                        self._default(f, value)
                    continue
            told[name] = self._value(f, one, value)
        for oneof in self.mp.oneofs:
            which = View.WhichOneof if isinstance(message, View) else type(message).WhichOneof
            told[f"{oneof.name}="] = which(message, oneof.name)
        return told

    def _value(self, f: FieldPlan, one: FieldPlan, value: Any) -> Tree:
        if isinstance(value, str) and value is NOT_UTF8:
            return NOT_UTF8
        if f.is_map:
            pairs = {}
            for key, held in _items(value):
                pairs[_plain(f, key)] = self._element(one, held)
            return dict(sorted(pairs.items(), key=lambda pair: repr(pair[0])))
        if not f.repeated:
            return self._element(one, value)
        found = [self._element(one, held) for held in _elements(value)]
        if found and found[-1] is not NOT_UTF8:
            assert self._element(one, value[-1]) == found[-1]
        return found

    def _element(self, one: FieldPlan, value: Any) -> Tree:
        if one.kind != "message":
            return _plain(one, value)
        return self._child(one).of(value)

    def _child(self, one: FieldPlan) -> Reading:
        found = self._children.get(one.message)
        if found is None:
            found = self._children[one.message] = Reading(self.mp.plan[one.message])
        return found

    def _default(self, f: FieldPlan, view: Any) -> None:
        for inner in self.mp.child(f).fields:
            if inner.is_scalar:
                getattr(view, inner.name)


def _difference(found: Tree, wanted: Tree) -> str:
    """What two readings differ in, by name."""
    if isinstance(found, dict) and isinstance(wanted, dict) and found.keys() == wanted.keys():
        for name, held in found.items():
            if held != wanted[name]:
                return f"{name}: {_difference(held, wanted[name])}"
    return f"{found!r}, which is {wanted!r}"


def _one(mp: MessagePlan, f: FieldPlan) -> FieldPlan:
    """A field as that of one element: of a map the pair's value."""
    return mp.child(f).fields[1] if f.is_map else f


def _read(message: Any, name: str) -> Any:
    try:
        return getattr(message, name)
    except UnicodeDecodeError:
        return NOT_UTF8


def _items(value: Any) -> Any:
    try:
        return list(value.items())
    except UnicodeDecodeError:
        return [(NOT_UTF8, NOT_UTF8)]


def _elements(value: Any) -> list[Any]:
    try:
        return list(value)
    except UnicodeDecodeError:
        return [NOT_UTF8]


def _plain(f: FieldPlan, value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value.hex()
    return value


class Readers:
    """All readers of one message type.

    Args:
        few: how many paths of columns are compiled.
    """

    def __init__(self, mp: MessagePlan, few: bool) -> None:
        self.mp = mp
        self.reading = Reading(mp)
        self.view_class = view_class(mp)
        self.told: Counter[str] = Counter()
        every = [path for path in columns_spec.all_paths(mp, 1) if not _is_time(mp, path)]
        most = PATHS if few else ALL_PATHS
        self.paths = sorted(random.Random(4).sample(every, most)) if len(every) > most else every
        asked = [path for path in self.paths if _has_presence(mp, path)]
        self.present = asked[:: max(1, len(asked) // PRESENT)][:PRESENT] if few else asked
        self.functions = FUNCTIONS.get(mp.full_name, ())

    # One message, in plain Python

    def read(self, view: Any, buf: bytes) -> bool:
        """Read a view by all that Python has; whether it isn't a huge message."""
        shown = repr(view)
        message = None
        try:
            message = view._decoded_(MOST_NBYTES)
        except yj.DecodeError:
            self._unreadable(view)
            return True
        if message is None:
            self.told["shared"] += 1
            self._scalars(view)
            return False
        assert not shown.partition("\n")[0].endswith("can't be shown"), shown
        found = self.reading.of(view)
        self._compare(found, self.reading.of(message))
        assert view == message
        assert view == self.view_class(view._data_, view._pos_)
        wire = View.SerializeToString(view) if View.IsInitialized(view) else b""
        if wire:
            assert len(wire) == View.ByteSize(view)
        by_name = _outcome(lambda: to_dict(view))
        listed = _outcome(lambda: View.ListFields(view))
        if by_name is not None:  # else some text isn't UTF-8
            assert list(by_name) == [field.name for field, _ in listed]
            assert yj.to_json(view)
        else:
            _outcome(lambda: yj.to_json(view))
        self.told["read"] += 1
        return True

    def _unreadable(self, view: Any) -> None:
        """A view whose text protobuf refuses; what remains can be read."""
        self._scalars(view)
        for read in (lambda: to_dict(view), lambda: yj.to_json(view), lambda: self.reading.of(view)):
            _outcome(read)
        self.told["refused by protobuf"] += 1

    def _scalars(self, view: Any) -> None:
        for f in self.mp.fields:
            value = _read(view, f.name)
            if f.explicit:
                View.HasField(view, f.name)
            if f.repeated:
                len(value)

    def _compare(self, found: Tree, wanted: Tree) -> None:
        if found != wanted:
            raise AssertionError(f"a view reads {_difference(found, wanted)} as a message has it decoded")

    # Many at once, compiled

    def read_all(self, scattered: Sequence[Records], regular: Records, views: Sequence[Any]) -> None:
        """Columns, jitted functions, transcoding and pickles of the same messages in several places."""
        if not len(regular):
            return
        forms = [*scattered, regular]
        found = [recs.columns(*self.paths) for recs in forms] if self.paths else []
        for path in self.paths if found else ():
            first, *others = [_arrays(columns[path]) for columns in found]
            for other in others:
                assert first == other, f"column {path} differs between places"
        for path in self.present:
            first, *others = [columns.present(path).tobytes() for columns in found]
            assert all(first == other for other in others), f"presence of {path} differs between places"
        for row in range(0, len(views) if found else 0, COMPARED):
            self._check_row(found[0], row, views[row])
        wires = [
            _outcome(lambda recs=recs: protobuf_payloads(recs, threads=1).data.tobytes()) for recs in forms
        ]
        assert all(wire == wires[0] for wire in wires)
        for plain, jitted in self.functions:
            for recs in forms:
                made = jitted(recs)
                for row in range(0, len(views), COMPARED // 4):
                    told = plain(views[row])
                    assert made[row] == told, f"{plain.__name__}: {made[row]} jitted, {told} in Python"
        again = pickle.loads(pickle.dumps(regular))
        for row in (0, len(regular) - 1):
            assert again.payload(row) == regular.payload(row)

    def _check_row(self, columns: Any, row: int, view: Any) -> None:
        for path in self.paths:
            held = columns[path]
            try:
                found = columns_spec.exact(columns_spec.rows(held[row : row + 1])[0])
                wanted = columns_spec.exact(columns_spec.value(view, path))
            except UnicodeDecodeError:
                continue
            assert found == wanted, f"column {path}: {found}, {wanted} by a view"
        for path in self.present:
            found = bool(columns.present(path)[row])
            assert found == columns_spec.present(view, path), f"presence of {path}"

    def serialize_one(self, recs: Records, row: np.ndarray) -> None:
        """The transcoder's kernel over one message between two pages."""
        chunk = recs._store.parts(0, 1)[0] if hasattr(recs._store, "parts") else None
        assert chunk is not None
        _outcome(lambda: serialize_many(self.mp, chunk.data, np.array([0, int(row[1])]), threads=1))


def _outcome(read: Any) -> Any:
    """What a reader gives, None where the message holds what it can't."""
    try:
        return read()
    except (UnicodeDecodeError, yj.YaffjitError):
        return None


def _is_time(mp: MessagePlan, path: str) -> bool:
    from yaffjit.plan.columns import column_path

    return column_path(mp, path).what == "time"


def _has_presence(mp: MessagePlan, path: str) -> bool:
    try:
        presence_path(mp, path)
    except yj.SchemaError:
        return False
    return True


def _arrays(column: Any) -> list[bytes]:
    """The bytes of all arrays of a column."""
    if isinstance(column, np.ndarray):
        return [column.tobytes()]
    if isinstance(column, TextColumn):
        return [column.offsets.tobytes(), column.data[: column.offsets[-1]].tobytes()]
    if isinstance(column, DictionaryColumn):
        return [column.codes.tobytes(), *_arrays(column.values)]
    if isinstance(column, MapColumn):
        return [column.offsets.tobytes(), *_arrays(column.keys), *_arrays(column.values)]
    assert isinstance(column, ListColumn)
    return [column.offsets.tobytes(), *_arrays(column.values)]


# ---- plain functions that are compiled too ----

MASK = 0xFFFF


def banner(m: Any) -> Any:
    """All containers, maps and nested messages of a ``verify.Banner``."""
    total = m.id & MASK
    for tag in m.tags:
        total = (total * 31 + len(tag)) & MASK
    for text in m.attrs:
        total = (total * 31 + len(text) + (m.attrs[text] & MASK)) & MASK
    for key, value in m.attrs.items():
        total = (total * 31 + len(key) + (value & MASK)) & MASK
    for point in m.points:
        total = (total * 31 + (point.x & MASK) + len(point.name)) & MASK
    for place in m.places:
        total = (total * 31 + len(place.city) + len(place.raw)) & MASK
    for bare in m.bares:
        total = (total * 31 + (bare.x & MASK) + (bare.y & MASK)) & MASK
    for flag in m.flags:
        total = (total * 2 + flag) & MASK
    if "key" in m.attrs:
        total += 1
    if m.HasField("geo") and m.geo.city == "a":
        total += 2
    if m.HasField("point") and len(m.point.name) > 0:
        total += m.point.x & 3
    total += m.attrs.get("a", 5) & 7
    return total * 2 + m.HasField("nothing") + len(m.weights)


def tree(m: Any) -> Any:
    """A ``verify.Tree``, some levels down."""
    total = 0
    for text in m.texts:
        total = (total * 31 + len(text)) & MASK
    for kid in m.kids:
        total = (total * 31 + len(kid.text) + len(kid.kids)) & MASK
        for text in kid.texts:
            total = (total * 31 + len(text)) & MASK
    deep = len(m.left.left.left.text) + len(m.right.left.right.texts)
    return total * 8 + 4 * m.HasField("left") + 2 * m.HasField("right") + (deep & 1)


def _over_rows(function: Any) -> Any:
    compiled = numba.njit(function)

    @numba.njit
    def over(recs):  # type: ignore[no-untyped-def]
        made = np.empty(len(recs), np.int64)
        for i in range(len(recs)):
            made[i] = compiled(recs[i])
        return made

    return over


FUNCTIONS = {
    "verify.Banner": ((banner, _over_rows(banner)),),
    "verify.Tree": ((tree, _over_rows(tree)),),
}
