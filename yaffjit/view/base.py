"""`View`: the protobuf reading API over a message in a buffer, whatever its representation.

How a field is read is in the `Access` of each class; a representation adds where its message lies.

Names of a view: a field wins over every other name here, as it does on protobuf's messages. What a field
hides is still there on the class: ``View.HasField(v, "x")``; nothing in this package reads a view by a name
that a field may have. What it does read has names like ``_pos_``; there are no views of a message that has a
field with one of these.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from yaffjit.errors import YaffjitError, near_names
from yaffjit.markup import Shown, preformatted

if TYPE_CHECKING:
    from yaffjit.plan.model import MessagePlan
    from yaffjit.schema.model import SchemaDef
    from yaffjit.view.buffers import Data
    from yaffjit.view.owner import Owner

# Of a view of the class that they were made for.
Getter = Callable[[Any], Any]
Test = Callable[[Any], bool]

# The longest repr: lines, and characters of a line.
REPR_LINES = 60
REPR_WIDTH = 400
# Messages of more protobuf bytes are shown by their beginning.
SHOWN_NBYTES = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """How the fields of one message type are read.

    Attributes:
        descriptor: protobuf's descriptor of the type.
        getters: by field name.
        presence: by field name where the field has presence, and by oneof name.
        oneofs: name -> its members with their presence, by precedence: the first that is present counts.
        listed: by ascending number: the FieldDescriptor, whether the field is set, and its getter.
        lost: declared fields that YaFF doesn't carry, with the reason.
    """

    descriptor: Any
    getters: Mapping[str, Getter]
    presence: Mapping[str, Test]
    oneofs: Mapping[str, tuple[tuple[str, Test], ...]]
    listed: tuple[tuple[Any, Test, Getter], ...]
    lost: Mapping[str, str]


class Missing:
    """An attribute that a view hasn't, with the reason."""

    __slots__ = ("_reason",)

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __get__(self, instance: Any, owner: Any) -> NoReturn:
        raise AttributeError(self._reason)


_CHANGES = Missing("views are read-only: change a view's to_message() and encode that")
_NO_EXTENSIONS = Missing("views have no extensions: YaFF doesn't carry them")


class LazyNumbaType:
    """``_numba_type_`` of a view class: numba's type of its views, made when it's first asked for."""

    def __get__(self, instance: Any, owner: type[View]) -> Any:
        from yaffjit.jit import message_type

        make: Callable[..., Any] = message_type
        options = {} if owner._representation_ == "yaff" else {"representation": owner._representation_}
        made = make(plan_of(owner), **options)
        owner._numba_type_ = made
        return made


def plan_of(cls: type[View]) -> MessagePlan:
    try:
        return cls._plan_
    except AttributeError:
        raise AttributeError("View itself has no message type: take the class of a view") from None


class View(Shown):
    """A message in a buffer, read as protobuf's messages are; it can't be changed.

    Attributes of an instance, for the other layers:
        _data_: `bytes` or a read-only memoryview of bytes, which holds the message.
        _owner_: `Owner` of ``_data_``, or None until jitted code needs it.
    """

    __slots__ = ("_data_", "_owner_")

    _data_: Data
    _owner_: Owner | None
    _plan_: ClassVar[MessagePlan]
    _schema_: ClassVar[SchemaDef]
    _access_: ClassVar[Access]
    _representation_: ClassVar[str]
    _default_view_: ClassVar[View | None] = None
    _numba_type_: Any = LazyNumbaType()
    DESCRIPTOR: ClassVar[Any]

    def _native_owner_(self) -> Owner:
        """The owner of the bytes, which jitted code needs; views made from this one share it."""
        owner = self._owner_
        if owner is None:
            from yaffjit.view.owner import Owner, making

            with making:
                owner = self._owner_
                if owner is None:
                    owner = self._owner_ = Owner(self._data_, self._plan_.plan)
        return owner

    @classmethod
    def _default_(cls) -> View:
        """The default instance, which an absent message reads as."""
        raise NotImplementedError

    def _decoded_(self, most: int | None) -> Any:
        """`to_message`; None, before much more memory is used, if it takes over ``most`` bytes."""
        raise NotImplementedError

    # protobuf's reading API

    def HasField(self, field_name: str) -> bool:
        """Whether a field, or any member of a oneof, is set.

        Raises ValueError for a name that the message doesn't have and for a field without presence.
        """
        try:
            present = self._access_.presence[field_name]
        except (KeyError, TypeError):
            present = _presence_of(self._access_, field_name)
        return present(self)

    def WhichOneof(self, oneof_name: str) -> str | None:
        """The name of the member of a oneof that is set, or None; ValueError for an unknown name."""
        try:
            members = self._access_.oneofs[oneof_name]
        except (KeyError, TypeError):
            members = _members_of(self._access_, oneof_name)
        for name, present in members:
            if present(self):
                return name
        return None

    def ListFields(self) -> list[tuple[Any, Any]]:
        """Pairs of FieldDescriptor and value of all fields that are set, by ascending field number."""
        return [(field, get(self)) for field, listed, get in self._access_.listed if listed(self)]

    def to_message(self) -> Any:
        """A protobuf message with the same content, of the schema's own class."""
        return self._decoded_(None)

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        """The message as protobuf bytes; ``deterministic`` sorts maps."""
        from yaffjit.view.required import check_required

        message = View.to_message(self)
        check_required(message)
        options = {} if deterministic is None else {"deterministic": deterministic}
        return type(message).SerializePartialToString(message, **options)  # type: ignore[no-any-return]

    def SerializePartialToString(self, deterministic: bool | None = None) -> bytes:
        """As `SerializeToString`, also where a required field isn't set."""
        options = {} if deterministic is None else {"deterministic": deterministic}
        return _called(self, "SerializePartialToString", **options)  # type: ignore[no-any-return]

    def ByteSize(self) -> int:
        """The number of protobuf bytes that the message takes."""
        from yaffjit.view.required import check_required

        message = View.to_message(self)
        check_required(message)
        return type(message).ByteSize(message)  # type: ignore[no-any-return]

    def IsInitialized(self) -> bool:
        """Whether all required fields are set."""
        return _called(self, "IsInitialized")  # type: ignore[no-any-return]

    def FindInitializationErrors(self) -> list[str]:
        """Paths of the required fields that aren't set."""
        from yaffjit.view.required import missing_required

        return missing_required(View.to_message(self))

    Clear = ClearExtension = ClearField = CopyFrom = DiscardUnknownFields = _CHANGES
    MergeFrom = MergeFromString = ParseFromString = SetInParent = _CHANGES
    Extensions: Any = _NO_EXTENSIONS
    HasExtension: Any = _NO_EXTENSIONS

    # Python's own

    def __eq__(self, other: object) -> bool:
        """As two protobuf messages of one type are equal; also to a message of another copy of the schema."""
        if isinstance(other, View):
            if other._access_.descriptor.full_name != self._access_.descriptor.full_name:
                return NotImplemented
            message = View.to_message(other)
        else:
            from google.protobuf.message import Message

            full_name = self._access_.descriptor.full_name
            if not isinstance(other, Message) or type(other).DESCRIPTOR.full_name != full_name:
                return NotImplemented
            message = other
        own = View.to_message(self)
        if type(own) is not type(message):
            from google.protobuf.message import DecodeError

            try:
                message = type(own).FromString(type(message).SerializePartialToString(message))
            except DecodeError:  # this schema has no such message: its text must be UTF-8, say
                return False
        return bool(own == message)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        """protobuf's text format."""
        return str(View.to_message(self))

    def __repr__(self) -> str:
        name = self._access_.descriptor.full_name
        try:
            text, more = text_within(self, REPR_LINES, REPR_WIDTH)
            lines = text.splitlines()
        except (YaffjitError, UnicodeDecodeError, struct.error, IndexError) as error:
            return f"# {name}, view; can't be shown: {error}"
        shown = [
            line if len(line) <= REPR_WIDTH else f"{line[:REPR_WIDTH]} ..." for line in lines[:REPR_LINES]
        ]
        if more:
            shown.append("# ... more lines")
        elif len(lines) > REPR_LINES:
            shown.append(f"# ... {len(lines) - REPR_LINES} more lines")
        return "\n".join([f"# {name}, view{'' if lines else ', empty'}", *shown])

    def _html_(self) -> str:
        return preformatted(View.__repr__(self))

    def __dir__(self) -> list[str]:
        names = dict.fromkeys(self._access_.getters)
        for name in dir(type(self)):
            if not name.startswith("_") and not isinstance(_static(type(self), name), Missing):
                names[name] = None
        return list(names)

    def __copy__(self) -> View:
        return self

    def __deepcopy__(self, memo: Any) -> View:
        return self

    def _is_whole_(self, begin: int, end: int) -> bool:
        """Whether it's of the message in ``_data_[begin:end]`` itself, not of one within."""
        raise NotImplementedError

    def _any_pos_(self) -> tuple[int, bool]:
        """A position in ``_data_`` that the message has, and whether it has no bytes."""
        raise NotImplementedError

    def __reduce__(self) -> Any:
        """Pickles of a view of an index's row hold the index's path and the row."""
        found = _row_of(self)
        if found is not None:
            return operator.getitem, found
        raise TypeError(
            f"a view of {self._access_.descriptor.full_name} can't be pickled: it only points into a buffer; "
            "pickle its SerializeToString()"
        )


def _row_of(view: View) -> tuple[Any, int] | None:
    """What pickles as an index, and the view's row there."""
    from yaffjit.view.owner import address_of

    mapped: Any = view._data_
    while mapped is not None and not hasattr(mapped, "origin"):
        mapped = getattr(mapped, "obj" if isinstance(mapped, memoryview) else "base", None)
    if mapped is None or mapped.origin is None:
        return None
    shift = address_of(view._data_) - address_of(mapped)
    pos, empty = view._any_pos_()
    found = mapped.origin.row_at(mapped, shift + pos, empty)
    if found is None or view._access_.descriptor.full_name != mapped.origin.message:
        return None
    row, begin, end = found
    return (mapped.origin, row) if view._is_whole_(begin - shift, end - shift) else None


def read_only(view: View, value: Any) -> NoReturn:
    """The setter of each field."""
    name = view._access_.descriptor.full_name
    raise AttributeError(f"a view of {name} is read-only: change its to_message() and encode that")


def text_within(view: View, lines: int, width: int) -> tuple[str, bool]:
    """protobuf's text format of a view, and whether only its beginning is there since it's long."""
    message = view._decoded_(SHOWN_NBYTES)
    if message is not None:
        return str(message), False
    from yaffjit.view.sample import sample

    return str(sample(view, lines + 1, width + 1)), True


def _called(view: View, method: str, **options: Any) -> Any:
    """The result of a method of the message; by its class, as a field may have the name."""
    message = View.to_message(view)
    return getattr(type(message), method)(message, **options)


def _static(cls: type, name: str) -> Any:
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


def _name_of(name: Any) -> str:
    if isinstance(name, bytes):
        return name.decode(errors="replace")
    if not isinstance(name, str):
        raise ValueError(f"Expected a field name, but got non-string argument {name!r}.") from None
    return name


def _presence_of(access: Access, field_name: Any) -> Test:
    """A presence test that isn't found at once: by a name of bytes, or protobuf's error, with near names."""
    name = _name_of(field_name)
    if name in access.presence:
        return access.presence[name]
    if name in access.lost:
        raise ValueError(lost_field(access, name)) from None
    if name in access.getters:
        raise ValueError(f"Field {access.descriptor.full_name}.{name} does not have presence.") from None
    raise ValueError(_unknown(access, name, access.presence)) from None


def _members_of(access: Access, oneof_name: Any) -> tuple[tuple[str, Test], ...]:
    name = _name_of(oneof_name)
    if name in access.oneofs:
        return access.oneofs[name]
    if name in access.getters or name in access.lost:
        raise ValueError(f"Expected a oneof name, but got field name {name}.") from None
    raise ValueError(_unknown(access, name, access.oneofs)) from None


def _unknown(access: Access, name: str, known: Iterable[str]) -> str:
    return f'Protocol message {access.descriptor.name} has no "{name}" field{near_names(name, known)}.'


def lost_field(access: Access, name: str) -> str:
    """Why a declared field can't be read."""
    return f"YaFF doesn't carry field {access.descriptor.full_name}.{name}: {access.lost[name]}"


def near_names_error(view: View, name: str) -> NoReturn:
    """``__getattr__`` of view classes where a person reads the error."""
    if any(name in vars(base) for base in type(view).__mro__):
        # Python comes here too where a descriptor has raised AttributeError, whose text would be lost.
        object.__getattribute__(view, name)
    # Names with an underscore are what libraries try on any object.
    near = "" if name.startswith("_") else near_names(name, view._access_.getters)
    raise AttributeError(f"{view._access_.descriptor.full_name} has no field {name!r}{near}")
