"""The pass over a large message by a kernel: the same that `yaffjit.view.wire_scan.scan` records.

The kernel tells where each field is; what counts of several is found out for a tag at once.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from yaffjit.codec.work import Work
from yaffjit.plan.wire_tables import parser_habits
from yaffjit.view.wire_scan import (
    CLOSED,
    MESSAGE,
    NUMBER,
    RUN,
    TEXT,
    Malformed,
    Rule,
    WireType,
    scan,
    signed32,
    varint_at,
)

if TYPE_CHECKING:
    import numpy as np

    from yaffjit.kernels.wire_index import IndexKernel
    from yaffjit.view.buffers import Data

# Messages of fewer bytes are scanned in Python.
LARGE_NBYTES = 4096
# What the scan in Python takes for a byte.
_BYTE_SECONDS = 5e-8


def scan_large(typ: WireType, data: Data, begin: int, end: int, depth: int, found: dict[int, Any]) -> bool:
    """As `scan`, by the kernel once it's loaded."""
    kernel = work.kernel(min(end - begin, 2**20) * _BYTE_SECONDS)
    if kernel is None:
        return scan(typ, data, begin, end, depth, found)
    rows = _rows(kernel, data, begin, end)
    if rows is None:
        return scan(typ, data, begin, end, depth, found)
    return _record(typ, data, rows, found)


def _rows(kernel: IndexKernel, data: Data, begin: int, end: int) -> np.ndarray[Any, Any] | None:
    """Tag, begin and end of each field, shape (n, 3); None if the kernel says nothing of such a message."""
    import numpy as np

    from yaffjit.kernels.wire_index import HAS_GROUP, MALFORMED

    held = np.frombuffer(data, np.uint8)
    address: int = held.__array_interface__["data"][0]
    size_bits = parser_habits().size_bits
    count = kernel.index_fields(address, begin, end, size_bits, 0)
    if count == MALFORMED:
        raise Malformed
    if count == HAS_GROUP:
        return None
    rows = np.empty((count, 3), np.int64)
    if count:
        kernel.index_fields(address, begin, end, size_bits, rows.__array_interface__["data"][0])
    return rows


def _record(typ: WireType, data: Data, rows: np.ndarray[Any, Any], found: dict[int, Any]) -> bool:
    """Put what the rows say into ``found``; whether there are unknown fields."""
    import numpy as np

    steps = np.diff(rows[:, 0], prepend=-1)
    if (steps < 0).any():  # else they come in order, as serializers write them
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        steps = np.diff(rows[:, 0], prepend=-1)
    firsts = np.flatnonzero(steps)
    lasts = np.append(firsts, len(rows))[1:]
    strange = False
    counted: dict[int, list[tuple[int, int]]] = {}  # of members of oneofs, by number
    for tag, first, last in zip(rows[firsts, 0].tolist(), firsts.tolist(), lasts.tolist(), strict=True):
        rule = typ.by_tag.get(tag)
        if rule is None:
            if tag < 8 and not typ.takes_zero:
                raise Malformed
            strange = True
            continue
        own = rows[first:last, 1:]
        if rule.op == RUN:
            _add_run(found, rule, own)
            continue
        spans = [(start, stop) for start, stop in own.tolist()] if rule.rivals or rule.op != NUMBER else []
        if rule.op == CLOSED:
            members = [span for span in spans if signed32(varint_at(data, span[0])) in rule.members]
            strange = strange or len(members) < len(spans)
            spans = members
            if not spans:
                continue
        if rule.rivals:
            counted[rule.number] = spans
        found[rule.number] = _held(rule, spans, int(own[-1, 0]))
    _settle(typ, counted, found)
    return strange


def _held(rule: Rule, spans: list[tuple[int, int]], last: int) -> Any:
    """What `scan` records of a singular field; ``last``: begin of the last occurrence of a number."""
    if rule.op == MESSAGE:
        return spans[0] if len(spans) == 1 else spans
    if rule.op == TEXT:
        return spans[-1]
    return spans[-1][0] if rule.op == CLOSED else last


def _add_run(found: dict[int, Any], rule: Rule, own: np.ndarray[Any, Any]) -> None:
    import numpy as np

    if rule.width and ((own[:, 1] - own[:, 0]) % rule.width).any():
        raise Malformed
    before = found.get(rule.number)
    if before is not None:  # packed and single ones are mixed
        own = np.concatenate((np.frombuffer(before, np.int64).reshape(-1, 2), own))
        own = own[np.argsort(own[:, 0], kind="stable")]
    spans = array("q")
    spans.frombytes(own.tobytes())
    found[rule.number] = spans


def _settle(typ: WireType, counted: dict[int, list[tuple[int, int]]], found: dict[int, Any]) -> None:
    """Of members of one oneof the last one that came counts; of a message its parts since another came."""
    for number, spans in counted.items():
        rivals = [counted[rival][-1][0] for rival in typ.rivals(number) if rival in counted]
        if not rivals:
            continue
        if max(rivals) > spans[-1][0]:
            found.pop(number, None)
        elif type(found[number]) is list:
            kept = [span for span in spans if span[0] > max(rivals)]
            found[number] = kept[0] if len(kept) == 1 else kept


def _load() -> IndexKernel:
    from yaffjit.kernels.wire_index import IndexKernel

    return IndexKernel()


def _is_kept() -> bool:
    from yaffjit.kernels.wire_index import IndexKernel

    return IndexKernel.is_kept()


work: Work[IndexKernel] = Work(_load, _is_kept)
