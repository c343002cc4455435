"""What the commands read messages from: `--framing`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial

import yaffjit as yj
from yaffjit.errors import SchemaError

PLAIN = ("delimited", "tfrecord", "u32le", "u32be", "files")
NAMED = ("parquet:COLUMN", "arrow:COLUMN", "field:MESSAGE.PATH", "universal:MESSAGE")
KNOWN = ", ".join((*PLAIN, *NAMED))


def framing(text: str) -> str:
    """An argument of --framing."""
    kind, colon, name = text.partition(":")
    known = {named.partition(":")[0]: named for named in NAMED}
    if kind in known and not name:
        raise argparse.ArgumentTypeError(f"{text!r} lacks a name, as {known[kind]} has it")
    if (colon and kind not in known) or (not colon and kind not in PLAIN):
        raise argparse.ArgumentTypeError(f"unknown framing {text!r}; known: {KNOWN}")
    return text


def add_framing_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--framing",
        type=framing,
        default="delimited",
        metavar="FRAMING",
        help=f"how the messages lie in their files: {KNOWN} (default: delimited). u32le and u32be: after "
        "lengths of four bytes; files: one message a file, INPUT may be a pattern; field: the elements of a "
        "repeated field of the one message that a file is, as field:ads.Page.items; universal: documents, by "
        "protobuf's JSON mapping",
    )


def reader_of(paths: Sequence[str], text: str, schema: Callable[[], yj.Schema]) -> yj.Payloads:
    """The messages of files; ``text`` as `framing` has checked it, the schema is asked for if it's needed."""
    from yaffjit.build.chained import Chained

    kind, _, name = text.partition(":")
    one: Callable[[str], yj.Payloads]
    if kind == "tfrecord":
        one = yj.read_tfrecord
    elif kind in ("u32le", "u32be"):
        one = partial(yj.read_length_prefixed, order="little" if kind == "u32le" else "big")
    elif kind == "files":
        one = yj.read_files
    elif kind == "parquet":
        one = partial(yj.read_parquet, column=name)
    elif kind == "arrow":
        one = partial(yj.read_arrow, column=name)
    elif kind == "universal":
        from yaffjit.universal.payloads import DocumentPayloads

        found = schema()
        message_class, pool = found[name].message_class, found.definition.pool
        one = partial(DocumentPayloads, message_class=message_class, pool=pool)
    elif kind == "field":
        envelope, field = _envelope(schema(), name)
        one = partial(yj.read_field, envelope_type=envelope, field=field)
    else:
        one = yj.read_delimited
    return Chained([one(path) for path in paths])


def _envelope(schema: yj.Schema, name: str) -> tuple[yj.MessageType, str]:
    """The message type that a name begins with, and the path of fields in it."""
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        message = ".".join(parts[:count])
        if message in schema:
            return schema[message], ".".join(parts[count:])
    raise SchemaError(f"{name!r} doesn't begin with a message type, as field:ads.Page.items would")
