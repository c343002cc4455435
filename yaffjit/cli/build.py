"""`yaffjit build` and `yaffjit append`: messages of files become an index, or go to one."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import logging
import re
from collections.abc import Iterator
from typing import Any

import yaffjit as yj
from yaffjit.cli.options import (
    add_command,
    add_json_option,
    add_key_options,
    add_schema_options,
    load_schema,
    path_text,
    positive,
    print_json,
    refuse_overwriting,
)
from yaffjit.cli.readers import add_framing_option, reader_of

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def add_build(commands: Any) -> None:
    parser = add_command(
        commands,
        "build",
        _build,
        "build an index from files of protobuf messages",
        "yaffjit build ads.proto ads.Banner banners.pb -o banners.arrow\n"
        "yaffjit build ads.proto ads.Banner banners.pb -o banners      a directory, which can grow\n"
        "yaffjit build ads.proto ads.Banner part1.pb part2.pb -o banners.arrow -I protos --layout sparse\n"
        "yaffjit build ads.proto ads.Banner 'in/*.pb' -o banners.arrow --framing files\n"
        "yaffjit build ads.proto ads.Banner x.parquet -o banners.arrow --framing parquet:payload\n"
        "yaffjit build ads.proto ads.Banner banners.pb -o banners.arrow --on-error skip --memory 1G\n"
        "yaffjit build ads.proto ads.Banner banners.pb -o banners.arrow --key id --json\n"
        "yaffjit build ads.proto ads.Banner banners.pb -o banners.arrow --representation protobuf",
    )
    parser.add_argument(
        "schema", type=path_text, metavar="SCHEMA", help="a .proto file, or a file with a FileDescriptorSet"
    )
    parser.set_defaults(parser=parser)
    parser.add_argument("message", metavar="MESSAGE", help="full name of the message type, as ads.Banner")
    parser.add_argument(
        "inputs", type=path_text, metavar="INPUT", nargs="+", help="files of messages, see --framing"
    )
    parser.add_argument(
        "--output",
        "-o",
        type=path_text,
        required=True,
        metavar="INDEX",
        help="the file to write, or the directory",
    )
    parser.add_argument(
        "--representation",
        choices=("yaff", "protobuf"),
        default="yaff",
        help="how messages are encoded in the index; protobuf: they stay as they are (default: yaff)",
    )
    _add_build_options(parser)
    add_key_options(parser, required=False)
    add_schema_options(parser)


def add_append(commands: Any) -> None:
    parser = add_command(
        commands,
        "append",
        _append,
        "add protobuf messages, or a whole index file, to an index that is a directory",
        "yaffjit append banners today.pb\n"
        "yaffjit append banners today.pb --json           what was written, for scripts\n"
        "yaffjit append banners --adopt banners.arrow     a file becomes a part, perhaps of a new directory",
    )
    parser.add_argument("index", type=path_text, metavar="INDEX", help="a directory with an index")
    parser.add_argument(
        "inputs", type=path_text, metavar="INPUT", nargs="*", help="files of messages, see --framing"
    )
    parser.add_argument(
        "--adopt", type=path_text, metavar="FILE", help="an index file, which is moved into the directory"
    )
    _add_build_options(parser)
    parser.set_defaults(parser=parser)


def _add_build_options(parser: argparse.ArgumentParser) -> None:
    add_framing_option(parser)
    parser.add_argument(
        "--layout",
        choices=("flat", "sparse", "auto", "smallest"),
        default="flat",
        help="how messages of the dynamic layout are written; auto: sparse where that saves more than a "
        "tenth of the message (default: flat)",
    )
    parser.add_argument(
        "--on-error",
        choices=("raise", "skip", "null"),
        default="raise",
        help="what becomes of a message that can't be read: the command fails, or it's left out, or there is "
        "a null row in its place (default: raise)",
    )
    parser.add_argument(
        "--memory",
        type=_nbytes,
        default=512 << 20,
        metavar="BYTES",
        help="what the process may take, as 512M or 2G (default: 512M)",
    )
    parser.add_argument(
        "--threads", type=positive, metavar="N", help="how many work at the same time (default: all cores)"
    )
    parser.add_argument(
        "--compression",
        choices=("lz4", "zstd"),
        help="pack the index for keeping; it must be unpacked before it's read in place",
    )
    add_json_option(parser)
    parser.add_argument(
        "--part-rows", type=positive, metavar="N", help="most messages of a part (of a directory)"
    )


def _nbytes(text: str) -> int:
    """A number of bytes, as 512M."""
    found = re.fullmatch(r"(\d+)([kmg]?)(i?b)?", text.strip().lower())
    if found is None or not int(found[1]):
        raise argparse.ArgumentTypeError(f"not a number of bytes, as 512M: {text!r}")
    return int(found[1]) * UNITS[found[2]]


def _options(parsed: argparse.Namespace) -> dict[str, Any]:
    names = ("layout", "part_rows", "threads", "memory", "on_error", "compression")
    return {name: getattr(parsed, name) for name in names}


def _build(parsed: argparse.Namespace) -> None:
    if parsed.key is None and parsed.duplicates != "error":
        parsed.parser.error("--duplicates is about keys: say --key too")
    if parsed.key is not None and parsed.compression is not None:
        parsed.parser.error("an index with keys can't be compressed: --key or --compression")
    refuse_overwriting(parsed.output, [parsed.schema, *parsed.inputs])
    schema = load_schema(parsed)
    reader = reader_of(parsed.inputs, parsed.framing, lambda: schema)
    with _said_once():
        built = yj.build_index(
            *(parsed.output, schema[parsed.message], reader),
            **_options(parsed),
            representation=parsed.representation,
            key=parsed.key,
            duplicates=parsed.duplicates,
        )
    if parsed.json:
        print_json(dataclasses.asdict(built))
        return
    parts = f" in {len(built.parts)} parts" if len(built.parts) > 1 else ""
    print(f"{built.path}: {built.rows:,} {parsed.message} messages{parts}, {built.nbytes:,} bytes")
    _print_summary(built)


def _append(parsed: argparse.Namespace) -> None:
    if (parsed.adopt is None) == (not parsed.inputs):
        parsed.parser.error("name the inputs, or say --adopt, and not both")
    if parsed.adopt is not None:
        yj.adopt_index(parsed.index, parsed.adopt)
        if parsed.json:
            print_json({"path": parsed.index, "adopted": parsed.adopt})
        else:
            print(f"{parsed.index}: {parsed.adopt} is a part of it now")
        return
    reader = reader_of(parsed.inputs, parsed.framing, lambda: yj.open_index_unchecked(parsed.index).schema)
    with _said_once():
        added = yj.append_index(parsed.index, reader, **_options(parsed))
    if parsed.json:
        print_json(dataclasses.asdict(added))
        return
    print(f"{added.path}: {added.rows:,} messages more, {added.nbytes:,} bytes")
    _print_summary(added)


@contextlib.contextmanager
def _said_once() -> Iterator[None]:
    """Keeps off standard error what the summary says."""
    logger = logging.getLogger("yaffjit")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


def _print_summary(built: yj.BuiltIndex) -> None:
    for line in built.summary():
        print(f"  {line}")
