"""Many messages: sequences of views, and the native forms that jitted code reads.

Not called ``records``, because a module of that name would hide the public function.
"""

from yaffjit.rows.chunks import CHUNK_ROWS
from yaffjit.rows.records import Records, concat, records, records_unchecked
from yaffjit.rows.transcoded import ProtobufPayloads

__all__ = ["CHUNK_ROWS", "ProtobufPayloads", "Records", "concat", "records", "records_unchecked"]
