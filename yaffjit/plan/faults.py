"""What YaFF can't hold: the faults of a message, and which messages reach one that has any."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator

from yaffjit.plan.declared import Declared
from yaffjit.plan.model import MAX_ID
from yaffjit.schema.model import FieldDef, MessageDef

# Fields that a sentence names on the way to a fault.
_SHOWN_STEPS = 8


class Faults:
    """Finds why a message can't be laid out; each message is looked at once."""

    def __init__(self, declared: Declared) -> None:
        self._declared = declared
        self._known: dict[str, str | None] = {}

    def of(self, full_name: str) -> str | None:
        """The nearest fault among a message and all that it reaches, with the way to it; else None."""
        if full_name not in self._known:
            self._resolve(full_name)
        return self._known[full_name]

    def _resolve(self, root: str) -> None:
        """Judge all messages that a root reaches and that aren't judged yet."""
        users: dict[str, list[tuple[str, str]]] = {root: []}
        waiting = deque([root])
        faulty: deque[str] = deque()
        # Full name -> the fields on the way to a fault, and the sentence about the message at its end.
        found: dict[str, tuple[tuple[str, ...], str]] = {}
        while waiting:
            name = waiting.popleft()
            if name in self._known:
                fault = self._known[name]
            else:
                message = self._declared.schema.messages[name]
                reason = next(self._of_message(message), None)
                fault = None if reason is None else f"{name}: {reason}"
                for f in message.fields:
                    if f.kind == "message" and self._declared.without(message, f) is None:
                        if f.type_name not in users:
                            users[f.type_name] = []
                            waiting.append(f.type_name)
                        users[f.type_name].append((name, f.name))
            if fault is not None:
                found[name] = ((), fault)
                faulty.append(name)
        while faulty:
            name = faulty.popleft()
            steps, sentence = found[name]
            for user, field_name in users[name]:
                if user not in found:
                    step = f"{user}, field {field_name}: "
                    found[user] = ((step, *steps[: _SHOWN_STEPS - 1]), sentence)
                    faulty.append(user)
        for name in users:
            steps, sentence = found.get(name, ((), ""))
            skipped = "..., " if len(steps) == _SHOWN_STEPS else ""
            self._known.setdefault(name, "".join(steps) + skipped + sentence or None)

    def _of_message(self, message: MessageDef) -> Iterator[str]:
        tags = [entry.slice_name for entry in message.options]
        for tag in tags:
            if tags.count(tag) > 1:
                yield f"two (yaff.proto.message) entries have the slice name {tag!r}"
        option = self._declared.option(message)
        if option is None:
            yield f"it isn't in slice {self._declared.schema.slice!r}"
            return
        if option.ignore:
            yield "it is ignored by its (yaff.proto.message) option"
        if option.layout == "unknown":
            yield "its layout is LAYOUT_UNKNOWN"
        for f in message.fields:
            yield from self._of_field(message, f)
        slots = self._declared.slots(message, option)
        for lower, upper in itertools.pairwise(slots):
            if lower.id == upper.id:
                yield f"{lower.source} and {upper.source} have the same id {lower.id}"
        if option.layout in ("fixed", "flat"):
            present = {slot.id for slot in slots}
            hole = next((id for id in range(1, len(slots) + 1) if id not in present), None)
            if hole is not None:
                yield (
                    f"its layout is {option.layout.upper()} but no field has id {hole}: "
                    "reserve it with a type, or renumber"
                )
        if option.layout == "fixed":
            for oneof in message.oneofs:
                yield f"oneof {oneof.name} is in a FIXED message"
        else:
            for slot in slots:
                if slot.field is not None and slot.id > MAX_ID:
                    yield f"field {slot.field.name} has id {slot.id}, the highest is {MAX_ID}"

    def _of_field(self, message: MessageDef, f: FieldDef) -> Iterator[str]:
        tags = [entry.slice_name for entry in f.options]
        for tag in tags:
            if tags.count(tag) > 1:
                yield f"field {f.name} has two (yaff.proto.field) entries with the slice name {tag!r}"
        if self._declared.without(message, f) is not None:
            return
        if f.kind == "group":
            yield f"field {f.name} is a group"
        elif f.kind == "message" and f.repeated and self._declared.is_fixed(f.type_name):
            target = self._declared.schema.messages[f.type_name]
            option = self._declared.option(target)
            if option is not None and not self._declared.slots(target, option):
                yield f"field {f.name} is an array of {f.type_name}, which is FIXED and has no fields"
