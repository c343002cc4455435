"""Repeated fields: from the bytes of all their occurrences to an array in the buffer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from yaffjit.codec.emitted import runtime as rt
from yaffjit.codec.emitted import slots as place
from yaffjit.codec.emitted.code import Code, Value, Variable
from yaffjit.codec.emitted.cursor import Cursor, quieted
from yaffjit.codec.emitted.records import LiveField, Message
from yaffjit.codec.emitted.slots import Slots
from yaffjit.plan import tables as yaff
from yaffjit.plan import wire_tables as tables

if TYPE_CHECKING:
    from yaffjit.codec.emitted.messages import Messages

_CONTINUES = 0x8080808080808080
_SIGN32 = 0x80000000
# How far pairs of a map may be from sorted: moves of one pair by one place, for each pair.
_MOVES = 32


class Arrays:
    """Functions ``(state, start, end, count, tag_nbytes, top, depth)`` that write one array.

    ``start`` to ``end`` are the bytes, ``count`` the number of occurrences or PACKED; from ``top`` on the
    arena is free. They give the array's position.
    """

    def __init__(self, messages: Messages) -> None:
        self.messages = messages
        self.runtime = messages.runtime

    def write(
        self,
        code: Code,
        field: LiveField,
        utf8: bool,
        state: Value,
        slot: Value,
        tag: int,
        top: Value,
        depth: Value,
    ) -> Any:
        """The position of the array of a field whose slot is filled."""
        start, end, count = (
            code.load(code.add(slot, word)) for word in (place.START, place.END, place.COUNT)
        )
        name, body = self._body(field, utf8)
        function = self.runtime.function(f"{self.messages.form}_{name}", 7, body)
        return code.passed(code.call(function, state, start, end, count, tag, top, depth))

    def _body(self, field: LiveField, utf8: bool) -> tuple[str, Any]:
        if field.kind == yaff.VALUES:
            name = f"values_{field.op}_{field.element_width}_{self.messages.index_of(field.enum)}"
            return name, lambda code, *arguments: self._values(code, field, *arguments)
        if field.kind == yaff.TEXTS:
            return f"texts_{int(utf8)}", lambda code, *arguments: self._texts(code, utf8, *arguments)
        child = self.messages.by_row[field.child]
        if field.kind == yaff.MESSAGES:
            return f"messages{child.row}", lambda code, *arguments: self._messages(code, child, *arguments)
        if field.kind == yaff.INLINED:
            return f"structs{child.row}", lambda code, *arguments: self._structs(code, child, *arguments)
        return f"map{child.row}", lambda code, *arguments: self._map(code, field, child, *arguments)

    def _values(
        self, code: Code, field: LiveField, state: Any, start: Any, end: Any, count: Any, tag: Any, *_: Any
    ) -> None:
        width = field.element_width
        is_packed = code.is_(count, "==", place.PACKED)
        fixed = field.op >= tables.FIXED32
        total = Variable(code, count)
        with code.when(is_packed):
            total.set(
                code.shr(code.sub(end, start), width.bit_length() - 1)
                if fixed
                else code.call(self.runtime.function("count_ends", 2, _count_ends), start, end)
            )
        nbytes = code.mul(total.get(), width)
        self.runtime.need_room(code, state, code.add(nbytes, 4))
        written = code.load(code.add(state, rt.NBYTES))
        to = Variable(code, code.sub(code.sub(code.load(code.add(state, rt.END)), written), nbytes))
        if fixed:
            whole, single, done = code.block("whole"), code.block("single"), code.block("done")
            code.branch(is_packed, whole, single)
            code.at(whole)
            if field.op == tables.FLOAT:
                with code.times(total.get()) as index:
                    at = code.shl(index, 2)
                    code.store(code.add(to.get(), at), quieted(code, code.load(code.add(start, at), 32)), 32)
            else:
                code.copy(to.get(), start, nbytes)
            code.go(done)
            code.at(single)
            self._one_by_one(code, field, Cursor(self.messages, code, start, end), total.get(), tag, to)
            code.go(done)
            code.at(done)
        else:
            tag = code.select(is_packed, 0, tag)
            cursor = Cursor(self.messages, code, start, end)
            self._one_by_one(code, field, cursor, total.get(), tag, to)
            code.fail_if(code.is_(cursor.pos.get(), "!=", end), rt.NOT_MINE)
        code.give(self.runtime.array(code, state, nbytes, total.get()))

    def _one_by_one(
        self, code: Code, field: LiveField, cursor: Cursor, count: Value, tag: Value, to: Variable
    ) -> None:
        with code.times(count):
            cursor.skip_tag(tag)
            code.store(to.get(), cursor.scalar(field.op, field.enum), 8 * field.element_width)
            to.add(field.element_width)

    def _texts(
        self, code: Code, utf8: bool, state: Any, start: Any, end: Any, count: Any, tag: Any, top: Any, _: Any
    ) -> None:
        self.messages.need_arena(code, state, code.add(top, code.shl(count, 3)))
        cursor = Cursor(self.messages, code, start, end)

        def write(pos: Any, nbytes: Any) -> Any:
            return self.runtime.text(code, state, pos, nbytes, utf8)

        self._each(code, cursor, count, tag, top, write)
        code.give(self.runtime.offsets(code, state, top, count))

    def _each(
        self, code: Code, cursor: Cursor, count: Any, tag: Any, top: Any, write: Callable[[Any, Any], Any]
    ) -> None:
        """Note from ``top`` on the position that ``write(pos, nbytes)`` gives for each occurrence."""
        with code.times(count) as index:
            cursor.skip_tag(tag)
            nbytes = cursor.size()
            position = write(cursor.pos.get(), nbytes)
            cursor.pos.add(nbytes)
            code.store(code.add(top, code.shl(index, 3)), position)

    def _messages(
        self,
        code: Code,
        child: Message,
        state: Any,
        start: Any,
        end: Any,
        count: Any,
        tag: Any,
        top: Any,
        depth: Any,
    ) -> None:
        above = code.add(top, code.shl(count, 3))
        self.messages.need_arena(code, state, above)
        cursor = Cursor(self.messages, code, start, end)

        def write(pos: Any, nbytes: Any) -> Any:
            return self.messages.put(code, child.row, state, pos, nbytes, above, depth)

        self._each(code, cursor, count, tag, top, write)
        code.give(self.runtime.offsets(code, state, top, count))

    def _structs(
        self,
        code: Code,
        child: Message,
        state: Any,
        start: Any,
        end: Any,
        count: Any,
        tag: Any,
        top: Any,
        depth: Any,
    ) -> None:
        limit = child.limit
        nbytes = code.mul(count, limit)
        above = code.and_(code.add(code.add(top, nbytes), 7), -8)
        self.messages.need_arena(code, state, above)
        cursor = Cursor(self.messages, code, start, end)
        to = Variable(code, top)
        with code.times(count):
            cursor.skip_tag(tag)
            size = cursor.size()
            self.messages.fill(code, child.row, state, cursor.pos.get(), size, above, depth, to.get())
            cursor.pos.add(size)
            to.add(limit)
        position, at = self._begin(code, state, nbytes, count)
        code.copy(at, top, nbytes)
        with code.times(count) as index:
            offset = code.mul(index, limit)
            base = code.sub(code.sub(position, 4), offset)
            self.messages.place_children(code, child, code.add(at, offset), base)
        code.give(position)

    def _begin(self, code: Code, state: Value, nbytes: Value, count: Value) -> tuple[Any, Any]:
        """The position of an array of ``nbytes`` that is all to be written, and the address of its data."""
        self.runtime.need_room(code, state, code.add(nbytes, 4))
        position = code.add(code.load(code.add(state, rt.NBYTES)), code.add(nbytes, 4))
        at = code.sub(code.load(code.add(state, rt.END)), position)
        code.store(at, count, 32)
        code.store(code.add(state, rt.NBYTES), position)
        return position, code.add(at, 4)

    def _map(
        self,
        code: Code,
        field: LiveField,
        entry: Message,
        state: Any,
        start: Any,
        end: Any,
        count: Any,
        tag: Any,
        top: Any,
        depth: Any,
    ) -> None:
        layout = Slots(entry)
        places = code.add(top, code.mul(count, layout.nbytes))
        above = code.add(places, code.shl(count, 3))
        self.messages.need_arena(code, state, above)
        cursor = Cursor(self.messages, code, start, end)
        moves = Variable(code, 0)
        most = code.mul(count, _MOVES)
        with code.times(count) as index:
            cursor.skip_tag(tag)
            nbytes = cursor.size()
            pair = code.add(top, code.mul(index, layout.nbytes))
            self.messages.read(code, entry.row, state, cursor.pos.get(), nbytes, pair, depth)
            cursor.pos.add(nbytes)
            # Sorted by insertion: those that are written by key need no move.
            to = Variable(code, code.add(places, code.shl(index, 3)))
            head, shift, done = code.block("head"), code.block("shift"), code.block("done")
            code.go(head)
            code.at(head)
            more = code.block("more")
            code.branch(code.is_(to.get(), "==", places), done, more)
            code.at(more)
            other = code.load(code.sub(to.get(), 8))
            order = self._order(code, field.key, other, pair)
            code.fail_if(code.is_(order, "==", 0), rt.NOT_MINE)
            code.branch(code.is_(order, "<", 0), done, shift)
            code.at(shift)
            code.store(to.get(), other)
            to.add(-8)
            moves.add(1)
            code.fail_if(code.is_(moves.get(), ">", most), rt.NOT_MINE)
            code.go(head)
            code.at(done)
            code.store(to.get(), pair)
        utf8 = field.key_checked or self.messages.is_utf8(entry, 0)
        with code.times(count) as index:
            pair = code.load(code.add(places, code.shl(index, 3)))
            self.messages.put_pair(code, entry, utf8, state, pair, above, depth)
        position, at = self._begin(code, state, code.mul(count, entry.limit), count)
        with code.times(count) as index:
            pair = code.load(code.add(places, code.shl(index, 3)))
            offset = code.mul(index, entry.limit)
            base = code.sub(code.sub(position, 4), offset)
            for own, slot in zip(entry.live, layout.fields, strict=True):
                if own.kind == yaff.VALUE:
                    value = code.xor(code.load(code.add(pair, slot + place.VALUE)), own.default)
                else:
                    value = code.sub(base, code.load(code.add(pair, slot + place.POSITION)))
                code.store(code.add(code.add(at, offset), own.offset), value, 8 * own.width)
        code.give(position)

    def _order(self, code: Code, key: int, a: Value, b: Value) -> Any:
        """Below 0, 0 or above: how the keys of two pairs are ordered. A pair begins with its key."""
        if key == tables.TEXT_KEY:
            return code.call(self.runtime.function("order_of_texts", 2, _order_of_texts), a, b)
        first, second = code.load(code.add(a, place.VALUE)), code.load(code.add(b, place.VALUE))
        if key == tables.SIGNED32_KEY:
            first, second = (
                code.sub(code.xor(code.and_(bits, 0xFFFFFFFF), _SIGN32), _SIGN32) for bits in (first, second)
            )
        is_less = code.below(first, second) if key == tables.UNSIGNED64_KEY else code.is_(first, "<", second)
        return code.select(is_less, -1, code.number(code.is_(first, "!=", second)))


def _order_of_texts(code: Code, a: Any, b: Any) -> None:
    a_nbytes, b_nbytes = (code.load(code.add(slot, place.NBYTES)) for slot in (a, b))
    least = code.select(code.is_(a_nbytes, "<", b_nbytes), a_nbytes, b_nbytes)
    order = code.compare(code.load(code.add(a, place.START)), code.load(code.add(b, place.START)), least)
    code.give(code.select(code.is_(order, "!=", 0), order, code.sub(a_nbytes, b_nbytes)))


def _count_ends(code: Code, start: Any, end: Any) -> None:
    """How many bytes end a varint."""
    at, count = Variable(code, start), Variable(code, 0)
    with code.loop(lambda: code.is_(code.sub(end, at.get()), ">=", 8)):
        ends = code.and_(code.xor(code.load(at.get()), -1), _CONTINUES)
        count.add(code.intrinsic("llvm.ctpop", ends))
        at.add(8)
    with code.loop(lambda: code.is_(at.get(), "<", end)):
        count.add(code.xor(code.shr(code.load(at.get(), 8), 7), 1))
        at.add(1)
    code.give(count.get())
