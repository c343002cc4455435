"""Verification of YaFF buffers: the kernel's verdict in the plain verifier's words.

The first small buffers of a process are checked by the plain verifier alone, so that nobody waits for numba
to be imported and for the kernel to be compiled; from then on the kernel decides, and the plain verifier is
only asked what is wrong.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from yaffjit.arrays import array_address
from yaffjit.codec.verify_plain import LONG_TEXT, TEXT_BYTES_PER_BYTE, verify_plain
from yaffjit.errors import VerifyError, YaffjitError
from yaffjit.forks import renew_in_forks
from yaffjit.plan.model import MessagePlan
from yaffjit.plan.tables import table_of

if TYPE_CHECKING:
    from yaffjit.kernels.verify import Kernel

# How many messages and bytes of a process the plain verifier checks before the kernel is loaded: some 10 ms.
PLAIN_MESSAGES = 200
PLAIN_BYTES = 65536
# Buffers up to this size are rather copied into bytes than asked for their address.
_COPIED_BYTES = 16384
# The root offset.
_OFFSET_NBYTES = 4
# What the kernel says of a buffer, as kernels.verify_walk has it; that isn't loaded for these.
MALFORMED, WELL_FORMED, ASCENDING = 0, 1, 2
# Larger buffers aren't parsed only for a hint.
_HINT_BYTES = 16 * 2**20
# What the kernel checks in one call, about 10 ms: as often progress is shown and Ctrl-C works.
_CALL_BYTES = 16 * 2**20
_CALL_ROWS = 65536


def verify(mp: MessagePlan, buf: Any, utf8: bool = True) -> bool:
    """Check that no reader can leave a buffer, whatever it reads. It must not change afterwards.

    Args:
        mp: the plan of the message that the buffer holds.
        buf: bytes or any contiguous buffer.
        utf8: also check the text of string fields where protobuf does.

    Returns:
        Whether the keys of all its maps are known to ascend strictly, as those of maps that were written as
        maps do. They needn't.

    Raises:
        VerifyError: names the message, the field path, the byte position and the two numbers compared.
        TypeError, ValueError: ``buf`` isn't a buffer, or isn't contiguous.
    """
    check_one = _loaded.check_one
    if check_one is not None and type(buf) is bytes:
        # As `_found`, but nothing is called on the way: most views begin here.
        request = mp.plan.memo.get(("verify", mp.full_name, utf8))
        if request is not None:
            found = check_one(buf, request.address)
            if found != MALFORMED:
                return found == ASCENDING
    data = _byte_view(buf)
    kernel = _loaded.for_work(1, len(data))
    try:
        return verify_plain(mp, data, utf8) if kernel is None else _verify_by(kernel, mp, data, utf8)
    except VerifyError as error:
        error.hint = _hint(mp, data)
        raise


def verify_many(
    mp: MessagePlan,
    data: Any,
    offsets: Any,
    utf8: bool = True,
    progress: Callable[[int], object] | None = None,
    first_row: int = 0,
) -> bool:
    """`verify` for many messages at once; other threads run meanwhile.

    Args:
        mp: the plan of the messages.
        data: bytes or any contiguous buffer that holds them all.
        offsets: int64[count + 1]; message i is ``data[offsets[i]:offsets[i + 1]]``.
        utf8: also check the text of string fields where protobuf does.
        progress: called with the number of further messages that are done, every 10 ms or so.
        first_row: the row of the first message, for errors.

    Returns:
        As `verify`, of all of them.

    Raises:
        VerifyError: of the first row whose offsets or bytes are bad; positions are within the row.
        TypeError, ValueError: ``data`` isn't a contiguous buffer, or ``offsets`` aren't flat and integer.
    """
    shown = _byte_view(data)
    array = _offsets(offsets)
    held = np.frombuffer(shown, np.uint8)
    address = array_address(held if len(shown) else array)  # never 0, which stands for scattered ones
    return _verify_rows(
        _Rows(mp, utf8, first_row, len(array) - 1),
        min(len(shown), max(0, int(array[-1]) - int(array[0]))),
        (address, len(shown), array_address(array)),
        lambda row: _slice(mp, shown, int(array[row]), int(array[row + 1])),
        progress,
    )


def verify_places(
    mp: MessagePlan,
    places: NDArray[np.int64],
    utf8: bool = True,
    progress: Callable[[int], object] | None = None,
    first_row: int = 0,
) -> bool:
    """`verify_many` for messages that lie anywhere in memory.

    Args:
        mp: the plan of the messages.
        places: int64[count, 2], C-contiguous: the address of each message and its size in bytes. A row
            without a message has address 0, and is passed over.
        utf8, progress, first_row: as for `verify_many`.

    Returns:
        As `verify`, of all of them.

    Raises:
        VerifyError: of the first row whose bytes are bad; positions are within the row.

    Requires: that many bytes can be read at each address, and don't change.
    """
    assert places.dtype == np.int64 and places.shape[1:] == (2,) and places.flags.c_contiguous
    return _verify_rows(
        _Rows(mp, utf8, first_row, len(places)),
        int(places[:, 1].sum()),
        (0, 0, array_address(places)),
        lambda row: _bytes_at(*map(int, places[row])),
        progress,
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """Many messages of one type."""

    mp: MessagePlan
    utf8: bool
    first_row: int
    count: int


def _verify_rows(
    rows: _Rows,
    nbytes: int,
    where: tuple[int, int, int],
    bytes_of: Callable[[int], bytes | memoryview | None],
    progress: Callable[[int], object] | None,
) -> bool:
    """Check many messages; whether the keys of all maps ascend.

    Args:
        nbytes: of all of them.
        where: they lie, as the kernel takes it: buffer, nbytes, offsets.
        bytes_of: gives the bytes of a row, or None if it has no message; raises VerifyError if it can't.
    """
    count = rows.count
    ascending = True
    kernel = _loaded.for_work(count, nbytes)
    if kernel is None:
        for row in range(count):
            ascending &= _verify_row(None, rows, row, bytes_of)
        if progress is not None:
            progress(count)
        return ascending
    request = _request(rows.mp, rows.utf8)
    step = min(max(1, count * _CALL_BYTES // (nbytes + 1)), _CALL_ROWS)
    row = 0
    while row < count:
        last = min(row + step, count)
        done, ascend = kernel.check_rows(request.address, *where, row, last)
        ascending &= bool(ascend)
        if done < last:
            ascending &= _verify_row(kernel, rows, done, bytes_of)
            done += 1
        if progress is not None:
            progress(done - row)
        row = done
    return ascending


class _Request:
    """What the kernel is to check, as an array of integers, and all that must live while it does."""

    __slots__ = ("_alive", "address")

    def __init__(self, mp: MessagePlan, utf8: bool, memo_words: int = 0) -> None:
        table = table_of(mp)
        memo = np.zeros(memo_words, np.int64)
        # In the order of kernels.verify_text: TABLE, UTF8, MEMO, MEMO_MASK.
        memo_address = array_address(memo) if memo_words else 0
        words = np.array([array_address(table), int(utf8), memo_address, memo_words - 1], np.int64)
        self._alive = table, memo, words
        self.address = array_address(words)


class _Loaded:
    """The kernel once it's loaded, and what was checked without it."""

    def __init__(self) -> None:
        self.kernel: Kernel | None = None
        self.check_one: Callable[[bytes, int], int] | None = None  # the kernel's
        self._messages = 0
        self._nbytes = 0
        self._lock = threading.Lock()
        renew_in_forks(self, "_lock", threading.Lock)

    def for_work(self, messages: int, nbytes: int) -> Kernel | None:
        """The kernel, or None if it isn't loaded and the work is small enough to do without it."""
        if self.kernel is None:
            self._messages += messages
            self._nbytes += nbytes
            if self._messages > PLAIN_MESSAGES or self._nbytes > PLAIN_BYTES:
                self.load()
        return self.kernel

    def load(self) -> None:
        """Load the kernel at once: three seconds where it isn't in numba's cache on disk, else 0.2."""
        with self._lock:
            if self.kernel is None:
                from numba import config

                if not config.DISABLE_JIT:
                    from yaffjit.kernels.verify import Kernel

                    self.kernel = Kernel()
                    self.check_one = self.kernel.check_one


_loaded = _Loaded()


def _request(mp: MessagePlan, utf8: bool) -> _Request:
    memo = mp.plan.memo
    key = ("verify", mp.full_name, utf8)
    request: _Request | None = memo.get(key)
    if request is None:
        request = memo.setdefault(key, _Request(mp, utf8))
    return request


def _verify_by(kernel: Kernel, mp: MessagePlan, data: bytes | memoryview, utf8: bool) -> bool:
    if len(data) <= _COPIED_BYTES:
        data = bytes(data)
    found = _found(kernel, data, _request(mp, utf8))
    if found != MALFORMED:
        return found == ASCENDING
    # Perhaps only because of long texts that many fields share, of which it knows with a memo.
    if utf8 and len(data) > LONG_TEXT:
        most_texts = TEXT_BYTES_PER_BYTE * len(data) // LONG_TEXT + 1
        found = _found(kernel, data, _Request(mp, utf8, memo_words=2 << most_texts.bit_length()))
        if found != MALFORMED:
            return found == ASCENDING
    verify_plain(mp, data, utf8)
    raise YaffjitError(
        f"{mp.full_name}: the compiled verifier refuses a buffer of {len(data)} bytes "
        "in which the plain one finds nothing wrong; this is a bug of yaffjit"
    )


def _found(kernel: Kernel, data: bytes | memoryview, request: _Request) -> int:
    """What the kernel says of a buffer."""
    if isinstance(data, bytes):
        return int(kernel.check_one(data, request.address))
    held = np.frombuffer(data, np.uint8)
    place = np.array([array_address(held), len(data)], np.int64)
    done, ascending = kernel.check_rows(request.address, 0, 0, array_address(place), 0, 1)
    return MALFORMED if not done else ASCENDING if ascending else WELL_FORMED


def _verify_row(
    kernel: Kernel | None, rows: _Rows, row: int, bytes_of: Callable[[int], bytes | memoryview | None]
) -> bool:
    """One row, with all that can be said about it."""
    try:
        shown = bytes_of(row)
        if shown is None:
            return True
        try:
            if kernel is None:
                return verify_plain(rows.mp, shown, rows.utf8)
            return _verify_by(kernel, rows.mp, shown, rows.utf8)
        except VerifyError as error:
            error.hint = _hint(rows.mp, shown)
            raise
    except VerifyError as error:
        error.row = rows.first_row + row
        raise


def _slice(mp: MessagePlan, data: bytes | memoryview, begin: int, end: int) -> bytes | memoryview:
    """The bytes between two offsets."""
    if begin < 0:
        raise VerifyError(f"offset {begin} (at least 0)", message=mp.full_name, found=begin, limit=0)
    if end < begin:
        text = f"offsets go from {begin} down to {end}"
        raise VerifyError(text, message=mp.full_name, found=end, limit=begin)
    if end > len(data):
        text = f"offset {end} is past the end of the data ({len(data)} bytes)"
        raise VerifyError(text, message=mp.full_name, found=end, limit=len(data))
    return data[begin:end]


def _bytes_at(address: int, nbytes: int) -> bytes | memoryview | None:
    """The bytes at an address, not copied; None for address 0."""
    if not address:
        return None
    return _byte_view((ctypes.c_uint8 * nbytes).from_address(address))


def _hint(mp: MessagePlan, data: bytes | memoryview) -> str:
    """What may be the matter with bytes that aren't well-formed: they may be protobuf's.

    They may be if no root message lies where they say, and protobuf reads a field of the message from them.
    What is left of a YaFF buffer isn't taken for them: protobuf refuses the zeros in a small root offset.
    """
    nbytes = len(data)
    root = int.from_bytes(data[:_OFFSET_NBYTES], "little")
    root_lies_inside = nbytes >= _OFFSET_NBYTES and _OFFSET_NBYTES <= root < nbytes
    if root_lies_inside or nbytes > _HINT_BYTES:
        return ""
    from google.protobuf.message import DecodeError as ProtobufError

    message_class: Any = mp.plan.schema.message_class(mp.full_name)
    try:
        message = message_class.FromString(bytes(data))
    except ProtobufError:
        return ""
    if not message_class.ListFields(message):
        return ""
    return "these look like protobuf bytes: encode them first"


def _byte_view(buf: Any) -> bytes | memoryview:
    """The bytes of a buffer, not copied."""
    if type(buf) is bytes:
        return buf
    shown = memoryview(buf)
    if not shown.c_contiguous:
        raise ValueError(f"the buffer isn't contiguous: shape {shown.shape}, strides {shown.strides}")
    if not shown.nbytes:
        return b""
    return shown if shown.format == "B" and shown.ndim == 1 else np.frombuffer(shown, np.uint8).data


def _offsets(offsets: Any) -> NDArray[np.int64]:
    array = np.asarray(offsets)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iu":
        raise ValueError(f"offsets are integers in one dimension, not {array.dtype} of shape {array.shape}")
    return np.ascontiguousarray(array, np.int64)
