"""Writes a schema's stub: a protocol and a view class for each message, its enums, and the schema itself.

The module exists for type checkers only: it's imported under ``if TYPE_CHECKING``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from yaffjit.errors import SchemaError
from yaffjit.schema.enums import member_names
from yaffjit.schema.model import EnumDef, FieldDef, MessageDef, SchemaDef
from yaffjit.stubs.names import ENUMS, MODULES, SCHEMA, class_names, first_file, is_usable
from yaffjit.stubs.wellknown import HELPERS

if TYPE_CHECKING:
    from yaffjit.schema.sources import PathLike

_SCALARS = {"string": "str", "bytes": "bytes", "bool": "bool", "float": "float", "double": "float"}

_HEADER = """\
# Written by yaffjit stubs; for type checkers and editors only, there is no such module at run time:
#
#     from typing import TYPE_CHECKING, cast
#     if TYPE_CHECKING:
#         import {module}
#     schema = cast("{module}.Schema", yaffjit.load_schema(...))
#
# mypy: ignore-errors
# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false
import builtins
import collections.abc
import datetime
import enum
import typing

import yaffjit

class _Message(typing.Protocol):
    def ListFields(self) -> collections.abc.Sequence[builtins.tuple[typing.Any, typing.Any]]: ...
    def SerializeToString(self) -> builtins.bytes: ...
    def ByteSize(self) -> builtins.int: ...
    def IsInitialized(self) -> builtins.bool: ...
"""


def stub_name(schema: SchemaDef) -> str:
    """The module's name: that of the first file, as ``ads_yaff`` for ads.proto."""
    stem = Path(first_file(schema)).stem or "schema"
    return f"{re.sub(r'[^0-9A-Za-z_]', '_', stem)}_yaff"


def write_stub(schema: SchemaDef, folder: PathLike, module: str | None = None) -> Path:
    """Write the stub of a schema.

    Args:
        schema: what `Schema.definition` has.
        folder: where to; it's made if it isn't there.
        module: the name of the module, None for that of the first file, as ads_yaff.

    Returns:
        The path of the file.

    Raises:
        SchemaError: Python can't import a module of that name.
    """
    module = stub_name(schema) if module is None else module
    if not is_usable(module):
        raise SchemaError(f"a module can't be named {module!r}")
    path = Path(folder) / f"{module}.pyi"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(stub_text(schema, module), encoding="utf-8")
    return path


def stub_text(schema: SchemaDef, module: str) -> str:
    """The stub of a schema, as the text of a module."""
    writer = _Writer(schema)
    blocks = [_HEADER.format(module=module)]
    for enum in schema.enums.values():
        blocks.append(_lines(writer.enum(enum)))
    for message in schema.messages.values():
        if not message.is_map_entry:
            blocks.append(_lines(writer.protocol(message)))
            blocks.append(_lines(writer.view(message)))
    blocks.append(_lines(writer.enums()))
    blocks.append(_lines(writer.schema_class()))
    return "\n".join(blocks)


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _literal(names: Iterable[str]) -> str:
    quoted = ", ".join(repr(name) for name in names)
    return f"typing.Literal[{quoted}]" if quoted else "typing.NoReturn"


def _is_readable(f: FieldDef) -> bool:
    """Whether a class can have the field: its name isn't a keyword, nor one that the stub needs."""
    return is_usable(f.name) and f.name not in MODULES


class _Writer:
    def __init__(self, schema: SchemaDef) -> None:
        self.schema = schema
        self.names = class_names(schema)

    def enum(self, enum: EnumDef) -> Iterator[str]:
        """As `Schema.enums` has it."""
        yield f"class {self.names[enum.full_name]}(enum.IntEnum):"
        for name, number in member_names(enum.full_name, enum.values).items():
            if is_usable(name):
                yield f"    {name} = {number}"
            else:
                yield f"    # {name} = {number}: a keyword; read it by its number"

    def protocol(self, message: MessageDef) -> Iterator[str]:
        """What a view and a protobuf message have in common."""
        hidden = {f.name for f in message.fields}
        yield f"class {self.names[message.full_name]}(_Message, typing.Protocol):"
        for f in message.fields:
            if _is_readable(f):
                yield from self._field(f, "")
            else:
                yield f"    # {f.name}: {self._type(f, '')}, by getattr(view, {f.name!r})"
        yield from self._asking(message, hidden)

    def view(self, message: MessageDef) -> Iterator[str]:
        """A view: the same, whose messages are views too."""
        name = self.names[message.full_name]
        yield f"class {name}View({name}, yaffjit.View):"
        for f in message.fields:
            if self._is_of_messages(f) and _is_readable(f):
                yield from self._field(f, "View")
        yield from HELPERS.get(message.full_name, ())
        if not message.oneofs:  # not of the protocol, as what messages have gives text
            yield "    def WhichOneof(self, oneof_name: typing.NoReturn, /) -> None: ..."
        yield "    def to_message(self) -> typing.Any: ..."

    def _field(self, f: FieldDef, suffix: str) -> Iterator[str]:
        yield "    @builtins.property"
        yield f"    def {f.name}(self) -> {self._type(f, suffix)}: ..."

    def _is_of_messages(self, f: FieldDef) -> bool:
        value = self.schema.messages[f.type_name].fields[1] if f.is_map else f
        return value.kind in ("message", "group")

    def _type(self, f: FieldDef, suffix: str) -> str:
        if f.is_map:
            key, value = self.schema.messages[f.type_name].fields
            return f"collections.abc.Mapping[{self._type(key, suffix)}, {self._type(value, suffix)}]"
        if f.kind in ("message", "group"):
            single = f"{self.names[f.type_name]}{suffix}"
        else:
            single = f"builtins.{_SCALARS.get(f.kind, 'int')}"
        return f"collections.abc.Sequence[{single}]" if f.repeated else single

    def _asking(self, message: MessageDef, hidden: set[str]) -> Iterator[str]:
        """HasField and WhichOneof, which take only names that make sense."""
        if "HasField" not in hidden:
            present = [f.name for f in message.fields if f.explicit]
            present += [oneof.name for oneof in message.oneofs]
            yield f"    def HasField(self, field_name: {_literal(present)}, /) -> builtins.bool: ..."
        if "WhichOneof" not in hidden:
            oneofs = {oneof.name: f"{_literal(oneof.fields)} | None" for oneof in message.oneofs}
            yield from _overloaded("WhichOneof", "oneof_name", oneofs)

    def enums(self) -> Iterator[str]:
        yield f"class {ENUMS}(typing.Protocol):"
        types = {name: f"builtins.type[{self.names[name]}]" for name in self.schema.enums}
        yield from _overloaded("__getitem__", "full_name", types)
        yield from _mapping("builtins.type[enum.IntEnum]")

    def schema_class(self) -> Iterator[str]:
        """`Schema`, which knows the type of each name."""
        yield f"class {SCHEMA}(typing.Protocol):"
        types = {
            name: f"yaffjit.MessageType[{self.names[name]}View]"
            for name, message in self.schema.messages.items()
            if not message.is_map_entry
        }
        yield from _overloaded("__getitem__", "full_name", types)
        yield from _mapping("")
        yield "    @builtins.property"
        yield f"    def enums(self) -> {ENUMS}: ..."
        for name, type in (
            ("messages", "collections.abc.Mapping[builtins.str, yaffjit.MessageType]"),
            ("unsupported", "collections.abc.Mapping[builtins.str, builtins.str]"),
            ("definition", "typing.Any"),
        ):
            yield "    @builtins.property"
            yield f"    def {name}(self) -> {type}: ..."


def _mapping(values: str) -> Iterator[str]:
    yield "    def __contains__(self, full_name: builtins.object) -> builtins.bool: ..."
    yield "    def __iter__(self) -> collections.abc.Iterator[builtins.str]: ..."
    yield "    def __len__(self) -> builtins.int: ..."
    if values:
        yield f"    def values(self) -> collections.abc.ValuesView[{values}]: ..."
        yield f"    def items(self) -> collections.abc.ItemsView[builtins.str, {values}]: ..."


def _overloaded(method: str, argument: str, results: Mapping[str, str]) -> Iterator[str]:
    """A method whose result depends on which of some names it's given."""
    for name, result in results.items():
        if len(results) > 1:
            yield "    @typing.overload"
        yield f"    def {method}(self, {argument}: {_literal([name])}, /) -> {result}: ..."
