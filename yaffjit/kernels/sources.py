"""Which version of ours machine code was made by: a hash of sources, for the keys of numba's caches.

numba's cache of a function looks at the function's own file only, so without this it would give code that
other files of ours made otherwise.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Traversable

# What decides about kernels and about getters.
KERNEL_PACKAGES = ("yaffjit.kernels", "yaffjit.plan")
GETTER_PACKAGES = ("yaffjit.jit", *KERNEL_PACKAGES)


@functools.cache
def hash_of_sources(packages: tuple[str, ...]) -> str:
    """A hash of the names and content of all modules of packages (16 hex digits)."""
    digest = hashlib.blake2b(digest_size=8)
    for package in packages:
        for name, content in sorted(_modules(importlib.resources.files(package), f"{package}/")):
            digest.update(f"{name} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()


def _modules(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.name.endswith(".py"):
            yield prefix + entry.name, entry.read_bytes()
        elif entry.is_dir() and entry.name != "__pycache__":
            yield from _modules(entry, f"{prefix}{entry.name}/")
