"""`yaffjit stubs`: a schema's views as classes, for type checkers and editors."""

from __future__ import annotations

import argparse
from typing import Any

from yaffjit.cli.options import add_command, add_schema_options, path_text
from yaffjit.cli.sources import SOURCES, schema_source


def add_stubs(commands: Any) -> None:
    parser = add_command(
        commands,
        "stubs",
        _stubs,
        "write what a schema's views have as a .pyi file, for type checkers and editors",
        "yaffjit stubs ads.proto -o typings               typings/ads_yaff.pyi\n"
        "yaffjit stubs banners.arrow -o typings --module banners",
    )
    parser.add_argument("schema", type=schema_source, metavar="SCHEMA", help=SOURCES)
    parser.add_argument(
        "--output", "-o", type=path_text, required=True, metavar="DIR", help="the folder to write to"
    )
    parser.add_argument(
        "--module", metavar="NAME", help="name of the module (default: of the first file, as ads_yaff)"
    )
    add_schema_options(parser)


def _stubs(parsed: argparse.Namespace) -> None:
    from yaffjit.evolve.sources import definition_of
    from yaffjit.stubs import write_stub

    source = definition_of(parsed.schema, parsed.include, parsed.slice)
    path = write_stub(source.schema, parsed.output, parsed.module)
    print(f"{path}: {len(source.schema.messages):,} message types; see docs/editors.md for how to use it")
