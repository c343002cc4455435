"""Where the fields of one message are kept between reading and writing: words, zeros at first."""

from __future__ import annotations

from yaffjit.codec.emitted.records import Message
from yaffjit.plan import tables as yaff
from yaffjit.plan import wire_tables as tables

# Words of a field, as bytes from its own first one. Of a scalar they are
VALUE = 0
IS_SET = 8  # if it's explicit
# and of others the address of the bytes, 0 if there's none; later, once it's written, its position.
START = 0
NBYTES = 8  # of a text or message
POSITION = 8
END = 8  # of repeated fields: of the bytes, from the first tag's to the last value's
COUNT = 16  # how many occurrences they are; PACKED of packed values, whose bytes have no tag
PACKED = -1

_NBYTES = {yaff.TEXT: 16, yaff.SINGLE: 16}


class Slots:
    """The layout for a message: of its live fields, then the number of each oneof's member that is set."""

    def __init__(self, message: Message) -> None:
        self.fields: list[int] = []
        nbytes = 0
        for field in message.live:
            self.fields.append(nbytes)
            if field.kind == yaff.VALUE:
                nbytes += 16 if field.explicit else 8
            else:
                nbytes += _NBYTES.get(field.kind, 24)
        self.oneofs = nbytes
        self.nbytes = nbytes + 8 * message.oneofs


def table_nbytes(message: Message) -> int:
    """The most bytes of the message's meta table; 0 if it never has one."""
    if message.layout in (yaff.FIXED, yaff.FLAT) or not message.live:
        return 0
    highest = message.live[-1].id
    return highest + max(0, highest - 31)


def is_map(kind: int) -> bool:
    return kind == tables.MAP
