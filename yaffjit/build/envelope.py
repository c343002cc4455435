"""The elements of a repeated field of one large message, read from its bytes as they come."""

from __future__ import annotations

from typing import Any

from yaffjit.build.framed import Framed
from yaffjit.build.frames import Data, Fault, Framing, bounded, byte_count, varint
from yaffjit.build.payloads import MAX_NBYTES, Payloads
from yaffjit.build.skim import ONE_MESSAGE
from yaffjit.build.streams import PathOrFile, Source
from yaffjit.errors import SchemaError, near_names
from yaffjit.plan.limits import MAX_DEPTH

MAX_NUMBER = (1 << 29) - 1
TYPE_GROUP, TYPE_MESSAGE, TYPE_BYTES = 10, 11, 12  # of protobuf's descriptors


def read_field(
    source: PathOrFile, envelope_type: Any, field: str, *, compression: str | None = "auto"
) -> Payloads:
    """The elements of a repeated message field of the one message that a file is.

    The message isn't parsed whole: other fields are passed over, and memory is bounded by the largest element
    plus 1 MiB. Elements are handed out in the order in which they are in the file.

    Args:
        source: a path, or a binary file that is read from where it stands and isn't closed.
        envelope_type: the type of the file's message: a `MessageType`, a class or a descriptor of protobuf's.
        field: the field, or a path to it: "page.entities". Of repeated messages on the way all are entered.
            The field may be of type bytes, too.
        compression: "gzip", "zstd", None, or "auto": what the first bytes say.

    Raises:
        SchemaError: there is no such field, or its elements can't be handed out: it's a map, of a group, of
            scalars, or inside of a oneof, where later bytes may take back earlier ones.
        DecodeError: while it's read: the file isn't well-formed as a protobuf message; names the element,
            from 0, and the byte position.
        OSError, TypeError: as in `read_delimited`.
    """
    descriptor = getattr(envelope_type, "message_class", envelope_type)
    descriptor = getattr(descriptor, "DESCRIPTOR", descriptor)
    if not hasattr(descriptor, "fields_by_name"):
        raise TypeError(
            "envelope_type must be a MessageType, a message class or a descriptor, "
            f"not {type(envelope_type).__name__}"
        )
    if not isinstance(field, str):
        raise TypeError(f'field must be a path, as "page.entities", not {type(field).__name__}')
    numbers = _numbers(descriptor, field)
    return Framed(Source(source, compression), _FieldFraming(descriptor.full_name, field, numbers))


def _numbers(message: Any, path: str) -> tuple[int, ...]:
    """The numbers of the fields on a path."""
    numbers = []
    names = path.split(".")
    for place, name in enumerate(names):
        field = message.fields_by_name.get(name)
        if field is None:
            near = near_names(name, [field.name for field in message.fields])
            raise SchemaError(f"{message.full_name} has no field {name!r}{near}")
        last = place == len(names) - 1
        fault = _fault(field, last)
        if fault:
            raise SchemaError(f"{message.full_name}.{name} {fault}")
        numbers.append(field.number)
        message = field.message_type
    return tuple(numbers)


def _fault(field: Any, last: bool) -> str:
    """Why a field can't be on the way to elements, or hold them; "" if it can."""
    entry = field.message_type
    oneof = field.containing_oneof
    if field.type == TYPE_GROUP:
        return "is coded as a group: its elements aren't read one by one"
    if entry is not None and entry.GetOptions().map_entry:
        return "is a map: its pairs aren't messages of their own"
    if oneof is not None and len(oneof.fields) > 1:
        return f"is in the oneof {oneof.name!r}, of which a later member takes back an earlier one"
    if last and not field.is_repeated:
        return "isn't repeated"
    if entry is None and not (last and field.type == TYPE_BYTES):
        return f"isn't a field of messages{' or bytes' if last else ''}"
    return ""


class _FieldFraming(Framing):
    """The fields of a message; those of a path are entered, and those at its end are the records.

    Attributes hold where a reading is, all positions in the file.
    """

    kernel = 3
    tells_itself = True

    def __init__(self, full_name: str, path: str, numbers: tuple[int, ...]) -> None:
        self.title = f"a message {full_name}"
        self.call = ONE_MESSAGE
        self.unit = f"element {{}} of {path}"
        self._given = full_name, path, numbers
        self._numbers = numbers
        self._ends: list[int] = []  # of the messages that were entered
        self._groups: list[int] = []  # numbers of the unknown groups that were
        self._base = 0

    def fresh(self) -> Framing:
        return _FieldFraming(*self._given)

    def block_at(self, base: int) -> None:
        self._base = base

    def window(self, end: int) -> tuple[int, int]:
        if self._groups or len(self._ends) < len(self._numbers) - 1:
            return 0, 0
        return self._numbers[-1] << 3 | 2, min(end, self._ends[-1] - self._base) if self._ends else end

    def step(self, data: Data, at: int, end: int) -> tuple[int, int, int]:
        while self._ends and self._base + at == self._ends[-1]:
            if self._groups:
                raise Fault(f"ends inside of group {self._groups[-1]}", "the message before")
            self._ends.pop()
        limit = self._ends[-1] - self._base if self._ends else None
        tag, body = varint(data, at, end, "tag")
        number, wire = tag >> 3, tag & 7
        what = f"field {number}"
        if not 0 < number <= MAX_NUMBER:
            raise Fault(f"has the number {number}, and numbers are 1 to {MAX_NUMBER}", "a field")
        if wire == 2:
            found = self._delimited(data, at, body, end, number, limit)
        elif wire == 3:
            self._groups.append(number)
            if len(self._groups) > MAX_DEPTH:
                raise Fault(f"is a group inside of {MAX_DEPTH} others", what)
            found = 0, -1, body
        elif wire == 4:
            opened = self._groups.pop() if self._groups else 0
            if opened != number:
                raise Fault(f"ends a group, but {f'group {opened}' if opened else 'none'} is open", what)
            found = 0, -1, body
        elif wire in (0, 1, 5):
            after = varint(data, body, end, "value")[1] if wire == 0 else body + (8 if wire == 1 else 4)
            found = 0, -1, after
        else:
            raise Fault(f"has wire type {wire}, and there are 0 to 5", what)
        if limit is not None and found[2] > limit:
            raise Fault(f"goes {byte_count(found[2] - limit)} beyond its message", what)
        return found

    def _delimited(
        self, data: Data, at: int, body: int, end: int, number: int, limit: int | None
    ) -> tuple[int, int, int]:
        nbytes, body = varint(data, body, end)
        level = len(self._ends)
        ours = not self._groups and number == self._numbers[level]
        if nbytes > MAX_NBYTES:
            raise Fault(f"claims {nbytes} bytes, but protobuf's limit is {MAX_NBYTES}", f"field {number}")
        if limit is not None and nbytes > limit - body:
            raise Fault(
                f"claims {nbytes} bytes, but {limit - body} are left of its message", f"field {number}"
            )
        if not ours:
            return 0, -1, body + nbytes
        if level < len(self._numbers) - 1:
            self._ends.append(self._base + body + nbytes)
            return 0, -1, body
        return bounded(at, body, nbytes, end)

    def ends_at(self, at: int) -> None:
        while self._ends and self._base + at == self._ends[-1] and not self._groups:
            self._ends.pop()
        if self._groups:
            raise Fault(f"is inside of group {self._groups[-1]}", "the end of the file")
        if self._ends:
            missing = self._ends[-1] - self._base - at
            raise Fault(f"is {byte_count(missing)} before that of a message in it", "the end of the file")
