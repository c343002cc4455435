"""Where a command takes a schema from: files, indexes, and modules of generated code."""

from __future__ import annotations

import argparse
import importlib
import os
from typing import Any

SOURCES = "a .proto file, a FileDescriptorSet, an index, or the name of a generated module, as ads_pb2"


def schema_source(text: str) -> Any:
    """An argument that names a schema: a path, or a generated module where there is no such file."""
    if not text:
        raise argparse.ArgumentTypeError("a path can't be empty")
    looks_generated = all(part.isidentifier() for part in text.split(".")) and text.endswith("_pb2")
    if looks_generated and not os.path.exists(text):
        try:
            return importlib.import_module(text)
        except ImportError as error:
            raise argparse.ArgumentTypeError(f"neither a file nor a module: {text!r} ({error})") from None
    return text
