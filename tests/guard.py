"""Buffers between unmapped pages, so that who reads a byte outside one crashes; run as a process of its own.

python tests/guard.py before|behind     reads one byte outside: must crash
python tests/guard.py kernel            the compiled verifier over cut and damaged buffers
python tests/guard.py jit               and jitted getters over those that it accepts
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterator

import numpy as np
from mutants import Seed, cuts, mutants, seeds

from yaffjit.codec.verify import _loaded, _request
from yaffjit.plan import MessagePlan

PAGE = mmap.PAGESIZE
READABLE_AND_WRITABLE = 3
PRIVATE_ANONYMOUS = 0x22
# Messages that have all layouts, widths and kinds of presence between them, and schemas with removed fields.
JIT_MESSAGES = (
    "golden.layouts.Pile",
    "golden.layouts.FlOpt",
    "golden.layouts.SpOpt",
    "golden.scalars.Plain",
    "golden.oneofs.Choice",
    "golden.gaps.SparseBig",
    "golden.evo2.DenseOpt",
    "golden.evo2.DenseOptLate",
)

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Guard:
    """Room for ``capacity`` bytes, with a page before it and one behind it that can't be read."""

    def __init__(self, capacity: int) -> None:
        self.nbytes = (capacity + PAGE - 1) // PAGE * PAGE
        base = _libc.mmap(None, self.nbytes + 2 * PAGE, 0, PRIVATE_ANONYMOUS, -1, 0)
        self.begin = base + PAGE
        assert _libc.mprotect(self.begin, self.nbytes, READABLE_AND_WRITABLE) == 0, ctypes.get_errno()

    def at_begin(self, data: bytes) -> int:
        """The address of a copy whose first byte is the first one that can be read."""
        ctypes.memmove(self.begin, data, len(data))
        return self.begin

    def at_end(self, data: bytes) -> int:
        """The address of a copy whose last byte is the last one that can be read."""
        address = self.begin + self.nbytes - len(data)
        ctypes.memmove(address, data, len(data))
        return address


def buffers(seed: Seed) -> Iterator[bytes]:
    yield seed.buf
    yield from cuts(seed.buf)
    yield from mutants(seed)


def check_kernel() -> None:
    """Both placements of each buffer get the verdict that a copy elsewhere gets."""
    _loaded.load()
    kernel = _loaded.kernel
    assert kernel is not None
    guard = Guard(max(len(seed.buf) for seed in seeds()) + 64)
    count = passed = 0
    for seed in seeds():
        for mp in seed.plans:
            for buf in buffers(seed):
                offsets = np.array([0, len(buf)])
                rest = len(buf), offsets.ctypes.data, 0, 1
                request = _request(mp, True).address
                verdict = kernel.check_one(buf, request)
                for place in (guard.at_begin, guard.at_end):
                    done, ascending = kernel.check_rows(request, place(buf), *rest)
                    assert (done, done and ascending) == (verdict > 0, verdict == 2)
                count += 1
                passed += verdict > 0
    print(f"{count} buffers, {passed} accepted")


def scalar_paths(mp: MessagePlan, depth: int = 3) -> Iterator[str]:
    for f in mp.fields:
        if f.is_scalar:
            yield f.name
        elif f.kind == "message" and not f.repeated and depth > 1:
            for path in scalar_paths(mp.child(f), depth - 1):
                yield f"{f.name}.{path}"


def presence_paths(mp: MessagePlan, depth: int = 3) -> Iterator[str]:
    for f in mp.fields:
        if f.explicit:
            yield f.name
        if f.kind == "message" and not f.repeated and depth > 1:
            for path in presence_paths(mp.child(f), depth - 1):
                yield f"{f.name}.{path}"


def several_paths(mp: MessagePlan) -> tuple[str, ...]:
    """Text, lists and maps of a message, and those in lists of messages: what has a second pass."""
    found = [f.name for f in mp.fields if f.out_of_line and f.kind != "message"]
    for f in mp.fields:
        if f.kind == "message":
            one = mp.child(f).fields[1] if f.is_map else f
            inner = mp.child(f) if one is f else mp.child(f).child(one) if one.kind == "message" else None
            if inner is None:
                found.append(f.name)
            else:
                found += [f"{f.name}.{each.name}" for each in inner.fields if each.kind != "message"]
    return tuple(found)


def check_jit() -> None:
    """Jitted getters read accepted buffers in both placements, and find what a view finds in a copy."""
    from yaffjit.columns.gather import gathered
    from yaffjit.jit.columns.paths import Paths
    from yaffjit.rows import records_unchecked

    _loaded.load()
    kernel = _loaded.kernel
    assert kernel is not None
    guard = Guard(max(len(seed.buf) for seed in seeds()) + 64)
    compiled = {}
    count = 0
    for seed in seeds():
        for mp in seed.plans:
            if mp.full_name not in JIT_MESSAGES:
                continue
            request = _request(mp, True).address
            if mp.full_name not in compiled:
                values, presences = tuple(scalar_paths(mp)), tuple(presence_paths(mp))
                compiled[mp.full_name] = values, presences
            values, presences = compiled[mp.full_name]
            paths = Paths(mp, values, presences=presences)
            several = Paths(mp, several_paths(mp))
            for buf in buffers(seed):
                if not kernel.check_one(buf, request):
                    continue
                offsets = np.array([0, len(buf)])
                found, lists = [], []
                for place in (guard.at_begin, guard.at_end):
                    data = np.frombuffer((ctypes.c_uint8 * len(buf)).from_address(place(buf)), np.uint8)
                    found.append(gathered(records_unchecked(mp, (data, offsets)), paths, {}))
                    lists.append(gathered(records_unchecked(mp, (data, offsets)), several, {}))
                for begin, end in zip(*lists, strict=True):
                    assert begin.tobytes() == end.tobytes(), (mp.full_name, buf.hex())
                expected: list[object] = [_follow(mp, buf, path) for path in values]
                expected += [_has(mp, buf, path) for path in presences]
                if mp.oneofs:
                    # Where a member's presence bit contradicts its slot, readers may differ.
                    expected = [out[0] for out in found[0]]
                for path, begin, end, told in zip((*values, *presences), *found, expected, strict=True):
                    # The payload of a float's NaN changes on its way through Python's double.
                    same = (begin == end == told).all() or (begin != begin and end != end and told != told)
                    assert same, (mp.full_name, path, begin, end, told, buf.hex())
                count += 1
    print(f"{count} buffers of {len(compiled)} messages")
    assert len(compiled) == len(JIT_MESSAGES), set(JIT_MESSAGES) - set(compiled)


def _follow(mp: MessagePlan, buf: bytes, path: str) -> object:
    from yaffjit.view import view_unchecked

    at: object = view_unchecked(mp, buf)
    for name in path.split("."):
        at = getattr(at, name)
    return at


def _has(mp: MessagePlan, buf: bytes, path: str) -> bool:
    *parents, name = path.split(".")
    from yaffjit.view import view_unchecked

    at = view_unchecked(mp, buf)
    for parent in parents:
        if not at.HasField(parent):
            return False
        at = getattr(at, parent)
    return bool(at.HasField(name))


def main(mode: str) -> None:
    if mode == "kernel":
        check_kernel()
    elif mode == "jit":
        check_jit()
    else:
        guard = Guard(10)
        address = guard.at_begin(b"x" * 10) - 1 if mode == "before" else guard.at_end(b"x" * 10) + 10
        print(ctypes.string_at(address, 1))


if __name__ == "__main__":
    main(sys.argv[1])
