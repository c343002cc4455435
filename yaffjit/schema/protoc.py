"""Compiles `.proto` text by the protoc that grpcio-tools carries, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path

from yaffjit.errors import SchemaError


def run_protoc(protos: list[Path], include: list[Path]) -> bytes:
    """The FileDescriptorSet of the files and all that they import.

    Args:
        protos: existing files. Names stay as they are given: a link's neighbours are those of the link.
        include: folders in which imports are found; a file outside of them adds its own folder.

    Raises:
        SchemaError: with protoc's own lines where a file doesn't compile.
    """
    for folder in include:
        if not folder.is_dir():
            raise SchemaError(f"no such include folder: {folder}")
    protos = [_absolute(proto) for proto in protos]
    roots = [_absolute(folder) for folder in include]
    own_folders = {proto.parent for proto in protos}
    outside = [folder for folder in own_folders if not any(folder.is_relative_to(root) for root in roots)]
    # protoc names a file by the first root that holds it: the deepest one gives the name that imports use.
    roots += sorted(outside, key=lambda folder: (-len(folder.parts), folder))
    with (
        resources.as_file(resources.files("yaffjit.schema")) as own,
        resources.as_file(resources.files("grpc_tools") / "_proto") as well_known,
        tempfile.TemporaryDirectory() as scratch,
    ):
        output = Path(scratch) / "schema.binpb"
        aliases = _aliases(roots, Path(scratch))
        command = [sys.executable, "-m", "grpc_tools.protoc", "--include_imports"]
        command.append(f"--descriptor_set_out={output}")
        command += [f"--proto_path={aliases.get(root, root)}" for root in roots]
        command += [f"--proto_path={own}", f"--proto_path={well_known}"]
        command += [str(_through(proto, aliases)) for proto in protos]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode != 0:
            lines = done.stderr.strip() or done.stdout.strip()
            for root, alias in aliases.items():
                lines = lines.replace(str(alias), str(root))
            raise SchemaError(f"{', '.join(map(str, protos))} doesn't compile:\n{lines}")
        return output.read_bytes()


def _absolute(path: Path) -> Path:
    absolute = os.path.abspath(path)
    try:
        absolute.encode()
    except UnicodeEncodeError:
        raise SchemaError(f"protoc takes only paths in UTF-8, which {absolute!r} isn't") from None
    return Path(absolute)


def _aliases(roots: list[Path], scratch: Path) -> dict[Path, Path]:
    """Links to the folders that have a ":" in their path, at which protoc would split it."""
    aliases = {}
    for number, root in enumerate(roots):
        if os.pathsep in str(root):
            aliases[root] = scratch / f"root{number}"
            aliases[root].symlink_to(root, target_is_directory=True)
    return aliases


def _through(proto: Path, aliases: dict[Path, Path]) -> Path:
    for root, alias in aliases.items():
        if proto.is_relative_to(root):
            return alias / proto.relative_to(root)
    return proto
