"""Bytes out of files, in order: opened by path or given open, unpacked where they are compressed."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import zlib
from collections.abc import Iterator
from typing import IO, Any, cast

from yaffjit.build.gunzip import Gunzip
from yaffjit.errors import DecodeError

PathOrFile = str | os.PathLike[str] | IO[bytes]
# The third byte of gzip is its only method; a delimited message would begin so with a group of field 129.
MAGICS = {"gzip": b"\x1f\x8b\x08", "zstd": b"\x28\xb5\x2f\xfd"}
# As many bytes before damaged data may be lost, where Arrow unpacks it.
UNPACKED_NBYTES = 1 << 16
COMPRESSIONS = ("auto", None, *MAGICS)
SEEKABLE = "it must be seekable, as Arrow's files are read from their end"


class Source:
    """What a reader was given: a path, or a binary file that is read from where it stands.

    Args:
        compression: "gzip", "zstd", None, or "auto" for what the first bytes say.

    Attributes:
        name: for errors.

    Raises:
        OSError: the file can't be opened.
        TypeError: it's neither, or a file opened as text.
        ValueError: an unknown compression.
    """

    def __init__(self, given: PathOrFile, compression: str | None = "auto") -> None:
        if compression not in COMPRESSIONS:
            known = ", ".join(map(repr, COMPRESSIONS))
            raise ValueError(f"compression must be one of {known}, not {compression!r}")
        self._compression = compression
        self._file: IO[bytes] | None = None
        if isinstance(given, io.TextIOBase):
            raise TypeError("the file is opened as text: messages are bytes, so open it with mode 'rb'")
        if hasattr(given, "read"):
            self._file = cast(IO[bytes], given)
            self.name = str(getattr(given, "name", "stream"))
            return
        if not isinstance(given, (str, bytes, os.PathLike)):
            raise TypeError(
                f"messages are read from a path or a binary file, not from {type(given).__name__}"
            )
        self.name = os.fsdecode(given)
        if isinstance(given, bytes) and not os.path.exists(given):  # what is in a file, most likely
            hint = "no such path; the content of a file is read as io.BytesIO(content)"
            raise FileNotFoundError(errno.ENOENT, hint, self.name[:255])
        if not stat.S_ISFIFO(os.stat(self.name).st_mode):  # which would wait for its writer, twice
            open(self.name, "rb").close()

    def nbytes(self) -> int | None:
        """Bytes of a file that isn't compressed; None of another, of a file object, or of a pipe."""
        if self._file is not None or not os.path.isfile(self.name):
            return None
        with self.opened() as stream:
            return stream.size

    @contextlib.contextmanager
    def opened(self) -> Iterator[Stream]:
        """The file from its beginning, or the rest of a file object."""
        if self._file is not None:
            yield Stream(self._file, self.name, self._compression)
            return
        with open(self.name, "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            # A file of /proc has no size, but bytes.
            size = status.st_size or None if stat.S_ISREG(status.st_mode) else None
            yield Stream(cast(IO[bytes], file), self.name, self._compression, size)

    @contextlib.contextmanager
    def for_arrow(self) -> Iterator[Any]:
        """The file from its beginning, as Arrow's readers want it.

        Raises:
            ValueError: a file object, or a pipe, that isn't seekable.
        """
        import pyarrow as pa

        if self._file is None and stat.S_ISFIFO(os.stat(self.name).st_mode):  # Ctrl-C doesn't end its opening
            raise ValueError(f"{self.name}: {SEEKABLE}, and it's a pipe")
        if self._file is None:
            with pa.OSFile(self.name, "rb") as file:
                yield file
            return
        if not self._file.seekable():
            raise ValueError(f"{self.name}: {SEEKABLE}")
        self._file.seek(0)
        yield pa.PythonFile(self._file, mode="r")


class Stream:
    """The bytes of one file, unpacked.

    Attributes:
        position: bytes handed out so far.
        size: how many there are in all, None if that isn't known.
        compression: "gzip", "zstd" or "".
        waits: for bytes to come, as of a pipe: what is there is handed out.
    """

    def __init__(
        self, file: IO[bytes], name: str, compression: str | None = None, size: int | None = None
    ) -> None:
        self.name = name
        self.position = 0
        self.size = size
        self.compression = ""
        self._own = size is not None
        self.waits = size is None and isinstance(file, io.RawIOBase)
        self._file: Any = file
        self._ahead = b""  # read to see what it is, and not handed out
        if compression == "auto":
            compression = self._seen()
        if compression is not None:
            self._unpack(compression)

    def readinto(self, view: memoryview) -> int:
        """Fill the beginning of a buffer with what one read gives; how many bytes, 0 at the end.

        Raises:
            DecodeError: compressed data is damaged or cut.
            TypeError: the file gives something else than bytes.
        """
        count = min(len(self._ahead), len(view))
        view[:count] = self._ahead[:count]
        self._ahead = self._ahead[count:]
        if not count or (count < len(view) and not self.waits):
            count += self._read_into(view[count:])
        self.position += count
        return count

    def _read_into(self, view: memoryview) -> int:
        count: int
        if self.compression:
            try:
                count = self._file.readinto(view[:UNPACKED_NBYTES])
            except (OSError, zlib.error) as error:
                raise DecodeError(
                    f"{self.name}: its {self.compression} data can't be unpacked "
                    f"beyond byte {self.position}: {error}"
                ) from error
        elif self._own:
            count = self._file.readinto(view)
        else:
            piece = self._piece(len(view))
            count = len(piece)
            view[:count] = piece
        return count

    def skip(self, nbytes: int) -> int:
        """Read that many bytes for nothing; how many there were."""
        view = memoryview(bytearray(min(nbytes, 1 << 20)))
        missing = nbytes
        while missing > 0:
            count = self.readinto(view[: min(len(view), missing)])
            if not count:
                break
            missing -= count
        return nbytes - missing

    def _piece(self, nbytes: int) -> bytes:
        """From the file itself; called by Arrow too."""
        piece = self._file.read(nbytes)
        if not isinstance(piece, bytes):
            # None: it doesn't wait for its bytes. That must not pass for its end.
            raise TypeError(f"{self.name}: read() must give bytes, not {type(piece).__name__}")
        if len(piece) > nbytes:
            raise TypeError(f"{self.name}: read({nbytes}) gave {len(piece)} bytes")
        return piece

    def _seen(self) -> str | None:
        """The compression that the first bytes tell, of which no more are read than need be."""
        longest = max(map(len, MAGICS.values()))
        while any(magic.startswith(self._ahead) for magic in MAGICS.values()):
            piece = self._piece(longest - len(self._ahead))
            if not piece:
                break
            self._ahead += piece
            for name, magic in MAGICS.items():
                if self._ahead.startswith(magic):
                    return name
        return None

    def _unpack(self, compression: str) -> None:
        packed = _Packed(Stream(self._file, self.name), self._ahead)
        if compression == "gzip":
            self._file = Gunzip(packed.read)
        else:
            import pyarrow as pa

            self._file = pa.CompressedInputStream(pa.PythonFile(packed, mode="r"), compression)
        self.compression = compression
        self._ahead = b""
        self.size = None


class _Packed:
    """What Arrow reads compressed bytes from."""

    closed = False

    def __init__(self, stream: Stream, ahead: bytes) -> None:
        self._stream = stream
        self._ahead = ahead

    def read(self, nbytes: int) -> bytes:
        piece, self._ahead = self._ahead[:nbytes], self._ahead[nbytes:]
        return piece or self._stream._piece(nbytes)

    def close(self) -> None:
        """The file isn't Arrow's to close."""
