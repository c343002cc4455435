"""`yaffjit build`: messages of files become an index."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import yaffjit as yj
from yaffjit.cli.options import add_command, add_schema_options, load_schema, path_text, refuse_overwriting
from yaffjit.errors import DecodeError, EncodeError


def add_build(commands: Any) -> None:
    parser = add_command(
        commands,
        "build",
        _build,
        "build an index file from length-delimited protobuf messages",
        "yaffjit build ads.proto ads.Banner banners.pb -o banners.arrow\n"
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
        "--output", "-o", type=path_text, required=True, metavar="INDEX", help="the index file to write"
    )
    parser.add_argument(
        "--layout",
        choices=("flat", "sparse", "auto"),
        default="flat",
        help="how messages of the dynamic layout are written (default: flat)",
    )
    add_schema_options(parser)


def _build(parsed: argparse.Namespace) -> None:
    refuse_overwriting(parsed.output, [parsed.schema, *parsed.inputs])
    message_type = load_schema(parsed)[parsed.message]
    inputs = _Inputs(parsed.inputs)
    try:
        built = yj.build_index(parsed.output, message_type, inputs, layout=parsed.layout)
    except (DecodeError, EncodeError) as error:
        if not inputs.handed_out:  # reading failed, which names the file itself
            raise
        raise type(error)(f"{inputs.path}, message {inputs.number}: {error}") from error
    print(f"{built.path}: {built.rows:,} {parsed.message} messages, {built.nbytes:,} bytes")


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

    def __iter__(self) -> Iterator[bytes]:
        for path in self._paths:
            for number, payload in enumerate(yj.read_delimited(path)):
                self.path, self.number, self.handed_out = path, number, True
                yield payload
                self.handed_out = False
