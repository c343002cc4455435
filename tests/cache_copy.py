"""Our kernels as they are on disk, copied to where a test changes them: compiling all takes a minute."""

from __future__ import annotations

import shutil
from pathlib import Path

import numba
import pytest

from yaffjit.kernels.cached import cached
from yaffjit.kernels.verify import _check_one


def copy_kernels(folder: Path) -> Path:
    """Copies what numba keeps of the kernels to where it looks if NUMBA_CACHE_DIR is ``folder``.

    Returns:
        The folder in it.
    """
    source = cached(_check_one).stats.cache_path
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numba.config, "CACHE_DIR", str(folder))
        copies = cached(_check_one).stats.cache_path
    shutil.copytree(source, copies, ignore=shutil.ignore_patterns("*.pyc*", "*.tmp*"), dirs_exist_ok=True)
    return Path(copies)
