"""Pairs of a map as LLVM: look-ups, whether keys ascend, how many differ.

Pairs that were written as a map ascend strictly by key. Those of a list that is read as a map may not, and
may have a key twice, of which the first counts. So up to `FEW` pairs are compared one by one; more are
searched by halving if they ascend, else one by one too. Of most bytes the verifier saw that all maps in them
ascend, and their owner is marked. Elsewhere all pairs are looked at: a function that touches no memory for
LLVM, which takes it out of loops.

Requires: the map is well-formed (verified). Source: docs/format.md, "Objects".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from llvmlite import ir

from yaffjit.jit.emit.outline import I1, I8, I32, I64, NULL, POINTER, Body, call_outlined
from yaffjit.jit.text.compare import equal, order, order_of_points
from yaffjit.kernels.ascending import MARK, SIZE_OFFSET
from yaffjit.plan.model import MessagePlan

# Up to this many pairs are compared one by one: about as fast as halving, whose turns can't be predicted.
FEW = 32

Key = Sequence[ir.Value]


@dataclass(frozen=True)
class Pairs:
    """Where the keys of a map's pairs are: all that a function over pairs depends on.

    Attributes:
        width: bytes of a pair.
        key_offset: of the key's slot in a pair.
        key_kind: "text", "bool", "signed" or "unsigned".
        key_width: bytes of the key's slot.
    """

    width: int
    key_offset: int
    key_kind: str
    key_width: int


def pairs_of(entry: MessagePlan) -> Pairs:
    """Where the keys of pairs of an entry type are."""
    key = entry.fields[0]
    if key.kind == "string":
        kind = "text"
    elif key.kind == "bool":
        kind = "bool"
    else:
        kind = "unsigned" if key.kind in ("uint32", "fixed32", "uint64", "fixed64") else "signed"
    return Pairs(entry.limit, key.offset, kind, key.width)


# ---- what is called where a map is used ----


def find(
    builder: ir.IRBuilder,
    pairs: Pairs,
    members: ir.Value,
    count: ir.Value,
    searchable: ir.Value,
    key: Key,
    frozen: bool = True,
) -> ir.Value:
    """The pointer to the first pair that has a key, or null.

    Args:
        key: an integer as it is stored, a bool as an i8 that is 0 or 1; the pointer to UTF-8 bytes and their
            number; or the pointer to code points, their number and their width in bytes.
        frozen: whether neither the pairs nor the key's bytes change while the caller runs.

    A search for a number is opened where it's called: for a few pairs a call would take a fifth of the time.
    """

    def emit(body: Body) -> None:
        b = body.builder
        members, count, searchable, *key = body.args
        with b.if_then(searchable):
            b.ret(_halve(body, pairs, members, count, key))
        with _each_pair(body, pairs, members, _end(body, pairs, members, count)) as pair:
            same = _equal(body, pairs, _key_at(body, pairs, pair), key)
            body.return_unless(b.not_(same), pair)
        b.ret(NULL)

    args = [members, count, searchable, *key]
    of_text = pairs.key_kind == "text"
    return call_outlined(builder, "map_find", pairs, POINTER, args, emit, frozen, inline=not of_text)


def are_searchable(
    builder: ir.IRBuilder,
    pairs: Pairs,
    members: ir.Value,
    count: ir.Value,
    owner: ir.Value,
    frozen: bool = True,
) -> ir.Value:
    """Whether pairs are so many that they are searched by halving, and ascend."""
    return _ascend_above(FEW, I1(0), builder, pairs, members, count, owner, frozen)


def ascend(
    builder: ir.IRBuilder,
    pairs: Pairs,
    members: ir.Value,
    count: ir.Value,
    owner: ir.Value,
    frozen: bool = True,
) -> ir.Value:
    """Whether keys strictly ascend, hence differ."""
    return _ascend_above(1, I1(1), builder, pairs, members, count, owner, frozen)


def _ascend_above(
    limit: int,
    otherwise: ir.Value,
    builder: ir.IRBuilder,
    pairs: Pairs,
    members: ir.Value,
    count: ir.Value,
    owner: ir.Value,
    frozen: bool,
) -> ir.Value:
    """Whether keys strictly ascend where there are more pairs than a limit.

    Args:
        owner: of the bytes, numba's record; it may only be null where there are no pairs.
        frozen: the pairs don't change while the caller runs. Of others no mark tells.
    """

    def emit(body: Body) -> None:
        b = body.builder
        members, count, owner = body.args
        body.return_unless(b.icmp_unsigned(">", count, I64(limit)), otherwise)
        if frozen:
            marked = b.icmp_unsigned("==", body.load(owner, SIZE_OFFSET, I64), I64(MARK))
            body.return_unless(b.not_(marked), I1(1))
        b.ret(_look(b, pairs, members, count, frozen))

    args = [members, count, owner]
    return call_outlined(builder, "map_ascend", (pairs, limit, MARK), I1, args, emit, frozen)


def _look(builder: ir.IRBuilder, pairs: Pairs, members: ir.Value, count: ir.Value, frozen: bool) -> ir.Value:
    """As `ascend`, by a look at all pairs."""

    def emit(body: Body) -> None:
        members, count = body.args
        body.return_unless(body.builder.icmp_unsigned(">", count, I64(1)), I1(1))
        end = _end(body, pairs, members, count)
        with _each_pair(body, pairs, body.at(members, pairs.width), end) as pair:
            key, before = (_key_at(body, pairs, at) for at in (pair, body.at(pair, -pairs.width)))
            body.return_unless(_less(body, pairs, before, key), I1(0))
        body.builder.ret(I1(1))

    return call_outlined(builder, "map_look", pairs, I1, [members, count], emit, frozen, inline=False)


def distinct(
    builder: ir.IRBuilder,
    pairs: Pairs,
    members: ir.Value,
    count: ir.Value,
    owner: ir.Value,
    frozen: bool = True,
) -> ir.Value:
    """The number of different keys."""

    def emit(body: Body) -> None:
        b = body.builder
        members, count, owner = body.args
        body.return_unless(b.not_(ascend(b, pairs, members, count, owner, frozen)), count)
        b.ret(_distinct(b, pairs, members, count, frozen))

    return call_outlined(builder, "map_len", pairs, I64, [members, count, owner], emit, frozen)


def _distinct(
    builder: ir.IRBuilder, pairs: Pairs, members: ir.Value, count: ir.Value, frozen: bool
) -> ir.Value:
    """As `distinct`, of pairs that don't ascend."""

    def emit(body: Body) -> None:
        b = body.builder
        members, count = body.args
        repeated = b.alloca(I64)
        b.store(I64(0), repeated)
        with _each_pair(body, pairs, members, _end(body, pairs, members, count)) as pair:
            one = b.zext(repeats(b, pairs, members, pair, frozen), I64)
            b.store(b.add(b.load(repeated), one), repeated)
        b.ret(b.sub(count, b.load(repeated)))

    return call_outlined(builder, "map_distinct", pairs, I64, [members, count], emit, frozen, inline=False)


def repeats(
    builder: ir.IRBuilder, pairs: Pairs, members: ir.Value, pair: ir.Value, frozen: bool = True
) -> ir.Value:
    """Whether an earlier pair has the key of the pair at a pointer."""

    def emit(body: Body) -> None:
        b = body.builder
        members, pair = body.args
        key = _key_at(body, pairs, pair)
        with _each_pair(body, pairs, members, pair) as earlier:
            same = _equal(body, pairs, _key_at(body, pairs, earlier), key)
            body.return_unless(b.not_(same), I1(1))
        b.ret(I1(0))

    return call_outlined(builder, "map_repeats", pairs, I1, [members, pair], emit, frozen, inline=False)


# ---- parts of their bodies ----


def _end(body: Body, pairs: Pairs, members: ir.Value, count: ir.Value) -> ir.Value:
    return body.builder.gep(members, [body.builder.mul(count, I64(pairs.width))])


@contextmanager
def _each_pair(body: Body, pairs: Pairs, first: ir.Value, end: ir.Value) -> Iterator[ir.Value]:
    """A loop over the pairs from a pointer to another."""
    b = body.builder
    before, loop, after = b.block, b.append_basic_block("pair"), b.append_basic_block("after")
    b.cbranch(b.icmp_unsigned("!=", first, end), loop, after)
    b.position_at_end(loop)
    pair = b.phi(POINTER)
    pair.add_incoming(first, before)
    yield pair
    following = body.at(pair, pairs.width)
    pair.add_incoming(following, b.block)
    b.cbranch(b.icmp_unsigned("!=", following, end), loop, after)
    b.position_at_end(after)


def _halve(body: Body, pairs: Pairs, members: ir.Value, count: ir.Value, key: Key) -> ir.Value:
    """The pair that has a key, or null, among one or more that ascend."""
    b = body.builder
    before, loop, after = b.block, b.append_basic_block("halve"), b.append_basic_block("found")
    b.branch(loop)
    b.position_at_end(loop)
    # The last pair whose key isn't greater is among the `left` pairs from `low`, if there is one.
    low, left = b.phi(POINTER), b.phi(I64)
    low.add_incoming(members, before)
    left.add_incoming(count, before)
    half = b.lshr(left, I64(1))
    middle = body.at(low, b.mul(half, I64(pairs.width)))
    greater = _less(body, pairs, key, _key_at(body, pairs, middle))
    new_low = b.select(greater, low, middle)
    if pairs.key_kind != "text":
        # Each turn goes either way; without this word LLVM makes a branch of it, which is predicted wrongly.
        new_low.set_metadata("unpredictable", b.module.add_metadata([]))
    new_left = b.sub(left, half)
    low.add_incoming(new_low, b.block)
    left.add_incoming(new_left, b.block)
    b.cbranch(b.icmp_unsigned(">", new_left, I64(1)), loop, after)
    b.position_at_end(after)
    return b.select(_equal(body, pairs, _key_at(body, pairs, new_low), key), new_low, NULL)


def _key_at(body: Body, pairs: Pairs, pair: ir.Value) -> Key:
    """The key of a pair, in the form that `find` takes."""
    b = body.builder
    if pairs.key_kind != "text":
        key = body.load(pair, pairs.key_offset, ir.IntType(8 * pairs.key_width))
        return [b.zext(b.icmp_unsigned("!=", key, I8(0)), I8) if pairs.key_kind == "bool" else key]
    return _text_at(b, pairs, pair, body.frozen)


def _text_at(builder: ir.IRBuilder, pairs: Pairs, pair: ir.Value, frozen: bool) -> Key:
    """The bytes of a pair's text and their number; none if a list's pair left it out."""

    def emit(body: Body) -> None:
        b = body.builder
        offset = body.load(body.args[0], pairs.key_offset, I32)
        text = body.at(body.args[0], b.zext(offset, I64))
        result = ir.Constant(result_type, ir.Undefined)
        result = b.insert_value(result, body.at(text, 4), 0)
        present = b.icmp_unsigned("!=", offset, I32(0))
        # Where there's none the first bytes of the pair are loaded for nothing.
        nbytes = b.select(present, body.load(text, 0, I32), I32(0))
        b.ret(b.insert_value(result, b.zext(nbytes, I64), 1))

    result_type = ir.LiteralStructType([POINTER, I64])
    content = pairs.key_offset
    text = call_outlined(builder, "map_text", content, result_type, [pair], emit, frozen)
    return [builder.extract_value(text, i) for i in range(2)]


def _equal(body: Body, pairs: Pairs, key: Key, given: Key) -> ir.Value:
    """Whether a pair's key is the one that is looked for."""
    b = body.builder
    if pairs.key_kind != "text":
        return b.icmp_unsigned("==", key[0], given[0])
    if len(given) == 2:
        return equal(b, key, given, body.frozen)
    return b.icmp_signed("==", order_of_points(b, key, given), I64(0))


def _less(body: Body, pairs: Pairs, a: Key, b: Key) -> ir.Value:
    """Whether a key is less than another; of texts the first may be given as code points."""
    builder = body.builder
    if pairs.key_kind == "signed":
        return builder.icmp_signed("<", a[0], b[0])
    if pairs.key_kind != "text":
        return builder.icmp_unsigned("<", a[0], b[0])
    if len(a) == 2:
        return builder.icmp_signed("<", order(builder, a, b, body.frozen), I64(0))
    return builder.icmp_signed(">", order_of_points(builder, b, a), I64(0))
