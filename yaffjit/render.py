"""Layouts as text: the table that `yaffjit layout` prints, what the layout costs, and what it can't hold."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from yaffjit.errors import SchemaError
from yaffjit.markup import table
from yaffjit.plan.model import SCALAR_CODE, FieldPlan, MessagePlan
from yaffjit.schema.model import FieldDef, SchemaDef

HEADER_BYTES = 2  # of flat and sparse messages
META_OFFSET_BYTES = 4  # before the header of a sparse message
_NUMBERS = ("number", "id", "width", "offset")
_MESSAGE_COLUMNS = ("message", "layout", "fields", "max id", "notes")
SHOWN_SLOTS = 200
_COLUMNS = ("name", "number", "id", "kind", "presence", "layout", "width", "offset", "default", "notes")


def text_table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[str] = ()) -> str:
    """Columns padded to their widest cell, two spaces apart; those named in ``right`` are aligned right."""
    lines = [list(header), *(list(row) for row in rows)]
    aligned = set(right)
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]

    def padded(line: Sequence[str]) -> str:
        cells = [
            cell.rjust(width) if name in aligned else cell.ljust(width)
            for cell, width, name in zip(line, widths, header, strict=True)
        ]
        return "  ".join(cells).rstrip()

    ruler = "  ".join("-" * width for width in widths)
    return "\n".join([padded(lines[0]), ruler, *(padded(line) for line in lines[1:])])


def layout_text(mp: MessagePlan) -> str:
    """The layout of one message type: a table of its slots, then warnings, then what it can't hold."""
    parts = [_headline(mp), "", text_table(_COLUMNS, _slot_rows(mp), right=_NUMBERS)]
    for title, lines in (("Cost", warnings(mp)), ("Can't be held", losses(mp))):
        if lines:
            parts += ["", f"{title}:", *(f"  - {line}" for line in lines)]
    return "\n".join(parts)


def schema_text(schema: SchemaDef, plans: Iterable[tuple[str, MessagePlan | SchemaError]]) -> str:
    """One line a message type: its layout and size, or why YaFF can't hold it."""
    rows = []
    for name, plan in plans:
        if isinstance(plan, SchemaError):
            rows.append((name, "", str(len(schema.messages[name].fields)), "", f"can't be held: {plan}"))
            continue
        notes = ["has gaps, always written sparse"] if _always_sparse(plan) else []
        if plan.lost:
            notes.append(f"{_count(len(plan.lost), 'field')} lost")
        rows.append((name, plan.layout, str(len(plan.fields)), str(len(plan.widths)), ", ".join(notes)))
    return text_table(_MESSAGE_COLUMNS, rows, right=("fields", "max id"))


def layout_html(mp: MessagePlan) -> str:
    """As `layout_text`, for notebooks: its first slots."""
    rows = _slot_rows(mp)
    more = f"{len(rows) - SHOWN_SLOTS:,} more fields" if len(rows) > SHOWN_SLOTS else ""
    return table(_headline(mp), _COLUMNS, rows[:SHOWN_SLOTS], _NUMBERS, more)


def schema_html(title: str, plans: Iterable[tuple[str, MessagePlan | str]], more: int) -> str:
    """A row a message type, or why YaFF can't hold it; ``more`` others aren't shown."""
    rows = [
        (name, "", "", "", f"can't be held: {plan}")
        if isinstance(plan, str)
        else (name, plan.layout, str(len(plan.fields)), str(len(plan.widths)), "")
        for name, plan in plans
    ]
    numbers = ("fields", "max id")
    return table(title, _MESSAGE_COLUMNS, rows, numbers, f"{more:,} more messages" if more else "")


def warnings(mp: MessagePlan) -> list[str]:
    """Sentences on what the ids of this message type cost, with the options that would save it."""
    lines = []
    holes = [id for id, width in enumerate(mp.widths, 1) if width == 0]
    top = len(mp.widths)
    if holes and mp.layout == "dynamic":
        lines.append(
            f"{_id_ranges(holes)} no slot, so messages of this type are always written sparse, never flat."
        )
    if mp.layout == "sparse" or (holes and mp.layout == "dynamic"):
        table = top + max(0, top - 31)
        lines.append(
            f"Sparse messages have {HEADER_BYTES + META_OFFSET_BYTES} bytes of header and up to {table} "
            "bytes of table, which messages of one buffer share where theirs are the same."
        )
    if holes and mp.layout in ("dynamic", "sparse"):
        lines.extend(_id_suggestions(mp))
    always = [f for f in mp.fields if not f.explicit and f.is_scalar]
    if mp.layout in ("flat", "dynamic") and not holes and mp.has_explicit and always:
        last = max(always, key=lambda f: f.id)
        nbytes = HEADER_BYTES + last.offset + last.width
        lines.append(
            "Some fields have presence, so scalars without it are written even where they are 0: an empty "
            f"flat message takes {nbytes} bytes, up to {last.name!r} (id {last.id}), and its presence bits."
        )
    return lines


def losses(mp: MessagePlan) -> list[str]:
    """Sentences on the values of this message type, and of all it reaches, that don't come back from YaFF."""
    lines = _own_losses(mp)
    for route, reached in _reached(mp).items():
        lines += [f"{route} ({reached.full_name}): {line}" for line in _own_losses(reached)]
    return lines


def _reached(mp: MessagePlan) -> dict[str, MessagePlan]:
    """The other message types below this one, each by the first path that leads to it, breadth first."""
    known = {mp.full_name}
    routes: dict[str, MessagePlan] = {}
    waiting = [("", mp)]
    for route, message in waiting:
        for f in message.fields:
            if f.message and f.message not in known:
                known.add(f.message)
                below = (f"{route}.{f.name}" if route else f.name, message.child(f))
                routes[below[0]] = below[1]
                waiting.append(below)
    return routes


def _own_losses(mp: MessagePlan) -> list[str]:
    lines = [f"{name!r}: {reason}." for name, reason in mp.lost]
    if mp.layout == "fixed":
        scalars = [f for f in mp.fields if f.is_scalar]
        explicit = [f.name for f in scalars if f.explicit]
        if explicit and not mp.is_map_entry:
            lines.append(
                f"A fixed message has no presence bits: {_names(explicit)} "
                "set to the default reads back as not set."
            )
        changed = [f.name for f in scalars if f.explicit and f.default_bits != f.declared_bits]
        if changed:
            lines.append(
                f"YaFF keeps another default than the declared one for {_names(changed)} (see the notes); "
                "encode refuses a value that equals it."
            )
    return lines


def _headline(mp: MessagePlan) -> str:
    ids = f"ids 1 to {len(mp.widths)}" if mp.widths else "no ids"
    size = f"{mp.limit} bytes" if mp.layout == "fixed" else f"slots of {mp.limit} bytes"
    return f"{mp.full_name}: {mp.layout} layout, {_count(len(mp.fields), 'field')}, {ids}, {size}"


def _always_sparse(mp: MessagePlan) -> bool:
    return mp.gapped and mp.layout == "dynamic"


def _slot_rows(mp: MessagePlan) -> list[tuple[str, ...]]:
    live = {f.id: f for f in mp.fields}
    deprecated = {f.number: f for f in mp.plan.schema.messages[mp.full_name].fields if f.deprecated}
    sparse = mp.layout == "sparse" or _always_sparse(mp)
    rows = []
    offset = 0
    for id, width in enumerate(mp.widths, 1):
        at = "" if sparse else str(offset)
        if id in live:
            rows.append(_live_row(mp, live[id], at))
        elif width:
            rows.append(_dead_row(id, width, at, deprecated.get(id)))
        offset += width
    return rows


def _live_row(mp: MessagePlan, f: FieldPlan, at: str) -> tuple[str, ...]:
    presence = "explicit" if f.explicit else "implicit"
    layout = mp.child(f).layout if f.message and not f.is_map else ""
    cells = (f.name, str(f.number), str(f.id), _kind_text(mp, f), presence, layout, str(f.width), at)
    return (*cells, _default_text(mp, f), _notes(f))


def _dead_row(id: int, width: int, at: str, declared: FieldDef | None) -> tuple[str, ...]:
    if declared is None:
        return ("-", "", str(id), "", "", "", str(width), at, "", "reserved slot")
    kind = f"repeated {declared.kind}" if declared.repeated else declared.kind
    cells = (declared.name, str(declared.number), str(id), kind, "", "", str(width), at)
    return (*cells, "", "deprecated: an empty slot")


def _kind_text(mp: MessagePlan, f: FieldPlan) -> str:
    if f.is_map:
        key, value = (mp.child(f).by_name[name] for name in ("key", "value"))
        return f"map<{key.kind}, {value.message or value.enum or value.kind}>"
    kind = f.message or (f"enum {f.enum}" if f.enum else f.kind)
    return f"repeated {kind}" if f.repeated else kind


def _default_text(mp: MessagePlan, f: FieldPlan) -> str:
    """The default where it isn't the kind's own zero."""
    if f.kind == "enum" and isinstance(f.default, int):
        names = {number: name for name, number in reversed(mp.plan.schema.enums[f.enum].values)}
        return names.get(f.default, str(f.default)) if f.default else ""
    return repr(f.default) if f.default or f.declared_bits else ""


def _notes(f: FieldPlan) -> str:
    notes = [f"oneof {f.oneof}"] if f.oneof else []
    if f.inlined:
        notes.append(f"{f.element_width} bytes each, inlined")
    if f.default_bits != f.declared_bits:
        code = SCALAR_CODE[f.kind]
        (stored,) = struct.unpack("<" + code, f.default_bits.to_bytes(f.width, "little"))
        notes.append(f"YaFF's own default is {stored!r}")
    return "; ".join(notes)


def _id_suggestions(mp: MessagePlan) -> list[str]:
    """Ids 1 to n for the live fields in their present order, around the slots that can't be moved."""
    live = {f.id for f in mp.fields}
    dead = [id for id, width in enumerate(mp.widths, 1) if width and id not in live]
    count = len(live) + len(dead)
    stuck = [id for id in dead if id > count]
    if stuck:
        return [
            f"The empty slot at id {stuck[0]} keeps the gaps open: remove the deprecated or reserved field."
        ]
    free = [id for id in range(1, count + 1) if id not in set(dead)]
    moved = [(f.name, id) for f, id in zip(mp.fields, free, strict=True) if f.id != id]
    options = ", ".join(f"{name} [(yaff.proto.field) = {{id: {id}}}]" for name, id in moved)
    return [
        f"Without gaps it would be written flat: {options}. "
        "Ids are part of the bytes: change them before data is written, not after."
    ]


def _id_ranges(ids: Sequence[int]) -> str:
    """``id 3 has``, ``ids 3, 5 to 9 have``."""
    ranges: list[tuple[int, int]] = []
    for id in ids:
        if ranges and ranges[-1][1] == id - 1:
            ranges[-1] = (ranges[-1][0], id)
        else:
            ranges.append((id, id))
    shown = ", ".join(str(low) if low == high else f"{low} to {high}" for low, high in ranges[:6])
    more = ", ..." if len(ranges) > 6 else ""
    return f"Id {shown} has" if len(ids) == 1 else f"Ids {shown}{more} have"


def _names(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
