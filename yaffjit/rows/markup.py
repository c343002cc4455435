"""Records as a table for notebooks: the first rows, the first fields, as much of each as fits a cell."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from yaffjit.errors import YaffjitError
from yaffjit.markup import CELL_WIDTH, table
from yaffjit.schema.enums import enum_name
from yaffjit.view import View
from yaffjit.view.base import text_within
from yaffjit.view.maps import MapView
from yaffjit.view.repeated import Repeated

if TYPE_CHECKING:
    from yaffjit.rows.records import Records

SHOWN_ROWS = 5
SHOWN_FIELDS = 12
SHOWN_ITEMS = 3
_FAULTS = (YaffjitError, ValueError, IndexError, struct.error)


def records_html(recs: Records) -> str:
    """A table of the first rows; a cell that can't be read says why."""
    names = [f.name for f in recs.plan.plan.schema.messages[recs.plan.full_name].fields]
    names = [name for name in names if name in recs.plan.by_name]
    fields = names[:SHOWN_FIELDS]
    rows = min(len(recs), SHOWN_ROWS)
    valid = recs[:rows].valid
    lines = [[str(row), *cells(recs, row, fields, bool(valid[row]))] for row in range(rows)]
    numbers = [name for name in fields if recs.plan.by_name[name].is_scalar]
    hidden = [f"{len(recs) - rows:,} more rows" if len(recs) > rows else ""]
    hidden.append(f"more fields: {', '.join(names[SHOWN_FIELDS:])}" if len(names) > SHOWN_FIELDS else "")
    return table(repr(recs)[1:-1], ["", *fields], lines, ["", *numbers], "; ".join(filter(None, hidden)))


def cells(recs: Records, row: int, fields: list[str], is_valid: bool) -> list[str]:
    """The fields of one row as text."""
    if not is_valid:
        return ["null" for _ in fields]
    try:
        view = recs[row]
    except _FAULTS as error:
        return [f"can't be read: {error}", *("" for _ in fields[1:])]
    return [cell(view, name) for name in fields]


def cell(view: View, name: str) -> str:
    """One field as text; nothing where it has presence and isn't set."""
    access = view._access_
    try:
        present = access.presence.get(name)
        if present is not None and not present(view):
            return ""
        value = access.getters[name](view)
        f = view._plan_.by_name[name]
        return enum_name(view._schema_, f.enum, value) if f.enum and not f.repeated else shown(value)
    except _FAULTS as error:
        return f"can't be read: {error}"


def shown(value: Any) -> str:
    if isinstance(value, View):
        return " ".join(text_within(value, SHOWN_ITEMS * 2, CELL_WIDTH)[0].split())
    if isinstance(value, MapView):
        return f"{len(value):,} pair{'' if len(value) == 1 else 's'}"
    if isinstance(value, Repeated):
        items = [shown(value[i]) for i in range(min(len(value), SHOWN_ITEMS))]
        more = f", ... {len(value):,} in all" if len(value) > SHOWN_ITEMS else ""
        return f"[{', '.join(items)}{more}]"
    return value if isinstance(value, str) else repr(value)
