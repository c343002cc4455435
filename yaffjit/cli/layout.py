"""`yaffjit layout`: where the fields of messages lie."""

from __future__ import annotations

import argparse
from typing import Any

from yaffjit.cli.options import add_command, add_schema_options, load_schema, path_text
from yaffjit.errors import SchemaError


def add_layout(commands: Any) -> None:
    parser = add_command(
        commands,
        "layout",
        _layout,
        "print where each field of a message lies under YaFF, what that costs, and what it can't hold",
        "yaffjit layout ads.proto                  all message types of the schema\n"
        "yaffjit layout ads.proto ads.Banner       the fields of one",
    )
    parser.add_argument(
        "schema", type=path_text, metavar="SCHEMA", help="a .proto file, or a file with a FileDescriptorSet"
    )
    parser.add_argument("message", metavar="MESSAGE", nargs="?", help="full name of a message type")
    add_schema_options(parser)


def _layout(parsed: argparse.Namespace) -> None:
    from yaffjit.render import layout_text, schema_text

    schema = load_schema(parsed)
    if parsed.message is not None:
        print(layout_text(schema[parsed.message].plan))
        return
    unsupported = schema.unsupported
    plans = (
        (name, SchemaError(unsupported[name]) if name in unsupported else message_type.plan)
        for name, message_type in schema.messages.items()
    )
    print(schema_text(schema.definition, plans))
