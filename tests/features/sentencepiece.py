"""Features of entries of a vocabulary."""

from __future__ import annotations

from typing import Any

MESSAGE = "sentencepiece.Piece"

NORMAL = 1
BYTE = 6


def is_word_start(piece: Any) -> Any:
    return piece.piece.startswith("\u2581"), piece.piece[:1] == "\u2581"


def scripts(piece: Any) -> Any:
    ascii_letters = cyrillic = ideographs = 0
    for c in piece.piece:
        code = ord(c)
        if code < 128:
            ascii_letters += 1
        elif 0x400 <= code < 0x530:
            cyrillic += 1
        elif 0x4E00 <= code < 0xA000:
            ideographs += 1
    return ascii_letters, cyrillic, ideographs


def weight(piece: Any) -> Any:
    if piece.type != NORMAL:
        return 0.0
    return piece.score * len(piece.piece)


def type_or_default(piece: Any) -> Any:
    return piece.type, piece.HasField("type"), piece.type == BYTE and piece.piece.startswith("<0x")


def bucket(piece: Any) -> Any:
    return hash(piece.piece) % 4096, hash(piece.piece[1:]) % 4096


def stripped(piece: Any) -> Any:
    return piece.piece.strip("\u2581"), piece.piece.replace("\u2581", " ").strip()


def has_digit(piece: Any) -> Any:
    found = False
    for c in piece.piece:
        found = found or "0" <= c <= "9"
    return found
