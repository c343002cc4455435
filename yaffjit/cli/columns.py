"""`yaffjit columns`: fields of an index as a table."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import yaffjit as yj
from yaffjit.cli.options import add_command, path_text, print_json, refuse_overwriting
from yaffjit.errors import IndexFileError, YaffjitError
from yaffjit.terminal import complain

if TYPE_CHECKING:
    from yaffjit.columns import Columns

JSON_ROWS = 10_000  # that are made at a time
COLUMN_SUFFIXES = (".csv", ".parquet", ".arrow", ".feather")


def add_columns(commands: Any) -> None:
    parser = add_command(
        commands,
        "columns",
        _columns,
        "pull fields out of an index as columns",
        "yaffjit columns banners.arrow id price stats.ctr\n"
        "yaffjit columns banners.arrow id tags --json          a line of JSON a row\n"
        "yaffjit columns banners.arrow id 'geo.*' tags 'price:float32' 'len(title)' -o features.parquet",
    )
    parser.add_argument("index", type=path_text, metavar="INDEX", help="an index file")
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        help="as stats.ctr, items.price, 'stats.*', 'tags[0]', 'len(tags)', id:int32",
    )
    parser.add_argument(
        "--output",
        "-o",
        type=path_text,
        metavar="FILE",
        help=f"the file to write: {', '.join(COLUMN_SUFFIXES)} (default: CSV to standard output)",
    )
    parser.add_argument(
        "--json", action="store_true", help="a line of JSON a row to standard output, of columns of all kinds"
    )
    parser.set_defaults(parser=parser)


def _columns(parsed: argparse.Namespace) -> None:
    if parsed.json and parsed.output is not None:
        parsed.parser.error("--json prints, so it doesn't go with --output")
    suffix = ".csv" if parsed.output is None else Path(parsed.output).suffix.lower()
    if suffix not in COLUMN_SUFFIXES:
        raise IndexFileError(f"{parsed.output}: the suffix must be one of {', '.join(COLUMN_SUFFIXES)}")
    if parsed.output is not None:
        refuse_overwriting(parsed.output, [parsed.index])
    columns = yj.open_index(parsed.index).columns(*parsed.paths)
    if parsed.json:
        for batch in _table(columns).to_batches(JSON_ROWS):
            for row in batch.to_pylist():
                print_json(row, indent=None)
        return
    if suffix == ".csv":
        _check_csv(columns)
    if parsed.output is None:
        _write_columns(columns, sys.stdout.buffer, suffix)
        return
    from yaffjit.index.atomic import replaced_file, writing

    with replaced_file(parsed.output) as file, writing(parsed.output):
        _write_columns(columns, file, suffix)
    # Where errors go, so that what a script reads from standard output is columns only.
    rows, count = columns.rows, len(columns)
    size = f"{rows:,} row{'s' * (rows != 1)} of {count} column{'s' * (count != 1)}"
    complain(f"wrote {size} to {parsed.output}")


def _check_csv(columns: Columns) -> None:
    """Raise an error for what CSV has no form for."""
    for path, column in columns.items():
        if hasattr(column, "lengths"):
            raise YaffjitError(
                f"column {path!r} is a {column.kind}, for which CSV has no form: write .parquet or .arrow, "
                "or name one element or len() of it"
            )
        if not getattr(getattr(column, "values", column), "is_text", True):
            raise YaffjitError(
                f"column {path!r} is bytes, for which CSV has no form: write .parquet or .arrow"
            )


def _table(columns: Columns) -> Any:
    try:
        return columns.to_arrow()
    except UnicodeDecodeError as error:
        raise YaffjitError(f"a text isn't UTF-8, which files of text need: {error}") from error


def _write_columns(columns: Columns, file: BinaryIO, suffix: str) -> None:
    import pyarrow as pa

    table = _table(columns)
    if suffix == ".csv":
        from pyarrow import csv

        csv.write_csv(table, file)
    elif suffix == ".parquet":
        from pyarrow import parquet

        parquet.write_table(table, file)
    else:
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
