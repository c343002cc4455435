"""Whether bytes are well-formed as a protobuf message of some type, and which framing a file may have."""

from __future__ import annotations

from yaffjit.build.frames import Data, Fault, Framing, PrefixFraming, Short, framings, varint
from yaffjit.plan.limits import MAX_DEPTH

HEAD_NBYTES = 1 << 16  # of a file, that are tried
ONE_MESSAGE = "read_field"  # reads a file that is one
MANY = 2  # messages that another framing must find in a file that could be of either


def is_protobuf(data: Data) -> bool:
    """Whether there are well-formed fields and nothing else, whatever type they are of."""
    at, end = 0, len(data)
    groups: list[int] = []
    try:
        while at < end:
            tag, at = varint(data, at, end)
            number, wire = tag >> 3, tag & 7
            if not 0 < number < 1 << 29:
                return False
            if wire == 0:
                _, at = varint(data, at, end)
            elif wire == 1:
                at += 8
            elif wire == 2:
                nbytes, at = varint(data, at, end)
                at += nbytes
            elif wire == 3:
                groups.append(number)
                if len(groups) > MAX_DEPTH:
                    return False
            elif wire == 4:
                if not groups or groups.pop() != number:
                    return False
            elif wire == 5:
                at += 4
            else:
                return False
    except (Short, Fault):
        return False
    return at == end and not groups


def other_reading(head: bytes, complete: bool, framing: Framing) -> str:
    """How a file may be read if not with a framing: a clause for errors, or "".

    Args:
        head: its first bytes.
        complete: whether there are no more.
    """
    if head.startswith(b"ARROW1"):
        return 'it is an Arrow file: read_arrow(path, "column")'
    if head.startswith(b"PAR1"):
        return 'it is a Parquet file: read_parquet(path, "column")'
    for other in framings():
        if other.title != framing.title and _fits(head, complete, other, 1):
            return _named(other)
    return ""


def reading_despite_fault(head: bytes, complete: bool, framing: Framing) -> str:
    """As `other_reading`, of a file that has a fault in its framing."""
    other = other_reading(head, complete, framing)
    if not other and complete and head and framing.call != ONE_MESSAGE and is_protobuf(head):
        return f"it reads as one protobuf message: {ONE_MESSAGE}, or read_files"
    return other


def big_endian_reading(head: bytes, complete: bool) -> str:
    """As `other_reading`, of a file that has no fault as a varint-delimited one, but begins with zeros."""
    other = PrefixFraming("big")
    return _named(other) if _fits(head, complete, other, MANY) else ""


def _named(framing: Framing) -> str:
    return f"it reads as {framing.title}: {framing.call}"


def _fits(head: bytes, complete: bool, framing: Framing, least: int) -> bool:
    """Whether all records of a file's beginning are there, and protobuf messages; so many aren't empty."""
    at = messages = 0
    try:
        while at < len(head):
            body, nbytes, after = framing.step(head, at, len(head))
            message = head[body : body + nbytes]
            if not is_protobuf(message):
                return False
            messages += bool(message)
            at = after
    except Short:
        return messages >= least and not complete
    except Fault:
        return False
    return messages >= least
