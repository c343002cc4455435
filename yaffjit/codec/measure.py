"""How many bytes a YaFF message takes as a protobuf message, without building it.

Parts of a buffer may be shared, and shared parts may share parts, so that this is far more than the buffer's
own size. Here each part is looked at once however often it's shared.
"""

from __future__ import annotations

from yaffjit.codec.locate import Buffer, Locator, read_u32, target
from yaffjit.codec.wire import (
    MessageReader,
    ObjectReader,
    element_positions,
    message_reader,
    pair_positions,
    varint,
)
from yaffjit.plan.model import FieldPlan, MessagePlan

# A field that lies out of line: its plan, where it is, and its reader.
Object = tuple[FieldPlan, Locator, ObjectReader]


def protobuf_nbytes(mp: MessagePlan, data: Buffer, at: int) -> int:
    """The size in bytes of the protobuf message at byte ``at`` of a buffer that is trusted."""
    return _Sizes(data).message(mp, at)


class _Sizes:
    def __init__(self, data: Buffer) -> None:
        self.data = data
        self.types: dict[str, tuple[MessageReader, list[Object]]] = {}
        self.messages: dict[tuple[str, int], int] = {}
        self.arrays: dict[tuple[str, int, int], int] = {}

    def message(self, mp: MessagePlan, at: int) -> int:
        key = mp.full_name, at
        nbytes = self.messages.get(key)
        if nbytes is None:
            reader, objects = self.type(mp)
            nbytes = len(reader.wire_of_scalars(self.data, at))
            for f, find, o in objects:
                pos = find(self.data, at)
                if pos >= 0:
                    nbytes += self.array(mp, f, pos, o) if f.repeated else self.single(mp, f, pos, o)
            self.messages[key] = nbytes
        return nbytes

    def type(self, mp: MessagePlan) -> tuple[MessageReader, list[Object]]:
        known = self.types.get(mp.full_name)
        if known is None:
            reader = message_reader(mp)
            fields = [f for f in mp.fields if f.out_of_line]
            finders = [target(mp, f) for f in fields]
            known = reader, list(zip(fields, finders, reader.objects, strict=True))
            self.types[mp.full_name] = known
        return known

    def array(self, mp: MessagePlan, f: FieldPlan, pos: int, o: ObjectReader) -> int:
        key = mp.full_name, f.number, pos
        nbytes = self.arrays.get(key)
        if nbytes is None:
            if f.is_map:
                positions = pair_positions(mp.child(f), self.data, pos)
                nbytes = sum(self.single(mp, f, at, o) for at in positions)
            elif f.kind in ("message", "string", "bytes"):
                positions = element_positions(self.data, pos, f.element_width, f.inlined)
                nbytes = sum(self.single(mp, f, at, o) for at in positions)
            else:
                nbytes = len(o.wire(self.data, pos, 0))
            self.arrays[key] = nbytes
        return nbytes

    def single(self, mp: MessagePlan, f: FieldPlan, pos: int, o: ObjectReader) -> int:
        """A text or a message, also as an element or pair, with its tag and length."""
        tag = len(varint(f.number << 3))
        if f.kind != "message":
            count: int = read_u32(self.data, pos)[0]
            return tag + len(varint(count)) + count
        held = self.message(mp.child(f), pos)
        return tag + held + (tag if o.is_group else len(varint(held)))
