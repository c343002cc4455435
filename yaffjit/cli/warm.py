"""`yaffjit warm`: what is kept on disk is compiled ahead."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from yaffjit.cli.options import (
    add_command,
    add_json_option,
    add_schema_options,
    load_schema,
    print_json,
)
from yaffjit.errors import SchemaError


def add_warm(commands: Any) -> None:
    parser = add_command(
        commands,
        "warm",
        _warm,
        "compile ahead what is kept on disk, so that the first process doesn't wait for it",
        "yaffjit warm                                  the verifier, the transcoder and the like\n"
        "yaffjit warm ads.proto ads.Banner id price    and what reads these columns and their presence\n"
        "yaffjit warm --json                           a line of JSON for each",
    )
    parser.add_argument("schema", metavar="SCHEMA", nargs="?", help="a .proto file, or a FileDescriptorSet")
    parser.add_argument("message", metavar="MESSAGE", nargs="?", help="full name of the message type")
    parser.add_argument("paths", metavar="PATH", nargs="*", help="columns, in the order of the call")
    add_json_option(parser)
    add_schema_options(parser)


def _warm(parsed: argparse.Namespace) -> None:
    from yaffjit.warm import warm

    if parsed.schema is not None and not parsed.paths:
        raise SchemaError("warm: name the columns that will be read, after the schema and the message type")
    mp = None if parsed.schema is None else load_schema(parsed)[parsed.message].plan
    for made in warm(mp, tuple(parsed.paths)):
        if parsed.json:
            print_json(dataclasses.asdict(made), indent=None, flush=True)
            continue
        how = "there already, loaded" if made.found else "compiled"
        print(f"{made.what}: {how} in {made.seconds:.1f} s, in {made.folder}", flush=True)
