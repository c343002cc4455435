"""The compiled codec as functions of Python, once it's loaded; small work before that is done without it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from yaffjit.arrays import array_address
from yaffjit.errors import YaffjitError
from yaffjit.forks import renew_in_forks
from yaffjit.universal.codes import ORDERS, STRINGS
from yaffjit.universal.lower import lower
from yaffjit.universal.plain_read import UNLIMITED, ReadOptions
from yaffjit.universal.plain_write import WriteOptions
from yaffjit.universal.refusals import refuse_bytes, refuse_value

# How many documents and bytes of a process are done before the compiled code is loaded: some 20 ms.
PLAIN_DOCUMENTS = 500
PLAIN_BYTES = 65536
# What an item of a container may become, to tell before it's written.
_ITEM_NBYTES = 16

# The flag that nothing may follow a document, as kernels.universal_read has it; that isn't loaded for this.
WHOLE = 32
PART = 64
USED_SHIFT = 20


class Codec:
    """Writes and reads documents by compiled code.

    Making it takes seconds, or less than half of one where the code is in numba's cache on disk.

    Attributes:
        write: (object, flags, function that lowers) -> bytes.
        read: (buffer, word of the start, flags, max_items) -> value, or value and position unless the flags
            say `WHOLE`.
    """

    def __init__(self, layout: int | None = None) -> None:
        from yaffjit.kernels import objects, universal_made, universal_put, universal_read, universal_write

        missing = objects.missing_symbols()
        if missing:  # machine code that names them would end the process
            raise YaffjitError(f"this interpreter lacks {', '.join(missing)}")
        layout = objects.layout() if layout is None else layout
        writing = np.zeros(universal_put.STATE_WORDS, np.int64)
        known: tuple[Any, ...] = (str, int, float, bool, dict, list, tuple, None, True, refuse_value)
        writing[: len(known) + 1] = [id(one) for one in (*known, UnicodeEncodeError)]
        writing[universal_put.LAYOUT] = layout
        writing[universal_put.ASCII_HEAD] = objects.ASCII_HEAD
        reading = np.zeros(universal_made.STATE_WORDS, np.int64)
        known = (bytes, None, True, False, refuse_bytes, UnicodeDecodeError)
        reading[: len(known)] = [id(one) for one in known]
        reading[universal_made.LAYOUT] = layout
        reading[universal_made.ASCII_HEAD] = objects.ASCII_HEAD
        # For ever: the functions know only where they are, and texts in `reading` are owned.
        _states.extend((writing, reading))
        self.kernels = universal_write.compile_write(), universal_read.compile_read()
        make = objects.make_builtin
        self.write: Callable[[Any, int, Callable[[Any], Any]], bytes] = make(
            "write", self.kernels[0], array_address(writing)
        )
        self.read: Callable[[Any, int, int, int], Any] = make("read", self.kernels[1], array_address(reading))


class Looker:
    """Looks up parts of documents by compiled code.

    Attributes:
        words: the state of ``find``.
        find: (buffer, word, flags, path, default) -> value, or (word, code) of a container.
        next_item: (buffer, word, flags, code of the container) -> (key or None, value as of ``find``, word of
            the next item), or None at the end.
        count: (buffer, word, flags) -> number of items.
    """

    def __init__(self) -> None:
        from yaffjit.kernels import objects, universal_look

        self.kernel = universal_look.compile_look()

        def make(name: str, operation: int) -> Callable[..., Any]:
            state = np.zeros(universal_look.STATE_WORDS, np.int64)
            known = (bytes, None, True, False, _refuse_look, UnicodeDecodeError)
            state[:8] = [*map(id, known), objects.layout(), objects.ASCII_HEAD]
            state[universal_look.OPERATION] = operation
            _states.append(state)
            return objects.make_builtin(name, self.kernel, array_address(state))

        self.find = make("find", universal_look.FIND)
        self.words = _states[-1]
        self.next_item = make("next_item", universal_look.NEXT)
        self.count = make("count", universal_look.COUNT)


def _refuse_look(_: int, buf: Any, flags: int, *others: int) -> NoReturn:
    """Raise what is wrong with a document in which that was found while something was looked up."""
    from yaffjit.universal.codec import refuse

    refuse(buf, options_of(flags))


_states: list[NDArray[np.int64]] = []


def write_flags(options: WriteOptions) -> int:
    """Options as `yaffjit.kernels.universal_write` takes them."""
    return (
        options.compact
        | ORDERS.index(options.order) << 1
        | (options.width == "smallest") << 3
        | options.null << 4
        | STRINGS.index(options.strings) << 5
        | options.max_depth << 8
    )


def read_flags(options: ReadOptions) -> int:
    """Options as `yaffjit.kernels.universal_read` takes them; `WHOLE` may be added."""
    return (
        options.compact
        | ORDERS.index(options.order) << 1
        | options.null << 3
        | options.strict << 4
        | options.max_depth << 8
    )


def options_of(flags: int) -> ReadOptions:
    """What `read_flags` made flags of, whatever depth they have."""
    return ReadOptions(
        compact=bool(flags & 1),
        order=ORDERS[flags >> 1 & 3],
        null=bool(flags & 8),
        strict=bool(flags & 16),
        max_items=UNLIMITED,
        max_depth=flags >> 8 & 0xFFF,
    )


lower_without_default = partial(lower, default=None)


class Loaded:
    """The compiled codec once it's loaded, and what was done without it."""

    def __init__(self) -> None:
        self.codec: Codec | None = None
        self.looker: Looker | None = None
        self._can_load = True
        self._documents = 0
        self._nbytes = 0
        self._lock = threading.Lock()
        renew_in_forks(self, "_lock", threading.Lock)

    def for_object(self, obj: Any) -> Codec | None:
        """The codec to write an object, or None if it isn't loaded and the work is small enough without."""
        return self.for_bytes(_ITEM_NBYTES * (len(obj) if isinstance(obj, dict | list | tuple) else 1))

    def for_bytes(self, nbytes: int) -> Codec | None:
        """The codec to read bytes, or None as before."""
        if self.codec is None and self._can_load:
            self._documents += 1
            self._nbytes += nbytes
            if self._documents > PLAIN_DOCUMENTS or self._nbytes > PLAIN_BYTES:
                self.load()
        return self.codec

    def looker_for(self, nbytes: int) -> Looker | None:
        """What looks up parts of a document, or None as before."""
        if self.looker is None and self.for_bytes(nbytes) is not None:
            with self._lock:
                self.looker = self.looker or Looker()
        return self.looker

    def load(self) -> None:
        """Load the compiled code at once, if this interpreter can run it."""
        with self._lock:
            if self.codec is None and self._can_load:
                from numba import config

                from yaffjit.kernels.objects import missing_symbols

                self._can_load = not config.DISABLE_JIT and not missing_symbols()
                if self._can_load:
                    self.codec = Codec()


loaded = Loaded()
