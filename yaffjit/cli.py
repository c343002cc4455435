"""The command line: each command is a thin call of the public API, imported when it runs."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import yaffjit as yj
from yaffjit.errors import DecodeError, EncodeError, IndexFileError, SchemaError, YaffjitError
from yaffjit.terminal import complain, flush_or_drop_output, is_printable, standard_output

if TYPE_CHECKING:
    from yaffjit.columns import Columns

EXIT_ERROR = 1  # the command failed; usage errors are argparse's 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
ARROW_FILE_MAGIC = b"ARROW1"
COLUMN_SUFFIXES = (".csv", ".parquet", ".arrow", ".feather")

_DESCRIPTION = "Read Protobuf data at native speed: index files of YaFF messages, and what lies in them."
_EPILOG = """\
examples:
  yaffjit demo                                                  the whole path on made-up data
  yaffjit layout ads.proto ads.Banner                           where each field lies, and what that costs
  yaffjit build ads.proto ads.Banner banners.pb -o banners.arrow
  yaffjit show banners.arrow 0
  yaffjit columns banners.arrow id stats.ctr -o features.parquet
  yaffjit verify banners.arrow
  yaffjit warm                                                  compile ahead, as when an image is built

exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; errors become one line on standard error and an exit code."""
    try:
        with standard_output() as output:
            try:
                parsed = _parser().parse_args(arguments)
                command: Callable[[argparse.Namespace], None] = parsed.command
                command(parsed)
            except SystemExit:  # after --help, say
                output.flush()
                raise
            output.flush()
    except BrokenPipeError:
        flush_or_drop_output()
        return EXIT_BROKEN_PIPE
    except KeyboardInterrupt:
        complain("interrupted")
        return EXIT_INTERRUPTED
    except (YaffjitError, OSError) as error:
        complain(f"error: {_sentence(error)}")
        flush_or_drop_output()
        return EXIT_ERROR
    return 0


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, YaffjitError) and error.strerror:
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        return f"{where}{error.strerror}"
    return str(error)


class _Parser(argparse.ArgumentParser):
    def print_help(self, file: Any = None) -> None:
        # argparse's own takes no notice of an output that takes nothing.
        print(self.format_help(), end="", file=file)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="yaffjit",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_build(commands)
    _add_show(commands)
    _add_columns(commands)
    _add_layout(commands)
    _add_verify(commands)
    _add_demo(commands)
    _add_warm(commands)
    return parser


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *unused: Any, **also_unused: Any) -> None:
        from yaffjit import __version__

        print(f"yaffjit {__version__}")
        parser.exit()


def _command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], None], what: str, examples: str
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


def _path(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("a path can't be empty")
    return text


def _whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a whole number: {text!r}") from None


def _refuse_overwriting(output: str, inputs: Sequence[str]) -> None:
    """An output takes the place of its file only once it is whole, but what was read would be gone."""
    for path in inputs:
        try:
            same = os.path.samefile(output, path)
        except OSError:  # one of them isn't there; an input says so when it is read
            continue
        if same:
            raise IndexFileError(f"{output} is read by this command, so it can't be written by it")


def _add_schema_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--include",
        "-I",
        type=_path,
        action="append",
        default=[],
        metavar="DIR",
        help="a folder with imported files",
    )
    parser.add_argument("--slice", metavar="NAME", help="read YaFF's options by this slice")


def _load_schema(parsed: argparse.Namespace) -> yj.Schema:
    return yj.load_schema(parsed.schema, include=parsed.include, slice=parsed.slice)


# build


def _add_build(commands: Any) -> None:
    parser = _command(
        commands,
        "build",
        _build,
        "build an index file from length-delimited protobuf messages",
        "yaffjit build ads.proto ads.Banner banners.pb -o banners.arrow\n"
        "yaffjit build ads.proto ads.Banner part1.pb part2.pb -o banners.arrow -I protos --layout sparse",
    )
    parser.add_argument(
        "schema", type=_path, metavar="SCHEMA", help="a .proto file, or a file with a FileDescriptorSet"
    )
    parser.add_argument("message", metavar="MESSAGE", help="full name of the message type, as ads.Banner")
    parser.add_argument(
        "inputs", type=_path, metavar="INPUT", nargs="+", help="messages, each after its varint length"
    )
    parser.add_argument(
        "--output", "-o", type=_path, required=True, metavar="INDEX", help="the index file to write"
    )
    parser.add_argument(
        "--layout",
        choices=("flat", "sparse", "auto"),
        default="flat",
        help="how messages of the dynamic layout are written (default: flat)",
    )
    _add_schema_options(parser)


def _build(parsed: argparse.Namespace) -> None:
    _refuse_overwriting(parsed.output, [parsed.schema, *parsed.inputs])
    message_type = _load_schema(parsed)[parsed.message]
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


# show


def _add_show(commands: Any) -> None:
    parser = _command(
        commands,
        "show",
        _show,
        "print one record of an index",
        "yaffjit show banners.arrow 0\nyaffjit show banners.arrow 12345 --json\n"
        "yaffjit show banners.arrow -1             the last record",
    )
    parser.add_argument("index", type=_path, metavar="INDEX", help="an index file")
    parser.add_argument(
        "row", metavar="ROW", type=_whole_number, help="which record, from 0, or from -1 at the end"
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


# columns


def _add_columns(commands: Any) -> None:
    parser = _command(
        commands,
        "columns",
        _columns,
        "pull fields out of an index as columns",
        "yaffjit columns banners.arrow id price stats.ctr\n"
        "yaffjit columns banners.arrow id geo.lat geo.lon -o features.parquet",
    )
    parser.add_argument("index", type=_path, metavar="INDEX", help="an index file")
    parser.add_argument("paths", metavar="PATH", nargs="+", help="a number, bool or enum, as stats.ctr")
    parser.add_argument(
        "--output",
        "-o",
        type=_path,
        metavar="FILE",
        help=f"the file to write: {', '.join(COLUMN_SUFFIXES)} (default: CSV to standard output)",
    )


def _columns(parsed: argparse.Namespace) -> None:
    suffix = ".csv" if parsed.output is None else Path(parsed.output).suffix.lower()
    if suffix not in COLUMN_SUFFIXES:
        raise IndexFileError(f"{parsed.output}: the suffix must be one of {', '.join(COLUMN_SUFFIXES)}")
    if parsed.output is not None:
        _refuse_overwriting(parsed.output, [parsed.index])
    columns = yj.open_index(parsed.index).columns(*parsed.paths)
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


def _write_columns(columns: Columns, file: BinaryIO, suffix: str) -> None:
    import pyarrow as pa

    table = columns.to_arrow()
    if suffix == ".csv":
        from pyarrow import csv

        csv.write_csv(table, file)
    elif suffix == ".parquet":
        from pyarrow import parquet

        parquet.write_table(table, file)
    else:
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)


# layout


def _add_layout(commands: Any) -> None:
    parser = _command(
        commands,
        "layout",
        _layout,
        "print where each field of a message lies under YaFF, what that costs, and what it can't hold",
        "yaffjit layout ads.proto                  all message types of the schema\n"
        "yaffjit layout ads.proto ads.Banner       the fields of one",
    )
    parser.add_argument(
        "schema", type=_path, metavar="SCHEMA", help="a .proto file, or a file with a FileDescriptorSet"
    )
    parser.add_argument("message", metavar="MESSAGE", nargs="?", help="full name of a message type")
    _add_schema_options(parser)


def _layout(parsed: argparse.Namespace) -> None:
    from yaffjit.render import layout_text, schema_text

    schema = _load_schema(parsed)
    if parsed.message is not None:
        print(layout_text(schema[parsed.message].plan))
        return
    unsupported = schema.unsupported
    plans = (
        (name, SchemaError(unsupported[name]) if name in unsupported else message_type.plan)
        for name, message_type in schema.messages.items()
    )
    print(schema_text(schema.definition, plans))


# verify


def _add_verify(commands: Any) -> None:
    parser = _command(
        commands,
        "verify",
        _verify,
        "check an index file, or a file that holds one YaFF message",
        "yaffjit verify banners.arrow\nyaffjit verify banner.yaff --schema ads.proto --message ads.Banner",
    )
    parser.add_argument("file", type=_path, metavar="FILE", help="an index file, or the bytes of one message")
    parser.add_argument("--schema", type=_path, metavar="SCHEMA", help="for a single message: its schema")
    parser.add_argument("--message", metavar="MESSAGE", help="for a single message: full name of its type")
    _add_schema_options(parser)


def _verify(parsed: argparse.Namespace) -> None:
    from yaffjit.index.files import open_regular

    with open_regular(parsed.file) as file:
        is_index = file.read(len(ARROW_FILE_MAGIC)) == ARROW_FILE_MAGIC
        if not is_index:
            if parsed.schema is None or parsed.message is None:
                raise IndexFileError(
                    f"{parsed.file} isn't an index file; if it holds one message, give --schema and --message"
                )
            file.seek(0)
            buf = file.read()
    if is_index:
        index = yj.open_index(parsed.file)
        print(f"{parsed.file}: {len(index):,} {index.message_type.full_name} messages, all well-formed")
        return
    _load_schema(parsed)[parsed.message].verify(buf)
    print(f"{parsed.file}: a well-formed {parsed.message} of {len(buf):,} bytes")


# demo


def _add_demo(commands: Any) -> None:
    parser = _command(
        commands,
        "demo",
        _demo,
        "build, index and read made-up ad banners, and time protobuf, columns and a jitted function",
        "yaffjit demo\nyaffjit demo --rows 20000 --keep demo-data",
    )
    parser.add_argument("--rows", type=_row_count, default=200_000, help="how many banners (default: 200000)")
    parser.add_argument("--keep", type=_path, metavar="DIR", help="a folder to leave the files in")


def _row_count(text: str) -> int:
    count = _whole_number(text)
    if count < 1:
        raise argparse.ArgumentTypeError("at least one row is needed")
    return count


def _demo(parsed: argparse.Namespace) -> None:
    from yaffjit.demo import run

    run(parsed.rows, keep=parsed.keep)


# warm


def _add_warm(commands: Any) -> None:
    parser = _command(
        commands,
        "warm",
        _warm,
        "compile ahead what is kept on disk, so that the first process doesn't wait for it",
        "yaffjit warm                                  the verifier, and what writes floats\n"
        "yaffjit warm ads.proto ads.Banner id price    and what reads these columns and their presence",
    )
    parser.add_argument("schema", metavar="SCHEMA", nargs="?", help="a .proto file, or a FileDescriptorSet")
    parser.add_argument("message", metavar="MESSAGE", nargs="?", help="full name of the message type")
    parser.add_argument("paths", metavar="PATH", nargs="*", help="columns, in the order of the call")
    _add_schema_options(parser)


def _warm(parsed: argparse.Namespace) -> None:
    from yaffjit.warm import warm

    if parsed.schema is not None and not parsed.paths:
        raise SchemaError("warm: name the columns that will be read, after the schema and the message type")
    mp = None if parsed.schema is None else _load_schema(parsed)[parsed.message].plan
    for made in warm(mp, tuple(parsed.paths)):
        how = "there already, loaded" if made.found else "compiled"
        print(f"{made.what}: {how} in {made.seconds:.1f} s, in {made.folder}", flush=True)
