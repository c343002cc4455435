"""Paths in a document, ``a.b[3].c``: from text to steps, and to the words that compiled code reads."""

from __future__ import annotations

import ast
import re
import struct
from functools import lru_cache

_KEY, _INDEX = 0, 1
_STEP = re.compile(
    r"""(?P<dot>\.)?(?P<name>[^.\[\]]+)
    | \[ (?P<index>-?\d+) \]
    | \[ (?P<quoted> '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" ) \]""",
    re.VERBOSE | re.DOTALL,
)
_MOST_INDEX = 2**62


class Path(bytes):
    """The words of a path for compiled code, which has also its steps.

    Attributes:
        steps: keys and indexes.
    """

    steps: tuple[str | int, ...]


# Paths by their texts: a look-up here takes a third of that in a cache of functools.
known_paths: dict[str, Path] = {}
_MOST_KNOWN = 4096


def path_of(text: str) -> Path:
    """The path that a text spells; the empty one leads to the value itself.

    Raises:
        ValueError: it isn't a path; names the character.
    """
    if type(text) is not str:
        raise TypeError(f"a path is text, as 'a.b[3].c', not {type(text).__name__}")
    path = known_paths.get(text)
    if path is None:
        path = path_of_steps(_steps_of(text))
        if len(known_paths) >= _MOST_KNOWN:
            known_paths.clear()
        known_paths[text] = path
    return path


def _steps_of(text: str) -> tuple[str | int, ...]:
    steps: list[str | int] = []
    pos = 0
    while pos < len(text):
        found = _STEP.match(text, pos)
        try:
            if found is None or (found["name"] is not None and (found["dot"] is None) != (pos == 0)):
                raise ValueError
            if found["name"] is not None:
                steps.append(found["name"])
            elif found["index"] is not None:
                steps.append(int(found["index"]))  # of thousands of digits a ValueError
            else:
                steps.append(ast.literal_eval(found["quoted"]))
        except (ValueError, SyntaxError):
            raise ValueError(f"not a path, as a.b[3].c is one: {text!r}, at character {pos}") from None
        pos = found.end()
    return tuple(steps)


@lru_cache(4096)
def path_of_key(key: str) -> Path:
    """The path of one key."""
    return path_of_steps((key,))


def path_of_steps(steps: tuple[str | int, ...]) -> Path:
    """The path of keys and indexes."""
    words = [struct.pack("<q", len(steps))]
    for step in steps:
        if isinstance(step, int):
            words.append(struct.pack("<2q", _INDEX, max(-_MOST_INDEX, min(step, _MOST_INDEX))))
        else:
            # Keys of documents are never of lone surrogates, whose bytes here aren't valid, so equal none.
            raw = step.encode("utf-8", "surrogatepass")
            words.append(struct.pack("<2q", _KEY, len(raw)) + raw + bytes(-len(raw) % 8))
    path = Path(b"".join(words))
    path.steps = steps
    return path
