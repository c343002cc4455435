"""The file of a part's key table: an Arrow file whose only row is the table, mapped and looked up in place.

``banners.keys.arrow`` lies beside ``banners.arrow``. Its column ``slots`` (large_list of int64) has two words
a slot, ``texts`` (large_binary) the keys if they are text (`yaffjit.kernels.keys`). The schema's metadata has
``yaffjit.keys``: JSON text with the path, the rule for keys that come again, the field's kind, the hashes'
seed, the part's rows and checksum, how many keys there are, and the XXH3-64 of slots and texts.
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
from yaffjit.index.files import open_regular
from yaffjit.index.key_spec import RULES, KeySpec
from yaffjit.index.part import ARROW_ERRORS, unadvised

FORMAT_VERSION = 1
KEYS_KEY = b"yaffjit.keys"
SIGNED_KINDS = ("int32", "int64", "sint32", "sint64", "sfixed32", "sfixed64")
UNSIGNED_KINDS = ("uint32", "uint64", "fixed32", "fixed64")
TEXT_KINDS = ("string", "bytes")
KINDS = (SIGNED_KINDS, UNSIGNED_KINDS, TEXT_KINDS)  # by their numbers in `yaffjit.kernels.keys`
SLOTS = 4  # of a bucket
BUCKET_WORDS = 2 * SLOTS
# At most 0.6 was wanted. Look-ups of integers took 1.7 times a gather at 0.5, and 2.0 at 0.6.
LOAD = 0.5
MOST_ROWS = 2**31  # a text's slot has 32 bits for its row
_SCHEMA = pa.schema(
    [
        pa.field("slots", pa.large_list(pa.field("item", pa.int64())), nullable=False),
        pa.field("texts", pa.large_binary(), nullable=False),
    ]
)
_SHOWN_SCHEMA = "slots (large_list<int64>), texts (large_binary)"
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
        xxh3: `content_checksum`.
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
    return int(rows / (LOAD * SLOTS)) + 1


def content_checksum(*arrays: Any) -> str:
    """XXH3-64 of a table's slots and then its texts, 16 hex digits."""
    digest = xxhash.xxh3_64()
    for array in arrays:
        data = memoryview(array).cast("B")
        for begin in range(0, len(data), _HASHED_NBYTES):  # Ctrl-C is honoured in between
            digest.update(data[begin : begin + _HASHED_NBYTES])
    return str(digest.hexdigest())


def write_table(
    path: str, file: BinaryIO, head: TableHead, slots: NDArray[np.int64], texts: NDArray[np.uint8]
) -> int:
    """Write a table; returns its bytes.

    Args:
        path: for errors.
        slots: int64, shape (buckets * 8,).
        texts: uint8, the texts of keys; empty for integers.
    """
    sample = pa.BufferOutputStream()
    few = slots[:BUCKET_WORDS], texts[:1]
    _write(sample, head, *few, 0)
    buffer = sample.getvalue()
    padding = -_span(_batch("", buffer), buffer, 0)[0] % _LINE
    with writing(path):
        return _write(file, head, slots, texts, padding)


def _write(
    sink: Any, head: TableHead, slots: NDArray[np.int64], texts: NDArray[np.uint8], padding: int
) -> int:
    text = json.dumps(
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
    arrays = [
        pa.LargeListArray.from_arrays(
            pa.array([0, len(slots)], pa.int64()),
            pa.Array.from_buffers(pa.int64(), len(slots), [None, pa.py_buffer(slots)]),
        ),
        pa.Array.from_buffers(
            pa.large_binary(),
            1,
            [None, pa.py_buffer(np.array([0, len(texts)], np.int64)), pa.py_buffer(texts)],
        ),
    ]
    schema = _SCHEMA.with_metadata({KEYS_KEY: text + " " * padding})
    with ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return int(sink.tell())


def _batch(path: str, buffer: Any) -> Any:
    """What pyarrow makes of a file."""
    try:
        reader = ipc.open_file(pa.BufferReader(buffer))
        if reader.num_record_batches != 1 or not reader.schema.equals(_SCHEMA):
            raise IndexFileError(f"{path} is damaged: it isn't one batch of {_SHOWN_SCHEMA}")
        batch = reader.get_batch(0)
        if batch.num_rows != 1:
            raise IndexFileError(f"{path} is damaged: it has {batch.num_rows:,} rows, not one")
        return batch
    except IndexFileError:
        raise
    except ARROW_ERRORS as error:
        raise IndexFileError(f"{path}: it isn't a whole Arrow file: {error}") from error


class KeyTable:
    """A mapped table.

    Args:
        path: its file.

    Attributes:
        head: what it says about itself.
        slots: int64, shape (buckets * 8,), in place.
        texts: uint8, in place.

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
        with unadvised(self._map):
            self.head, self.slots, self.texts = self._read()

    def _read(self) -> tuple[TableHead, NDArray[np.int64], NDArray[np.uint8]]:
        buffer = pa.py_buffer(self._map)
        try:
            metadata = ipc.open_file(pa.BufferReader(buffer)).schema.metadata or {}
        except ARROW_ERRORS as error:
            raise IndexFileError(f"{self.path}: it isn't a whole Arrow file: {error}") from error
        if KEYS_KEY not in metadata:
            name = KEYS_KEY.decode()
            raise IndexFileError(f"{self.path} isn't a key table: its schema has no metadata {name}")
        head = _head(self.path, metadata[KEYS_KEY])
        spans = []
        for column in range(2):
            at, nbytes = _span(_batch(self.path, buffer), buffer, column)
            if not (0 <= at <= self.nbytes and 0 <= nbytes <= self.nbytes - at):
                raise IndexFileError(f"{self.path} is damaged: pyarrow reads it from another place")
            spans.append((at, nbytes))
        (at, nbytes), (texts_at, texts_nbytes) = spans
        words = BUCKET_WORDS * buckets_for(head.rows)
        if nbytes != 8 * words or at % 8:
            raise IndexFileError(
                f"{self.path} is damaged: its slots have {nbytes:,} bytes from byte {at:,} on, but a table "
                f"of {head.rows:,} rows has {8 * words:,}"
            )
        slots = np.frombuffer(self._map, np.int64, words, at)
        return head, slots, np.frombuffer(self._map, np.uint8, texts_nbytes, texts_at)

    def check_size(self) -> None:
        """Raises IndexFileError if the file was cut or grew since it was mapped."""
        nbytes = self._map.size()
        if nbytes != self.nbytes:
            raise IndexFileError(
                f"{self.path} has {nbytes:,} bytes, but had {self.nbytes:,} when it was opened: "
                "somebody wrote to it in place"
            )

    def check_content(self) -> None:
        """Raises IndexFileError if slots and texts aren't what was written."""
        self.check_size()
        found = content_checksum(self.slots, self.texts)
        if found != self.head.xxh3:
            raise IndexFileError(
                f"{self.path}: the checksum of its content is {found}, but {self.head.xxh3} was written"
            )


def _span(batch: Any, buffer: Any, column: int) -> tuple[int, int]:
    """Where the values of a column begin in a file, and their bytes."""
    values = batch.column(column).buffers()[-1]
    if values is None or not values.size:
        return 0, 0
    return int(values.address - buffer.address), int(values.size)


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
            type(version) is not int
            or version != FORMAT_VERSION
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
