"""Compile what numba keeps on disk before somebody waits for it, as when an image is built."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yaffjit.errors import YaffjitError

if TYPE_CHECKING:
    from yaffjit.plan import MessagePlan


@dataclass(frozen=True)
class Warmed:
    """Machine code that is on disk now.

    Attributes:
        what: it does.
        found: it was there already.
        seconds: that it took to compile or to load.
        folder: where it is.
    """

    what: str
    found: bool
    seconds: float
    folder: str


def warm(mp: MessagePlan | None = None, paths: tuple[str, ...] = ()) -> Iterator[Warmed]:
    """Compile the verifier, what writes floats in jitted code and, for a message type, what reads columns.

    Args:
        mp: the message type.
        paths: the columns that will be read in one call, in their order, and the presence of each; none for
            what all message types need.

    Raises:
        YaffjitError: numba can't keep machine code here.
        SchemaError: a path isn't one of a column.
    """
    from numba import config

    if config.DISABLE_JIT:
        raise YaffjitError("nothing is compiled where NUMBA_DISABLE_JIT is set")
    wanted = _columns(mp, tuple(dict.fromkeys(paths))) if mp is not None and paths else ()
    yield _verifier()
    yield _floats()
    for run in wanted:
        yield run()


def _verifier() -> Warmed:
    from yaffjit.kernels.verify import Kernel

    started = time.perf_counter()
    kernel = Kernel()
    return _made("the verifier", [kernel.check_one, kernel.check_rows], started)


def _floats() -> Warmed:
    started = time.perf_counter()
    from yaffjit.jit.floats import text_of
    from yaffjit.kernels.decimal import write_float

    text_of(0.5)
    return _made("the text of floats", [text_of, write_float], started)


def _columns(mp: MessagePlan, paths: tuple[str, ...]) -> list[Callable[[], Warmed]]:
    """What compiles the loops of `columns` and of ``present``; the paths are checked now."""
    from yaffjit.jit.paths import Paths, resolve

    together = [Paths(mp, paths)]
    # As `Columns.present` reads them: without presence of its own a field is set where it isn't zero.
    alone = [
        Paths(mp, (), (path,)) if resolve(mp, path)[-1][1].explicit else Paths(mp, (path,)) for path in paths
    ]
    named = f"{', '.join(paths)} of {mp.full_name}"
    return [
        lambda: _loops(f"columns {named}", mp, together),
        lambda: _loops(f"presence of {named}", mp, alone),
    ]


def _loops(what: str, mp: MessagePlan, wanted: list[Any]) -> Warmed:
    import numpy as np

    from yaffjit.jit.gather import gather
    from yaffjit.rows import records

    started = time.perf_counter()
    before = sum(gather.stats.cache_misses.values())
    for paths in wanted:
        gather(records(mp, []), paths, tuple(np.empty(0, dtype) for dtype in paths.dtypes), 0, 0)
    return _made(what, [gather], started, before)


def _made(what: str, functions: list[Any], started: float, misses_before: int = 0) -> Warmed:
    seconds = time.perf_counter() - started
    misses = sum(sum(function.stats.cache_misses.values()) for function in functions)
    for function in functions:
        folder = function.stats.cache_path
        if folder is None or not any(Path(folder).glob(f"*{function.py_func.__name__}-*.nbc")):
            raise YaffjitError(_no_cache(function))
    return Warmed(what, misses == misses_before, seconds, str(functions[0].stats.cache_path))


def _no_cache(function: Any) -> str:
    beside = Path(function.py_func.__code__.co_filename).parent
    return (
        f"numba can't keep machine code: neither in {beside} nor in the user's folder for caches can files "
        "be written; set NUMBA_CACHE_DIR to a folder where they can"
    )
