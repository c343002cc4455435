"""Many messages, one after the other, by code of a schema's own; the caller gives what the kernel is given.

The words of a request are those of `yaffjit.kernels.transcode_state`. The work area is divided: meta tables,
then the messages' own words, then the buffer that is being written, from the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from yaffjit.codec.emitted import runtime as rt
from yaffjit.codec.emitted.code import Code, Value, Variable
from yaffjit.codec.emitted.messages import Messages
from yaffjit.codec.emitted.records import Message
from yaffjit.kernels import transcode_state as state
from yaffjit.kernels.wire import MAX_SIZE
from yaffjit.plan import tables as yaff

# A status besides the kernel's: the row is left to it.
NOT_MINE = 100

# More places for shared objects are taken as they are needed: few stay in the processor's nearest cache.
_FEW_SHARED = 128
_UNCARRIED = 512  # numbers that aren't carried, in one message
_ROOT_NBYTES = 4
# Bytes of a work area that aren't doubled: what is larger is left to the kernel, which computes sizes first.
_MOST_WORK = 2**27
_HASH = -0x61C8864680B583EB


class Rows:
    """The function ``(request, first, last)`` that gives the row that isn't done, else ``last``."""

    def __init__(self, module: Any, by_row: list[Message], mode: int) -> None:
        self.mode = mode
        self.runtime = rt.Runtime(module)
        is_dual = mode in (state.WRITE_AUTO, state.WRITE_SMALLEST)
        forms = {
            state.WRITE_FLAT: (False,),
            state.WRITE_SPARSE: (True,),
        }.get(mode, (False, True))
        self.forms = [Messages(self.runtime, by_row, is_sparse, is_dual) for is_sparse in forms]
        self.function = self.runtime.function("rows", 3, self._rows)
        self.function.linkage = "external"
        for form in self.forms:
            form.complete()

    def _rows(self, code: Code, request: Any, first: Any, last: Any) -> None:
        self.request = request
        self.state = code.stack(rt.STATE_WORDS)
        uncarried = code.stack(_UNCARRIED)
        told = self._told
        work = code.and_(code.add(told(code, state.WORK), 7), -8)
        end = code.and_(code.add(told(code, state.WORK), told(code, state.WORK_NBYTES)), -8)
        eighth = code.and_(code.shr(code.sub(end, work), 3), -8)
        tables_end = code.add(work, eighth)
        half = code.shl(eighth, 2)
        self._set(code, rt.END, end)
        self._set(code, rt.ROOM, half)
        self._set(code, rt.ARENA_END, code.sub(end, half))
        self._set(code, rt.TABLES_END, tables_end)
        self._set(code, rt.SHARED, told(code, state.SHARED))
        self._set(code, rt.MASK, code.sub(self._least(code, told(code, state.SHARED_COUNT), _FEW_SHARED), 1))
        self._set(code, rt.SEED, told(code, state.SEED))
        self._set(code, rt.UNCARRIED_END, code.add(uncarried, 8 * _UNCARRIED))
        is_sparse = Variable(code, 0)  # of two forms, the one that was taken for the row before
        row = Variable(code, first)
        offsets, out_offsets, data = (
            told(code, word) for word in (state.OFFSETS, state.OUT_OFFSETS, state.DATA)
        )
        data_nbytes = told(code, state.DATA_NBYTES)
        with code.loop(lambda: code.is_(row.get(), "<", last)):
            at = code.shl(row.get(), 3)
            begin, behind = code.load(code.add(offsets, at)), code.load(code.add(code.add(offsets, at), 8))
            nbytes = code.sub(behind, begin)
            bad = code.any(code.is_(begin, "<", 0), code.is_(behind, "<", begin))
            bad = code.any(bad, code.is_(behind, ">", data_nbytes))
            self._stop_if(code, row, bad, state.BAD_OFFSETS)
            self._stop_if(code, row, code.is_(nbytes, ">", MAX_SIZE), NOT_MINE)
            again = code.block("again")
            code.go(again)
            code.at(again)
            self._set(code, rt.NBYTES, 0)
            self._set(code, rt.DIFFERENCE, 0)
            self._set(code, rt.USED, 0)
            self._set(code, rt.TABLES, work)
            self._set(code, rt.UNCARRIED, uncarried)
            generation = code.add(told(code, state.GENERATION), 1)
            self._tell(code, state.GENERATION, generation)
            self._set(code, rt.GENERATION, generation)
            root = self._root(code, code.add(data, begin), nbytes, tables_end, is_sparse)
            self._unless_failed(code, row, root, again)
            size = code.add(self._get(code, rt.NBYTES), _ROOT_NBYTES)
            other = code.add(size, self._get(code, rt.DIFFERENCE))
            most = told(code, state.MOST)
            too_large = code.any(code.is_(size, ">", most), code.is_(other, ">", most))
            self._stop_if(code, row, too_large, NOT_MINE)
            if len(self.forms) > 1:
                wanted = self._wants_sparse(code, is_sparse, size, other)
                chosen = code.block("chosen")
                switch = code.block("switch")
                code.branch(code.is_(wanted, "==", is_sparse.get()), chosen, switch)
                code.at(switch)
                is_sparse.set(wanted)
                code.go(again)
                code.at(chosen)
            used = told(code, state.OUT_USED)
            missing = code.sub(code.add(used, size), told(code, state.OUT_NBYTES))
            self._stop_if(code, row, code.is_(missing, ">", 0), state.NEEDS_OUT, missing)
            to = code.add(told(code, state.OUT), used)
            code.store(to, code.sub(size, root), 32)
            body = code.sub(size, _ROOT_NBYTES)
            code.copy(code.add(to, _ROOT_NBYTES), code.sub(end, body), body)
            used = code.add(used, size)
            self._tell(code, state.OUT_USED, used)
            code.store(code.add(code.add(out_offsets, at), 8), used)
            lost = code.sub(self._get(code, rt.UNCARRIED), uncarried)
            with code.when(code.is_(lost, "!=", 0)):
                count = self.runtime.function("count", 2, _count)
                with code.times(code.shr(lost, 3)) as index:
                    code.call(count, request, code.load(code.add(uncarried, code.shl(index, 3))))
            row.add(1)
        self._tell(code, state.STATUS, state.DONE)
        code.give(last)

    def _root(self, code: Code, pos: Value, nbytes: Value, top: Value, is_sparse: Variable) -> Any:
        """What the root's function gives, in the form of the moment: not passed on if it's a failure."""
        if len(self.forms) == 1:
            return self._put(code, self.forms[0], pos, nbytes, top)
        made = Variable(code, 0)
        with code.either(code.is_(is_sparse.get(), "!=", 0)) as (sparse, flat):
            with sparse:
                made.set(self._put(code, self.forms[1], pos, nbytes, top))
            with flat:
                made.set(self._put(code, self.forms[0], pos, nbytes, top))
        return made.get()

    def _put(self, code: Code, form: Messages, pos: Value, nbytes: Value, top: Value) -> Any:
        return code.call(form.put_function(0), self.state, pos, nbytes, top, -1)

    def _wants_sparse(self, code: Code, is_sparse: Variable, size: Value, other: Value) -> Any:
        """1 if the message is to be sparse, by its size in the form of the moment and in the other one."""
        now = code.is_(is_sparse.get(), "!=", 0)
        flat, sparse = code.select(now, other, size), code.select(now, size, other)
        if self.mode == state.WRITE_SMALLEST:
            return code.number(code.is_(sparse, "<", flat))
        return code.number(code.is_(code.mul(code.sub(flat, sparse), 10), ">", flat))

    def _unless_failed(self, code: Code, row: Variable, root: Value, again: Any) -> None:
        self._stop_if(code, row, code.is_(root, "==", rt.NOT_MINE), NOT_MINE)
        with code.when(code.is_(root, "==", rt.NEEDS_WORK)):
            too_large = code.is_(self._told(code, state.WORK_NBYTES), ">=", _MOST_WORK)
            self._stop_if(code, row, too_large, NOT_MINE)
            self._tell(code, state.STATUS, state.NEEDS_WORK)
            code.give(row.get())
        with code.when(code.is_(root, "<", 0)):
            count = code.shl(code.add(self._get(code, rt.MASK), 1), 1)
            have = self._told(code, state.SHARED_COUNT)
            self._stop_if(code, row, code.is_(count, ">", have), state.NEEDS_SHARED, count)
            self._set(code, rt.MASK, code.sub(count, 1))
            code.go(again)

    def _least(self, code: Code, a: Value, b: Value) -> Any:
        return code.select(code.is_(a, "<", b), a, b)

    def _stop_if(self, code: Code, row: Variable, condition: Any, status: int, needed: Value = 0) -> None:
        stop, going = code.block("stop"), code.block()
        code.branch(condition, stop, going)
        code.at(stop)
        self._tell(code, state.STATUS, status)
        self._tell(code, state.NEEDED, needed)
        code.give(row.get())
        code.at(going)

    def _told(self, code: Code, word: int) -> Any:
        return code.load(code.add(self.request, word))

    def _tell(self, code: Code, word: int, value: Value) -> None:
        code.store(code.add(self.request, word), value)

    def _get(self, code: Code, word: int) -> Any:
        return code.load(code.add(self.state, word))

    def _set(self, code: Code, word: int, value: Value) -> None:
        code.store(code.add(self.state, word), value)


def _count(code: Code, request: Any, key: Any) -> None:
    """Counts a number of a message, as the kernel does."""
    counts = code.load(code.add(request, state.COUNTS))
    mask = code.sub(code.load(code.add(request, state.COUNTS_COUNT)), 1)
    index = Variable(code, code.and_(code.sar(code.mul(key, _HASH), 20), mask))
    place: Callable[[], Any] = lambda: code.add(counts, code.shl(index.get(), 4))  # noqa: E731
    with code.loop(lambda: code.is_(code.load(place()), "!=", key)):
        with code.when(code.is_(code.load(place()), "==", 0)):
            used = code.load(code.add(request, state.COUNTS_USED))
            with code.when(code.is_(code.shl(used, 1), ">", mask)):
                left_out = code.add(request, state.COUNTS_LEFT_OUT)
                code.store(left_out, code.add(code.load(left_out), 1))
                code.give(0)
            code.store(code.add(request, state.COUNTS_USED), code.add(used, 1))
            code.store(place(), key)
            code.store(code.add(place(), 8), 1)
            code.give(0)
        index.set(code.and_(code.add(index.get(), 1), mask))
    times = code.add(place(), 8)
    code.store(times, code.add(code.load(times), 1))
    code.give(0)


def can_write(by_row: list[Message]) -> bool:
    """Whether there's anything to write: a fixed message without fields can't be a root."""
    return by_row[0].layout != yaff.FIXED or by_row[0].limit > 0


def module_of(by_row: list[Message], mode: int) -> str:
    """The IR of the function ``rows`` for a form of writing: WRITE_FLAT to WRITE_SMALLEST."""
    module = ir.Module("yaffjit.transcode")
    Rows(module, by_row, mode)
    return str(module)
