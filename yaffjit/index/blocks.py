"""Reads the headers of an Arrow file without pyarrow, which loads or unpacks a batch to describe it.

A compressed buffer begins with eight bytes that say how many it becomes, -1 if the rest isn't compressed.

Its headers are flatbuffers: a table begins with the distance back to its list of fields, which has two bytes
a field, the field's distance from the table's beginning or 0. Nothing here leaves the file, whatever it has.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

END = struct.Struct("<i6s")  # bytes of the footer, the magic
BLOCK = struct.Struct("<qi4xq")  # where a message starts, bytes of its header, of its body
PAIR = struct.Struct("<qq")  # of a column: rows, nulls; of a buffer: its offset in the body, its bytes
CONTINUATION = 0xFFFFFFFF
# Fields by their place in Arrow's Footer, Message and RecordBatch.
FOOTER_DICTIONARIES = 2
FOOTER_BATCHES = 3
MESSAGE_HEADER = 2
BATCH_ROWS = 0
BATCH_COLUMNS = 1
BATCH_BUFFERS = 2
BATCH_COMPRESSION = 3
OLD_COMPRESSION = b"ARROW:experimental_compression"  # how Arrow 0.17 said it, which is still read
COMPRESSION_CODEC = 0  # of BodyCompression
CODECS = ("lz4", "zstd")
# What a byte can become: in LZ4 a byte more of a length is 255, in zstd a block of 4 bytes is 128 KiB.
MOST_RATIO = {"lz4": 256, "zstd": 1 << 15}
FIRST_BUFFERS = 3  # of a column of binary: validity, offsets, data


class BatchHeader(NamedTuple):
    """What a batch says about itself and its first column, which is binary."""

    at: int  # position of the header in the file
    nbytes: int  # of the header
    body: int  # position of the buffers
    body_nbytes: int
    compression: str  # "lz4" or "zstd", "" for none
    rows: int
    nulls: int  # in the first column
    buffers: tuple[tuple[int, int], ...]  # of the first column: offset in the body and bytes


def footer_position(data: memoryview) -> int:
    """Where an Arrow file's footer starts. Raises ValueError if it makes no sense."""
    footer_bytes, _ = _unpacked(END, data, len(data) - END.size)
    position = len(data) - END.size - footer_bytes
    if not 0 <= position <= len(data):
        raise ValueError(f"its headers lead to byte {position} of {len(data)}")
    return position


def has_dictionaries(data: memoryview) -> bool:
    """Whether an Arrow file has dictionaries beside its batches. Raises ValueError if it makes no sense."""
    return any(_blocks(data, FOOTER_DICTIONARIES))


def header_spans(data: memoryview) -> list[tuple[int, int]]:
    """Where the headers of an Arrow file's batches start, and their bytes, by the footer.

    Raises:
        ValueError: the file makes no sense.
    """
    return [(at, nbytes) for at, nbytes, _ in _blocks(data, FOOTER_BATCHES)]


def batch_headers(data: memoryview) -> Iterator[BatchHeader]:
    """The headers of an Arrow file's batches, in order. Raises ValueError if the file makes no sense."""
    for at, nbytes, body_nbytes in _blocks(data, FOOTER_BATCHES):
        yield _batch_header(data, at, nbytes, body_nbytes)


def _batch_header(data: memoryview, at: int, nbytes: int, body_nbytes: int) -> BatchHeader:
    message = at + 8 if _word(data, at) == CONTINUATION else at + 4
    header = _field(data, _referred(data, message), MESSAGE_HEADER)
    body = at + nbytes
    if header is None or nbytes < 0 or body_nbytes < 0 or body + body_nbytes > len(data):
        raise ValueError(f"its headers lead to byte {body + body_nbytes} of {len(data)}")
    batch = _referred(data, header)
    rows = _field(data, batch, BATCH_ROWS)
    columns = _pairs(data, batch, BATCH_COLUMNS, 1)
    return BatchHeader(
        at,
        nbytes,
        body,
        body_nbytes,
        _compression(data, batch, bytes(data[at:body])),
        0 if rows is None else _unpacked(_INT64, data, rows)[0],
        columns[0][1] if columns else 0,
        _pairs(data, batch, BATCH_BUFFERS, FIRST_BUFFERS),
    )


def _compression(data: memoryview, batch: int, header: bytes) -> str:
    if OLD_COMPRESSION in header:
        raise ValueError("its batches are compressed in a way of Arrow before 1.0")
    field = _field(data, batch, BATCH_COMPRESSION)
    if field is None:
        return ""
    codec = _field(data, _referred(data, field), COMPRESSION_CODEC)
    number = 0 if codec is None else data[codec] if codec < len(data) else -1
    if number not in range(len(CODECS)):
        raise ValueError(f"its batches are compressed by codec {number}, and there are {len(CODECS)}")
    return CODECS[number]


def unpacked_sizes(data: memoryview, header: BatchHeader) -> list[int]:
    """How many bytes the buffers of a compressed batch say that they become, the first column's first.

    Raises:
        ValueError: a buffer isn't within the batch, or says more than the compression can make of its bytes.
    """
    message = header.at + 8 if _word(data, header.at) == CONTINUATION else header.at + 4
    found = _field(data, _referred(data, message), MESSAGE_HEADER)
    assert found is not None  # as it was read before
    sizes = []
    for position, nbytes in _pairs(data, _referred(data, found), BATCH_BUFFERS, header.nbytes // PAIR.size):
        if not (0 <= position <= header.body_nbytes and 0 <= nbytes <= header.body_nbytes - position):
            raise ValueError("a buffer lies outside of its batch")
        size = 0
        if nbytes:
            (size,) = _unpacked(_INT64, data, header.body + position)
            packed = nbytes - _INT64.size
            size = packed if size == -1 else size
            most = MOST_RATIO[header.compression] * packed
            if not 0 <= size <= most:
                raise ValueError(
                    f"{packed} compressed bytes say that they become {size}, at most {most} can be"
                )
        sizes.append(size)
    return sizes


def _pairs(data: memoryview, table: int, place: int, count: int) -> tuple[tuple[int, int], ...]:
    """The first of a list of pairs of int64."""
    field = _field(data, table, place)
    if field is None:
        return ()
    start = _referred(data, field)
    found = min(count, _word(data, start))
    pairs = (_unpacked(PAIR, data, start + 4 + number * PAIR.size) for number in range(found))
    return tuple((first, second) for first, second in pairs)


def _blocks(data: memoryview, place: int) -> Iterator[tuple[int, int, int]]:
    """Where the messages of one list of the footer start, bytes of their headers, and of their bodies."""
    footer = _referred(data, footer_position(data))
    field = _field(data, footer, place)
    if field is None:
        return
    blocks = _referred(data, field)
    for number in range(_word(data, blocks)):
        at, header_bytes, body_bytes = _unpacked(BLOCK, data, blocks + 4 + number * BLOCK.size)
        yield at, header_bytes, body_bytes


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
_INT64 = struct.Struct("<q")
_UINT32 = struct.Struct("<I")
_UINT16 = struct.Struct("<H")
