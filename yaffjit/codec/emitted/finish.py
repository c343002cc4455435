"""Writes a flat or sparse message whose slots are filled and whose children are written."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from yaffjit.codec.emitted import runtime as rt
from yaffjit.codec.emitted import slots as place
from yaffjit.codec.emitted.code import I1, I32, I64, Code, Value, Variable
from yaffjit.codec.emitted.records import LiveField, Message
from yaffjit.codec.emitted.slots import Slots, table_nbytes
from yaffjit.plan import tables as yaff

if TYPE_CHECKING:
    from yaffjit.codec.emitted.messages import Messages

_EMPTY_FLAT = 0x8000
_EMPTY_SPARSE = 2
_EMPTY_NBYTES = 2
_HEADER_NBYTES = 2
_META_OFFSET_NBYTES = 4
_WORD = 64
_SIGN = {4: 1 << 31, 8: 1 << 63}
_EPSILON = {4: 2.0**-23, 8: 2.0**-52}


class Finish:
    """The end of the function of one message type.

    Args:
        slots: their address; the meta table's room is behind them.
    """

    def __init__(self, messages: Messages, code: Code, message: Message, state: Value, slots: Value) -> None:
        self.messages = messages
        self.runtime = messages.runtime
        self.code = code
        self.message = message
        self.state = state
        layout = Slots(message)
        self.slots = [code.add(slots, offset) for offset in layout.fields]
        self.table_end = code.add(slots, layout.nbytes + (table_nbytes(message) + 7 & -8))
        self.written = [self._is_written(index) for index in range(len(message.live))]

    def write(self) -> Any:
        """The position of the message, in the form that it's to have."""
        code, layout = self.code, self.message.layout
        if not self.message.live:
            return self._empty(_EMPTY_FLAT if self._is_flat() else _EMPTY_SPARSE)
        # The index of the last field that is written, -1 if there's none.
        last: Value = -1
        for index, is_written in enumerate(self.written):
            last = index if is_written is None else code.select(is_written, index, last)
        empty, full, done = code.block("empty"), code.block("full"), code.block("done")
        position = Variable(code, 0)
        code.branch(code.is_(last, "<", 0), empty, full)
        code.at(empty)
        position.set(self._empty(_EMPTY_FLAT if self._is_flat() else _EMPTY_SPARSE))
        code.go(done)
        code.at(full)
        self.last = last
        if self._is_flat():
            position.set(self._flat(is_dual=self.messages.is_dual and layout == yaff.DYNAMIC))
        else:
            position.set(self._sparse())
        code.go(done)
        code.at(done)
        return position.get()

    def _is_flat(self) -> bool:
        layout = self.message.layout
        return bool(layout == yaff.FLAT or (layout == yaff.DYNAMIC and not self.messages.is_sparse))

    def _empty(self, header: int) -> Any:
        code = self.code
        self.runtime.need_room(code, self.state, _EMPTY_NBYTES)
        position = code.add(code.load(code.add(self.state, rt.NBYTES)), _EMPTY_NBYTES)
        code.store(code.sub(code.load(code.add(self.state, rt.END)), position), header, 16)
        code.store(code.add(self.state, rt.NBYTES), position)
        return position

    # What is written.

    def _word(self, index: int, word: int = 0) -> Any:
        return self.code.load(self.code.add(self.slots[index], word))

    def _is_written(self, index: int) -> Any:
        """A condition, or None if it always is."""
        field = self.message.live[index]
        if field.kind == yaff.VALUE:
            if field.explicit:
                return self.code.is_(self._word(index, place.IS_SET), "!=", 0)
            if self.message.has_explicit:
                return None
        return self.code.is_(self._word(index), "!=", 0)

    def _by_field(self, words: list[int]) -> Any:
        """The word of the last written field among one of each."""
        code = self.code
        if isinstance(self.last, int):
            return words[self.last]
        return code.load(code.add(code.constant(words), code.shl(self.last, 3)))

    def _needs_presence(self) -> Any:
        """Whether only presence bits can show that some scalar is there."""
        code = self.code
        needs = I1(0)
        if not self.message.has_explicit:
            return needs
        for index, field in enumerate(self.message.live):
            if field.kind == yaff.VALUE:
                bits = self._word(index, place.VALUE)
                if field.explicit:
                    needs = code.any(needs, code.both(self.written[index], _hides(code, field, bits)))
                else:
                    needs = code.any(needs, _is_zero(code, bits, field.float_width))
        return needs

    # Flat.

    def _flat_nbytes(self) -> tuple[Any, Any, Any]:
        """Bytes of header and slots, bytes of metadata, and whether it has presence bits."""
        code, message = self.code, self.message
        presence = self._needs_presence()
        body = self._by_field([_HEADER_NBYTES + f.offset + f.width for f in message.live])
        plain, with_presence = (
            self._by_field([(f.id * stride + 7) // 8 for f in message.live])
            for stride in (message.plain_stride, message.presence_stride)
        )
        return body, code.select(presence, with_presence, plain), presence

    def _flat(self, is_dual: bool) -> Any:
        code, message, state = self.code, self.message, self.state
        body, meta, presence = self._flat_nbytes()
        strides = message.plain_stride, message.presence_stride
        highest = message.live[-1].id
        # Metadata is written by words, which may go beyond its front.
        words = [(stride * highest + _WORD - 1) // _WORD for stride in strides]
        nbytes = code.add(body, meta)
        self.runtime.need_room(code, state, code.add(body, 8 * max(words)))
        written = code.load(code.add(state, rt.NBYTES))
        position = code.add(written, body)
        at = code.sub(code.load(code.add(state, rt.END)), position)
        if not message.has_explicit:
            self._metadata(at, message.plain_bits, strides[0], [0] * words[0])
        else:
            with code.either(presence) as (then, otherwise):
                with then:
                    bits: list[Value] = [0] * words[1]
                    for index, field in enumerate(message.live):
                        bit = (field.id - 1) * strides[1]
                        own = 1 if self.written[index] is None else code.number(self.written[index])
                        bits[bit // _WORD] = code.or_(bits[bit // _WORD], code.shl(own, bit % _WORD))
                    self._metadata(at, message.presence_bits, strides[1], bits)
                with otherwise:
                    self._metadata(at, message.plain_bits, strides[0], [0] * words[0])
        sized = strides[0] & 2
        header = self._by_field([0x8000 | (f.id + 1) << 2 | sized for f in message.live])
        code.store(at, code.or_(header, code.number(presence)), 16)
        self._flat_slots(code.add(at, _HEADER_NBYTES), position)
        if is_dual:
            sparse, table, table_bytes = self._sparse_nbytes()
            counted = code.load(code.add(table, rt.TABLE_COUNTED))
            code.store(code.add(table, rt.TABLE_COUNTED), 1)
            other = code.add(
                code.add(sparse, _META_OFFSET_NBYTES), code.select(code.is_(counted, "!=", 0), 0, table_bytes)
            )
            self._differ(code.sub(other, nbytes))
        code.store(code.add(state, rt.NBYTES), code.add(position, meta))
        return position

    def _metadata(self, at: Value, constant: int, stride: int, bits: list[Any]) -> None:
        """The bits of all ids up to the last one's, from right before the header to the front."""
        code = self.code
        if not stride:
            return
        count = self._by_field([f.id * stride for f in self.message.live])
        for index, own in enumerate(bits):
            word = constant >> _WORD * index & 2**_WORD - 1
            if word:
                left = code.sub(count, _WORD * index)
                mask = code.sub(code.shl(1, code.and_(left, _WORD - 1)), 1)
                mask = code.select(
                    code.is_(left, ">=", _WORD), -1, code.select(code.is_(left, "<=", 0), 0, mask)
                )
                own = code.or_(own, code.and_(mask, word))
            code.store(code.sub(at, 8 * (index + 1)), code.intrinsic("llvm.bswap", own))

    def _flat_slots(self, first: Value, position: Value) -> None:
        """The slots up to that of the last field, dead ones too."""
        code = self.code
        done = code.block("written")
        always = max(
            (index for index, is_written in enumerate(self.written) if is_written is None), default=0
        )
        end = 0
        for index, field in enumerate(self.message.live):
            if field.offset > end:
                code.zero(code.add(first, end), field.offset - end)
            end = field.offset + field.width
            value = self._flat_value(index, position)
            code.store(code.add(first, field.offset), value, 8 * field.width)
            if index >= always:
                going = code.block()
                code.branch(code.is_(self.last, "==", index), done, going)
                code.at(going)
        code.go(done)
        code.at(done)

    def _flat_value(self, index: int, position: Value) -> Any:
        code, field, is_written = self.code, self.message.live[index], self.written[index]
        if field.kind != yaff.VALUE:
            offset = code.sub(position, self._word(index, place.POSITION))
            return code.select(is_written, offset, 0)
        value = self._word(index, place.VALUE)
        if not field.default:
            return value
        value = code.xor(value, field.default)
        return value if is_written is None else code.select(is_written, value, 0)

    # Sparse.

    def _sparse_nbytes(self) -> tuple[Any, Any, Any]:
        """Bytes of header and values, the address of the meta table that is kept, and its bytes."""
        code = self.code
        table_bytes = self._by_field([f.id + max(0, f.id - 31) for f in self.message.live])
        start = code.sub(self.table_end, table_bytes)
        code.zero(start, table_bytes)
        offset: Any = I64(_HEADER_NBYTES)
        for index, field in enumerate(self.message.live):

            def enter(offset: Any = offset, field: LiveField = field) -> None:
                if field.id < 32:
                    code.store(code.sub(self.table_end, field.id), offset, 8)
                else:
                    code.store(code.sub(self.table_end, 2 * field.id - 31), offset, 16)

            if self.written[index] is None:
                enter()
                offset = code.add(offset, field.width)
            else:
                with code.when(self.written[index]):
                    enter()
                offset = code.add(offset, code.select(self.written[index], field.width, 0))
        table = self.runtime.table(code, self.state, start, table_bytes)
        return offset, table, table_bytes

    def _sparse(self) -> Any:
        code, message, state = self.code, self.message, self.state
        body, table, table_bytes = self._sparse_nbytes()
        self.runtime.need_room(code, state, code.add(code.add(body, _META_OFFSET_NBYTES), table_bytes))
        position = code.add(code.load(code.add(state, rt.NBYTES)), body)
        at = code.sub(code.load(code.add(state, rt.END)), position)
        header = self._by_field([(f.id + 1) << 2 | 3 for f in message.live])
        code.store(at, header, 16)
        to = Variable(code, code.add(at, _HEADER_NBYTES))
        for index, field in enumerate(message.live):

            def put(index: int = index, field: LiveField = field) -> None:
                value = self._word(index)
                if field.kind != yaff.VALUE:
                    value = code.sub(position, self._word(index, place.POSITION))
                code.store(to.get(), value, 8 * field.width)
                to.add(field.width)

            if self.written[index] is None:
                put()
            else:
                with code.when(self.written[index]):
                    put()
        # The meta table lies right before it, or where an equal one was written.
        before = code.add(position, _META_OFFSET_NBYTES)
        known = code.load(code.add(table, rt.TABLE_POSITION))
        is_new = code.is_(known, "==", 0)
        end = code.select(is_new, before, known)
        code.store(code.sub(at, _META_OFFSET_NBYTES), code.sub(position, end), 32)
        own = code.select(is_new, table_bytes, 0)
        with code.when(is_new):
            code.store(code.add(table, rt.TABLE_POSITION), before)
            to_table = code.sub(code.sub(at, _META_OFFSET_NBYTES), table_bytes)
            code.copy(to_table, code.add(table, rt.TABLE_BYTES), table_bytes)
        code.store(code.add(state, rt.NBYTES), code.add(before, own))
        if self.messages.is_dual:
            if message.layout == yaff.DYNAMIC:
                flat, meta, _ = self._flat_nbytes()
                other = code.add(flat, meta)
                self._differ(code.sub(other, code.add(code.add(body, _META_OFFSET_NBYTES), own)))
            else:
                counted = code.load(code.add(table, rt.TABLE_COUNTED))
                code.store(code.add(table, rt.TABLE_COUNTED), 1)
                other = code.select(code.is_(counted, "!=", 0), 0, table_bytes)
                self._differ(code.sub(other, own))
        return position

    def _differ(self, nbytes: Value) -> None:
        place = self.code.add(self.state, rt.DIFFERENCE)
        self.code.store(place, self.code.add(self.code.load(place), nbytes))


def _is_zero(code: Code, bits: Value, float_width: int) -> Any:
    """Whether a value is 0; -0.0 is."""
    if float_width:
        bits = code.and_(bits, _SIGN[float_width] - 1)
    return code.is_(bits, "==", 0)


def _hides(code: Code, field: LiveField, bits: Value) -> Any:
    """Whether only a presence bit can show that an explicit scalar is there: as `transcode_fields.hides`."""
    default = field.default
    if not default:
        return _is_zero(code, bits, field.float_width)
    is_default = code.is_(bits, "==", default)
    if not field.float_width:
        return is_default
    width, b = field.float_width, code.b
    is_negated = code.is_(code.xor(bits, default), "==", _SIGN[width])
    if width == 4:
        value = b.fpext(b.bitcast(b.trunc(bits, I32), ir.FloatType()), ir.DoubleType())
        (number,) = struct.unpack("<f", struct.pack("<I", default & 0xFFFFFFFF))
    else:
        value = b.bitcast(bits, ir.DoubleType())
        (number,) = struct.unpack("<d", struct.pack("<q", default))
    if number != number or number in (float("inf"), float("-inf")):
        return code.any(is_default, is_negated)  # neighbours of these are none
    fabs = code.declare("llvm.fabs.f64", ir.DoubleType(), [ir.DoubleType()])
    double = ir.DoubleType()
    size = b.call(fabs, [value])
    least = b.select(b.fcmp_ordered("<", size, double(abs(number))), size, double(abs(number)))
    distance = b.call(fabs, [b.fsub(value, double(number))])
    near = b.fcmp_ordered("<=", distance, b.fmul(least, double(_EPSILON[width])))
    return code.any(code.any(is_default, is_negated), near)
