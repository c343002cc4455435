"""`yaffjit keys`: an index that is there gets keys, or others."""

from __future__ import annotations

import argparse
from typing import Any

import yaffjit as yj
from yaffjit.cli.options import add_command, add_key_options, path_text


def add_keys(commands: Any) -> None:
    parser = add_command(
        commands,
        "keys",
        _keys,
        "make an index look up rows by a key",
        "yaffjit keys banners.arrow --key id\nyaffjit keys banners --key geo.city --duplicates last",
    )
    parser.add_argument("index", type=path_text, metavar="INDEX", help="a file or directory")
    add_key_options(parser, required=True)


def _keys(parsed: argparse.Namespace) -> None:
    yj.build_keys(parsed.index, parsed.key, parsed.duplicates)
    print(f"{parsed.index}: rows can be looked up by {parsed.key}")
