"""Turns whatever describes a schema into descriptors: `.proto` files, descriptor sets, generated code."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Union

from yaffjit.errors import SchemaError
from yaffjit.schema.options import options_file
from yaffjit.schema.protoc import run_protoc

PathLike = Union[str, "os.PathLike[str]"]

# Files that protoc and the protobuf runtime carry themselves, so that a set may leave them out.
_WELL_KNOWN = (
    "any",
    "api",
    "descriptor",
    "duration",
    "empty",
    "field_mask",
    "source_context",
    "struct",
    "timestamp",
    "type",
    "wrappers",
)


@dataclass(frozen=True)
class Descriptors:
    """``descriptor_set``: serialized FileDescriptorSet, dependencies first; ``pool`` holds the same files."""

    descriptor_set: bytes
    pool: Any


def read_source(source: Any, include: Sequence[PathLike]) -> Descriptors:
    """Descriptors of one source, or of several of one sort.

    Raises:
        SchemaError: a file is missing or doesn't compile (protoc's own lines), a set isn't one or lacks a
            file, or the source is of no known sort.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _from_sets({"the source": bytes(source)})
    sources = list(source) if isinstance(source, (list, tuple, set, frozenset)) else [source]
    if not sources:
        raise SchemaError("a schema needs at least one source")
    if all(isinstance(item, (str, os.PathLike)) for item in sources):
        return _from_paths(sources, _folders(include))
    return _from_files([_file_of(item) for item in sources])


def _folders(include: Any) -> list[PathLike]:
    folders = [include] if isinstance(include, (str, os.PathLike)) else list(include)
    for folder in folders:
        if not isinstance(folder, (str, os.PathLike)):
            raise TypeError(f"include takes folders, not {type(folder).__name__}")
    return folders


def _file_of(source: Any) -> Any:
    """The FileDescriptor behind a generated module, message class, message or descriptor."""
    if type(source).__name__ == "FileDescriptor":
        return source
    descriptor = getattr(source, "DESCRIPTOR", source)
    if isinstance(source, ModuleType) and descriptor is not source:
        return descriptor
    file = getattr(descriptor, "file", None)
    if file is None or not hasattr(file, "serialized_pb"):
        raise SchemaError(
            f"can't load a schema from {type(source).__name__}: give .proto paths, a FileDescriptorSet "
            "(path or bytes), a generated module, a message class or a descriptor"
        )
    return file


def _from_files(files: Iterable[Any]) -> Descriptors:
    """Descriptors of generated code: its own pool, so that messages of its classes fit."""
    from google.protobuf import descriptor_pb2

    files = list(files)
    pools = {id(file.pool): file.pool for file in files}
    if len(pools) > 1:
        raise SchemaError("the sources belong to different descriptor pools: load them one by one")
    result = descriptor_pb2.FileDescriptorSet()
    for file in dependencies_first(files, lambda file: file.name, lambda file: file.dependencies):
        result.file.add().ParseFromString(file.serialized_pb)
    return Descriptors(result.SerializeToString(), files[0].pool)


def _from_paths(paths: list[PathLike], include: Sequence[PathLike]) -> Descriptors:
    protos: list[Path] = []
    sets: dict[str, bytes] = {}
    for name in paths:
        path = Path(name)
        try:
            found = os.fspath(name) != "" and path.is_file()
            is_proto = path.suffix == ".proto"
            content = path.read_bytes() if found and not is_proto else b""
        except (OSError, ValueError) as error:
            raise SchemaError(f"{os.fspath(name)!r} can't be read: {error}") from None
        if not found:
            what = "a folder, not a file" if os.fspath(name) != "" and path.is_dir() else "no such file"
            raise SchemaError(f"{what}: {os.fspath(name)!r}")
        if is_proto:
            protos.append(path)
        else:
            sets[os.fspath(name)] = content
    if protos:
        sets["protoc's output"] = run_protoc(protos, [Path(item) for item in include])
    return _from_sets(sets)


def _from_sets(sets: dict[str, bytes]) -> Descriptors:
    """Descriptors of serialized sets, in a new pool of their own."""
    from google.protobuf import descriptor_pb2, descriptor_pool
    from google.protobuf.message import DecodeError

    files: dict[str, Any] = {}
    for name, data in sets.items():
        try:
            parsed = descriptor_pb2.FileDescriptorSet.FromString(data)
        except DecodeError as error:
            raise SchemaError(f"{name} is neither a .proto nor a FileDescriptorSet: {error}") from None
        if not parsed.file or not all(file.name for file in parsed.file):
            raise SchemaError(f"{name} is neither a .proto nor a FileDescriptorSet: it holds no named file")
        for file in parsed.file:
            known = files.setdefault(file.name, file)
            if known.SerializeToString(deterministic=True) != file.SerializeToString(deterministic=True):
                raise SchemaError(f"two different files are named {file.name}")
    pool: Any = descriptor_pool.DescriptorPool()
    result = descriptor_pb2.FileDescriptorSet()
    for file in _files_first(files):
        try:
            pool.AddSerializedFile(file.SerializeToString())
        except TypeError as error:
            raise SchemaError(f"{file.name}: {error}") from None
        result.file.append(file)
    return Descriptors(result.SerializeToString(), pool)


def _files_first(files: dict[str, Any]) -> list[Any]:
    """FileDescriptorProtos, each behind all that it imports; well-known ones are added where they lack."""

    def imports(file: Any) -> list[Any]:
        found = []
        for name in file.dependency:
            imported = files.get(name) or _well_known_file(name)
            if imported is None:
                raise SchemaError(f"{file.name} imports {name}, which the descriptor set doesn't hold")
            found.append(imported)
        return found

    return dependencies_first(files.values(), lambda file: file.name, imports)


def dependencies_first(
    roots: Iterable[Any], name_of: Callable[[Any], str], imports_of: Callable[[Any], Iterable[Any]]
) -> list[Any]:
    """All that the roots import, and themselves, each behind its own imports.

    Raises:
        SchemaError: some import each other.
    """
    ordered: dict[str, Any] = {}
    for root in roots:
        # The files being visited, outermost first, each with the imports that are left to visit.
        path: dict[str, tuple[Any, Iterator[Any]]] = {}
        if name_of(root) not in ordered:
            path[name_of(root)] = (root, iter(imports_of(root)))
        while path:
            name, (file, rest) = next(reversed(path.items()))
            imported = next(rest, None)
            if imported is None:
                del path[name]
                ordered[name] = file
            elif name_of(imported) in path:
                raise SchemaError(f"files import each other: {' -> '.join([*path, name_of(imported)])}")
            elif name_of(imported) not in ordered:
                path[name_of(imported)] = (imported, iter(imports_of(imported)))
    return list(ordered.values())


def _well_known_file(name: str) -> Any:
    """The FileDescriptorProto of a file that the runtime or this package carries, else None."""
    from google.protobuf import descriptor_pb2

    if name == "yaff/proto/options.proto":
        return descriptor_pb2.FileDescriptorProto.FromString(options_file())
    stem = name.removeprefix("google/protobuf/").removesuffix(".proto")
    if stem not in _WELL_KNOWN or name != f"google/protobuf/{stem}.proto":
        return None
    from importlib import import_module

    module = import_module(f"google.protobuf.{stem}_pb2")
    return descriptor_pb2.FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
