"""What a fuzzer calls with any bytes: one function an entry point.

Each lets only the exceptions through that the entry point documents, by not catching others: a target that
raises, hangs or crashes has found a fault.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import yaffjit as yj
from yaffjit.universal import KindError
from yaffjit.view import View

SCHEMAS = Path(__file__).resolve().parents[1] / "schemas"
LAYOUTS = ("flat", "sparse", "auto", "smallest")
MOST_NBYTES = 1 << 20  # larger messages, which share subtrees, aren't read whole
MOST_ROWS = 100

TARGETS: dict[str, Callable[[bytes], None]] = {}


def _target(function: Callable[[bytes], None]) -> Callable[[bytes], None]:
    TARGETS[function.__name__] = function
    return function


@cache
def message_type(file: str, name: str) -> yj.MessageType:
    return yj.load_schema(SCHEMAS / file)[name]


def yaff_types() -> list[yj.MessageType]:
    names = ("Banner", "Tree", "Packed", "Pinned", "Point", "Removed")
    return [message_type("verify.proto", f"verify.{name}") for name in names]


def wire_types() -> list[yj.MessageType]:
    return [
        message_type("verify.proto", "verify.Banner"),
        message_type("wire_jit.proto", "wire_jit.All"),
        message_type("wire_jit3.proto", "wire_jit3.Plain"),
    ]


def read(view: Any) -> None:
    """What views offer, of a message that isn't huge."""
    repr(view)
    with contextlib.suppress(yj.DecodeError):
        if view._decoded_(MOST_NBYTES) is None:
            return
    for get in (yj.to_dict, yj.to_json, View.SerializePartialToString, View.ListFields, View.to_message):
        with contextlib.suppress(yj.YaffjitError, UnicodeDecodeError):
            get(view)


@_target
def view(data: bytes) -> None:
    """`view` and `verify`, which agree, of each type."""
    for one in yaff_types():
        try:
            made = one.view(data)
        except yj.VerifyError:
            continue
        one.verify(data)
        read(made)


@_target
def view_protobuf(data: bytes) -> None:
    for one in wire_types():
        with contextlib.suppress(yj.DecodeError, UnicodeDecodeError):
            read(one.view_protobuf(data))


@_target
def verify_protobuf(data: bytes) -> None:
    for one in wire_types():
        with contextlib.suppress(yj.VerifyError):
            one.verify_protobuf(data)
            read(one.view_protobuf(data))


@_target
def transcode(data: bytes) -> None:
    """Protobuf bytes to YaFF in each layout; what comes of it is well-formed, and comes back."""
    one = wire_types()[0]
    for layout in LAYOUTS:
        with contextlib.suppress(yj.DecodeError, yj.EncodeError):
            made = one.transcode([data], layout=layout)
            one.verify(made.payload(0))
            again = one.transcode(made, representation="protobuf")[0]
            assert one.decode(made.payload(0)) == one.message_class.FromString(again)


@_target
def transcode_back(data: bytes) -> None:
    """YaFF that is accepted to protobuf bytes."""
    for one in yaff_types():
        with contextlib.suppress(yj.DecodeError):
            found = one.transcode(yj.records(one, [data]), representation="protobuf")[0]
            assert one.message_class.FromString(found) == one.decode(data)


@_target
def universal_loads(data: bytes) -> None:
    for read_document in (yj.universal.loads, yj.universal.validate):
        for compact in (True, False):
            with contextlib.suppress(yj.YaffjitError, UnicodeDecodeError):
                read_document(data, compact=compact)


@_target
def universal_view(data: bytes) -> None:
    for compact in (True, False):
        with contextlib.suppress(yj.YaffjitError, UnicodeDecodeError, KeyError, IndexError, KindError):
            made = yj.universal.view(data, compact=compact)
            repr(made)
            if hasattr(made, "get"):
                for path in ("k1", "k2.k3", "[0]", "[1].k4", "k1[2]"):
                    with contextlib.suppress(yj.YaffjitError, UnicodeDecodeError):
                        made.get(path)
                made.value()


@_target
def universal_columns(data: bytes) -> None:
    for compact in (True, False):
        with contextlib.suppress(yj.YaffjitError, UnicodeDecodeError):
            yj.universal.columns(data, {"k1": "int64", "k2": "float64", "k3": str}, compact=compact)


@_target
def open_index(data: bytes) -> None:
    """A file of these bytes, opened in both ways, and a packed one."""
    one = message_type("verify.proto", "verify.Banner")
    with _file(data) as path:
        for verify in ("open", "batch"):
            with contextlib.suppress(yj.IndexFileError, yj.SchemaError):
                index = yj.open_index(path, one, verify=verify)
                for made in islice(index, MOST_ROWS):
                    read(made)
                index.columns("id")
        with contextlib.suppress(yj.IndexFileError, yj.SchemaError):
            for records in islice(yj.open_packed(path, one).batches(), MOST_ROWS):
                len(records)


@_target
def streams(data: bytes) -> None:
    """The readers of files of protobuf messages; messages aren't looked at."""
    for reader in (
        yj.read_delimited,
        yj.read_length_prefixed,
        lambda source: yj.read_length_prefixed(source, "big"),
        yj.read_tfrecord,
    ):
        with contextlib.suppress(yj.DecodeError):
            for payload in islice(reader(io.BytesIO(data)), MOST_ROWS):
                len(payload)


@_target
def tables(data: bytes) -> None:
    """The readers of Arrow and Parquet files."""
    for reader in (yj.read_arrow, yj.read_parquet):
        with contextlib.suppress(yj.DecodeError, KeyError, ValueError), _file(data) as path:
            for payload in islice(reader(path, "payload"), MOST_ROWS):
                len(payload)


@_target
def load_schema(data: bytes) -> None:
    """A descriptor set; what can be loaded, can be looked at."""
    with contextlib.suppress(yj.SchemaError):
        schema = yj.load_schema(data)
        for name in islice(schema.messages, MOST_ROWS):
            if name not in schema.unsupported:
                schema[name].plan.fingerprint  # noqa: B018
        schema.enums  # noqa: B018


@contextlib.contextmanager
def _file(data: bytes) -> Iterator[str]:
    handle, path = tempfile.mkstemp(prefix="yaffjit-fuzz-")
    try:
        os.write(handle, data)
        os.close(handle)
        yield path
    finally:
        os.unlink(path)
