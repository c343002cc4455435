"""Objects as HTML in notebooks: bounded in size, and never an error in the place of an object."""

from __future__ import annotations

import html
import struct
from collections.abc import Iterable, Sequence
from typing import Any

from yaffjit.errors import YaffjitError

CELL_WIDTH = 120  # characters
BAR = "#bcd8f5"
_FAULTS = (YaffjitError, ValueError, IndexError, KeyError, OverflowError, MemoryError, OSError, struct.error)


class Shown:
    """Gives notebooks HTML of an object that has ``_html_()``; its repr where that fails."""

    __slots__ = ()

    def _html_(self) -> str:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        try:
            return self._html_()
        except _FAULTS as error:
            return f"{preformatted(repr(self))}<p>{escaped(f'It can only be shown so: {error}')}</p>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


def escaped(text: str) -> str:
    """Text for HTML, cut where it's long."""
    cut = text if len(text) <= CELL_WIDTH else f"{text[:CELL_WIDTH]}..."
    return html.escape("".join(char if char.isprintable() else " " for char in cut))


def preformatted(text: str) -> str:
    """Text of a few lines, as it is."""
    return f"<pre>{html.escape(text)}</pre>"


def table(
    title: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    right: Iterable[str] = (),
    more: str = "",
    bar: str = "",
) -> str:
    """A table under a title.

    Args:
        title, header, rows: text, which is escaped here.
        right: names of the columns that are aligned right.
        more: a sentence on what isn't shown.
        bar: the name of a column of percentages, which are drawn behind it.
    """
    aligned = set(right)

    def cell(tag: str, name: str, text: str) -> str:
        style = f"text-align: {'right' if name in aligned else 'left'}"
        if name == bar and tag == "td":
            style += f"; background: linear-gradient(to right, {BAR} {escaped(text)}, transparent 0)"
        return f'<{tag} style="{style}">{escaped(text)}</{tag}>'

    def line(tag: str, cells: Sequence[str]) -> str:
        return f"<tr>{''.join(cell(tag, name, text) for name, text in zip(header, cells, strict=True))}</tr>"

    head, body = line("th", header), "".join(line("td", row) for row in rows)
    tail = f"<p>{escaped(more)}</p>" if more else ""
    return f"<p><b>{escaped(title)}</b></p><table>{head}{body}</table>{tail}"
