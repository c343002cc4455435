"""What messages take flat and sparse, measured on a sample: whole messages, and each type within them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yaffjit.codec.encode import LAYOUTS, MessageWriter, keep, message_writer
from yaffjit.codec.slots import flat_head, sparse_head
from yaffjit.codec.transcode import transcode_many
from yaffjit.codec.writer import Writer
from yaffjit.plan.model import FieldPlan, MessagePlan

META_OFFSET_NBYTES = 4  # of a sparse message, to its table of ids
EMPTY_NBYTES = 2


@dataclass
class TypeSample:
    """What messages of one type take, at whatever depth, without what lies out of line.

    Attributes:
        layout: that of the schema; "dynamic" ones may be written either way, one with a gap in its ids is
            always sparse.
        messages: how many there were.
        fields: how many the type has.
        set: fields that are written, of all of them together.
        flat_nbytes, sparse_nbytes: of all of them together; a table of ids counts once a root message.
    """

    name: str
    layout: str
    gapped: bool
    fields: int
    messages: int = 0
    set: int = 0
    flat_nbytes: int = 0
    sparse_nbytes: int = 0


@dataclass
class LayoutSample:
    """What root messages take.

    Attributes:
        messages, protobuf_nbytes: of the sample.
        nbytes: under each layout.
        sparse: how many are sparse with "auto", and with "smallest".
    """

    messages: int
    protobuf_nbytes: int
    nbytes: dict[str, int]
    sparse: dict[str, int]


def sampled_layouts(mp: MessagePlan, parts: Iterable[tuple[Any, Any]]) -> LayoutSample:
    """The sizes of protobuf messages, ``(data, offsets)`` of each part, under all layouts.

    Raises:
        DecodeError, EncodeError: a message can't be written.
    """
    made = LayoutSample(0, 0, dict.fromkeys(LAYOUTS, 0), {"auto": 0, "smallest": 0})
    for data, offsets in parts:
        lengths = {}
        for layout in LAYOUTS:
            done = transcode_many(mp, data, offsets, layout, first_row=made.messages)
            lengths[layout] = np.diff(done.offsets)
            made.nbytes[layout] += len(done.data)
        flat, sparse = lengths["flat"], lengths["sparse"]
        made.sparse["auto"] += int(np.count_nonzero(10 * (flat - sparse) > flat))
        made.sparse["smallest"] += int(np.count_nonzero(sparse < flat))
        made.messages += len(offsets) - 1
        made.protobuf_nbytes += int(offsets[-1] - offsets[0])
    return made


def sampled_types(mp: MessagePlan, messages: Sequence[Any]) -> list[TypeSample]:
    """What each type within some protobuf messages takes, the root's first; fixed ones have no choice."""
    return _Types(mp).of(messages)


class _Types:
    def __init__(self, mp: MessagePlan) -> None:
        self.mp = mp
        self.types: dict[str, TypeSample] = {}
        self.nbytes: dict[tuple[str, int], tuple[int, int, int]] = {}  # by presence pattern
        self.tables: set[bytes] = set()  # of the root message

    def of(self, messages: Sequence[Any]) -> list[TypeSample]:
        for message in messages:
            self.tables.clear()
            waiting = [(self.mp, message)]
            while waiting:
                mp, message = waiting.pop()
                self.add(mp, message)
                for f in mp.fields:
                    if f.message:
                        waiting += _held(mp, f, message)
        return list(self.types.values())

    def add(self, mp: MessagePlan, message: Any) -> None:
        found = self.types.get(mp.full_name)
        if found is None:
            found = TypeSample(mp.full_name, mp.layout, mp.gapped, len(mp.fields))
            self.types[mp.full_name] = found
        found.messages += 1
        if mp.layout == "fixed":
            found.set += len(mp.fields)
            found.flat_nbytes += mp.limit
            found.sparse_nbytes += mp.limit
            return
        writer = message_writer(mp)
        _, mask, _, equal = writer.gather(Writer(False), message)
        found.set += mask.bit_count()
        flat, sparse, table = self.sizes(writer, mask, equal)
        found.flat_nbytes += flat
        found.sparse_nbytes += sparse
        if table not in self.tables:
            self.tables.add(table)
            found.sparse_nbytes += len(table)
            if writer.always_sparse:
                found.flat_nbytes += len(table)

    def sizes(self, writer: MessageWriter, mask: int, equal: bool) -> tuple[int, int, bytes]:
        """Bytes flat, bytes sparse without its table, and the table."""
        if not mask:
            return EMPTY_NBYTES, EMPTY_NBYTES, b""
        sparse = writer.sparse_heads.get(mask)
        if sparse is None:
            sparse = keep(writer.sparse_heads, mask, sparse_head(writer.mp, mask))
        nbytes = sparse.nbytes + META_OFFSET_NBYTES
        if writer.always_sparse:
            return nbytes, nbytes, sparse.table
        key = mask << 1 | 1 if equal else mask.bit_length() << 1
        flat = writer.flat_heads.get(key)
        if flat is None:
            flat = keep(writer.flat_heads, key, flat_head(writer.mp, writer.formats, key))
        return len(flat.data) - EMPTY_NBYTES + flat.nbytes, nbytes, sparse.table


def _held(mp: MessagePlan, f: FieldPlan, message: Any) -> list[tuple[MessagePlan, Any]]:
    """The messages that a field holds, of a map its values, and their type."""
    child = mp.child(f)
    if f.is_map:
        value = child.fields[-1]
        if not value.message:
            return []
        return [(child.child(value), held) for held in getattr(message, f.name).values()]
    if f.repeated:
        return [(child, held) for held in getattr(message, f.name)]
    return [(child, getattr(message, f.name))] if type(message).HasField(message, f.name) else []
