"""Damages YaFF buffers where it hurts: offsets, lengths, counts, headers, tables and presence bits.

Where these lie is told by the plan, in a buffer that is right; `mutants` damages bytes wherever they are.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from mutants import _damage as damage_bytes

from yaffjit.codec.locate import EXPLICIT, FLAT, SIZED, locate, read_i32, read_u16, read_u32
from yaffjit.plan import MessagePlan
from yaffjit.plan.model import FieldPlan

OFFSET, COUNT, HEADER, TABLE, ENTRY, BITS, VALUE = range(7)
_EXTREMES = (0, 1, 2, 4, 2**31 - 1, 2**31, 2**32 - 4, 2**32 - 1)
_ELEMENTS = 6  # of an array, whose offsets are looked at


@dataclass(frozen=True, slots=True)
class Site:
    """A number in a buffer that says where something is, or how much.

    Attributes:
        pos, width: of its bytes.
        what: `OFFSET` to `VALUE`.
        base: the position that an offset counts from; of a count, where its elements begin.
        unit: bytes of an element, of a count.
    """

    pos: int
    width: int
    what: int
    base: int = 0
    unit: int = 1


def sites(mp: MessagePlan, buf: bytes) -> tuple[list[Site], list[int]]:
    """All such numbers of a buffer that is right, and the positions that its offsets lead to."""
    finder = _Finder(buf)
    finder.add(0, 4, OFFSET, 0)
    root = read_u32(buf, 0)[0]
    finder.targets.add(root)
    finder.message(mp, root)
    return list(finder.found), sorted(finder.targets)


class _Finder:
    def __init__(self, buf: bytes) -> None:
        self.buf = buf
        self.found: dict[Site, None] = {}
        self.targets: set[int] = set()
        self.seen: set[tuple[int, str]] = set()

    def add(self, pos: int, width: int, what: int, base: int = 0, unit: int = 1) -> None:
        self.found[Site(pos, width, what, base, unit)] = None

    def message(self, mp: MessagePlan, at: int) -> None:
        if (at, mp.full_name) in self.seen:
            return
        self.seen.add((at, mp.full_name))
        if mp.layout != "fixed":
            self.header(at)
        for f in mp.fields:
            pos = locate(mp, f)(self.buf, at)
            if pos < 0:
                continue
            if f.is_scalar:
                self.add(pos, f.width, VALUE)
                continue
            self.add(pos, 4, OFFSET, at)
            offset = read_u32(self.buf, pos)[0]
            if offset:
                self.follow(mp, f, at + offset)

    def header(self, at: int) -> None:
        self.add(at, 2, HEADER)
        header: int = read_u16(self.buf, at)[0]
        highest = max((header & ~FLAT) >> 2, 1) - 1
        if header & FLAT:
            bits = (2 if header & SIZED else 0) + (header & EXPLICIT)
            for i in range((highest * bits + 7) // 8):
                self.add(at - 1 - i, 1, BITS)
        elif highest:
            self.add(at - 4, 4, TABLE, at)
            end = at + read_i32(self.buf, at - 4)[0]
            for id in range(1, highest + 1):
                wide = id >= 32
                self.add(end - 2 * id + 31 if wide else end - id, 1 + wide, ENTRY, at)

    def follow(self, mp: MessagePlan, f: FieldPlan, target: int) -> None:
        self.targets.add(target)
        if f.repeated:
            self.array(mp, f, target)
        elif f.kind == "message":
            self.message(mp.child(f), target)
        else:
            self.text(target)

    def text(self, pos: int) -> None:
        self.add(pos, 4, COUNT, pos + 4)
        end = pos + 4 + read_u32(self.buf, pos)[0]
        self.add(end, 1, VALUE)
        if end > pos + 4:
            self.add(end - 1, 1, VALUE)

    def array(self, mp: MessagePlan, f: FieldPlan, pos: int) -> None:
        count, first = read_u32(self.buf, pos)[0], pos + 4
        self.add(pos, 4, COUNT, first, max(f.element_width, 1))
        for i in range(min(count, _ELEMENTS)):
            element = first + i * f.element_width
            if f.inlined:
                self.message(mp.child(f), element)
            elif f.kind in ("string", "bytes", "message"):
                self.add(element, 4, OFFSET, first)
                target = first + read_u32(self.buf, element)[0]
                self.targets.add(target)
                if f.kind == "message":
                    self.message(mp.child(f), target)
                else:
                    self.text(target)
            else:
                self.add(element, f.element_width, VALUE)


class Mutator:
    """Makes damaged copies of one buffer.

    Args:
        mp: the plan by which the buffer is right, and by which its numbers are found.
    """

    def __init__(self, mp: MessagePlan, buf: bytes) -> None:
        self.buf = buf
        self._sites, self._targets = sites(mp, buf)

    def make(self, chance: random.Random) -> bytes:
        """One copy: a third with bytes changed anywhere, the others with some of these numbers."""
        data = bytearray(self.buf)
        changes = chance.choice((1, 1, 1, 2, 2, 4))
        if chance.random() < 0.33:
            for _ in range(changes):
                damage_bytes(data, chance)
            return bytes(data)
        for _ in range(changes):
            site = chance.choice(self._sites)
            number = self._number(site, chance)
            data[site.pos : site.pos + site.width] = (number % 256**site.width).to_bytes(site.width, "little")
        if chance.random() < 0.1:
            del data[-chance.randrange(1, 9) :]
        return bytes(data)

    def _number(self, site: Site, chance: random.Random) -> int:
        nbytes = len(self.buf)
        old = int.from_bytes(self.buf[site.pos : site.pos + site.width], "little")
        near = chance.choice((-1, 0, 1))
        kind = chance.randrange(8)
        if kind < 2:
            return chance.choice(_EXTREMES)
        if kind == 2:
            return old + chance.choice((-4, -1, 1, 4))
        if site.what == VALUE:
            return chance.choice((old ^ 1 << chance.randrange(8 * site.width), 2**63, 2**64 - 1, 0x80))
        if site.what == BITS:
            return old ^ chance.randrange(1, 256)
        if site.what == HEADER:
            ids = chance.choice((1, 2, 3, old >> 2 & 0x1FFF, 0x1FFF))
            return chance.choice((old ^ 1, old ^ 2, old ^ FLAT, old & ~0x7FFC | ids << 2))
        if site.what == COUNT:
            fits = (nbytes - site.base) // site.unit
            return chance.choice((fits, 2**32 // site.unit, old, 0)) + near
        # What follows says where something is: the end, another object, itself, backwards, the header.
        target = chance.choice((nbytes, chance.choice(self._targets), site.base, 0, site.pos, site.base + 2))
        return target - site.base + near * (kind > 4)


def mutants(mutators: list[Mutator], chance: random.Random, count: int) -> Iterator[bytes]:
    """So many damaged copies of some buffers; now and then one as it was."""
    for _ in range(count):
        mutator = chance.choice(mutators)
        yield mutator.buf if chance.random() < 0.01 else mutator.make(chance)
