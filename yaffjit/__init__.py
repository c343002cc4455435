"""Zero-copy protobuf for numba: schemas become jitted getters over bytes that are read in place.

Names are imported when they are first used, so that ``import yaffjit`` itself costs nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "load_schema": "yaffjit.api",
    "Schema": "yaffjit.api",
    "MessageType": "yaffjit.message_type",
    "records": "yaffjit.api",
    "records_unchecked": "yaffjit.api",
    "concat": "yaffjit.rows",
    "compare_schemas": "yaffjit.evolve",
    "SchemaComparison": "yaffjit.evolve",
    "Change": "yaffjit.evolve",
    "Verdict": "yaffjit.evolve",
    "build_index": "yaffjit.index",
    "append_index": "yaffjit.index",
    "adopt_index": "yaffjit.index",
    "build_keys": "yaffjit.index",
    "open_index": "yaffjit.api",
    "open_index_unchecked": "yaffjit.api",
    "open_packed": "yaffjit.api",
    "unpack_index": "yaffjit.index",
    "read_delimited": "yaffjit.build.delimited",
    "write_delimited": "yaffjit.build.delimited",
    "read_tfrecord": "yaffjit.build.readers",
    "read_length_prefixed": "yaffjit.build.readers",
    "read_files": "yaffjit.build.readers",
    "read_field": "yaffjit.build.envelope",
    "read_arrow": "yaffjit.build.columnar",
    "read_parquet": "yaffjit.build.columnar",
    "Payloads": "yaffjit.build.payloads",
    "Records": "yaffjit.rows",
    "Columns": "yaffjit.columns",
    "feature": "yaffjit.mapping",
    "Feature": "yaffjit.mapping",
    "Index": "yaffjit.index",
    "IndexPart": "yaffjit.index",
    "BuiltIndex": "yaffjit.index",
    "PackedIndex": "yaffjit.index",
    "View": "yaffjit.view",
    "to_dict": "yaffjit.view",
    "to_json": "yaffjit.view",
    "unknown_fields": "yaffjit.view",
    "UnknownField": "yaffjit.view",
    "YaffjitError": "yaffjit.errors",
    "SchemaError": "yaffjit.errors",
    "EncodeError": "yaffjit.errors",
    "BufferTooSmallError": "yaffjit.errors",
    "DecodeError": "yaffjit.errors",
    "VerifyError": "yaffjit.errors",
    "IndexFileError": "yaffjit.errors",
    "JsonError": "yaffjit.errors",
    "RowError": "yaffjit.errors",
    "NumberError": "yaffjit.errors",
    "CompileError": "yaffjit.errors",
    "EscapeError": "yaffjit.errors",
}

# Modules that are imported when they are first used.
_MODULES = {
    "universal": "yaffjit.universal",
    "batches": "yaffjit.interop.batches",
    "ray": "yaffjit.interop.ray",
    "torch": "yaffjit.interop.torch",
}

__all__ = [
    "BufferTooSmallError",
    "BuiltIndex",
    "Change",
    "Columns",
    "CompileError",
    "DecodeError",
    "EncodeError",
    "EscapeError",
    "Feature",
    "Index",
    "IndexFileError",
    "IndexPart",
    "JsonError",
    "MessageType",
    "NumberError",
    "PackedIndex",
    "Payloads",
    "Records",
    "RowError",
    "Schema",
    "SchemaComparison",
    "SchemaError",
    "UnknownField",
    "Verdict",
    "VerifyError",
    "View",
    "YaffjitError",
    "adopt_index",
    "append_index",
    "build_index",
    "build_keys",
    "compare_schemas",
    "concat",
    "feature",
    "load_schema",
    "open_index",
    "open_index_unchecked",
    "open_packed",
    "read_arrow",
    "read_delimited",
    "read_field",
    "read_files",
    "read_length_prefixed",
    "read_parquet",
    "read_tfrecord",
    "records",
    "records_unchecked",
    "to_dict",
    "to_json",
    "unknown_fields",
    "unpack_index",
    "write_delimited",
]

if TYPE_CHECKING:
    from yaffjit import universal as universal
    from yaffjit.api import (
        Schema,
        load_schema,
        open_index,
        open_index_unchecked,
        open_packed,
        records,
        records_unchecked,
    )
    from yaffjit.build.columnar import read_arrow, read_parquet
    from yaffjit.build.delimited import read_delimited, write_delimited
    from yaffjit.build.envelope import read_field
    from yaffjit.build.payloads import Payloads
    from yaffjit.build.readers import read_files, read_length_prefixed, read_tfrecord
    from yaffjit.columns import Columns
    from yaffjit.errors import (
        BufferTooSmallError,
        CompileError,
        DecodeError,
        EncodeError,
        EscapeError,
        IndexFileError,
        JsonError,
        NumberError,
        RowError,
        SchemaError,
        VerifyError,
        YaffjitError,
    )
    from yaffjit.evolve import Change, SchemaComparison, Verdict, compare_schemas
    from yaffjit.index import (
        BuiltIndex,
        Index,
        IndexPart,
        PackedIndex,
        adopt_index,
        append_index,
        build_index,
        build_keys,
        unpack_index,
    )
    from yaffjit.mapping import Feature, feature
    from yaffjit.message_type import MessageType
    from yaffjit.rows import Records, concat
    from yaffjit.view import UnknownField, View, to_dict, to_json, unknown_fields


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def _init_numba() -> None:
    """What numba calls when it first compiles something; free for those who don't use yaffjit."""
    api = sys.modules.get("yaffjit.api")
    if api is not None:
        api.tell_numba()


def __dir__() -> list[str]:
    return [*__all__, *_MODULES, "__version__"]
