"""Compile what numba keeps on disk before somebody waits for it, as when an image is built."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yaffjit.arrays import array_address
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
    """Compile the verifier and the transcoder; what writes floats, splits files, codes universal documents,
    opens views of protobuf bytes, and reads columns.

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
    yield _frames()
    yield _transcoder()
    yield _universal()
    yield _views()
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


def _frames() -> Warmed:
    import numpy as np

    started = time.perf_counter()
    from yaffjit.kernels.frames import split

    words = np.zeros(2, np.int64)
    address = array_address(words)
    split(*(0, 0, address, 0, 0, 0, 0, 0), *(address, address, 0, address))  # of no bytes
    return _made("what splits files of messages", [split], started)


def _transcoder() -> Warmed:
    """Both ways, and the check alone."""
    started = time.perf_counter()
    from yaffjit.kernels import serialize, transcode

    kernels = [transcode.Kernel().run, transcode.ScanKernel().scan_rows, serialize.Kernel().run]
    return _made("the transcoder", kernels, started)


def _universal() -> Warmed:
    started = time.perf_counter()
    from yaffjit.kernels import universal_encode, universal_fill
    from yaffjit.universal import fast_get, view
    from yaffjit.universal.compiled import loaded

    columns = vars(universal_fill.Kernels()), vars(universal_encode.Kernels())
    loaded.load()
    view(b"\x21")
    look = [] if loaded.looker is None else [loaded.looker.kernel, *fast_get.kernels]
    codec = () if loaded.codec is None else loaded.codec.kernels
    kernels = [*codec, *look, *columns[0].values(), *columns[1].values()]
    return _made("what writes and reads universal documents", kernels, started)


def _views() -> Warmed:
    started = time.perf_counter()
    from yaffjit.kernels.wire_index import IndexKernel

    return _made("what opens views of protobuf bytes", [IndexKernel().index_fields], started)


def _columns(mp: MessagePlan, paths: tuple[str, ...]) -> list[Callable[[], Warmed]]:
    """What compiles the loops of `columns` and of ``present``; the paths are checked now."""
    from yaffjit.jit.columns.paths import Paths
    from yaffjit.plan.columns import expand

    expanded = tuple(dict.fromkeys(one for path in paths for one in expand(mp, path)))
    together = [Paths(mp, expanded)]
    alone = [
        Paths(mp, (), (found.column.path,)) for found in together[0].gathering.columns if not found.loops
    ]
    named = f"{', '.join(paths)} of {mp.full_name}"
    runs = [lambda: _loops(f"columns {named}", mp, together)]
    if alone:
        runs.append(lambda: _loops(f"presence of {named}", mp, alone))
    return runs


def _loops(what: str, mp: MessagePlan, wanted: list[Any]) -> Warmed:
    import numpy as np

    from yaffjit.jit.columns.loops import fill, measure
    from yaffjit.rows import records

    started = time.perf_counter()
    none = records(mp, (b"", np.zeros(1, np.int64)))  # in the form of an index
    several = any(not paths.gathering.is_fixed for paths in wanted)
    loops = [measure, fill] if several else [measure]
    before = sum(sum(loop.stats.cache_misses.values()) for loop in loops)
    for paths in wanted:
        table = np.zeros(len(paths.gathering.slots), np.int64)
        for loop in loops[: 1 if paths.gathering.is_fixed else 2]:
            loop(none, paths, table, 0, 0)
    return _made(what, loops, started, before)


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
