"""`yaffjit unpack`: a compressed index becomes one that is read in place."""

from __future__ import annotations

import argparse
from typing import Any

import yaffjit as yj
from yaffjit.cli.options import add_command, add_json_option, path_text, print_json, refuse_overwriting


def add_unpack(commands: Any) -> None:
    parser = add_command(
        commands,
        "unpack",
        _unpack,
        "write a compressed index as one that is read in place",
        "yaffjit unpack archive.arrow -o banners.arrow\nyaffjit unpack archive -o banners      directories",
    )
    parser.add_argument("index", type=path_text, metavar="INDEX", help="an index: a file or a directory")
    parser.add_argument(
        "--output",
        "-o",
        type=path_text,
        required=True,
        metavar="OUTPUT",
        help="the file to write, or the directory",
    )
    add_json_option(parser)


def _unpack(parsed: argparse.Namespace) -> None:
    refuse_overwriting(parsed.output, [parsed.index])
    yj.unpack_index(parsed.index, parsed.output)
    nbytes = sum(part.nbytes for part in yj.open_index_unchecked(parsed.output).parts)
    rows = len(yj.open_packed(parsed.index))
    if parsed.json:
        print_json({"path": parsed.output, "rows": rows, "nbytes": nbytes})
        return
    print(f"{parsed.output}: {rows:,} messages, {nbytes:,} bytes")
