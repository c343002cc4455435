"""`yaffjit build` and `yaffjit append`: messages of files become an index, or go to one."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import yaffjit as yj
from yaffjit.cli.options import (
    add_command,
    add_schema_options,
    load_schema,
    path_text,
    positive,
    refuse_overwriting,
)
from yaffjit.errors import DecodeError, EncodeError


def add_build(commands: Any) -> None:
    parser = add_command(
        commands,
        "build",
        _build,
        "build an index from length-delimited protobuf messages",
        "yaffjit build ads.proto ads.Banner banners.pb -o banners.arrow\n"
        "yaffjit build ads.proto ads.Banner banners.pb -o banners      a directory, which can grow\n"
        "yaffjit build ads.proto ads.Banner part1.pb part2.pb -o banners.arrow -I protos --layout sparse",
    )
    parser.add_argument(
        "schema", type=path_text, metavar="SCHEMA", help="a .proto file, or a file with a FileDescriptorSet"
    )
    parser.add_argument("message", metavar="MESSAGE", help="full name of the message type, as ads.Banner")
    parser.add_argument(
        "inputs", type=path_text, metavar="INPUT", nargs="+", help="messages, each after its varint length"
    )
    parser.add_argument(
        "--output",
        "-o",
        type=path_text,
        required=True,
        metavar="INDEX",
        help="the file to write, or the directory",
    )
    _add_layout_options(parser)
    add_schema_options(parser)


def add_append(commands: Any) -> None:
    parser = add_command(
        commands,
        "append",
        _append,
        "add length-delimited protobuf messages, or a whole index file, to an index that is a directory",
        "yaffjit append banners today.pb\n"
        "yaffjit append banners --adopt banners.arrow     a file becomes a part, perhaps of a new directory",
    )
    parser.add_argument("index", type=path_text, metavar="INDEX", help="a directory with an index")
    parser.add_argument(
        "inputs", type=path_text, metavar="INPUT", nargs="*", help="messages, each after its varint length"
    )
    parser.add_argument(
        "--adopt", type=path_text, metavar="FILE", help="an index file, which is moved into the directory"
    )
    _add_layout_options(parser)
    parser.set_defaults(parser=parser)


def _add_layout_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--layout",
        choices=("flat", "sparse", "auto"),
        default="flat",
        help="how messages of the dynamic layout are written (default: flat)",
    )
    parser.add_argument(
        "--part-rows", type=positive, metavar="N", help="most messages of a part (of a directory)"
    )


def _build(parsed: argparse.Namespace) -> None:
    refuse_overwriting(parsed.output, [parsed.schema, *parsed.inputs])
    message_type = load_schema(parsed)[parsed.message]
    inputs = _Inputs(parsed.inputs)
    with inputs.named():
        built = yj.build_index(
            parsed.output, message_type, inputs, layout=parsed.layout, part_rows=parsed.part_rows
        )
    parts = f" in {len(built.parts)} parts" if len(built.parts) > 1 else ""
    print(f"{built.path}: {built.rows:,} {parsed.message} messages{parts}, {built.nbytes:,} bytes")


def _append(parsed: argparse.Namespace) -> None:
    if (parsed.adopt is None) == (not parsed.inputs):
        parsed.parser.error("name the inputs, or say --adopt, and not both")
    if parsed.adopt is not None:
        yj.adopt_index(parsed.index, parsed.adopt)
        print(f"{parsed.index}: {parsed.adopt} is a part of it now")
        return
    inputs = _Inputs(parsed.inputs)
    with inputs.named():
        added = yj.append_index(parsed.index, inputs, layout=parsed.layout, part_rows=parsed.part_rows)
    print(f"{added.path}: {added.rows:,} messages more, {added.nbytes:,} bytes")


class _Inputs:
    """The messages of several files.

    Attributes:
        path, number: where the last message is from: its file, and its number there, from 0.
        handed_out: it's being worked on; False while the next one is read.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self.path = ""
        self.number = 0
        self.handed_out = False

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Has errors name the file and number of the message that is being worked on."""
        try:
            yield
        except (DecodeError, EncodeError) as error:
            if not self.handed_out:  # reading failed, which names the file itself
                raise
            raise type(error)(f"{self.path}, message {self.number}: {error}") from error

    def __iter__(self) -> Iterator[bytes]:
        for path in self._paths:
            for number, payload in enumerate(yj.read_delimited(path)):
                self.path, self.number, self.handed_out = path, number, True
                yield payload
                self.handed_out = False
