"""Compares two schemas type by type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from yaffjit.errors import SchemaError, near_names
from yaffjit.evolve.enums import enum_changes
from yaffjit.evolve.facts import Facts
from yaffjit.evolve.fields import type_text
from yaffjit.evolve.messages import message_changes
from yaffjit.evolve.model import Change, SchemaComparison, Verdict, worst
from yaffjit.evolve.pairs import pair_fields, pair_types
from yaffjit.evolve.sources import definition_of
from yaffjit.schema.model import EnumDef, MessageDef, SchemaDef

if TYPE_CHECKING:
    from yaffjit.schema.sources import PathLike

_OPTION_FILES = ("google/protobuf/descriptor.proto", "yaff/proto/options.proto")
_NO_FILES = Verdict(
    "safe", "Bytes name neither files nor packages.", "Generated code is imported from elsewhere."
)
_NO_NAMES = Verdict(
    "safe",
    "Bytes don't name their type.",
    "An index and google.protobuf.Any do: read those by the old schema, or write them again.",
)
_NEW_TYPE = Verdict("safe", "There is no data of it yet.")
_PART_GONE = Verdict("safe", "It was a part of other messages, whose fields tell what becomes of it.")
_ROOT_GONE = Verdict(
    "conditional",
    "Data of this type has no reader any more.",
    "Do it only if no such data is left.",
)


def compare_schemas(
    old: Any,
    new: Any,
    message: str | None = None,
    include: Sequence[PathLike] = (),
    slice: str | None = None,
) -> SchemaComparison:
    """What changes between two schemas, and which of it is safe for data and readers that exist.

    A verdict holds for both directions: old data under the new schema, and new data under the old schema.
    Extensions and services aren't compared.

    Args:
        old, new: what `load_schema` takes; or a `Schema`, an `Index`, or the path of an index, of which only
            what its message type reaches is compared.
        message: compare only this message type and what it reaches.
        include: folders in which imports of `.proto` files are found.
        slice: read YaFF's options by this slice, None for the default one.

    Raises:
        SchemaError: a schema can't be loaded, or neither has the message.
    """
    sources = [definition_of(source, include, slice) for source in (old, new)]
    roots = {source.root for source in sources if source.root is not None}
    if message is not None:
        roots = {message}
    schemas = sources[0].schema, sources[1].schema
    return SchemaComparison(tuple(_Comparer(*schemas, tuple(sorted(roots))).changes()))


class _Comparer:
    def __init__(self, old: SchemaDef, new: SchemaDef, roots: tuple[str, ...]) -> None:
        self.old, self.new = Facts(old), Facts(new)
        sides = [(_messages(schema), _enums(schema)) for schema in (old, new)]
        if roots:
            for root in roots:
                if not any(root in messages for messages, _ in sides):
                    names = {**sides[0][0], **sides[1][0]}
                    raise SchemaError(f"neither schema has a message {root!r}{near_names(root, names)}")
            sides = [
                _reached(facts, roots, *side) for facts, side in zip((self.old, self.new), sides, strict=True)
            ]
        (self.old_messages, self.old_enums), (self.new_messages, self.new_enums) = sides
        self.messages = pair_types(self.old_messages, self.new_messages, self._of_fields("message"))
        self.enums = pair_types(self.old_enums, self.new_enums, self._of_fields("enum"))
        self.files = [{m.file for m in messages.values()} for messages, _ in sides]
        # Pairs of types that are no namesakes, but which a field had and has: each is compared once.
        self.seen: set[tuple[str, str]] = set()

    def _of_fields(self, kind: str) -> Iterator[tuple[str, str]]:
        """The types that a field of both schemas had and has."""
        for name, was in self.old_messages.items():
            now = self.new_messages.get(name)
            for f, g in pair_fields(was, now).all if now is not None else ():
                if f.kind == g.kind == kind and not f.is_map and not g.is_map:
                    yield f.type_name, g.type_name

    def changes(self) -> Iterator[Change]:
        parts = {
            f.type_name
            for was in self.old.schema.messages.values()
            for f in was.fields
            if f.kind == "message"
        }
        yield from self._types("message", self.old_messages, self.new_messages, self.messages, parts)
        for name, after in self.messages.items():
            yield from self._of_pair(name, after)
        yield from self._types("enum", self.old_enums, self.new_enums, self.enums, set(self.old_enums))
        for name, after in self.enums.items():
            yield from self._of_enums(name, after)

    def _types(
        self, what: str, old: Any, new: Any, pairs: dict[str, str], parts: set[str]
    ) -> Iterator[Change]:
        for name, declared in old.items():
            after = pairs.get(name)
            if after is None and name not in self._names(1, what):
                gone = _PART_GONE if name in parts else _ROOT_GONE
                yield Change(name, f"{what}-removed", f"{what} removed", gone, gone)
            elif after is not None and after != name:
                yield Change(name, f"{what}-renamed", f"{what} renamed to {after}", _NO_NAMES, _NO_NAMES)
            if after is not None and self._moved(declared.file, new[after].file):
                moved = f"moved from {declared.file} to {new[after].file}"
                yield Change(name, f"{what}-moved", moved, _NO_FILES, _NO_FILES)
        partners = set(pairs.values())
        for name in new:
            if name not in partners and name not in self._names(0, what):
                yield Change(name, f"{what}-added", f"{what} added", _NEW_TYPE, _NEW_TYPE)

    def _names(self, side: int, what: str) -> Iterable[str]:
        """All types of a schema, also those that the roots don't reach."""
        schema = (self.old, self.new)[side].schema
        return schema.messages if what == "message" else schema.enums

    def _moved(self, before: str, after: str) -> bool:
        """Whether a type went to another file, rather than its file got another name."""
        return before != after and (before in self.files[1] or after in self.files[0])

    def _of_pair(self, name: str, after: str) -> Iterator[Change]:
        """Changes of a message type, and of pairs of types that only its fields put together."""
        if (name, after) in self.seen:
            return
        self.seen.add((name, after))
        was, now = self.old.schema.messages[name], self.new.schema.messages[after]
        yield from message_changes(self.old, self.new, was, now)
        for f, g in pair_fields(was, now).all:
            yield from self._of_targets(was, f, g)

    def _of_targets(self, was: MessageDef, f: Any, g: Any) -> Iterator[Change]:
        """A field whose message or enum type is another one: their values are compared with each other."""
        if f.is_map and g.is_map:
            entries = self.old.schema.messages[f.type_name], self.new.schema.messages[g.type_name]
            values = [message.fields[1] for message in entries]
            where = f"{was.full_name}.{f.name}"
            yield from self._of_types(where, values[0], values[1])
        elif not f.is_map and not g.is_map:
            yield from self._of_types(f"{was.full_name}.{f.name}", f, g)

    def _of_types(self, where: str, f: Any, g: Any) -> Iterator[Change]:
        if f.kind != g.kind or f.kind not in ("message", "enum"):
            return
        pairs = self.messages if f.kind == "message" else self.enums
        if pairs.get(f.type_name) == g.type_name or (f.type_name, g.type_name) in self.seen:
            return
        if f.kind == "message":
            changes = list(self._of_pair(f.type_name, g.type_name))
        else:
            self.seen.add((f.type_name, g.type_name))
            changes = list(self._of_enums(f.type_name, g.type_name))
        what = f"type {type_text(self.old, f)} -> {type_text(self.new, g)}"
        rule = "Bytes don't name their type, so these two are compared field by field, below."
        if f.kind == "enum":
            rule = "An enum is stored as its number, so the values of these two are compared, below."
        grades = [
            worst(getattr(change, format).grade for change in changes) for format in ("yaff", "protobuf")
        ]
        yield Change(where, "field-type", what, Verdict(grades[0], rule), Verdict(grades[1], rule))
        yield from changes

    def _of_enums(self, name: str, after: str) -> Iterator[Change]:
        enums = self.old.schema.enums[name], self.new.schema.enums[after]
        yield from enum_changes(self.old, self.new, *enums)


def _messages(schema: SchemaDef) -> dict[str, MessageDef]:
    return {
        name: message
        for name, message in schema.messages.items()
        if not message.is_map_entry and message.file not in _OPTION_FILES
    }


def _enums(schema: SchemaDef) -> dict[str, EnumDef]:
    return {name: enum for name, enum in schema.enums.items() if enum.file not in _OPTION_FILES}


def _reached(
    facts: Facts, roots: Iterable[str], messages: dict[str, MessageDef], enums: dict[str, EnumDef]
) -> tuple[dict[str, MessageDef], dict[str, EnumDef]]:
    """Only what the roots reach."""
    names = {name for root in roots if root in messages for name in facts.reached(root)}
    all_fields = [f for name in names for f in facts.schema.messages[name].fields]
    used = {f.type_name for f in all_fields if f.kind == "enum"}
    return (
        {name: message for name, message in messages.items() if name in names},
        {name: enum for name, enum in enums.items() if name in used},
    )
