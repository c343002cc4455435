"""Pictures of a buffer: its bytes coloured by what they are, beside fields and values; as SVG and as text.

Knows parts, not messages: `yaffjit.codec.anatomy` finds them.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

# What bytes are for: the colour in an SVG, and the number of one on a terminal of 256 colours.
ROLES = {
    "root offset": ("#d7c4f0", 183),
    "presence": ("#f6d3a8", 223),
    "table": ("#f6d3a8", 223),
    "header": ("#f2b5b5", 217),
    "slot": ("#bcd8f5", 153),
    "offset": ("#cfe8d5", 151),
    "length": ("#e6e3a9", 187),
    "text": ("#c9efc2", 157),
    "elements": ("#b9e6e6", 152),
    "tag": ("#f2b5b5", 217),
    "value": ("#bcd8f5", 153),
    "unused": ("#e8e8e8", 254),
}
SHOWN_BYTES = 4096
ROW_BYTES = 16
LABEL_WIDTH = 110  # characters beside a row of bytes
VALUE_WIDTH = 60
TEXT_ROWS = 3  # lines of bytes of one part on a terminal

_CELL, _LINE, _LEFT = 22, 18, 64  # pixels


class Part(NamedTuple):
    """Some bytes of a buffer.

    Attributes:
        begin, end: where they lie; other parts may share them.
        role: a key of `ROLES`.
        path: of the field that they belong to; "" of the root message itself.
        value: what they say.
    """

    begin: int
    end: int
    role: str
    path: str
    value: str


class Drawing:
    """A picture of a buffer: an SVG in a notebook, text by `str`.

    Attributes:
        title: what the buffer is.
        parts: what its bytes are, by position.
        fault: why the buffer isn't well-formed, or "".
    """

    def __init__(self, title: str, data: bytes, parts: Sequence[Part], fault: str = "") -> None:
        self.title = title
        self.data = data
        self.parts = tuple(parts)
        self.fault = fault

    def svg(self) -> str:
        """The picture, a row for each 16 bytes; of a long buffer its beginning."""
        return "".join(_svg(self))

    def text(self, color: bool = False) -> str:
        """The same for a terminal: a line a part, with its bytes, whose colours tell what they are for."""
        return "\n".join(_lines(self, color))

    def save(self, path: str | Path) -> None:
        """Write the SVG into a file."""
        Path(path).write_text(self.svg(), encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Drawing of {self.title}>"


def whole(parts: Sequence[Part], nbytes: int) -> list[Part]:
    """Parts by position, and the bytes between them as "unused"."""
    ordered = sorted(parts)
    found = []
    reached = 0
    for part in ordered:
        if part.begin > reached:
            found.append(Part(reached, part.begin, "unused", "", ""))
        found.append(part)
        reached = max(reached, part.end)
    if reached < nbytes:
        found.append(Part(reached, nbytes, "unused", "", ""))
    return found


def label(part: Part) -> str:
    """What a part is, in a few words."""
    name = part.path if part.role in ("slot", "value", "text", "elements") else f"{part.path} {part.role}"
    if part.role in ("offset", "unused") and part.path:
        name = part.path
    return f"{name.strip()} {_value(part)}".strip()


def _value(part: Part) -> str:
    return part.value if len(part.value) <= VALUE_WIDTH else f"{part.value[:VALUE_WIDTH]}..."


def _svg(drawing: Drawing) -> Iterator[str]:
    nbytes = min(len(drawing.data), SHOWN_BYTES)
    rows = (nbytes + ROW_BYTES - 1) // ROW_BYTES
    notes = _notes(drawing)
    shown = [part for part in drawing.parts if part.begin < nbytes]
    roles = dict.fromkeys(part.role for part in shown)
    top = _LINE * (2 + len(notes))
    height = top + _LINE * (rows + 1)
    width = _LEFT + _CELL * ROW_BYTES + 7 * LABEL_WIDTH
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" '
        'font-family="ui-monospace, monospace" font-size="11">'
        f'<rect width="{width}" height="{height}" fill="white"/>'
        f'<text x="4" y="13" font-weight="bold">{_escaped(drawing.title)}</text>'
    )
    for number, note in enumerate(notes, 1):
        yield f'<text x="4" y="{13 + _LINE * number}" fill="#b3261e">{_escaped(note)}</text>'
    x = _LEFT
    for role in roles:
        yield f'<rect x="{x}" y="{top - 16}" width="11" height="11" fill="{ROLES[role][0]}"/>'
        yield f'<text x="{x + 15}" y="{top - 7}">{role}</text>'
        x += 30 + 7 * len(role)
    cells: list[Part | None] = [None] * nbytes
    for part in shown:
        for pos in range(part.begin, min(part.end, nbytes)):
            cells[pos] = cells[pos] or part
    begins: dict[int, list[str]] = {}
    for part in shown:
        if part.role != "unused" and part.end > part.begin:
            begins.setdefault(part.begin // ROW_BYTES, []).append(label(part))
    for row in range(rows):
        y = top + _LINE * row
        first = row * ROW_BYTES
        yield f'<text x="4" y="{y + 13}" fill="#777">0x{first:04x}</text>'
        for pos in range(first, min(first + ROW_BYTES, nbytes)):
            x = _LEFT + _CELL * (pos - first)
            cell = cells[pos]
            color = ROLES[cell.role if cell else "unused"][0]
            tip = _escaped(f"{cell.role}: {label(cell)}") if cell else "unused"
            yield (
                f"<g><title>{tip}</title>"
                f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_LINE - 1}" fill="{color}"/>'
                f'<text x="{x + 4}" y="{y + 13}">{drawing.data[pos]:02x}</text></g>'
            )
        beside = ";  ".join(begins.get(row, ()))
        beside = beside if len(beside) <= LABEL_WIDTH else f"{beside[: LABEL_WIDTH - 3]}..."
        yield f'<text x="{_LEFT + _CELL * ROW_BYTES + 8}" y="{y + 13}">{_escaped(beside)}</text>'
    yield "</svg>"


def _lines(drawing: Drawing, color: bool) -> Iterator[str]:
    yield drawing.title
    yield from _notes(drawing)
    for part in drawing.parts:
        if part.begin >= SHOWN_BYTES:
            return
        held = drawing.data[part.begin : min(part.end, part.begin + TEXT_ROWS * ROW_BYTES)]
        for offset in range(0, max(len(held), 1), ROW_BYTES):
            row = held[offset : offset + ROW_BYTES]
            digits = " ".join(f"{byte:02x}" for byte in row)
            padding = " " * (3 * ROW_BYTES - 1 - len(digits))
            if color:
                digits = f"\x1b[38;5;16;48;5;{ROLES[part.role][1]}m{digits}\x1b[0m"
            named = f"{part.path}  {_value(part)}".strip()
            note = f"{part.role:<11}  {_printable(named)}".rstrip() if not offset else ""
            yield f"0x{part.begin + offset:04x}  {digits}{padding}  {note}".rstrip()
        more = part.end - part.begin - len(held)
        if more > 0:
            yield f"        ... {more:,} more bytes"


def _notes(drawing: Drawing) -> list[str]:
    notes = [f"not well-formed: {drawing.fault}"] if drawing.fault else []
    if len(drawing.data) > SHOWN_BYTES:
        notes.append(f"the first {SHOWN_BYTES:,} of {len(drawing.data):,} bytes")
    return notes


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)


def _escaped(text: str) -> str:
    return html.escape(_printable(text))
