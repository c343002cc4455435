"""`yaffjit show` and `yaffjit head`: records of an index, or protobuf bytes, as text."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import yaffjit as yj
from yaffjit.cli.options import (
    add_command,
    add_json_option,
    add_schema_options,
    path_text,
    positive,
    whole_number,
)
from yaffjit.errors import YaffjitError
from yaffjit.terminal import complain, is_printable

if TYPE_CHECKING:
    from yaffjit.index import Index

SHOWN = 10  # matches of --where
HEAD = 5


def add_show(commands: Any) -> None:
    parser = add_command(
        commands,
        "show",
        _show,
        "print records of an index, or a file of protobuf bytes",
        "yaffjit show banners.arrow 0\nyaffjit show banners.arrow 7 12 --json\n"
        "yaffjit show banners.arrow -1             the last record\n"
        "yaffjit show banners.arrow --where 'price > 1.5 and title startswith \"Free\"'\n"
        "yaffjit show banners.arrow --where 'state in [STATE_ACTIVE] and present(geo)' --limit 3\n"
        "yaffjit show banners.arrow 0 --bytes      its bytes, with what each is for\n"
        "yaffjit show --raw message.pb             any protobuf bytes, without a schema\n"
        "yaffjit show message.pb --as ads.proto ads.Banner",
    )
    parser.add_argument(
        "index",
        type=path_text,
        metavar="INDEX",
        help="an index: a file or a directory; with --raw or --as a file of protobuf bytes, or - for input",
    )
    parser.add_argument(
        "rows", metavar="ROW", nargs="*", type=whole_number, help="a record, from 0, or from -1 at the end"
    )
    parser.add_argument(
        "--where",
        metavar="CONDITION",
        help="the records that match: columns compared (== != < <= > >= in, not in, contains, startswith) "
        "with numbers, 'text', true, false or names of an enum; present(path); joined by 'and'",
    )
    parser.add_argument(
        "--limit",
        type=positive,
        default=SHOWN,
        metavar="N",
        help=f"how many records that match are printed at most (default: {SHOWN})",
    )
    parser.add_argument(
        "--universal",
        action="store_true",
        help="print the documents of a file of the universal format as JSON; with --as, as messages",
    )
    parser.add_argument(
        "--raw",
        action="store_true",
        help="print protobuf bytes as numbers, wire types and guesses, as far as they can be read",
    )
    parser.add_argument(
        "--as",
        nargs=2,
        dest="of_type",
        metavar=("SCHEMA", "MESSAGE"),
        help="print the message that a file of protobuf bytes is: a .proto or descriptor set, and its type",
    )
    add_schema_options(parser)
    parser.add_argument(
        "--bytes",
        action="store_true",
        help="print what each byte of the records is for: headers, slots and text, with fields and values",
    )
    add_json_option(parser)
    parser.set_defaults(parser=parser)


def add_head(commands: Any) -> None:
    parser = add_command(
        commands,
        "head",
        _head,
        "print the first records of an index",
        "yaffjit head banners.arrow\nyaffjit head banners.arrow -n 100 --json",
    )
    parser.add_argument("index", type=path_text, metavar="INDEX", help="an index: a file or a directory")
    parser.add_argument(
        "--rows", "-n", type=positive, default=HEAD, metavar="N", help=f"how many (default: {HEAD})"
    )
    add_json_option(parser)


def _show(parsed: argparse.Namespace) -> None:
    if parsed.universal:
        if parsed.rows or parsed.where is not None or parsed.raw:
            parsed.parser.error(
                "--universal prints one file, so it goes with neither rows, --where nor --raw"
            )
        _show_documents(parsed)
        return
    if parsed.raw or parsed.of_type:
        if parsed.rows or parsed.where is not None or (parsed.raw and parsed.of_type):
            parsed.parser.error("--raw and --as print one file, so they go with neither rows nor --where")
        _show_protobuf(parsed)
        return
    if (parsed.where is None) == (not parsed.rows):
        parsed.parser.error("name the rows, or say --where, and not both")
    if parsed.bytes:
        if parsed.json or parsed.where is not None:
            parsed.parser.error("--bytes prints rows, as text: it goes with neither --json nor --where")
        _print_bytes(_opened(parsed.index), parsed.rows)
        return
    if parsed.where is None:
        _print(_opened(parsed.index), parsed.rows, parsed.json, titled=len(parsed.rows) > 1)
        return
    from yaffjit.cli.matches import Where
    from yaffjit.cli.where import parse_where

    conditions = parse_where(parsed.where)
    index = _opened(parsed.index)
    rows = Where(index.plan, conditions).rows(index)
    _print(index, itertools.islice(rows, parsed.limit), parsed.json, titled=True)
    if next(rows, None) is not None:
        complain(f"more records match than the {parsed.limit} that --limit allows")


def _show_documents(parsed: argparse.Namespace) -> None:
    from yaffjit.cli.documents import document_lines, messages

    if not parsed.of_type:
        for line in document_lines(parsed.index):
            print(line)
        return
    path, name = parsed.of_type
    schema = yj.load_schema(path, include=parsed.include, slice=parsed.slice)
    with _printing(parsed.index, parsed.json):
        messages(
            *(parsed.index, schema[name]),
            lambda view: print(_json(view) if parsed.json else _text_format(view), end=""),
        )


def _show_protobuf(parsed: argparse.Namespace) -> None:
    from yaffjit.cli.raw import show_raw, view_file

    if parsed.raw:
        show_raw(parsed.index, parsed.json)
        return
    path, name = parsed.of_type
    schema = yj.load_schema(path, include=parsed.include, slice=parsed.slice)
    view = view_file(parsed.index, schema, name)
    with _printing(parsed.index, parsed.json):
        print(_json(view) if parsed.json else _text_format(view), end="")


@contextlib.contextmanager
def _printing(what: str, as_json: bool) -> Iterator[None]:
    """Errors as ours: protobuf's printers have none of their own for all of these."""
    try:
        yield
    except (TypeError, ValueError) as error:
        fault = " ".join(str(error).split())
        if not isinstance(error, YaffjitError):
            fault = f"it can't be printed as {'JSON' if as_json else 'text'}: {fault}"
        raise YaffjitError(f"{what}: {fault}") from error


def _head(parsed: argparse.Namespace) -> None:
    index = _opened(parsed.index)
    _print(index, range(min(parsed.rows, len(index))), parsed.json, titled=True)


def _opened(path: str) -> Index:
    """What is printed is checked, what isn't needn't be."""
    return yj.open_index(path, verify="batch")


def _print(index: Index, rows: Iterable[int], as_json: bool, titled: bool) -> None:
    """Print rows, in protobuf's text format each after a comment that says which it is."""
    for row in rows:
        view = index[row]
        with _printing(f"row {row}", as_json):
            text = _json(view) if as_json else _text_format(view)
        if titled and not as_json:
            print(f"# row {row}")
        print(text, end="")


def _print_bytes(index: Index, rows: Iterable[int]) -> None:
    """What the bytes of rows are for; coloured on a terminal."""
    from yaffjit.terminal import is_colourful

    for row in rows:
        payload = index.payload(row)
        print(f"# row {row}{': null' if payload is None else ''}")
        if payload is not None:
            print(index.message_type.draw(payload, index.representation).text(color=is_colourful()))


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
    # Unknown fields, which only protobuf bytes have, are shown by number.
    options = {"print_unknown_fields": view._representation_ == "protobuf"}
    text: str = text_format.MessageToString(message, as_utf8=True, **options)
    # The other form has escapes that protobuf reads back.
    return text if is_printable(text) else text_format.MessageToString(message, as_utf8=False, **options)
