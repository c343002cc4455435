"""Many messages in one buffer: sequences of views, and the native form that jitted code reads."""

from yaffjit.records.chunks import CHUNK_ROWS
from yaffjit.records.records import Records, records, records_unchecked

__all__ = ["CHUNK_ROWS", "Records", "records", "records_unchecked"]
