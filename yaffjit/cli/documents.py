"""What `yaffjit show --universal` prints: documents as JSON, or as messages of a schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import yaffjit as yj
from yaffjit.terminal import is_printable
from yaffjit.universal import load_each


def document_lines(path: str) -> Iterator[str]:
    """Each document of a file as a line of JSON. NaN and infinities are as Python's JSON has them."""
    with open(path, "rb") as file:
        for value in load_each(file):
            text = json.dumps(value, ensure_ascii=False)
            yield text if is_printable(text) else json.dumps(value)


def messages(path: str, message_type: yj.MessageType, print_one: Callable[[Any], None]) -> None:
    """Print each document of a file as a message, by protobuf's JSON mapping."""
    from yaffjit.universal.payloads import DocumentPayloads

    pool = message_type.schema.definition.pool
    for data in DocumentPayloads(path, message_type.message_class, pool):
        print_one(message_type.view_protobuf(data))
