"""The public face: schemas, and the functions that take message types."""

from __future__ import annotations

import enum
import functools
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from yaffjit.errors import SchemaError, near_names
from yaffjit.forks import renew_properties
from yaffjit.introduce import tell_numba
from yaffjit.markup import Shown
from yaffjit.message_type import MessageType
from yaffjit.typed import AnyView

if TYPE_CHECKING:
    from yaffjit.index import Index, PackedIndex
    from yaffjit.plan import MessagePlan, Plan
    from yaffjit.rows import Records
    from yaffjit.schema.model import SchemaDef
    from yaffjit.schema.sources import PathLike

AnyIndex = TypeVar("AnyIndex", "Index", "PackedIndex")

# In a notebook.
SHOWN_MESSAGES = 50

# Imported only for the options in other files, so they aren't what a user looks for in `Schema.messages`.
_OPTION_FILES = ("google/protobuf/descriptor.proto", "yaff/proto/options.proto")


def load_schema(source: Any, include: Sequence[PathLike] = (), slice: str | None = None) -> Schema:
    """Load a schema.

    Args:
        source: one or several `.proto` paths, a FileDescriptorSet (path or bytes), a generated ``*_pb2``
            module, a message class, or a descriptor; several as a list of one sort.
        include: folders in which imports of `.proto` files are found; a file outside of them adds its own.
        slice: read YaFF's options by this slice, None for the default one.

    Returns:
        A `Schema`; it is independent of every other schema in the process, whatever names they share.

    Raises:
        SchemaError: with protoc's own lines where a `.proto` doesn't compile.
    """
    from yaffjit.plan import Plan
    from yaffjit.schema import load

    return Schema(Plan(load(source, include, slice)))


@renew_properties
class Schema(Shown):
    """A loaded schema: ``schema["ads.Banner"]`` is a `MessageType`."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._types: dict[str, MessageType] = {}
        plan.memo.setdefault("schema", self)
        if "numba.core.typing.typeof" in sys.modules:
            tell_numba()

    @property
    def definition(self) -> SchemaDef:
        """What the files say, without layout."""
        return self._plan.schema

    def __getitem__(self, full_name: str) -> MessageType:
        """The message type of that full name. SchemaError with near names if there is none."""
        if not isinstance(full_name, str):
            raise TypeError(f"message types have names, so they aren't found by {type(full_name).__name__}")
        known = self._types.get(full_name)
        if known is None:
            names = self._plan.schema.messages
            if full_name not in names:
                ends = [name for name in names if name.endswith(f".{full_name}")]
                near = near_names(ends[0] if ends else full_name, names)
                if full_name in self._plan.schema.enums:
                    near = ": it is an enum, as schema.enums has them"
                raise SchemaError(f"the schema has no message {full_name!r}{near}")
            known = self._types.setdefault(full_name, MessageType(self, full_name))
        return known

    def __contains__(self, full_name: object) -> bool:
        return isinstance(full_name, str) and full_name in self._plan.schema.messages

    def __iter__(self) -> Iterator[str]:
        return iter(self.messages)

    def __len__(self) -> int:
        return len(self.messages)

    @functools.cached_property
    def _hidden_files(self) -> tuple[str, ...]:
        files = {message.file for message in self.definition.messages.values()}
        return _OPTION_FILES if files - set(_OPTION_FILES) else ()

    @functools.cached_property
    def messages(self) -> Mapping[str, MessageType]:
        """All message types by full name, nested ones too, imported ones last; no map entries."""
        return MappingProxyType(
            {
                name: self[name]
                for name, message in self.definition.messages.items()
                if not message.is_map_entry and message.file not in self._hidden_files
            }
        )

    @functools.cached_property
    def enums(self) -> Mapping[str, type[enum.IntEnum]]:
        """All enums by full name, as IntEnum classes; names that share a number are aliases.

        Members pickle as plain numbers.
        """
        from yaffjit.schema.enums import int_enum

        return MappingProxyType(
            {
                name: int_enum(name, enum_def.values)
                for name, enum_def in self.definition.enums.items()
                if enum_def.file not in self._hidden_files
            }
        )

    @functools.cached_property
    def unsupported(self) -> Mapping[str, str]:
        """The messages that YaFF can't hold, with the reason. They fail only when they are used as YaFF."""
        faults = {name: self._plan.fault(name) for name in self.messages}
        return MappingProxyType({name: fault for name, fault in faults.items() if fault is not None})

    def __repr__(self) -> str:
        count = len(self.messages)
        names = list(self.messages)
        shown = ", ".join(names[:5]) + (", ..." if count > 5 else "")
        return f"<Schema of {count} message{'s' if count != 1 else ''}: {shown}>"

    def _html_(self) -> str:
        from yaffjit.render import schema_html

        names = list(self.messages)[:SHOWN_MESSAGES]
        unsupported = self.unsupported
        plans = [(name, unsupported.get(name) or self[name].plan) for name in names]
        return schema_html(repr(self)[1:-1], plans, more=len(self.messages) - len(names))

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.messages)

    def __reduce__(self) -> Any:
        return _schema_of, (self._plan,)


def _schema_of(plan: Plan) -> Schema:
    """The schema that a plan was made for."""
    schema: Schema | None = plan.memo.get("schema")
    return Schema(plan) if schema is None else schema


def records(
    message_type: MessageType[AnyView], payloads: Any, representation: str = "yaff", copy: bool = False
) -> Records[AnyView]:
    """Messages that are already encoded, as records that are read in place.

    Those of YaFF are verified first; protobuf bytes are checked as far as they are read, when they are.

    Args:
        message_type: their type.
        payloads: an iterable of bytes, one a message, or None for a null row;
            ``(data, offsets)``, where message i is ``data[offsets[i]:offsets[i + 1]]``: data any contiguous
            buffer, a memory map say, offsets n + 1 integers;
            an Arrow array of binary, large_binary, binary_view or fixed_size_binary, also chunked, sliced,
            dictionary-encoded, with nulls, of pyarrow or of any library with the Arrow PyCapsule interface;
            a numpy array of V bytes, or of S bytes of which none ends in a zero.
        representation: how the messages are encoded: "yaff" or "protobuf".
        copy: copy what could change first, because what was verified, or is read twice, mustn't change.

    Raises:
        VerifyError: names the row, field path, position and the two numbers compared.
        ValueError: a buffer is writable and ``copy`` false, or offsets don't fit.
        TypeError: these aren't payloads, or an Arrow column isn't of bytes.
    """
    from yaffjit.rows import records

    return records(_plan_of(message_type), payloads, representation, copy)


def records_unchecked(
    message_type: MessageType[AnyView], payloads: Any, representation: str = "yaff"
) -> Records[AnyView]:
    """As `records`, but trusts the messages, and takes writable data as it is.

    Requires: each message is well-formed, and neither data nor offsets change while the records, their views
    or a jitted function that reads them live.
    """
    from yaffjit.rows import records_unchecked

    return records_unchecked(_plan_of(message_type), payloads, representation)


def open_index(
    path: PathLike,
    message_type: MessageType[AnyView] | None = None,
    verify: str = "open",
    progress: bool | None = None,
) -> Index[AnyView]:
    """Open an index and check it: its checksums, its offsets, the structure of each message.

    Args:
        path: a file or a directory that `build_index` wrote.
        message_type: read the messages by this type, None for the schema in the files. It must have the name
            of the type in the files; its schema may be an older or newer version.
        verify: "open": everything is checked now; "batch": each batch of 65,536 messages when it's first
            read, by whatever reads it, which raises then what opening would have.
        progress: a bar; None shows it on a terminal if the work takes over a second.

    Returns:
        `Index`: records, with ``message_type``, ``schema`` and the other columns. The files stay mapped while
        it or a view of it lives. What is appended to a directory later isn't seen by it.

    Raises:
        IndexFileError: names the file, the batch and what is wrong with it.
    """
    from yaffjit.index import open_index

    return _with_types(open_index(path, message_type, verify, progress), message_type)


def open_packed(path: PathLike, message_type: MessageType[AnyView] | None = None) -> PackedIndex[AnyView]:
    """Open an index that `build_index` wrote with ``compression``: it's unpacked a batch at a time.

    Args:
        path, message_type: as `open_index` takes them.

    Returns:
        `PackedIndex`: ``batches()`` gives records of up to 65,536 rows, each checked; a loop gives views.

    Raises:
        IndexFileError: it isn't an index.
    """
    from yaffjit.index import open_packed

    return _with_types(open_packed(path, message_type), message_type)


def open_index_unchecked(path: PathLike, message_type: MessageType[AnyView] | None = None) -> Index[AnyView]:
    """As `open_index`, but reads what describes the batches and trusts the rest: instant whatever the size.

    Requires: `build_index` wrote the files, and they are as they were written.
    """
    from yaffjit.index import open_index_unchecked

    return _with_types(open_index_unchecked(path, message_type), message_type)


def _plan_of(message_type: Any) -> MessagePlan:
    if not isinstance(message_type, MessageType):
        raise TypeError(
            f"a MessageType is needed, as schema[{message_type!r}] would be"
            if isinstance(message_type, str)
            else f"a MessageType is needed, not {type(message_type).__name__}"
        )
    return message_type.plan


def _with_types(index: AnyIndex, message_type: MessageType | None) -> AnyIndex:
    if message_type is None:
        message_type = _schema_of(index.plan.plan)[index.plan.full_name]
    index.message_type = message_type
    index.schema = message_type.schema
    return index
