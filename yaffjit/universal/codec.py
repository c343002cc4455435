"""Documents of the universal tagged format: objects to bytes and back, and files of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import IO, Any, NoReturn

import numpy as np

from yaffjit.universal.codes import (
    DEFAULT_MAX_DEPTH,
    MAX_MAX_DEPTH,
    ORDERS,
    STRINGS,
    WIDTHS,
    Order,
    Strings,
    Width,
)
from yaffjit.universal.compiled import (
    PART,
    USED_SHIFT,
    WHOLE,
    loaded,
    lower_without_default,
    options_of,
    read_flags,
    write_flags,
)
from yaffjit.universal.lower import lower
from yaffjit.universal.plain_read import UNLIMITED, Reader, ReadOptions
from yaffjit.universal.plain_write import WriteOptions, Writer
from yaffjit.universal.refusals import DocumentError, TruncatedError

# What `load_each` reads at once; twice as much where a document is longer.
_CHUNK_NBYTES = 1 << 20
# Larger documents aren't read once more only for a hint.
_HINT_NBYTES = 1 << 16
# What a document of a stream is taken for before it's read.
_DOCUMENT_NBYTES = 1024


def dumps(
    obj: Any,
    *,
    compact: bool = True,
    width: Width = "java",
    order: Order = "swapped",
    strings: Strings = "utf8",
    null: bool = False,
    default: Callable[[Any], Any] | None = None,
    max_depth: int = DEFAULT_MAX_DEPTH,
) -> bytes:
    """Write an object as a document.

    Dicts with text keys, lists, tuples, text, bool, int, float and subclasses of these; numpy scalars and
    arrays, whose numbers keep their width (unsigned integers take the next wider one).

    Args:
        obj: the object.
        compact: two codes in a byte; False for a byte each.
        width: of Python's integers: ``"java"`` for 4 bytes where that's enough, else 8, or ``"smallest"``.
        order: of the bytes of numbers: ``"swapped"`` within each two, ``"little"`` or ``"big"`` endian.
        strings: ``"utf8"``; ``"latin1"`` for Latin-1 where it's enough, else UTF-16, as Java holds text;
            or ``"utf16"``.
        null: write None as code 0, an extension of ours.
        default: called with a value or key that has no code, gives what to write in its place.
        max_depth: how deep containers may be nested, at most 1000.

    Raises:
        EncodeError: something has no code: None, bytes, integers beyond 64 bits, keys that aren't text, lone
            surrogates, other types; or it's nested deeper, or changes while it's written. Names the path.
    """
    options, flags = write_options(compact, width, order, strings, null, max_depth)
    codec = loaded.codec
    if codec is None:
        codec = loaded.for_object(obj)
        if codec is None:
            return Writer(options, default).write(obj)
    convert = lower_without_default if default is None else partial(lower, default=default)
    return codec.write(obj, flags, convert)


def loads(
    buf: Any,
    *,
    order: Order = "swapped",
    compact: bool = True,
    null: bool = False,
    max_items: int | None = None,
    max_depth: int = DEFAULT_MAX_DEPTH,
) -> Any:
    """Read the one document that a buffer holds. Of duplicate keys the last one counts.

    A document doesn't say how it was written: ``order`` and ``compact`` must be as for `dumps`.

    Args:
        buf: bytes or any contiguous buffer.
        order, compact, null, max_depth: as for `dumps`.
        max_items: how many values there may be. An empty collection is one byte that becomes
            80 bytes of memory.

    Raises:
        DocumentError: a DecodeError with the position and the path of what is wrong. TruncatedError, a
            subclass, if the document isn't complete.
        TypeError, ValueError: ``buf`` isn't a buffer, or isn't contiguous.
    """
    options, flags = read_options(compact, order, null, False, max_items, max_depth)
    codec = loaded.codec
    if codec is None or type(buf) is not bytes:
        return read_whole(byte_view(buf), options, flags)
    try:  # as `read_whole`, but nothing is called on the way
        return codec.read(buf, 0, flags | WHOLE, options.max_items)
    except DocumentError as error:
        error.hint = _hint(buf, options)
        raise


def validate(
    buf: Any,
    *,
    order: Order = "swapped",
    compact: bool = True,
    null: bool = False,
    max_items: int | None = None,
    max_depth: int = DEFAULT_MAX_DEPTH,
) -> None:
    """Check that a buffer holds one document, and one that every reader reads alike.

    Args:
        buf, order, compact, null, max_items, max_depth: as for `loads`.

    Raises:
        DocumentError: as `loads`, and for padded lengths and duplicate keys.
        TypeError, ValueError: as `loads`.
    """
    options, flags = read_options(compact, order, null, True, max_items, max_depth)
    read_whole(byte_view(buf), options, flags)


def dump(obj: Any, file: IO[bytes], **options: Any) -> None:
    """Write an object as a document into a binary file, after what is there; options as for `dumps`."""
    file.write(dumps(obj, **options))


def load(file: IO[bytes], **options: Any) -> Any:
    """Read the one document that the rest of a binary file holds; options and errors as for `loads`."""
    return loads(file.read(), **options)


def load_each(
    file: IO[bytes],
    *,
    order: Order = "swapped",
    compact: bool = True,
    null: bool = False,
    max_items: int | None = None,
    max_depth: int = DEFAULT_MAX_DEPTH,
) -> Iterator[Any]:
    """Read the documents of a binary file or stream one by one; each begins on a byte of its own.

    The file is read in pieces, as much of it is held as the longest document needs.

    Args:
        file: has ``read(size)``; may give less than it's asked for, and nothing at its end.
        order, compact, null, max_items, max_depth: as for `loads`, of each document.

    Raises:
        DocumentError: as `loads`; positions are within the file, from where it stood.
    """
    options, flags = read_options(compact, order, null, False, max_items, max_depth)
    data = b""
    begin = 0  # of `data` within the file
    size = _CHUNK_NBYTES
    while True:
        more = file.read(size)
        data += more
        pos = 0
        while pos < len(data):
            try:
                value, end = _read_one(data, options, flags, pos)
            except TruncatedError as error:
                if more:
                    break
                raise _moved(error, begin) from None
            except DocumentError as error:
                raise _moved(error, begin) from None
            yield value
            pos = end
        if not more:
            return
        size = _CHUNK_NBYTES if pos else max(_CHUNK_NBYTES, 2 * len(data))
        data = data[pos:]
        begin += pos


def read_whole(data: bytes | memoryview, options: ReadOptions, flags: int) -> Any:
    codec = loaded.codec or loaded.for_bytes(len(data))
    try:
        if codec is None:
            return Reader(data, options).read()[0]
        return codec.read(data, 0, flags | WHOLE, options.max_items)
    except DocumentError as error:
        error.hint = _hint(data, options)
        raise


def _read_one(data: bytes, options: ReadOptions, flags: int, pos: int) -> tuple[Any, int]:
    codec = loaded.codec or loaded.for_bytes(min(len(data) - pos, _DOCUMENT_NBYTES))
    if codec is None:
        return Reader(data, options).read(pos, whole=False)
    read: tuple[Any, int] = codec.read(data, pos << 5, flags, options.max_items)
    return read


def _hint(data: bytes | memoryview, options: ReadOptions) -> str:
    """What may have been mistaken, for bytes that can't be read: the other mode may fit, or null."""
    if not 0 < len(data) <= _HINT_NBYTES:
        return ""
    compact = not options.compact
    other, flags = read_options(
        compact, options.order, options.null, options.strict, options.max_items, options.max_depth
    )
    try:
        if loaded.codec is None:
            Reader(data, other).read()
        else:
            loaded.codec.read(data, 0, flags | WHOLE, other.max_items)
    except DocumentError:
        return ""
    return f"with compact={compact} it can be read"


def read_part(data: bytes | memoryview, word: int, flags: int) -> Any:
    """The value that a word of a cursor names, by flags that have its depth."""
    options = options_of(flags)
    codec = loaded.codec or loaded.for_bytes(min(len(data) - (word >> 5), _DOCUMENT_NBYTES))
    try:
        if codec is None:
            return Reader(data, options).read_part(word, flags >> USED_SHIFT)
        return codec.read(data, word, flags | PART | WHOLE, UNLIMITED)
    except DocumentError:
        refuse(data, options)


def refuse(data: bytes | memoryview, options: ReadOptions) -> NoReturn:
    """Raise for a document in which something wrong was found, by reading it once more from its begin."""
    options = dataclasses.replace(options, strict=False, max_items=UNLIMITED)
    codec = loaded.codec or loaded.for_bytes(len(data))
    try:
        if codec is None:
            Reader(data, options).read(0, whole=False)
        else:
            codec.read(data, 0, read_flags(options), UNLIMITED)
    except DocumentError as error:
        error.hint = _hint(data, options)
        raise
    raise ValueError("the document is whole: its bytes have changed, or a cursor isn't where a code is")


def _moved(error: DocumentError, begin: int) -> DocumentError:
    """The error with a position that counts from the begin of the file."""
    assert error.position is not None
    return type(error)(error.text, error.position + begin, error.path)


@lru_cache(64)
def write_options(
    compact: bool, width: Width, order: Order, strings: Strings, null: bool, max_depth: int
) -> tuple[WriteOptions, int]:
    one_of("width", width, WIDTHS)
    one_of("order", order, ORDERS)
    one_of("strings", strings, STRINGS)
    _depth(max_depth)
    options = WriteOptions(bool(compact), width, order, strings, bool(null), max_depth)
    return options, write_flags(options)


@lru_cache(64)
def read_options(
    compact: bool, order: Order, null: bool, strict: bool, max_items: int | None, max_depth: int
) -> tuple[ReadOptions, int]:
    one_of("order", order, ORDERS)
    _depth(max_depth)
    if max_items is None:
        max_items = UNLIMITED
    elif not 0 <= max_items <= UNLIMITED:
        raise ValueError(f"max_items is {max_items} (0 to {UNLIMITED}, or None)")
    options = ReadOptions(bool(compact), order, bool(null), strict, max_items, max_depth)
    return options, read_flags(options)


def one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name} is {value!r} ({', '.join(map(repr, known))})")


def _depth(max_depth: int) -> None:
    if not 1 <= max_depth <= MAX_MAX_DEPTH:
        raise ValueError(f"max_depth is {max_depth} (1 to {MAX_MAX_DEPTH})")


def byte_view(buf: Any) -> bytes | memoryview:
    """The bytes of a buffer, not copied."""
    if type(buf) is bytes:
        return buf
    shown = memoryview(buf)
    if not shown.c_contiguous:
        raise ValueError(f"the buffer isn't contiguous: shape {shown.shape}, strides {shown.strides}")
    if not shown.nbytes:
        return b""
    return shown if shown.format == "B" and shown.ndim == 1 else np.frombuffer(shown, np.uint8).data
