"""The functions of each message type: read bytes into slots, write what they refer to, then the message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yaffjit.codec.emitted import runtime as rt
from yaffjit.codec.emitted import slots as place
from yaffjit.codec.emitted.arrays import Arrays
from yaffjit.codec.emitted.code import I64, Code, Value, new_function
from yaffjit.codec.emitted.finish import Finish
from yaffjit.codec.emitted.parse import Parser, tag_nbytes
from yaffjit.codec.emitted.records import Message
from yaffjit.codec.emitted.slots import Slots, table_nbytes
from yaffjit.plan import tables as yaff
from yaffjit.plan import wire_tables as tables

# Messages within messages: fewer than protobuf's 100, because each takes some of the machine's stack.
MAX_DEPTH = 32


class Messages:
    """Functions of a module for one form of dynamic messages, made as they are asked for.

    Args:
        is_sparse: whether dynamic messages are written sparse.
        is_dual: whether it's also computed what they took in their other form.
    """

    def __init__(self, runtime: rt.Runtime, by_row: list[Message], is_sparse: bool, is_dual: bool) -> None:
        self.runtime = runtime
        self.by_row = by_row
        self.is_sparse = is_sparse
        self.is_dual = is_dual
        self.form = "sparse" if is_sparse else "flat"
        self.arrays = Arrays(self)
        self._waiting: list[tuple[Any, Callable[..., None]]] = []
        self._made: dict[str, Any] = {}
        self._enums: dict[tuple[int, ...], int] = {}

    def complete(self) -> None:
        """Write the bodies of all functions that were asked for."""
        while self._waiting:
            function, body = self._waiting.pop()
            body(Code(function), *function.args)

    def _function(self, name: str, arguments: int, body: Callable[..., None]) -> Any:
        """Declared now and written later: messages may contain each other."""
        name = f"{self.form}_{name}"
        if name not in self._made:
            self._made[name] = new_function(self.runtime.module, name, arguments)
            self._waiting.append((self._made[name], body))
        return self._made[name]

    # What is called.

    def put(
        self, code: Code, row: int, state: Value, pos: Value, nbytes: Value, top: Value, depth: Value
    ) -> Any:
        """Write a message that is within one of a depth; its position."""
        return code.passed(code.call(self.put_function(row), state, pos, nbytes, top, depth))

    def put_function(self, row: int) -> Any:
        message = self.by_row[row]

        def body(code: Code, *arguments: Any) -> None:
            if message.layout == yaff.FIXED:
                self._put_fixed(code, message, *arguments)
            else:
                self._put(code, message, *arguments)

        return self._function(f"put{row}", 5, body)

    def fill(
        self,
        code: Code,
        row: int,
        state: Value,
        pos: Value,
        nbytes: Value,
        top: Value,
        depth: Value,
        to: Value,
    ) -> None:
        """Write what a fixed message refers to, and into the arena the message itself.

        In place of offsets there are positions plus 1.
        """
        message = self.by_row[row]
        function = self._function(f"fill{row}", 6, lambda code, *a: self._fill(code, message, *a))
        code.passed(code.call(function, state, pos, nbytes, top, depth, to))

    def read(
        self, code: Code, row: int, state: Value, pos: Value, nbytes: Value, slots: Value, depth: Value
    ) -> None:
        """Read a pair of a map into its slots."""
        message = self.by_row[row]

        def body(code: Code, state: Any, pos: Any, nbytes: Any, slots: Any, depth: Any) -> None:
            code.zero(slots, Slots(message).nbytes)
            Parser(self, code, message, state, slots, self._deeper(code, depth)).parse(pos, nbytes)
            code.give(0)

        function = self._function(f"read{row}", 5, body)
        code.passed(code.call(function, state, pos, nbytes, slots, depth))

    def check(self, code: Code, row: int, state: Value, pos: Value, nbytes: Value, depth: Value) -> None:
        """Check a message that isn't carried."""
        message = self.by_row[row]

        def body(code: Code, state: Any, pos: Any, nbytes: Any, depth: Any) -> None:
            Parser(self, code, message, state, None, self._deeper(code, depth)).parse(pos, nbytes)
            code.give(0)

        code.passed(code.call(self._function(f"check{row}", 4, body), state, pos, nbytes, depth))

    def check_member(self, code: Code, enum: tuple[int, ...], bits: Value) -> None:
        """Fail if a closed enum doesn't have a number."""

        def body(code: Code, bits: Any) -> None:
            switch = code.b.switch(bits, code.failing(rt.NOT_MINE))
            member = code.block("member")
            for number in enum:
                switch.add_case(I64(number & 0xFFFFFFFF), member)
            code.at(member)
            code.give(0)

        function = self.runtime.function(f"{self.form}_check_member{self.index_of(enum)}", 1, body)
        code.passed(code.call(function, bits))

    def index_of(self, enum: tuple[int, ...]) -> int:
        """A number for the numbers of an enum."""
        return self._enums.setdefault(enum, len(self._enums))

    def is_utf8(self, message: Message, index: int) -> bool:
        """Whether protobuf checks the text of a live field."""
        return any(f.live == index and tables.UTF8_TEXT in f.ops.values() for f in message.wire)

    def need_arena(self, code: Code, state: Value, above: Value) -> None:
        """Fail if the arena ends before an address."""
        code.fail_if(code.is_(above, ">", code.load(code.add(state, rt.ARENA_END))), rt.NEEDS_WORK)

    # What they do.

    def _deeper(self, code: Code, depth: Value) -> Any:
        deeper = code.add(depth, 1)
        code.fail_if(code.is_(deeper, ">", MAX_DEPTH), rt.NOT_MINE)
        return deeper

    def _gather(
        self, code: Code, message: Message, state: Any, pos: Any, nbytes: Any, top: Any, depth: Any
    ) -> Any:
        """Fill the slots of a message from ``top`` on, and write all that it refers to."""
        layout = Slots(message)
        above = code.add(top, layout.nbytes + (table_nbytes(message) + 7 & -8))
        depth = self._deeper(code, depth)
        self.need_arena(code, state, above)
        code.zero(top, layout.nbytes)
        Parser(self, code, message, state, top, depth).parse(pos, nbytes)
        numbers = {f.live: f.number for f in message.wire}
        for index, field in enumerate(message.live):
            if field.kind == yaff.VALUE:
                continue
            slot = code.add(top, layout.fields[index])
            start = code.load(code.add(slot, place.START))
            with code.when(code.is_(start, "!=", 0)):
                utf8 = self.is_utf8(message, index)
                if field.kind == yaff.TEXT:
                    text = code.load(code.add(slot, place.NBYTES))
                    position = self.runtime.text(code, state, start, text, utf8)
                elif field.kind == yaff.SINGLE:
                    size = code.load(code.add(slot, place.NBYTES))
                    position = self.put(code, field.child, state, start, size, above, depth)
                else:
                    tag = tag_nbytes(numbers[index])
                    position = self.arrays.write(code, field, utf8, state, slot, tag, above, depth)
                code.store(code.add(slot, place.POSITION), position)

    def _put(
        self, code: Code, message: Message, state: Any, pos: Any, nbytes: Any, top: Any, depth: Any
    ) -> None:
        self._gather(code, message, state, pos, nbytes, top, depth)
        code.give(Finish(self, code, message, state, top).write())

    def _put_fixed(
        self, code: Code, message: Message, state: Any, pos: Any, nbytes: Any, top: Any, depth: Any
    ) -> None:
        above = code.add(top, message.limit + 7 & -8)
        self.need_arena(code, state, above)
        self.fill(code, message.row, state, pos, nbytes, above, depth, top)
        self.runtime.need_room(code, state, message.limit)
        position = code.add(code.load(code.add(state, rt.NBYTES)), message.limit)
        at = code.sub(code.load(code.add(state, rt.END)), position)
        code.copy(at, top, message.limit)
        self.place_children(code, message, at, position)
        code.store(code.add(state, rt.NBYTES), position)
        code.give(position)

    def _fill(
        self, code: Code, message: Message, state: Any, pos: Any, nbytes: Any, top: Any, depth: Any, to: Any
    ) -> None:
        self._gather(code, message, state, pos, nbytes, top, depth)
        layout = Slots(message)
        code.zero(to, message.limit)
        for field, offset in zip(message.live, layout.fields, strict=True):
            slot = code.add(top, offset)
            word = code.load(slot)
            if field.kind != yaff.VALUE:
                position = code.add(code.load(code.add(slot, place.POSITION)), 1)
                bits = code.select(code.is_(word, "!=", 0), position, 0)
            elif field.explicit:
                is_set = code.is_(code.load(code.add(slot, place.IS_SET)), "!=", 0)
                if field.checked:
                    is_lost = code.both(is_set, code.is_(word, "==", field.default))
                    code.fail_if(is_lost, rt.NOT_MINE)
                bits = code.select(is_set, code.xor(word, field.default), 0)
            else:
                bits = code.select(code.is_(word, "!=", 0), code.xor(word, field.default), 0)
            code.store(code.add(to, field.offset), bits, 8 * field.width)
        code.give(0)

    def place_children(self, code: Code, message: Message, at: Value, position: Value) -> None:
        """Turn what `fill` wrote into offsets, where the message has got its place."""
        for field in message.live:
            if field.kind != yaff.VALUE:
                slot = code.add(at, field.offset)
                child = code.load(slot, 32)
                offset = code.sub(position, code.sub(child, 1))
                code.store(slot, code.select(code.is_(child, "!=", 0), offset, 0), 32)

    def put_pair(
        self, code: Code, entry: Message, utf8: bool, state: Value, slots: Value, top: Value, depth: Value
    ) -> None:
        """Write the texts and the message of a pair of a map, also those that aren't there."""
        layout = Slots(entry)
        for index, field in enumerate(entry.live):
            slot = code.add(slots, layout.fields[index])
            start, nbytes = (code.load(code.add(slot, word)) for word in (place.START, place.NBYTES))
            if field.kind == yaff.TEXT:
                checked = utf8 if index == 0 else self.is_utf8(entry, index)
                position = self.runtime.text(code, state, start, nbytes, checked)
            elif field.kind == yaff.SINGLE:
                deeper = code.add(depth, 1)
                position = self.put(code, field.child, state, start, nbytes, top, deeper)
            else:
                continue
            code.store(code.add(slot, place.POSITION), position)
