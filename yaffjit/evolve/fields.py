"""What the changes of one field mean: its number, name, type, label, presence, default and options."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from yaffjit.evolve.facts import Facts
from yaffjit.evolve.model import Change, Verdict, worst
from yaffjit.evolve.types import wire_types, yaff_types
from yaffjit.plan.build import slot_default
from yaffjit.plan.model import SCALAR_WIDTH
from yaffjit.schema.model import FieldDef, MessageDef

_NOT_IN_YAFF = Verdict("safe", "YaFF carries the field in neither schema.")
_NAMES_ONLY = Verdict("safe", "Bytes name fields by number.")
_JSON_NAMES = Verdict(
    "unsafe",
    "JSON names fields by their names, so a reader doesn't find what the other wrote.",
    "Give the new field the old json_name, if JSON is stored or sent.",
)
_NEW_FIELD = "Keep the field as it is, and add one with a free number."
_FIXED = Verdict(
    "unsafe",
    "A message of the fixed layout has no header: all readers must know the same slots.",
    "Add a new message type, or reserve a removed id with its type.",
)
_SINGULAR_REPEATED = Verdict(
    "unsafe", "A repeated field's slot leads to an array, a singular field's holds the value.", _NEW_FIELD
)


class FieldRules:
    """Judges the fields of one pair of message types."""

    def __init__(self, old: Facts, new: Facts, was: MessageDef, now: MessageDef) -> None:
        self.old, self.new, self.was, self.now = old, new, was, now
        self.laid_old, self.laid_new = old.laid(was.full_name), new.laid(now.full_name)
        self.same_slots = self.laid_old.widths == self.laid_new.widths

    def where(self, f: FieldDef) -> str:
        return f"{self.was.full_name}.{f.name}"

    # a field that one schema has

    def added(self, f: FieldDef, reused: bool) -> Change:
        what = f"field added, number {f.number}"
        new_id = self.new.id(self.now, f)
        wire = Verdict(
            "safe", "A reader without the field passes over it; data without it reads as its default."
        )
        yaff = wire
        old_ids = {self.old.id(self.was, other): other for other in self.was.fields}
        advice = f"Take a number that was never used, and reserve {f.number}."
        if reused or f.number in self.old.reserved(self.was.full_name):
            before = next((other.name for other in self.was.fields if other.number == f.number), "")
            owner = f"field {before}" if before else "a field"
            rule = f"Number {f.number} belonged to {owner}, whose old data would be read as this field."
            if not before:
                rule = f"Number {f.number} was reserved, so old data may have another field under it."
            wire = yaff = Verdict("unsafe", rule, advice)
            return Change(self.where(f), "number-reused", what, yaff, wire)
        if new_id is None:
            yaff = Verdict("safe", "YaFF doesn't carry the field.")
        elif new_id in old_ids:
            rule = f"Id {new_id} belonged to field {old_ids[new_id].name}, whose data would read as this one."
            yaff = Verdict("unsafe", rule, "Take an id that was never used.")
        elif new_id in self.laid_old.widths:
            rule = f"Id {new_id} was reserved or deprecated, so old data may have another field under it."
            yaff = Verdict("unsafe", rule, "Take an id that was never used.")
        elif self._fixed_differs():
            yaff = _FIXED
        elif self._gets_gaps():
            gap = min(set(range(1, new_id)) - self.laid_new.widths.keys(), default=new_id)
            advice = (
                f"Ids have a gap now, so the message is written sparse: take id {gap} if it was never used."
            )
            yaff = Verdict("safe", yaff.rule, advice)
        return Change(self.where(f), "field-added", what, yaff, wire)

    def removed(self, f: FieldDef) -> Change:
        reserved = f.number in self.new.reserved(self.now.full_name)
        advice = (
            ""
            if reserved
            else f"Reserve number {f.number} and the name {f.name}, so that nobody uses them again."
        )
        wire = Verdict(
            "safe", "A reader without the field passes over it; data without it reads as its default.", advice
        )
        return Change(
            self.where(f), "field-removed", f"field removed, number {f.number}", self._gone(f, wire), wire
        )

    def _gone(self, f: FieldDef, safe: Verdict) -> Verdict:
        """YaFF's verdict on a field that it carries no longer."""
        id = self.old.id(self.was, f)
        if id is None:
            return _NOT_IN_YAFF
        if id in self.laid_new.widths:  # a typed reserve, or deprecated: the slot stays
            return safe
        if self._fixed_differs():
            return _FIXED
        above = any(other > id for other in self.laid_new.widths)
        reserve = f"Reserve id {id} by reserved_fields with its type, or mark the field deprecated"
        if self.laid_old.layout == "flat" and above:
            rule = "Pinned flat data doesn't tell the size of its slots: a reader can't pass over this one."
            return Verdict("unsafe", rule, f"{reserve}.")
        if self._gets_gaps():
            return Verdict(
                "safe", safe.rule, f"{reserve}: without that the message is written sparse from now on."
            )
        return safe

    def _fixed_differs(self) -> bool:
        return "fixed" in (self.laid_old.layout, self.laid_new.layout) and not self.same_slots

    def _gets_gaps(self) -> bool:
        return self.laid_new.gapped and not self.laid_old.gapped and self.laid_new.layout == "dynamic"

    # a field that both have

    def compared(self, f: FieldDef, g: FieldDef) -> Iterator[Change]:
        """Changes of a field, without its oneof."""
        carried = self.old.id(self.was, f) is not None or self.new.id(self.now, g) is not None
        for change in self._compared(f, g):
            if carried or change.yaff.grade == "safe":
                yield change
            else:
                yield Change(
                    change.where, change.kind, change.what, _NOT_IN_YAFF, change.protobuf, change.json
                )

    def _compared(self, f: FieldDef, g: FieldDef) -> Iterator[Change]:
        where = self.where(f)
        yield from self._identity(where, f, g)
        type_change = self._type(where, f, g)
        if type_change is not None:
            yield type_change
        yield from self._carried(where, f, g)
        alike = f.repeated == g.repeated and (f.kind == "message") == (g.kind == "message")
        if alike:
            yield from (
                change
                for change in self._presence(where, f, g)
                if f.oneof == g.oneof or change.yaff.grade != "safe"  # else the oneof says enough
            )
        if alike and not f.repeated and _family(f) == _family(g) != "":
            yield from self._default(where, f, g)
        if alike and f.repeated and self.old.packed(self.was, f) != self.new.packed(self.now, g):
            words = ("unpacked", "packed") if self.new.packed(self.now, g) else ("packed", "unpacked")
            wire = Verdict("safe", "Parsers take packed and unpacked elements, whatever the schema says.")
            same = Verdict("safe", "YaFF stores both as the same array.")
            if type_change is None:
                yield Change(where, "field-packed", f"{words[0]} -> {words[1]}", same, wire)
        if f.kind == g.kind == "string" and f.utf8 != g.utf8:
            verdict = Verdict(
                "conditional",
                "One reader refuses text that isn't UTF-8, the other doesn't.",
                "Do it only if all texts are UTF-8.",
            )
            word = "checked from now on" if g.utf8 else "not checked any more"
            yield Change(where, "field-utf8", f"UTF-8 {word}", verdict, verdict)

    def _identity(self, where: str, f: FieldDef, g: FieldDef) -> Iterator[Change]:
        ids = self.old.id(self.was, f), self.new.id(self.now, g)
        moved = Verdict(
            "unsafe",
            "Bytes name a field by its number: what is written under one isn't found under the other.",
            f"Keep number {f.number}.",
        )
        other_id = Verdict(
            "unsafe",
            "YaFF finds a field by its id: what is written under one isn't found under the other.",
            f"Keep id {ids[0]}, by (yaff.proto.field).id if the number must change.",
        )
        id_differs = None not in ids and ids[0] != ids[1]
        if f.number != g.number:
            yaff = other_id if id_differs else Verdict("safe", f"The id of the field is still {ids[0]}.")
            yield Change(where, "field-number", f"number {f.number} -> {g.number}", yaff, moved)
        elif id_differs:
            wire = Verdict("safe", "Protobuf knows nothing of ids.")
            yield Change(where, "field-id", f"id {ids[0]} -> {ids[1]}", other_id, wire)
        if f.name != g.name:
            rule = Verdict(
                "safe", _NAMES_ONLY.rule, "If it isn't the same field, take a number that was never used."
            )
            json = _JSON_NAMES if f.json_name != g.json_name else None
            yield Change(where, "field-renamed", f"renamed to {g.name}", rule, rule, json)
        elif f.json_name != g.json_name:
            what = f"json_name {f.json_name} -> {g.json_name}"
            yield Change(where, "field-json-name", what, _NAMES_ONLY, _NAMES_ONLY, _JSON_NAMES)

    def _carried(self, where: str, f: FieldDef, g: FieldDef) -> Iterator[Change]:
        """Whether YaFF carries the field: deprecated, slices, ignored types."""
        left = self.old.without(self.was, f), self.new.without(self.now, g)
        same = Verdict("safe", "Protobuf reads and writes the field as before.")
        if f.deprecated != g.deprecated:
            what = "deprecated" if g.deprecated else "not deprecated any more"
            yaff = Verdict("safe", "Whether a field is deprecated doesn't change how it is stored here.")
            if g.deprecated and left[1] == "deprecated":
                reader = "YaFF's readers and writers pass over a deprecated field, and its slot stays."
                yaff = self._gone(f, Verdict("safe", reader, "Read it no more, before it is marked."))
            elif left[0] == "deprecated" and left[1] is None:
                yaff = Verdict(
                    "safe", "Data that was written meanwhile hasn't the field, and reads as its default."
                )
            yield Change(where, "field-deprecated", what, yaff, same)
        elif left[0] is None and left[1] is not None:
            safe = Verdict("safe", "YaFF's readers pass over the field.")
            yield Change(
                where, "field-left", f"YaFF carries it no more: {left[1]}", self._gone(f, safe), same
            )
        elif left[0] is not None and left[1] is None:
            yaff = (
                _FIXED if self._fixed_differs() else Verdict("safe", "Old data reads as the field's default.")
            )
            yield Change(where, "field-joined", f"YaFF carries it now; before: {left[0]}", yaff, same)

    def _presence(self, where: str, f: FieldDef, g: FieldDef) -> Iterator[Change]:
        if f.required != g.required:
            word = "required" if g.required else "not required any more"
            refusal = "A parser refuses a message that lacks a required field."
            wire = Verdict("conditional", refusal, "Update all readers before a writer leaves it out.")
            if g.required:
                wire = Verdict("unsafe", refusal, "Leave it optional, and check it in code.")
            yaff = Verdict("safe", "YaFF doesn't enforce `required`.")
            yield Change(where, "field-required", word, yaff, wire)
        elif f.explicit != g.explicit and not f.repeated and f.kind not in ("message", "group"):
            words = ("explicit", "implicit") if f.explicit else ("implicit", "explicit")
            wire = Verdict(
                "safe", "The value stays; a zero without presence isn't written, it reads as unset."
            )
            yaff = Verdict("safe", wire.rule)
            implicit = (self.new, self.now) if f.explicit else (self.old, self.was)
            if f.kind in SCALAR_WIDTH and self._writes_zeros(*implicit):
                yaff = Verdict(
                    "conditional",
                    "The value stays; a zero without presence is written here, and reads as set.",
                    "Do it only if nobody asks HasField or WhichOneof of such data.",
                )
            yield Change(where, "field-presence", f"presence {words[0]} -> {words[1]}", yaff, wire)

    def _writes_zeros(self, facts: Facts, message: MessageDef) -> bool:
        """Whether YaFF writes fields without presence even if they are zero: beside any that has presence."""
        if facts.laid(message.full_name).layout == "fixed":
            return False
        return any(other.explicit and facts.id(message, other) is not None for other in message.fields)

    def _default(self, where: str, f: FieldDef, g: FieldDef) -> Iterator[Change]:
        bits = slot_default(f), slot_default(g)
        same = _default_bytes(f) == _default_bytes(g)
        if same and bits[0] == bits[1]:
            return
        wire = Verdict("safe", "Protobuf reads the same default.")
        if not same:
            wire = Verdict(
                "conditional",
                "A field that isn't set reads as the default of the reader; set values don't change.",
                "Do it only if no reader depends on the old default.",
            )
        if bits[0] == bits[1]:
            yaff = Verdict("unsafe", "A field that isn't set reads as another value.", "Keep the default.")
        else:
            rule = "A slot holds the value XOR the default, so values that are set are misread."
            yaff = Verdict("unsafe", rule, "Keep the default.")
        what = f"default {f.default!r} -> {g.default!r}"
        if same:
            what = f"[default = {g.default!r}] {'given' if g.has_default else 'not given any more'}"
        yield Change(where, "field-default", what, yaff, wire)

    def _type(self, where: str, f: FieldDef, g: FieldDef) -> Change | None:
        """The change of a field's type or label; messages and enums by name are compared elsewhere."""
        what = f"type {type_text(self.old, f)} -> {type_text(self.new, g)}"
        if f.is_map or g.is_map:
            return self._map(where, what, f, g)
        if f.repeated != g.repeated:
            return Change(where, "field-label", what, _SINGULAR_REPEATED, self._relabelled(f, g))
        delimited = self.old.delimited(self.was, f), self.new.delimited(self.now, g)
        closed = self._closed(f, g)
        if f.kind == g.kind and delimited[0] == delimited[1]:
            if f.kind == "enum" and self.old.closed(f.type_name) != self.new.closed(g.type_name):
                yaff, wire = yaff_types("enum", "int32", True), wire_types("enum", "int32", True)
                return Change(
                    where,
                    "enum-closed",
                    "enum closed" if not self.old.closed(f.type_name) else "enum open",
                    yaff,
                    wire,
                )
            return None
        if {f.kind, g.kind} <= {"message", "group"}:
            rule = "A group ends by a tag, other messages have a length: a reader doesn't know the field."
            yaff = Verdict("safe", "YaFF stores both alike.")
            if "group" in (f.kind, g.kind):
                yaff = _NOT_IN_YAFF
            return Change(where, "field-type", what, yaff, Verdict("unsafe", rule, _NEW_FIELD))
        return Change(
            where, "field-type", what, yaff_types(f.kind, g.kind, closed), wire_types(f.kind, g.kind, closed)
        )

    def _closed(self, f: FieldDef, g: FieldDef) -> bool:
        sides = ((self.old, f), (self.new, g))
        return any(facts.closed(side.type_name) for facts, side in sides if side.kind == "enum")

    def _relabelled(self, f: FieldDef, g: FieldDef) -> Verdict:
        """Protobuf's verdict on singular <-> repeated."""
        types = wire_types(f.kind, g.kind, self._closed(f, g)) if f.kind != g.kind else Verdict("safe", "")
        if types.grade == "unsafe":
            return types
        repeated = (self.old, self.was, f) if f.repeated else (self.new, self.now, g)
        if repeated[0].packed(*repeated[1:]):
            return Verdict(
                "unsafe", "A reader with the singular field doesn't know packed elements.", _NEW_FIELD
            )
        rule = "A reader with the singular field takes the last element; messages are merged."
        return Verdict("conditional", rule, "Do it only if there is at most one element.")

    def _map(self, where: str, what: str, f: FieldDef, g: FieldDef) -> Change | None:
        """Changes of a map's key and value, or a map that was a repeated message."""
        if f.is_map and g.is_map:
            return self._entries(where, what, f, g)
        if f.repeated != g.repeated or f.kind != "message" or g.kind != "message":
            wire = Verdict(
                "unsafe", "A map lies on the wire as a repeated message of key and value.", _NEW_FIELD
            )
            yaff = Verdict(
                "unsafe", "A map lies in memory as an array of pairs of key and value.", _NEW_FIELD
            )
            return Change(where, "field-map", what, yaff, wire)
        entries = self.old.schema.messages[f.type_name], self.new.schema.messages[g.type_name]
        parts = list(_entry_types(self.old, entries[0], self.new, entries[1]))
        if len(parts) < 2:
            rule = "The message isn't one of key (1) and value (2), which a map is an array of."
            verdict = Verdict("unsafe", rule, _NEW_FIELD)
            return Change(where, "field-map", what, verdict, verdict)
        wire = _gravest([wire for _, wire in parts])
        if wire.grade != "unsafe":
            rule = "On the wire a map is a repeated message of key and value; the last of equal keys counts."
            wire = Verdict("conditional", rule, "Do it only if no key comes twice.")
        yaff = _gravest([yaff for yaff, _ in parts])
        layouts = self.old.laid(f.type_name), self.new.laid(g.type_name)
        if (
            layouts[0].layout != "fixed"
            or layouts[1].layout != "fixed"
            or layouts[0].widths != layouts[1].widths
        ):
            rule = "A map is an array of fixed messages of key and value, which this message type isn't."
            yaff = Verdict("unsafe", rule, _NEW_FIELD)
        elif yaff.grade != "unsafe":
            rule = "A map is an array of fixed messages of key and value; the first of equal keys counts."
            yaff = Verdict("conditional", rule, "Do it only if no key comes twice, and keys ascend.")
        return Change(where, "field-map", what, yaff, wire)

    def _entries(self, where: str, what: str, f: FieldDef, g: FieldDef) -> Change | None:
        entries = self.old.schema.messages[f.type_name], self.new.schema.messages[g.type_name]
        parts = list(_entry_types(self.old, entries[0], self.new, entries[1]))
        if all(yaff.rule == wire.rule == "" for yaff, wire in parts):
            return None
        yaff = _gravest([yaff for yaff, _ in parts])
        return Change(where, "field-map", what, yaff, _gravest([wire for _, wire in parts]))


def _entry_types(
    old: Facts, was: MessageDef, new: Facts, now: MessageDef
) -> Iterator[tuple[Verdict, Verdict]]:
    """(YaFF, protobuf) verdicts on key and value; no rule where nothing has changed."""
    sides = [{f.number: f for f in message.fields} for message in (was, now)]
    for number in (1, 2):
        f, g = sides[0].get(number), sides[1].get(number)
        if f is None or g is None:
            return
        closed = any(
            facts.closed(side.type_name) for facts, side in ((old, f), (new, g)) if side.kind == "enum"
        )
        if f.repeated or g.repeated:
            verdict = Verdict("unsafe", "A key and a value aren't repeated.", _NEW_FIELD)
            yield verdict, verdict
        elif f.kind == g.kind:
            yield Verdict("safe", ""), Verdict("safe", "")
        else:
            yield yaff_types(f.kind, g.kind, closed), wire_types(f.kind, g.kind, closed)


def _gravest(verdicts: list[Verdict]) -> Verdict:
    grade = worst(verdict.grade for verdict in verdicts)
    return next(
        verdict for verdict in verdicts if verdict.grade == grade and (verdict.rule or grade == "safe")
    )


def _family(f: FieldDef) -> str:
    """Kinds of one family have defaults that can be compared; "" for what has none."""
    if f.kind in ("message", "group"):
        return ""
    return {"string": "text", "bytes": "text", "float": "float", "double": "float"}.get(f.kind, "integer")


def _default_bytes(f: FieldDef) -> bytes:
    """A default such that equal ones are equal bytes: text and bytes, numbers by their bits."""
    if isinstance(f.default, str):
        return f.default.encode("utf-8", "surrogatepass")
    if isinstance(f.default, bytes):
        return f.default
    if isinstance(f.default, float):
        return struct.pack("<d", f.default)
    return str(int(f.default or 0)).encode()


def type_text(facts: Facts, f: FieldDef) -> str:
    """A field's type as a `.proto` would say it."""
    if f.is_map:
        key, value = facts.schema.messages[f.type_name].fields
        return f"map<{key.type_name or key.kind}, {value.type_name or value.kind}>"
    return f"{'repeated ' if f.repeated else ''}{f.type_name or f.kind}"
