"""What an index file says about itself: the type of its messages, and a checksum for each batch.

The file is an Arrow IPC file. Its column ``message`` (large_binary) has the Arrow extension type
``yaffjit.message``, whose metadata is the JSON text of `Description`. Each batch has custom metadata:
``yaffjit.batch`` its number from 0, ``yaffjit.last`` "1" in the last one and "0" in the others, and
``yaffjit.xxh3`` the 16 hex digits of the XXH3-64 of its content (`checksum`).
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import xxhash

from yaffjit.errors import IndexFileError
from yaffjit.plan import MessagePlan

FORMAT_VERSION = 1
BATCH_ROWS = 65536  # in each batch of a file but the last, ...
BATCH_NBYTES = 64 << 20  # ... or as many as take so many bytes, the last of them included
MESSAGE_COLUMN = "message"
EXTENSION_NAME = "yaffjit.message"
NAME_KEY = b"ARROW:extension:name"
METADATA_KEY = b"ARROW:extension:metadata"
BATCH_KEY = b"yaffjit.batch"
LAST_KEY = b"yaffjit.last"
CHECKSUM_KEY = b"yaffjit.xxh3"
# A file must not make us allocate more than this for its schema; all of googleapis takes a tenth of it.
MAX_DESCRIPTOR_SET = 64 << 20


@dataclass(frozen=True, slots=True)
class Description:
    """The type of an index's messages, as its file states it."""

    message: str  # full name
    representation: str
    fingerprint: str
    slice: str | None
    descriptor_set: bytes


def plan_of(message_type: Any) -> MessagePlan:
    """The plan of a `MessageType`, or the plan itself.

    Raises:
        TypeError: it is neither.
        SchemaError: YaFF can't hold messages of this type.
    """
    if not isinstance(message_type, (MessagePlan, str, bytes)):
        message_type = getattr(message_type, "plan", message_type)
    if not isinstance(message_type, MessagePlan):
        hint = f", as schema[{message_type!r}] would be" if isinstance(message_type, str) else ""
        hint = hint or f", not {type(message_type).__name__}"
        raise TypeError(f"a MessageType is needed{hint}")
    return message_type


def described(mp: MessagePlan, representation: str) -> str:
    """The JSON text for messages of a type."""
    schema = mp.plan.schema
    packed = base64.b64encode(zlib.compress(schema.descriptor_set, 9)).decode("ascii")
    return json.dumps(
        {
            "format_version": FORMAT_VERSION,
            "message": mp.full_name,
            "representation": representation,
            "fingerprint": mp.fingerprint,
            "slice": schema.slice,
            "descriptor_set": packed,
        }
    )


def description(text: bytes, path: str) -> Description:
    """Reads the JSON text.

    Raises:
        IndexFileError: it is damaged, or of a newer format version.
    """
    try:
        fields = json.loads(text)
        version = fields["format_version"]
        if type(version) is int and version > FORMAT_VERSION:
            raise IndexFileError(
                f"{path} has format version {version}, but this yaffjit reads up to {FORMAT_VERSION}: "
                "a newer yaffjit wrote it"
            )
        unpack = zlib.decompressobj()
        descriptor_set = unpack.decompress(
            base64.b64decode(fields["descriptor_set"], validate=True), MAX_DESCRIPTOR_SET
        )
        if not unpack.eof:
            raise ValueError(f"the descriptor set is cut short or larger than {MAX_DESCRIPTOR_SET} bytes")
        made = Description(
            fields["message"],
            fields["representation"],
            fields["fingerprint"],
            fields["slice"],
            descriptor_set,
        )
        names = (made.message, made.representation, made.fingerprint, made.slice or "")
        known = type(version) is int and version == FORMAT_VERSION
        if not known or not all(isinstance(name, str) for name in names):
            raise ValueError("a value has the wrong type")
        return made
    except (ValueError, KeyError, TypeError, zlib.error, RecursionError) as error:
        raise IndexFileError(f"{path}: its description of the messages is damaged: {error!r}") from error


def checksum(text: bytes, number: int, last: bool, batch: Any) -> str:
    """XXH3-64 of a batch as read from a file, 16 hex digits.

    Hashed in this order: the JSON text; number, ``last`` and row count as three little-endian int64; then,
    column by column, the name in UTF-8 and each Arrow buffer (children's after their parent's), before each
    of these its length as int64, where an absent buffer has length 0.
    """
    digest = started_checksum(text, number, last, batch.num_rows)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        for buffer in (name.encode(), *column.buffers()):
            digest.update(struct.pack("<q", 0 if buffer is None else len(buffer)))
            if buffer is not None:
                digest.update(buffer)
    return str(digest.hexdigest())


def started_checksum(text: bytes, number: int, last: bool, rows: int) -> Any:
    """The digest that `checksum` begins with, to be updated with the columns."""
    digest = xxhash.xxh3_64(text)
    digest.update(struct.pack("<qqq", number, last, rows))
    return digest


def described_columns(schema: Any) -> str:
    """The further columns of an Arrow schema, as ``day (int64), label (string)``."""
    others = (f"{field.name} ({field.type})" for field in schema if field.name != MESSAGE_COLUMN)
    return ", ".join(others) or "none"
