"""`yaffjit demo`: the whole path on made-up data."""

from __future__ import annotations

import argparse
from typing import Any

from yaffjit.cli.options import add_command, path_text, whole_number


def add_demo(commands: Any) -> None:
    parser = add_command(
        commands,
        "demo",
        _demo,
        "build, index and read made-up ad banners, and time protobuf, columns and a jitted function",
        "yaffjit demo\nyaffjit demo --rows 20000 --keep demo-data",
    )
    parser.add_argument("--rows", type=_row_count, default=200_000, help="how many banners (default: 200000)")
    parser.add_argument("--keep", type=path_text, metavar="DIR", help="a folder to leave the files in")


def _row_count(text: str) -> int:
    count = whole_number(text)
    if count < 1:
        raise argparse.ArgumentTypeError("at least one row is needed")
    return count


def _demo(parsed: argparse.Namespace) -> None:
    from yaffjit.demo import run

    run(parsed.rows, keep=parsed.keep)
