"""`yaffjit show` of files that aren't an index: protobuf bytes without a schema, or of a message type."""

from __future__ import annotations

import json
import mmap
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import yaffjit as yj
from yaffjit.errors import YaffjitError
from yaffjit.terminal import complain

if TYPE_CHECKING:
    from yaffjit.view.buffers import Data
    from yaffjit.view.raw import RawField, Unreadable

# Fields that are printed at most.
MAX_FIELDS = 5000
PIECE_NBYTES = 1 << 20


def show_raw(path: str, as_json: bool) -> None:
    """Print the bytes of a file as fields with numbers, wire types and guesses."""
    from yaffjit.view.raw import raw_fields

    data = read_file(path)
    found = _limited(raw_fields(data))
    if as_json:
        print(json.dumps(_tree(found)))
        return
    for field in found:
        print(_line(field))


def read_file(path: str) -> Data:
    """The bytes of a file, mapped if they can be; ``-`` is standard input."""
    if path == "-":
        return _read(sys.stdin.buffer, "standard input")
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:  # empty, or a pipe
            return _read(file, path)
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _read(file: BinaryIO, name: str) -> bytes:
    """What a pipe or a device gives, which may be without an end."""
    from yaffjit.build.payloads import MAX_NBYTES

    held = []
    nbytes = 0
    while piece := file.read(PIECE_NBYTES):
        nbytes += len(piece)
        if nbytes > MAX_NBYTES:
            raise YaffjitError(f"{name}: over {MAX_NBYTES:,} bytes, which is the most that a message has")
        held.append(piece)
    return b"".join(held)


def view_file(path: str, schema: yj.Schema, name: str) -> Any:
    """A view of the message that a file of protobuf bytes is."""
    data = read_file(path)
    try:
        return schema[name].view_protobuf(data)
    except YaffjitError as error:
        raise YaffjitError(f"{path}: {error}") from error


def _limited(fields: Iterator[RawField | Unreadable]) -> Iterator[RawField | Unreadable]:
    for count, field in enumerate(fields):
        if count == MAX_FIELDS:
            complain(f"there are more than {MAX_FIELDS} fields; the first {MAX_FIELDS} are printed")
            return
        yield field


def _line(field: RawField | Unreadable) -> str:
    from yaffjit.view.raw import Unreadable

    indent = "  " * field.depth
    if isinstance(field, Unreadable):
        return (
            f"{indent}# can't be read from byte {field.position} on, {_bytes(field.nbytes)}: {_fault(field)}"
        )
    return f"{indent}{field.number}: {_shown(field)}"


def _shown(field: RawField) -> str:
    from yaffjit.view.raw import TYPE_NAMES, is_usual

    guess, value = field.guess, field.value
    more = " ..." if field.cut else ""
    if guess == "group":
        return "group"
    if guess == "varint":
        return f"varint {value} ({value - 2**64})" if value >= 2**63 else f"varint {value}"
    if guess in ("fixed32", "fixed64"):
        import struct

        code, width = ("f", 4) if guess == "fixed32" else ("d", 8)
        (as_float,) = struct.unpack(f"<{code}", value.to_bytes(width, "little"))
        shown = f", {as_float!r} as {'float' if width == 4 else 'double'}" if is_usual(as_float) else ""
        return f"{guess} {value}{shown}"
    assert field.nbytes is not None
    size = f"{TYPE_NAMES[field.wire_type]}[{field.nbytes}]"
    if guess == "message":
        return f"{size}, message"
    if guess == "text":
        return f"{size}, text {json.dumps(value, ensure_ascii=False)}{more}"
    if guess == "bytes":
        return f"{size} {value.hex(' ')}{more}".rstrip()
    return f"{size}, {guess} {', '.join(map(repr, value))}{more}"


def _tree(fields: Iterator[RawField | Unreadable]) -> list[dict[str, Any]]:
    from yaffjit.view.raw import Unreadable

    root: list[dict[str, Any]] = []
    levels = [root]
    for field in fields:
        del levels[field.depth + 1 :]
        made: dict[str, Any]
        if isinstance(field, Unreadable):
            made = {"unreadable_from": field.position, "nbytes": field.nbytes, "fault": _fault(field)}
        else:
            made = {"number": field.number, "wire_type": field.wire_type, "position": field.position}
            if field.nbytes is not None:
                made["nbytes"] = field.nbytes
            made["guess"] = field.guess
            if field.guess in ("message", "group"):
                made["fields"] = []
                levels.append(made["fields"])
            else:
                made["value"] = field.value.hex() if isinstance(field.value, bytes) else field.value
                if field.cut:
                    made["cut"] = True
        levels[field.depth].append(made)
    return root


def _fault(field: Unreadable) -> str:
    where = f"field {field.fault.path}: " if field.fault.path else ""
    return f"{where}{field.fault.text}"


def _bytes(nbytes: int) -> str:
    return f"{nbytes} byte" if nbytes == 1 else f"{nbytes} bytes"
