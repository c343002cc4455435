"""Makes `View.get` a method of C, once the compiled code is loaded."""

from __future__ import annotations

import ctypes
import struct
import sys
import threading
from typing import Any

import numpy as np

from yaffjit.arrays import array_address
from yaffjit.forks import renew_in_forks
from yaffjit.universal.compiled import Looker
from yaffjit.universal.paths import known_paths, path_of

# For ever, as the method is. There's one of each in a process, but each `Looker` is kept.
_words: list[Any] = []
kernels: list[Any] = []
_known: list[Any] = []
_lock = threading.Lock()
renew_in_forks(sys.modules[__name__], "_lock", threading.Lock)


def install(looker: Looker, sample: Any, classes: tuple[Any, ...]) -> None:
    """Make the method of classes of views do at once what `Looker.find` would, for views that use this one.

    It stays as it is where an interpreter keeps the slots of views elsewhere.

    Args:
        sample: a view.
        classes: those that have the method; of the first one all are subclasses.
    """
    from yaffjit.kernels import objects, universal_get

    with _lock:
        if not _words:
            _words.append(np.zeros(universal_get.STATE_WORDS, np.int64))
        state = _words[0]
        if not kernels:
            if objects.layout() == objects.UNKNOWN or not _is_laid_out(sample):
                return
            in_python = classes[0].get
            known = (known_paths, looker, in_python, classes[0]._part, tuple)
            state[: universal_get.PATHS] = looker.words[: universal_get.PATHS]
            state[universal_get.PATHS :] = [id(one) for one in known]
            _known.extend(known)
            kernels.append(universal_get.compile_get(array_address(state)))
            text = f"{in_python.__name__}($self, path, default=None)\n--\n\n{in_python.__doc__}"
            method = objects.make_method(classes[0], in_python.__name__, kernels[0], text)
            for cls in classes:
                cls.get = method
        _known.append(looker)
        state[universal_get.LOOKER] = id(looker)


def _is_laid_out(view: Any) -> bool:
    """Whether a view's slots, and what bytes have, are where the kernel looks for them."""
    from yaffjit.kernels.objects import SIZE
    from yaffjit.kernels.universal_get import BYTES_HEAD, DATA, FLAGS, LOOK, WORD

    raw = path_of("a.b")
    there = ctypes.string_at(id(raw) + SIZE, BYTES_HEAD - SIZE + len(raw))
    if there[:8] != struct.pack("<q", len(raw)) or there[BYTES_HEAD - SIZE :] != raw:
        return False

    if type(view).__basicsize__ < WORD + 8:
        return False
    slots = {DATA: view._data, FLAGS: view._flags, LOOK: view._look, WORD: view._word}
    return all(ctypes.string_at(id(view) + at, 8) == struct.pack("<q", id(one)) for at, one in slots.items())
