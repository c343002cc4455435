"""Schemas of any origin: what `load_schema` takes, a `Schema` or an index, or the path of an index."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from yaffjit.schema import SchemaDef, load

_ARROW_FILE_MAGIC = b"ARROW1"


@dataclass(frozen=True, slots=True)
class Source:
    """A schema, and the message type of the index that it comes from, else None."""

    schema: SchemaDef
    root: str | None


def definition_of(source: Any, include: Sequence[Any] = (), slice: str | None = None) -> Source:
    """The schema behind a source.

    Raises:
        SchemaError: it can't be loaded.
        IndexFileError: it is an index that can't be opened.
    """
    if isinstance(source, Source):
        return source
    if isinstance(source, SchemaDef):
        return Source(_read_by(source, slice), None)
    if isinstance(source, (str, os.PathLike)) and is_index(source):
        from yaffjit.index import open_packed

        mp = open_packed(source).plan
        return Source(_read_by(mp.plan.schema, slice), mp.full_name)
    definition = getattr(source, "definition", None)
    if isinstance(definition, SchemaDef):  # a Schema
        return Source(_read_by(definition, slice), None)
    plan = getattr(source, "plan", None)
    if plan is not None:  # an index or records, or a message type
        return Source(_read_by(plan.plan.schema, slice), plan.full_name)
    return Source(load(source, include, slice), None)


def is_index(path: Any) -> bool:
    """Whether a path leads to an index: an Arrow file, or a directory."""
    try:
        if os.path.isdir(path):
            return os.path.exists(os.path.join(path, "manifest.json"))
        with open(path, "rb") as file:
            return file.read(len(_ARROW_FILE_MAGIC)) == _ARROW_FILE_MAGIC
    except (OSError, ValueError):
        return False  # whoever loads it says why


def _read_by(schema: SchemaDef, slice: str | None) -> SchemaDef:
    return schema if slice is None or slice == schema.slice else load(schema.descriptor_set, slice=slice)
