"""`yaffjit keys`: an index that is there gets keys, or others."""

from __future__ import annotations

import argparse
from typing import Any

import yaffjit as yj
from yaffjit.cli.options import add_command, add_json_option, add_key_options, path_text, print_json


def add_keys(commands: Any) -> None:
    parser = add_command(
        commands,
        "keys",
        _keys,
        "make an index look up rows by a key",
        "yaffjit keys banners.arrow --key id\nyaffjit keys banners --key geo.city --duplicates last --json",
    )
    parser.add_argument("index", type=path_text, metavar="INDEX", help="a file or directory")
    add_key_options(parser, required=True)
    add_json_option(parser)


def _keys(parsed: argparse.Namespace) -> None:
    yj.build_keys(parsed.index, parsed.key, parsed.duplicates)
    if parsed.json:
        print_json({"path": parsed.index, "key": parsed.key, "duplicates": parsed.duplicates})
        return
    print(f"{parsed.index}: rows can be looked up by {parsed.key}")
