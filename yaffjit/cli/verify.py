"""`yaffjit verify`: indexes and single messages are checked."""

from __future__ import annotations

import argparse
from typing import Any

import yaffjit as yj
from yaffjit.cli.options import add_command, add_schema_options, load_schema, path_text
from yaffjit.errors import IndexFileError

ARROW_FILE_MAGIC = b"ARROW1"


def add_verify(commands: Any) -> None:
    parser = add_command(
        commands,
        "verify",
        _verify,
        "check an index file, or a file that holds one YaFF message",
        "yaffjit verify banners.arrow\nyaffjit verify banner.yaff --schema ads.proto --message ads.Banner",
    )
    parser.add_argument(
        "file", type=path_text, metavar="FILE", help="an index file, or the bytes of one message"
    )
    parser.add_argument("--schema", type=path_text, metavar="SCHEMA", help="for a single message: its schema")
    parser.add_argument("--message", metavar="MESSAGE", help="for a single message: full name of its type")
    add_schema_options(parser)


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
    load_schema(parsed)[parsed.message].verify(buf)
    print(f"{parsed.file}: a well-formed {parsed.message} of {len(buf):,} bytes")
