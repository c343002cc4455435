"""Turns whatever describes a schema into descriptors: `.proto` files, descriptor sets, generated code."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any, Union

from yaffjit.errors import SchemaError
from yaffjit.schema.options import options_file

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
        return _from_sets([bytes(source)])
    sources = list(source) if isinstance(source, (list, tuple, set, frozenset)) else [source]
    if not sources:
        raise SchemaError("a schema needs at least one source")
    if all(isinstance(item, (str, os.PathLike)) for item in sources):
        return _from_paths([Path(item) for item in sources], include)
    return _from_files([_file_of(item) for item in sources])


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

    ordered: dict[str, Any] = {}

    def visit(file: Any) -> None:
        if file.name not in ordered:
            for dependency in file.dependencies:
                visit(dependency)
            ordered[file.name] = file

    pools = []
    for file in files:
        visit(file)
        if file.pool not in pools:
            pools.append(file.pool)
    if len(pools) > 1:
        raise SchemaError("the sources belong to different descriptor pools: load them one by one")
    result = descriptor_pb2.FileDescriptorSet()
    for file in ordered.values():
        result.file.add().ParseFromString(file.serialized_pb)
    return Descriptors(result.SerializeToString(), pools[0])


def _from_paths(paths: list[Path], include: Sequence[PathLike]) -> Descriptors:
    for path in paths:
        if not path.is_file():
            raise SchemaError(f"no such file: {path}")
    protos = [path for path in paths if path.suffix == ".proto"]
    sets = [path.read_bytes() for path in paths if path.suffix != ".proto"]
    if protos:
        sets.append(_run_protoc(protos, [Path(item) for item in include]))
    return _from_sets(sets)


def _run_protoc(protos: list[Path], include: list[Path]) -> bytes:
    """The FileDescriptorSet that protoc makes of the files, imports included."""
    for folder in include:
        if not folder.is_dir():
            raise SchemaError(f"no such include folder: {folder}")
    roots = [folder.resolve() for folder in include]
    own_folders = {proto.resolve().parent for proto in protos}
    outside = [folder for folder in own_folders if not any(folder.is_relative_to(root) for root in roots)]
    # protoc names a file by the first root that holds it: the deepest one gives the name that imports use.
    roots += sorted(outside, key=lambda folder: (-len(folder.parts), folder))
    with (
        resources.as_file(resources.files("yaffjit.schema")) as own,
        resources.as_file(resources.files("grpc_tools") / "_proto") as well_known,
        tempfile.TemporaryDirectory() as scratch,
    ):
        output = Path(scratch) / "schema.binpb"
        command = [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            "--include_imports",
            f"--descriptor_set_out={output}",
        ]
        command += [f"--proto_path={root}" for root in (*roots, own, well_known)]
        command += [str(proto.resolve()) for proto in protos]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode != 0:
            names = ", ".join(map(str, protos))
            raise SchemaError(f"{names} doesn't compile:\n{done.stderr.strip() or done.stdout.strip()}")
        return output.read_bytes()


def _from_sets(sets: list[bytes]) -> Descriptors:
    """Descriptors of serialized sets, in a new pool of their own."""
    from google.protobuf import descriptor_pb2, descriptor_pool
    from google.protobuf.message import DecodeError

    files: dict[str, Any] = {}
    for data in sets:
        try:
            parsed = descriptor_pb2.FileDescriptorSet.FromString(data)
        except DecodeError as error:
            raise SchemaError(f"not a FileDescriptorSet: {error}") from None
        if not parsed.file or not all(file.name for file in parsed.file):
            raise SchemaError("not a FileDescriptorSet: it holds no named file")
        for file in parsed.file:
            known = files.setdefault(file.name, file)
            if known.SerializeToString(deterministic=True) != file.SerializeToString(deterministic=True):
                raise SchemaError(f"two different files are named {file.name}")
    pool: Any = descriptor_pool.DescriptorPool()
    result = descriptor_pb2.FileDescriptorSet()
    for file in _dependencies_first(files):
        try:
            pool.AddSerializedFile(file.SerializeToString())
        except TypeError as error:
            raise SchemaError(f"{file.name}: {error}") from None
        result.file.append(file)
    return Descriptors(result.SerializeToString(), pool)


def _dependencies_first(files: dict[str, Any]) -> list[Any]:
    ordered: dict[str, Any] = {}
    path: list[str] = []

    def visit(name: str) -> None:
        if name in ordered:
            return
        if name in path:
            raise SchemaError(f"files import each other: {' -> '.join([*path, name])}")
        file = files.get(name) or _well_known_file(name)
        if file is None:
            raise SchemaError(f"{path[-1]} imports {name}, which the descriptor set doesn't hold")
        path.append(name)
        for dependency in file.dependency:
            visit(dependency)
        path.pop()
        ordered[name] = file

    for name in files:
        visit(name)
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
