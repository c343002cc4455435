"""The manifest of an index that is a directory: which of its files are its parts, and what each must be.

``manifest.json`` is replaced as a whole, so it's always that before or that after a change. Whatever else
lies in the directory isn't read.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import xxhash

from yaffjit.errors import IndexFileError
from yaffjit.index.files import open_regular
from yaffjit.index.key_spec import RULES, KeySpec

FORMAT_VERSION = 1
FORMAT = "yaffjit.index"
MANIFEST_NAME = "manifest.json"
PART_NAME = re.compile(r"part-([0-9]{6,12})\.arrow")
KEYS_NAME = re.compile(r"part-[0-9]{6,12}\.keys(-[0-9]{1,19})?\.arrow")
CHECKSUM = re.compile(r"[0-9a-f]{16}")
CHECKSUM_NAME = "checksum"  # of the manifest itself
# A file must not make us allocate more than this; a part takes about 150 bytes.
MAX_NBYTES = 256 << 20
MAX_ROWS = 2**62


@dataclass(frozen=True, slots=True)
class PartEntry:
    """What a manifest says about a part.

    Attributes:
        name: of the file, as ``part-000000.arrow``.
        rows: messages in it.
        nbytes: bytes of the file.
        checksum: `Part.headers_checksum`.
        keys: the file of its key table, as ``part-000000.keys.arrow``; empty if it has none.
    """

    name: str
    rows: int
    nbytes: int
    checksum: str
    keys: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What lies in a directory.

    Attributes:
        message: full name of the messages' type.
        fingerprint: of that type.
        generation: counts the changes, from 1.
        parts: in the order of their rows.
        key: what it's looked up by; then each part has a table.
    """

    message: str
    fingerprint: str
    generation: int
    parts: tuple[PartEntry, ...]
    key: KeySpec | None = None

    @property
    def rows(self) -> int:
        """Messages in all parts."""
        return sum(part.rows for part in self.parts)


def part_name(number: int) -> str:
    """The name of a part."""
    return f"part-{number:06}.arrow"


def keys_name(part: str, generation: int = 0) -> str:
    """The name of a part's key table; with a generation where that without one is another key's."""
    return f"{part.removesuffix('.arrow')}.keys{f'-{generation}' if generation else ''}.arrow"


def manifest_path(directory: str) -> str:
    """Where a directory has its manifest."""
    return os.path.join(directory, MANIFEST_NAME)


def parts_checksum(parts: Iterable[PartEntry]) -> str:
    """XXH3-64 of what a manifest says about parts, 16 hex digits: the same parts or not."""
    digest = xxhash.xxh3_64()
    for part in parts:
        digest.update(f"{part.name} {part.rows} {part.nbytes} {part.checksum}\n".encode())
    return str(digest.hexdigest())


def content_checksum(fields: dict[str, Any]) -> str:
    """XXH3-64 of all that a manifest says but this, 16 hex digits; of no other form than its content.

    Hashed is the JSON text in ASCII, with sorted keys and without white space.
    """
    said = {name: value for name, value in fields.items() if name != CHECKSUM_NAME}
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return str(xxhash.xxh3_64(text.encode()).hexdigest())


def manifest_text(manifest: Manifest) -> bytes:
    """The file's content: JSON, a part a line."""
    head: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "message": manifest.message,
        "fingerprint": manifest.fingerprint,
        "generation": manifest.generation,
        "rows": manifest.rows,
    }
    if manifest.key is not None:
        head["key"] = {"path": manifest.key.path, "duplicates": manifest.key.duplicates}
    parts = [
        {"name": part.name, "rows": part.rows, "nbytes": part.nbytes, "checksum": part.checksum}
        | ({"keys": part.keys} if part.keys else {})
        for part in manifest.parts
    ]
    head[CHECKSUM_NAME] = content_checksum({**head, "parts": parts})
    lines = map(json.dumps, parts)
    text = json.dumps(head, indent=1)[:-2] + ',\n "parts": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n"
    return text.encode()


def read_manifest(directory: str, check: bool = True) -> Manifest:
    """A directory's manifest.

    Args:
        check: compare what it says with its checksum, which those of older versions don't have.

    Raises:
        IndexFileError: it isn't there, makes no sense, or is of a newer format version.
    """
    path = manifest_path(directory)
    try:
        os.lstat(path)
    except FileNotFoundError:
        if not os.path.isdir(directory):
            raise IndexFileError(f"{directory} can't be opened: No such file or directory") from None
        raise IndexFileError(
            f"{directory} is a folder without {MANIFEST_NAME}, so it isn't an index"
        ) from None
    except OSError as error:
        raise IndexFileError(f"{path} can't be opened: {error.strerror or error}") from error
    with open_regular(path, link=False) as file:
        try:
            text = file.read(MAX_NBYTES + 1)
        except OSError as error:
            raise IndexFileError(f"{path} can't be read: {error.strerror or error}") from error
    if len(text) > MAX_NBYTES:
        raise IndexFileError(f"{path} has over {MAX_NBYTES:,} bytes, which no manifest needs")
    try:
        fields = json.loads(text)
        if not isinstance(fields, dict) or fields.get("format") != FORMAT:
            raise IndexFileError(f"{path} isn't the manifest of an index: it doesn't say {FORMAT!r}")
        version = fields["format_version"]
        if type(version) is int and version > FORMAT_VERSION:
            raise IndexFileError(
                f"{path} has format version {version}, but this yaffjit reads up to {FORMAT_VERSION}: "
                "a newer yaffjit wrote it"
            )
        if type(version) is not int or version != FORMAT_VERSION:
            raise ValueError(f"the format version is {version!r}")
        manifest = Manifest(
            _text(fields, "message"),
            _text(fields, "fingerprint"),
            _count(fields, "generation"),
            tuple(map(_entry, fields["parts"])),
            _key(fields.get("key")),
        )
    except IndexFileError:
        raise
    except KeyError as error:
        raise IndexFileError(f"{path} is damaged: it has no {error}") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise IndexFileError(f"{path} is damaged: {error}") from error
    names = [part.name for part in manifest.parts]
    if not names:
        raise IndexFileError(f"{path} is damaged: it names no part")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise IndexFileError(f"{path} is damaged: it names {twice} twice")
    for part in manifest.parts:
        if bool(part.keys) != (manifest.key is not None):
            fault = "has a key table, but the index no key" if part.keys else "has no key table"
            raise IndexFileError(f"{path} is damaged: {part.name} {fault}")
    rows = fields.get("rows")
    if type(rows) is not int or rows != manifest.rows:
        raise IndexFileError(
            f"{path} is damaged: its parts have {manifest.rows} rows together, but it says {rows!r}"
        )
    if check and CHECKSUM_NAME in fields:
        found, said = content_checksum(fields), fields[CHECKSUM_NAME]
        if found != said:
            raise IndexFileError(f"{path} is damaged: its checksum is {found}, but it says {said!r:.100}")
    return manifest


def _entry(fields: Any) -> PartEntry:
    if not isinstance(fields, dict):
        raise ValueError(f"a part is described by an object, not by {fields!r:.100}")
    name = _text(fields, "name")
    if not PART_NAME.fullmatch(name):
        raise ValueError(f"a part is called {name!r:.100}, but part-000000.arrow is the form of their names")
    checksum = _text(fields, "checksum")
    if not CHECKSUM.fullmatch(checksum):
        raise ValueError(f"{name} has the checksum {checksum!r:.100}, which isn't 16 hex digits")
    keys = fields.get("keys", "")
    if not isinstance(keys, str) or (keys and not KEYS_NAME.fullmatch(keys)):
        raise ValueError(f"{name} has a key table called {keys!r:.100}")
    return PartEntry(name, _count(fields, "rows"), _count(fields, "nbytes"), checksum, keys)


def _key(fields: Any) -> KeySpec | None:
    if fields is None:
        return None
    if not isinstance(fields, dict):
        raise ValueError(f"the key is described by an object, not by {fields!r:.100}")
    made = KeySpec(_text(fields, "path"), _text(fields, "duplicates"))
    if made.duplicates not in RULES:
        raise ValueError(f"the key has the rule {made.duplicates!r:.100}")
    return made


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields[name]
    if not isinstance(value, str):
        raise ValueError(f"{name} is text, not {value!r:.100}")
    return value


def _count(fields: dict[str, Any], name: str) -> int:
    value = fields[name]
    if type(value) is not int or not 0 <= value <= MAX_ROWS:
        raise ValueError(f"{name} is a count, not {value!r:.100}")
    return value
