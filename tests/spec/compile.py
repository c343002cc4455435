"""Compiles `.proto` files with protoc alone, for tests that mustn't depend on the package's own loader."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool

# Where `yaff/proto/options.proto` is.
OPTIONS_PATH = Path(__file__).resolve().parents[2] / "yaffjit" / "schema"


def compile_protos(files: Iterable[Path], include: Iterable[Path] = ()) -> FileDescriptorSet:
    """The files and all that they import, dependencies first; RuntimeError with protoc's lines."""
    files = list(files)
    paths = [*include, *dict.fromkeys(file.parent for file in files), OPTIONS_PATH]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.bin"
        command = [sys.executable, "-m", "grpc_tools.protoc", "--include_imports", f"-o{out}"]
        done = subprocess.run(
            [*command, *(f"-I{path}" for path in paths), *map(str, files)], capture_output=True, text=True
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return FileDescriptorSet.FromString(out.read_bytes())


def pool_of(descriptor_set: FileDescriptorSet) -> DescriptorPool:
    pool = DescriptorPool()
    for file in descriptor_set.file:
        pool.Add(file)
    return pool
