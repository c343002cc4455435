"""`yaffjit verify`: indexes and single messages are checked."""

from __future__ import annotations

import argparse
import os
from typing import Any

import yaffjit as yj
from yaffjit.cli.options import (
    add_command,
    add_json_option,
    add_schema_options,
    load_schema,
    path_text,
    print_json,
)
from yaffjit.errors import IndexFileError

ARROW_FILE_MAGIC = b"ARROW1"


def add_verify(commands: Any) -> None:
    parser = add_command(
        commands,
        "verify",
        _verify,
        "check an index, or a file that holds one YaFF message",
        "yaffjit verify banners.arrow\nyaffjit verify banners --progress             a directory of parts\n"
        "yaffjit verify banner.yaff --schema ads.proto --message ads.Banner\n"
        "yaffjit verify banners.arrow --json",
    )
    parser.add_argument(
        "path", type=path_text, metavar="PATH", help="an index, or a file with the bytes of one message"
    )
    parser.add_argument("--schema", type=path_text, metavar="SCHEMA", help="for a single message: its schema")
    parser.add_argument("--message", metavar="MESSAGE", help="for a single message: full name of its type")
    parser.add_argument(
        "--progress", action="store_true", help="a bar on standard error, even if it's no terminal"
    )
    add_json_option(parser)
    add_schema_options(parser)


def _verify(parsed: argparse.Namespace) -> None:
    buf = None if os.path.isdir(parsed.path) else _message_bytes(parsed)
    if buf is None and (packed := yj.open_packed(parsed.path)).compression:
        packed.verify(True if parsed.progress else None)
        name, how = packed.plan.full_name, packed.compression
        rows, parts = len(packed), 0
    elif buf is None:
        index = yj.open_index(parsed.path, progress=True if parsed.progress else None)
        name, how = index.message_type.full_name, ""
        rows, parts = len(index), len(index.parts)
    else:
        load_schema(parsed)[parsed.message].verify(buf)
        name, how, rows, parts = parsed.message, "", 1, 0
    if parsed.json:
        nbytes = {} if buf is None else {"nbytes": len(buf)}
        found = {"path": parsed.path, "well_formed": True, "message": name, "rows": rows, "compression": how}
        print_json(found | nbytes)
    elif buf is not None:
        print(f"{parsed.path}: a well-formed {name} of {len(buf):,} bytes")
    else:
        how = f", compressed ({how})" if how else f" in {parts} parts" if parts > 1 else ""
        print(f"{parsed.path}: {rows:,} {name} messages{how}, all well-formed")


def _message_bytes(parsed: argparse.Namespace) -> bytes | None:
    """The bytes of a file that isn't an index."""
    from yaffjit.index.files import open_regular

    with open_regular(parsed.path) as file:
        if file.read(len(ARROW_FILE_MAGIC)) == ARROW_FILE_MAGIC:
            return None
        if parsed.schema is None or parsed.message is None:
            raise IndexFileError(
                f"{parsed.path} isn't an index file; if it holds one message, give --schema and --message"
            )
        file.seek(0)
        return file.read()
