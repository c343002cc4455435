"""What the commands share: how they are declared, their options, and what they refuse."""

from __future__ import annotations

import argparse
import base64
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaffjit as yj
from yaffjit.errors import IndexFileError


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int | None], what: str, examples: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=what,
        description=what[0].upper() + what[1:] + ".",
        epilog="examples:\n" + "".join(f"  {line}\n" for line in examples.splitlines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=run)
    return parser


def path_text(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("a path can't be empty")
    return text


def whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a whole number: {text!r}") from None


def positive(text: str) -> int:
    """A whole number from 1."""
    count = whole_number(text)
    if count < 1:
        raise argparse.ArgumentTypeError("at least 1 is needed")
    return count


def refuse_overwriting(output: str, inputs: Sequence[str]) -> None:
    """An output takes the place of its file only once it is whole, but what was read would be gone."""
    for path in inputs:
        try:
            same = os.path.samefile(output, path)
        except OSError:  # one of them isn't there; an input says so when it is read
            continue
        if same:
            raise IndexFileError(f"{output} is read by this command, so it can't be written by it")


def add_json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="JSON instead of text")


def print_json(value: Any, indent: int | None = 2, flush: bool = False) -> None:
    """Print plain values as JSON, in ASCII; floats that aren't finite as text, as in protobuf's JSON."""
    print(json.dumps(_finite(value), indent=indent, default=_plain), flush=flush)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return list(map(_finite, value))
    return value


def _plain(value: Any) -> Any:
    """What JSON has no form for: bytes as base64, as protobuf's JSON has them; times as text."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def add_schema_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--include",
        "-I",
        type=path_text,
        action="append",
        default=[],
        metavar="DIR",
        help="a folder with imported files",
    )
    parser.add_argument("--slice", metavar="NAME", help="read YaFF's options by this slice")


def load_schema(parsed: argparse.Namespace) -> yj.Schema:
    return yj.load_schema(parsed.schema, include=parsed.include, slice=parsed.slice)


def add_key_options(parser: argparse.ArgumentParser, required: bool) -> None:
    parser.add_argument(
        "--key",
        required=required,
        metavar="FIELD",
        help="rows can be looked up by this integer or text field, as id or geo.city",
    )
    parser.add_argument(
        "--duplicates",
        choices=("error", "first", "last"),
        default="error",
        help="what becomes of a key that comes again: the command fails, or the first or last row counts "
        "(default: error)",
    )
