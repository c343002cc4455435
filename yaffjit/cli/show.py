"""`yaffjit show`: records of an index as text."""

from __future__ import annotations

import argparse
import json
from typing import Any

import yaffjit as yj
from yaffjit.cli.options import add_command, path_text, whole_number
from yaffjit.errors import YaffjitError
from yaffjit.terminal import is_printable


def add_show(commands: Any) -> None:
    parser = add_command(
        commands,
        "show",
        _show,
        "print one record of an index",
        "yaffjit show banners.arrow 0\nyaffjit show banners.arrow 12345 --json\n"
        "yaffjit show banners.arrow -1             the last record",
    )
    parser.add_argument("index", type=path_text, metavar="INDEX", help="an index file")
    parser.add_argument(
        "row", metavar="ROW", type=whole_number, help="which record, from 0, or from -1 at the end"
    )
    parser.add_argument("--json", action="store_true", help="protobuf's JSON instead of its text format")


def _show(parsed: argparse.Namespace) -> None:
    view = yj.open_index(parsed.index)[parsed.row]
    try:
        text = _json(view) if parsed.json else _text_format(view)
    except (
        TypeError,
        ValueError,
    ) as error:  # protobuf's printers have no errors of their own for all of these
        fault = " ".join(str(error).split())
        if not isinstance(error, YaffjitError):
            fault = f"it can't be printed as {'JSON' if parsed.json else 'text'}: {fault}"
        raise YaffjitError(f"row {parsed.row}: {fault}") from error
    print(text, end="")


def _json(view: Any) -> str:
    text = yj.to_json(view) + "\n"
    if is_printable(text):
        return text
    # Outside of strings, JSON is ASCII.
    return "".join(char if char.isascii() else json.dumps(char)[1:-1] for char in text)


def _text_format(view: Any) -> str:
    from google.protobuf import text_format

    from yaffjit.view import View

    message = View.to_message(view)  # by the class: a field may have the name of the method
    text: str = text_format.MessageToString(message, as_utf8=True)
    # The other form has escapes that protobuf reads back.
    return text if is_printable(text) else text_format.MessageToString(message, as_utf8=False)
