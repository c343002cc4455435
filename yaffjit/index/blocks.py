"""Looks into the headers of an Arrow file for what pyarrow would unpack at once: compressed batches.

pyarrow offers no way to ask before. Its headers are flatbuffers: a table begins with the distance back to its
list of fields, which has two bytes a field, the field's distance from the table's beginning or 0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

END = struct.Struct("<i6s")  # bytes of the footer, the magic
BLOCK = struct.Struct("<qi4xq")  # where a message starts, bytes of its header, of its body
CONTINUATION = 0xFFFFFFFF
# Fields by their place in Arrow's Footer, Message and RecordBatch.
FOOTER_DICTIONARIES = 2
FOOTER_BATCHES = 3
MESSAGE_HEADER = 2
BATCH_COMPRESSION = 3
OLD_COMPRESSION = b"ARROW:experimental_compression"  # how Arrow 0.17 said it, which is still read


def has_dictionaries(data: memoryview) -> bool:
    """Whether an Arrow file has dictionaries beside its batches. Raises ValueError if it makes no sense."""
    return any(_blocks(data, FOOTER_DICTIONARIES))


def compressed_batches(data: memoryview) -> Iterator[int]:
    """The numbers of the batches that are compressed. Raises ValueError if the file makes no sense."""
    for number, (at, header_bytes) in enumerate(_blocks(data, FOOTER_BATCHES)):
        if _is_compressed(data, at) or OLD_COMPRESSION in bytes(data[at : at + header_bytes]):
            yield number


def _is_compressed(data: memoryview, at: int) -> bool:
    if _word(data, at) == CONTINUATION:
        at += 4
    header = _field(data, _referred(data, at + 4), MESSAGE_HEADER)
    return header is not None and _field(data, _referred(data, header), BATCH_COMPRESSION) is not None


def _blocks(data: memoryview, place: int) -> Iterator[tuple[int, int]]:
    """Where the messages of one list of the footer start, and bytes of their headers."""
    footer_bytes, _ = _unpacked(END, data, len(data) - END.size)
    footer = _referred(data, len(data) - END.size - footer_bytes)
    field = _field(data, footer, place)
    if field is None:
        return
    blocks = _referred(data, field)
    for number in range(_word(data, blocks)):
        at, header_bytes, _ = _unpacked(BLOCK, data, blocks + 4 + number * BLOCK.size)
        yield at, max(0, header_bytes)


def _field(data: memoryview, table: int, place: int) -> int | None:
    """Where a table has its field of that place; None if it has none."""
    fields = table - _unpacked(_INT32, data, table)[0]
    at = 4 + 2 * place
    if at >= _unpacked(_UINT16, data, fields)[0]:
        return None
    distance: int = _unpacked(_UINT16, data, fields + at)[0]
    return table + distance if distance else None


def _referred(data: memoryview, at: int) -> int:
    return at + _word(data, at)


def _word(data: memoryview, at: int) -> int:
    word: int = _unpacked(_UINT32, data, at)[0]
    return word


def _unpacked(form: struct.Struct, data: memoryview, at: int) -> tuple[int, ...]:
    if not 0 <= at <= len(data) - form.size:
        raise ValueError(f"its headers lead to byte {at} of {len(data)}")
    return form.unpack_from(data, at)


_INT32 = struct.Struct("<i")
_UINT32 = struct.Struct("<I")
_UINT16 = struct.Struct("<H")
