"""The file of a part's key table: an Arrow file whose only batch is the table, mapped and looked up in place.

``banners.keys.arrow`` lies beside ``banners.arrow``. Its column ``slot`` is a fixed_size_list of two int64,
four slots a bucket (`yaffjit.kernels.keys`). The schema's metadata has ``yaffjit.keys``: JSON text with the
path, the rule for keys that come again, the field's kind, the hashes' seed, the part's rows and checksum, how
many keys there are, and the XXH3-64 of the slots.
"""

from __future__ import annotations

import json
import mmap
import os
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray
from pyarrow import ipc

from yaffjit.errors import IndexFileError
from yaffjit.index.atomic import writing
from yaffjit.index.blocks import batch_headers
from yaffjit.index.files import open_regular
from yaffjit.index.key_spec import RULES, KeySpec
from yaffjit.index.part import ARROW_ERRORS

FORMAT_VERSION = 1
KEYS_KEY = b"yaffjit.keys"
SLOT_COLUMN = "slot"
SIGNED_KINDS = ("int32", "int64", "sint32", "sint64", "sfixed32", "sfixed64")
UNSIGNED_KINDS = ("uint32", "uint64", "fixed32", "fixed64")
TEXT_KINDS = ("string", "bytes")
KINDS = (SIGNED_KINDS, UNSIGNED_KINDS, TEXT_KINDS)  # by their numbers in `yaffjit.kernels.keys`
SLOTS = 4  # of a bucket
BUCKET_WORDS = 2 * SLOTS
MOST_LOAD = 0.6
MOST_ROWS = 2**31  # a text's slot has 32 bits for its row
_LINE = 64  # buckets begin where a line of the cache does
_HASHED_NBYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class TableHead:
    """What a table says about itself.

    Attributes:
        spec: what it's of.
        kind: of the field.
        seed: of the hashes, int64.
        part: `Part.headers_checksum` of the part.
        rows: of the part.
        keys: how many the table has.
        xxh3: XXH3-64 of the slots, 16 hex digits.
    """

    spec: KeySpec
    kind: str
    seed: int
    part: str
    rows: int
    keys: int
    xxh3: str

    @property
    def number(self) -> int:
        """The kind as the kernels have it."""
        return next(number for number, kinds in enumerate(KINDS) if self.kind in kinds)


def buckets_for(rows: int) -> int:
    """How many buckets a table for so many keys has."""
    return int(rows / (MOST_LOAD * SLOTS)) + 1


def slots_checksum(slots: Any) -> str:
    """XXH3-64 of a table's slots, 16 hex digits."""
    data = memoryview(slots).cast("B")
    digest = xxhash.xxh3_64()
    for begin in range(0, len(data), _HASHED_NBYTES):  # Ctrl-C is honoured in between
        digest.update(data[begin : begin + _HASHED_NBYTES])
    return str(digest.hexdigest())


def write_table(path: str, file: BinaryIO, head: TableHead, slots: NDArray[np.int64]) -> int:
    """Write a table; returns its bytes.

    Args:
        path: for errors.
        slots: int64, shape (buckets * 8,).
    """
    padding = -_written(pa.BufferOutputStream(), head, slots[:BUCKET_WORDS], 0)[1] % _LINE
    with writing(path):
        nbytes, at = _written(file, head, slots, padding)
    assert at % _LINE == 0
    return nbytes


def _written(sink: Any, head: TableHead, slots: NDArray[np.int64], padding: int) -> tuple[int, int]:
    """Bytes of the file, and where the slots begin in it."""
    text = (
        json.dumps(
            {
                "format_version": FORMAT_VERSION,
                "path": head.spec.path,
                "duplicates": head.spec.duplicates,
                "kind": head.kind,
                "seed": head.seed,
                "part": head.part,
                "rows": head.rows,
                "keys": head.keys,
                "xxh3": head.xxh3,
            }
        )
        + " " * padding
    )
    values = pa.Array.from_buffers(pa.int64(), len(slots), [None, pa.py_buffer(slots)])
    array = pa.FixedSizeListArray.from_arrays(values, 2)
    schema = pa.schema([pa.field(SLOT_COLUMN, array.type, nullable=False)], metadata={KEYS_KEY: text})
    with ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays([array], schema=schema))
        at = sink.tell() - slots.nbytes
    return sink.tell(), at


class KeyTable:
    """A mapped table.

    Args:
        path: its file.

    Attributes:
        head: what it says about itself.
        slots: int64, shape (buckets * 8,), in place.

    Raises:
        IndexFileError: it isn't there, or isn't a whole table.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with open_regular(path, link=False) as file:
            try:
                self.nbytes = os.fstat(file.fileno()).st_size
                if self.nbytes == 0:
                    raise IndexFileError(f"{path} is empty: it isn't a key table")
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except IndexFileError:
                raise
            except OSError as error:
                raise IndexFileError(f"{path} can't be opened: {error.strerror or error}") from error
        try:
            reader = ipc.open_file(pa.BufferReader(pa.py_buffer(self._map)))
            metadata = reader.schema.metadata or {}
            batches = list(batch_headers(memoryview(self._map)))
        except ARROW_ERRORS as error:
            raise IndexFileError(f"{path}: it isn't a whole Arrow file: {error}") from error
        if KEYS_KEY not in metadata:
            raise IndexFileError(f"{path} isn't a key table: its schema has no metadata {KEYS_KEY.decode()}")
        self.head = _head(path, metadata[KEYS_KEY])
        self.slots = self._slots(reader.schema, batches)

    def _slots(self, schema: Any, batches: list[Any]) -> NDArray[np.int64]:
        expected = pa.list_(pa.int64(), 2)
        if schema.names != [SLOT_COLUMN] or schema.field(0).type != expected or len(batches) != 1:
            raise IndexFileError(f"{self.path} is damaged: it isn't one batch of a column {SLOT_COLUMN!r}")
        header = batches[0]
        buckets = buckets_for(self.head.rows)
        nbytes = 8 * BUCKET_WORDS * buckets
        if header.rows != SLOTS * buckets or len(header.buffers) < 3:
            raise IndexFileError(
                f"{self.path} is damaged: it has {header.rows:,} slots, but a table of {self.head.rows:,} "
                f"rows has {SLOTS * buckets:,}"
            )
        offset, found = header.buffers[2]
        if found != nbytes or not 0 <= offset <= header.body_nbytes - nbytes:
            raise IndexFileError(
                f"{self.path} is damaged: its slots have {found:,} bytes, but {nbytes:,} are needed"
            )
        start = header.body + offset
        if start % 8:
            raise IndexFileError(f"{self.path} is damaged: its slots begin at byte {start:,}")
        return np.frombuffer(self._map, np.int64, BUCKET_WORDS * buckets, start)

    def check_size(self) -> None:
        """Raises IndexFileError if the file was cut or grew since it was mapped."""
        nbytes = self._map.size()
        if nbytes != self.nbytes:
            raise IndexFileError(
                f"{self.path} has {nbytes:,} bytes, but had {self.nbytes:,} when it was opened: "
                "somebody wrote to it in place"
            )

    def check_content(self) -> None:
        """Raises IndexFileError if the slots aren't what was written."""
        self.check_size()
        found = slots_checksum(self.slots)
        if found != self.head.xxh3:
            raise IndexFileError(
                f"{self.path}: the checksum of its slots is {found}, but {self.head.xxh3} was written"
            )


def is_table(path: str) -> bool:
    """Whether a file is a key table, whole or not; False if there is none."""
    try:
        with open_regular(path) as file:
            return KEYS_KEY in file.read(1 << 12)
    except (IndexFileError, OSError):
        return False


def _head(path: str, text: bytes) -> TableHead:
    try:
        fields = json.loads(text)
        version = fields["format_version"]
        if type(version) is int and version > FORMAT_VERSION:
            raise IndexFileError(
                f"{path} has format version {version}, but this yaffjit reads up to {FORMAT_VERSION}: "
                "a newer yaffjit wrote it"
            )
        spec = KeySpec(fields["path"], fields["duplicates"])
        made = TableHead(
            spec,
            *(fields[name] for name in ("kind", "seed", "part", "rows", "keys", "xxh3")),
        )
        texts = (spec.path, made.part, made.xxh3)
        counts = (made.rows, made.keys)
        if (
            version != FORMAT_VERSION
            or spec.duplicates not in RULES
            or not any(made.kind in kinds for kinds in KINDS)
            or not all(isinstance(value, str) for value in texts)
            or not all(type(value) is int and 0 <= value < MOST_ROWS for value in counts)
            or type(made.seed) is not int
            or not -(2**63) <= made.seed < 2**63
        ):
            raise ValueError("a value makes no sense")
        return made
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise IndexFileError(f"{path}: its description of the keys is damaged: {error!r}") from error
