"""Messages of several files, one after the other, as those of one reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from yaffjit.build.payloads import Batch, Payloads


class Chained(Payloads):
    """All messages of the first reader, then all of the second, and so on.

    Errors name the file, and the record there; positions go on from file to file.
    """

    def __init__(self, readers: Sequence[Payloads]) -> None:
        self._readers = tuple(readers)
        self.name = readers[0].name if len(readers) == 1 else f"{len(readers)} files"
        sizes = [reader.nbytes for reader in readers]
        if all(size is not None for size in sizes):
            self.nbytes = sum(size or 0 for size in sizes)

    def _batches(self, nbytes: int, whole: bool) -> Iterator[Batch]:
        base = 0
        for reader in self._readers:
            for batch in reader._batches(nbytes, whole):
                data, offsets, _ = batch
                positions = batch.positions + base if base else batch.positions
                yield Batch(data, offsets, positions, batch.first_number, _Named(batch))
            base += reader.nbytes or 0


class _Named:
    """Names a record as its own reader does."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def __call__(self, number: int, position: int) -> str:
        return self._batch.where(number - self._batch.first_number)
