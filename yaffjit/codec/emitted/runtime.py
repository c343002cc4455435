"""What the code of all message types calls: varints, text, and objects that are written once for equal bytes.

A buffer is written from its end to its front, as its format wants it: an object's position (bytes from its
start to the end of the buffer) is known when it's written. Words of the state that all functions share are
bytes from its start. Each function that writes compares what it needs with the room first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yaffjit.codec.emitted.code import PAIR, Code, Value, Variable, new_function

# The state.
NBYTES = 8 * 0  # written so far
DIFFERENCE = 8 * 1  # how many more it were if the dynamic messages had their other form
END = 8 * 2  # address behind the buffer
ROOM = 8 * 3  # the most that can be written
ARENA_END = 8 * 4  # of the messages' own words
SHARED = 8 * 5  # three words for each shared object: generation, hash, what it is
MASK = 8 * 6  # of places in it
GENERATION = 8 * 7
SEED = 8 * 8  # of hashes
USED = 8 * 9  # how many objects there are in it
TABLES = 8 * 10  # where the next meta table is kept,
TABLES_END = 8 * 11
UNCARRIED = 8 * 12  # and the next number that isn't carried
UNCARRIED_END = 8 * 13
STATE_WORDS = 14

# Failures.
NOT_MINE = -1
NEEDS_WORK = -2
NEEDS_SHARED = -3

# Words of a meta table that is kept.
TABLE_POSITION = 0  # of its end in the form that is written; 0 if it isn't there
TABLE_COUNTED = 8  # whether the other form has it
_TABLE_NBYTES = 16
TABLE_BYTES = 24

_SHARED_ENTRY = 24
_TABLE_MARK = 1 << 63
_TABLE_SALT = 0x5851F42D4C957F2D
_CONTINUES = 0x8080808080808080
_LOW7 = 0x7F7F7F7F7F7F7F7F


class Runtime:
    """The functions of a module, made as they are asked for."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self._made: dict[str, Any] = {}

    def function(
        self, name: str, arguments: int, body: Callable[..., None], result: Any = None, inline: bool = False
    ) -> Any:
        """The function of that name; ``body(code, *arguments)`` writes it."""
        if name not in self._made:
            made = new_function(self.module, name, arguments, result or PAIR.elements[0], inline)
            self._made[name] = made
            body(Code(made), *made.args)
        return self._made[name]

    def read_varint(self, code: Code, pos: Value, limit: Value) -> tuple[Any, Any]:
        """The 64 bits of a varint and the position behind it, which is 0 if it's none."""
        read = self.function("read_varint", 2, _read_varint, PAIR)
        pair = code.call(read, pos, limit)
        return code.b.extract_value(pair, 0), code.b.extract_value(pair, 1)

    def check_text(self, code: Code, pos: Value, nbytes: Value) -> None:
        """Fail if the text isn't UTF-8."""
        code.passed(code.call(self.function("check_text", 2, _check_text), pos, nbytes))

    def check_varints(self, code: Code, pos: Value, end: Value) -> None:
        """Fail if something else than varints lies there."""

        def body(code: Code, pos: Any, end: Any) -> None:
            at = Variable(code, pos)
            with code.loop(lambda: code.is_(at.get(), "<", end)):
                _, behind = self.read_varint(code, at.get(), end)
                code.fail_if(code.is_(behind, "==", 0), NOT_MINE)
                at.set(behind)
            code.give(0)

        code.passed(code.call(self.function("check_varints", 2, body), pos, end))

    def need_room(self, code: Code, state: Value, nbytes: Value) -> None:
        """Fail if so many bytes can't be written."""
        left = code.sub(code.load(code.add(state, ROOM)), code.load(code.add(state, NBYTES)))
        code.fail_if(code.is_(left, "<", nbytes), NEEDS_WORK)

    def text(self, code: Code, state: Value, pos: Value, nbytes: Value, utf8: bool) -> Any:
        """The position of a text with these bytes, which is written if there's none yet."""

        def body(code: Code, state: Any, pos: Any, nbytes: Any) -> None:
            seed = code.load(code.add(state, SEED))
            pair = code.call(self.function("hash_of", 3, _hash_of, PAIR, True), pos, nbytes, seed)
            if utf8:
                with code.when(code.is_(code.and_(code.b.extract_value(pair, 1), _CONTINUES), "!=", 0)):
                    self.check_text(code, pos, nbytes)
            key = code.b.extract_value(pair, 0)
            size = code.add(nbytes, 5)
            entry = self._known(code, state, key, pos, nbytes, size, nbytes)
            self.need_room(code, state, size)
            position = code.add(code.load(code.add(state, NBYTES)), size)
            at = code.sub(code.load(code.add(state, END)), position)
            code.store(at, nbytes, 32)
            copy = self.function("copy_short", 3, _copy, inline=True)
            code.call(copy, code.add(at, 4), pos, nbytes)
            code.store(code.add(code.add(at, 4), nbytes), 0, 8)
            self._keep(code, state, entry, key, position, size)
            code.give(position)

        function = self.function("put_utf8" if utf8 else "put_text", 3, body)
        return code.passed(code.call(function, state, pos, nbytes))

    def array(self, code: Code, state: Value, nbytes: Value, count: Value) -> Any:
        """The position of an array of scalars whose bytes lie where they would be written.

        Requires: room for it.
        """

        def body(code: Code, state: Any, nbytes: Any, count: Any) -> None:
            size = code.add(nbytes, 4)
            position = code.add(code.load(code.add(state, NBYTES)), size)
            at = code.sub(code.load(code.add(state, END)), position)
            pos = code.add(at, 4)
            seed = code.load(code.add(state, SEED))
            pair = code.call(self.function("hash_of", 3, _hash_of, PAIR, True), pos, nbytes, seed)
            key = code.b.extract_value(pair, 0)
            entry = self._known(code, state, key, pos, nbytes, size, count)
            code.store(at, count, 32)
            self._keep(code, state, entry, key, position, size)
            code.give(position)

        return code.passed(code.call(self.function("put_array", 3, body), state, nbytes, count))

    def _known(
        self, code: Code, state: Value, key: Value, pos: Value, nbytes: Value, size: Value, count: Value
    ) -> Any:
        """Return the position of an object with these bytes if there is one; else the place for it.

        A text's count and size never equal those of an array, so bytes that are equal are of one kind.
        """
        find = self.function("find_shared", 6, self._find_shared)
        found = code.call(find, state, key, pos, nbytes, size, count)
        with code.when(code.is_(found, ">", 0)):
            code.give(found)
        # The address as a negative number; a failure is a small one.
        code.fail_if(code.is_(found, ">=", -8), NEEDS_SHARED)
        return code.sub(0, found)

    def _find_shared(
        self, code: Code, state: Any, key: Any, pos: Any, nbytes: Any, size: Any, count: Any
    ) -> None:
        """The position of an object, or the address of a free entry, made negative; or NEEDS_SHARED."""
        wanted = code.shl(size, 32)
        end = code.load(code.add(state, END))

        def known(code: Code, kept: Any) -> None:
            position = code.and_(kept, 0xFFFFFFFF)
            with code.when(code.is_(code.sub(kept, position), "==", wanted)):
                at = code.sub(end, position)
                is_as_long = code.is_(code.load(at, 32), "==", count)
                with code.when(is_as_long), code.when(self._are_equal(code, code.add(at, 4), pos, nbytes)):
                    code.give(position)

        self._probe(code, state, key, known)

    def _probe(self, code: Code, state: Any, key: Any, known: Callable[[Code, Any], None]) -> None:
        """Goes through the entries of a hash; returns the address of a free one, made negative."""
        shared, mask, generation = (code.load(code.add(state, word)) for word in (SHARED, MASK, GENERATION))
        used = code.load(code.add(state, USED))
        code.fail_if(code.is_(code.shl(used, 1), ">=", mask), NEEDS_SHARED)
        index = Variable(code, code.and_(key, mask))

        def entry() -> Any:
            return code.add(shared, code.mul(index.get(), _SHARED_ENTRY))

        with code.loop(lambda: code.is_(code.load(entry()), "==", generation)):
            with code.when(code.is_(code.load(code.add(entry(), 8)), "==", key)):
                known(code, code.load(code.add(entry(), 16)))
            index.set(code.and_(code.add(index.get(), 1), mask))
        code.give(code.sub(0, entry()))

    def _are_equal(self, code: Code, a: Value, b: Value, nbytes: Value) -> Any:
        return code.is_(code.compare(a, b, nbytes), "==", 0)

    def _keep(self, code: Code, state: Value, entry: Value, key: Value, position: Value, size: Value) -> None:
        """Fill an entry with what is written now."""
        self._fill(code, state, entry, key, code.or_(position, code.shl(size, 32)))
        code.store(code.add(state, NBYTES), position)

    def _fill(self, code: Code, state: Value, entry: Value, key: Value, kept: Value) -> None:
        code.store(entry, code.load(code.add(state, GENERATION)))
        code.store(code.add(entry, 8), key)
        code.store(code.add(entry, 16), kept)
        code.store(code.add(state, USED), code.add(code.load(code.add(state, USED)), 1))

    def table(self, code: Code, state: Value, pos: Value, nbytes: Value) -> Any:
        """The address of the meta table with these bytes, which is kept if there's none yet."""

        def find(code: Code, state: Any, key: Any, pos: Any, nbytes: Any) -> None:
            def known(code: Code, kept: Any) -> None:
                with code.when(code.is_(kept, "<", 0)):
                    table = code.and_(kept, _TABLE_MARK - 1)
                    same = code.is_(code.load(code.add(table, _TABLE_NBYTES)), "==", nbytes)
                    own = code.add(table, TABLE_BYTES)
                    with code.when(same), code.when(self._are_equal(code, own, pos, nbytes)):
                        code.give(table)

            self._probe(code, state, key, known)

        def body(code: Code, state: Any, pos: Any, nbytes: Any) -> None:
            seed = code.xor(code.load(code.add(state, SEED)), _TABLE_SALT)
            pair = code.call(self.function("hash_of", 3, _hash_of, PAIR, True), pos, nbytes, seed)
            key = code.b.extract_value(pair, 0)
            found = code.call(self.function("find_table", 4, find), state, key, pos, nbytes)
            with code.when(code.is_(found, ">", 0)):
                code.give(found)
            code.fail_if(code.is_(found, ">=", -8), NEEDS_SHARED)
            table = code.load(code.add(state, TABLES))
            above = code.add(table, code.and_(code.add(nbytes, TABLE_BYTES + 7), -8))
            too_far = code.is_(above, ">", code.load(code.add(state, TABLES_END)))
            code.fail_if(too_far, NEEDS_WORK)
            code.store(code.add(state, TABLES), above)
            code.store(code.add(table, TABLE_POSITION), 0)
            code.store(code.add(table, TABLE_COUNTED), 0)
            code.store(code.add(table, _TABLE_NBYTES), nbytes)
            code.copy(code.add(table, TABLE_BYTES), pos, nbytes)
            self._fill(code, state, code.sub(0, found), key, code.or_(table, _TABLE_MARK))
            code.give(table)

        return code.passed(code.call(self.function("put_table", 3, body), state, pos, nbytes))

    def offsets(self, code: Code, state: Value, positions: Value, count: Value) -> Any:
        """The position of an array of offsets to objects at these positions."""

        def body(code: Code, state: Any, positions: Any, count: Any) -> None:
            size = code.add(code.shl(count, 2), 4)
            self.need_room(code, state, size)
            position = code.add(code.load(code.add(state, NBYTES)), size)
            at = code.sub(code.load(code.add(state, END)), position)
            code.store(at, count, 32)
            first = code.sub(position, 4)
            with code.times(count) as index:
                child = code.load(code.add(positions, code.shl(index, 3)))
                code.store(code.add(code.add(at, 4), code.shl(index, 2)), code.sub(first, child), 32)
            code.store(code.add(state, NBYTES), position)
            code.give(position)

        return code.passed(code.call(self.function("put_offsets", 3, body), state, positions, count))

    def uncarried(self, code: Code, state: Value, message: int, number: Value) -> None:
        """Note a field that isn't carried, by its message's row and number."""
        place = code.load(code.add(state, UNCARRIED))
        code.fail_if(code.is_(place, ">=", code.load(code.add(state, UNCARRIED_END))), NOT_MINE)
        code.store(place, code.add(number, (message << 32) + 1))
        code.store(code.add(state, UNCARRIED), code.add(place, 8))


def _read_varint(code: Code, pos: Any, limit: Any) -> None:
    near, far = code.block("near"), code.block("far")
    code.branch(code.is_(code.sub(limit, pos), "<", 10), near, far)
    code.at(far)
    word = code.load(pos)
    ends = code.and_(code.xor(word, -1), _CONTINUES)
    long, short = code.block("long"), code.block("short")
    code.branch(code.is_(ends, "==", 0), long, short)
    code.at(short)
    nbytes = code.add(code.shr(code.count_trailing_zeros(ends), 3), 1)
    own = code.and_(word, code.xor(ends, code.sub(ends, 1)))
    code.give_pair(_without_gaps(code, own), code.add(pos, nbytes))
    code.at(long)
    ninth = code.load(code.add(pos, 8), 8)
    value = code.or_(_without_gaps(code, word), code.shl(code.and_(ninth, 127), 56))
    with code.when(code.is_(ninth, "<", 128)):
        code.give_pair(value, code.add(pos, 9))
    tenth = code.load(code.add(pos, 9), 8)
    with code.when(code.is_(tenth, "<", 128)):
        code.give_pair(code.or_(value, code.shl(tenth, 63)), code.add(pos, 10))
    code.give_pair(0, 0)
    # The last bytes of a message, one by one.
    code.at(near)
    value_of, at, shift = Variable(code, 0), Variable(code, pos), Variable(code, 0)
    with code.loop(lambda: code.is_(at.get(), "<", limit)):
        byte = code.load(at.get(), 8)
        at.add(1)
        value_of.set(code.or_(value_of.get(), code.shl(code.and_(byte, 127), shift.get())))
        with code.when(code.is_(byte, "<", 128)):
            code.give_pair(value_of.get(), at.get())
        shift.add(7)
    code.give_pair(0, 0)


def _without_gaps(code: Code, word: Value) -> Any:
    """The seven low bits of each of eight bytes, put together."""
    x = code.and_(word, _LOW7)
    x = code.or_(code.and_(x, 0x007F007F007F007F), code.shr(code.and_(x, 0x7F007F007F007F00), 1))
    x = code.or_(code.and_(x, 0x00003FFF00003FFF), code.shr(code.and_(x, 0x3FFF00003FFF0000), 2))
    return code.or_(code.and_(x, 0x0FFFFFFF), code.shr(code.and_(x, 0x0FFFFFFF00000000), 4))


def _short_word(code: Code, pos: Value, nbytes: Value) -> Any:
    """Up to seven bytes as one number, in another order."""
    word = Variable(code, 0)
    with code.either(code.is_(nbytes, ">=", 4)) as (then, otherwise):
        with then:
            tail = code.load(code.sub(code.add(pos, nbytes), 4), 32)
            word.set(code.or_(code.load(pos, 32), code.shl(tail, 32)))
        with otherwise, code.either(code.is_(nbytes, ">=", 2)) as (then, otherwise):
            with then:
                tail = code.load(code.sub(code.add(pos, nbytes), 2), 16)
                word.set(code.or_(code.load(pos, 16), code.shl(tail, 16)))
            with otherwise, code.when(code.is_(nbytes, "!=", 0)):
                word.set(code.load(pos, 8))
    return word.get()


def _hash_of(code: Code, pos: Any, nbytes: Any, seed: Any) -> None:
    """A hash that only who knows the seed can make equal for many texts, and all words ORed."""
    factor = code.or_(seed, 1)
    hash_, seen = Variable(code, code.xor(seed, nbytes)), Variable(code, 0)

    def take(word: Any) -> None:
        seen.set(code.or_(seen.get(), word))
        hash_.set(code.mix(code.xor(hash_.get(), word), factor))

    with code.either(code.is_(nbytes, "<", 8)) as (then, otherwise):
        with then:
            take(_short_word(code, pos, nbytes))
        with otherwise:
            last = code.sub(code.add(pos, nbytes), 8)
            at = Variable(code, pos)
            with code.loop(lambda: code.is_(at.get(), "<", last)):
                take(code.load(at.get()))
                at.add(8)
            take(code.load(last))
    code.give_pair(hash_.get(), seen.get())


def _copy(code: Code, to: Any, source: Any, nbytes: Any) -> None:
    """Copies bytes; those of most texts are few."""

    def two(bits: int) -> None:
        tail = code.sub(nbytes, bits // 8)
        first, last = code.load(source, bits), code.load(code.add(source, tail), bits)
        code.store(to, first, bits)
        code.store(code.add(to, tail), last, bits)

    with code.either(code.is_(nbytes, ">=", 8)) as (then, otherwise):
        with then, code.either(code.is_(nbytes, "<=", 64)) as (short, long):
            with short:
                tail = code.sub(nbytes, 8)
                at = Variable(code, 0)
                with code.loop(lambda: code.is_(at.get(), "<", tail)):
                    code.store(code.add(to, at.get()), code.load(code.add(source, at.get())))
                    at.add(8)
                code.store(code.add(to, tail), code.load(code.add(source, tail)))
            with long:
                code.copy(to, source, nbytes)
        with otherwise, code.either(code.is_(nbytes, ">=", 4)) as (then, otherwise):
            with then:
                two(32)
            with otherwise, code.either(code.is_(nbytes, ">=", 2)) as (then, otherwise):
                with then:
                    two(16)
                with otherwise, code.when(code.is_(nbytes, "==", 1)):
                    code.store(to, code.load(source, 8), 8)
    code.give(0)


def _check_text(code: Code, pos: Any, nbytes: Any) -> None:
    """0 if the text is UTF-8, else NOT_MINE."""
    end = code.add(pos, nbytes)
    at = Variable(code, pos)
    with code.loop(lambda: code.is_(at.get(), "<", end)):
        lead = code.load(at.get(), 8)
        with code.either(code.is_(lead, "<", 128)) as (then, otherwise):
            with then:
                at.add(1)
            with otherwise:
                code.fail_if(code.is_(lead, "<", 0xC2), NOT_MINE)
                code.fail_if(code.is_(lead, ">", 0xF4), NOT_MINE)
                more = code.add(1, code.number(code.is_(lead, ">=", 0xE0)))
                more = code.add(more, code.number(code.is_(lead, ">=", 0xF0)))
                code.fail_if(code.is_(code.sub(end, at.get()), "<=", more), NOT_MINE)
                point = Variable(code, code.and_(lead, code.shr(0x3F, more)))
                with code.times(more):
                    at.add(1)
                    byte = code.load(at.get(), 8)
                    code.fail_if(code.is_(code.and_(byte, 0xC0), "!=", 0x80), NOT_MINE)
                    point.set(code.or_(code.shl(point.get(), 6), code.and_(byte, 0x3F)))
                at.add(1)
                # The least number that takes so many bytes: shorter forms and surrogates aren't UTF-8.
                least = code.select(code.is_(more, "==", 1), 0x80, 0x800)
                least = code.select(code.is_(more, "==", 3), 0x10000, least)
                code.fail_if(code.is_(point.get(), "<", least), NOT_MINE)
                code.fail_if(code.is_(point.get(), ">", 0x10FFFF), NOT_MINE)
                code.fail_if(code.is_(code.shr(point.get(), 11), "==", 0xD800 >> 11), NOT_MINE)
    code.give(0)
