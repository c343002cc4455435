"""The command line: a module a command, each a thin call of the public API, imported when it runs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import Any

from yaffjit.cli.build import add_append, add_build
from yaffjit.cli.columns import add_columns
from yaffjit.cli.demo import add_demo
from yaffjit.cli.diff import add_diff
from yaffjit.cli.keys import add_keys
from yaffjit.cli.layout import add_layout
from yaffjit.cli.show import add_head, add_show
from yaffjit.cli.stubs import add_stubs
from yaffjit.cli.unpack import add_unpack
from yaffjit.cli.verify import add_verify
from yaffjit.cli.warm import add_warm
from yaffjit.errors import YaffjitError
from yaffjit.terminal import complain, flush_or_drop_output, standard_output

EXIT_ERROR = 1  # the command failed; usage errors are argparse's 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

_DESCRIPTION = "Read Protobuf data at native speed: index files of YaFF messages, and what lies in them."
_EPILOG = """\
examples:
  yaffjit demo                                                  the whole path on made-up data
  yaffjit layout ads.proto ads.Banner                           where each field lies, and what that costs
  yaffjit build ads.proto ads.Banner banners.pb -o banners.arrow
  yaffjit append banners today.pb                               a directory of parts grows
  yaffjit show banners.arrow --where 'price > 1.5' --limit 3
  yaffjit columns banners.arrow id stats.ctr -o features.parquet
  yaffjit verify banners.arrow
  yaffjit diff old.proto new.proto                              is a change of the schema safe?
  yaffjit warm                                                  compile ahead, as when an image is built

exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; errors become one line on standard error and an exit code."""
    try:
        with standard_output() as output:
            try:
                parsed = parser().parse_args(arguments)
                command: Callable[[argparse.Namespace], int | None] = parsed.command
                code = command(parsed) or 0
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
    return code


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, YaffjitError) and error.strerror:
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        return f"{where}{error.strerror}"
    return str(error)


class _Parser(argparse.ArgumentParser):
    def print_help(self, file: Any = None) -> None:
        # argparse's own takes no notice of an output that takes nothing.
        print(self.format_help(), end="", file=file)


def parser() -> argparse.ArgumentParser:
    """That of the command line, with all commands."""
    parser = _Parser(
        prog="yaffjit",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add_build(commands)
    add_append(commands)
    add_keys(commands)
    add_show(commands)
    add_head(commands)
    add_columns(commands)
    add_layout(commands)
    add_diff(commands)
    add_stubs(commands)
    add_verify(commands)
    add_unpack(commands)
    add_demo(commands)
    add_warm(commands)
    return parser


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *unused: Any, **also_unused: Any) -> None:
        from yaffjit import __version__

        print(f"yaffjit {__version__}")
        parser.exit()
