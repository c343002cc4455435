"""Enums of a schema as Python's own classes."""

from __future__ import annotations

import enum

from yaffjit.schema.model import SchemaDef

__all__ = ["enum_name", "int_enum", "member_names"]


def enum_name(schema: SchemaDef, full_name: str, number: int) -> str:
    """A number of an enum after the first of its names, as people are shown it."""
    names = [name for name, value in schema.enums[full_name].values if value == number]
    return f"{names[0]} ({number})" if names else f"{number}"


def int_enum(full_name: str, values: tuple[tuple[str, int], ...]) -> type[enum.IntEnum]:
    """The class of an enum; names that share a number are aliases. Members pickle as plain numbers."""
    name = full_name.rpartition(".")[2]
    made = enum.IntEnum(name, member_names(full_name, values))  # type: ignore[misc]
    made.__doc__ = f"The values of enum {full_name}."
    # The class can't be found by its name in another process; the number is what it stands for.
    setattr(made, "__reduce_ex__", lambda member, protocol: (int, (int(member),)))  # noqa: B010
    return made


def member_names(full_name: str, values: tuple[tuple[str, int], ...]) -> dict[str, int]:
    """The numbers of an enum's values by the names that they have in its class."""
    name = full_name.rpartition(".")[2]
    taken = {label for label, _ in values}
    members: dict[str, int] = {}
    for label, number in values:
        if _is_pythons_own(name, label):
            label = f"member_{label}"
            while label in taken or label in members:
                label += "_"
        members[label] = number
    return members


def _is_pythons_own(enum_name: str, label: str) -> bool:
    """Python's enums keep some names for themselves, or drop them; protobuf takes any."""
    return label == "mro" or (label.startswith("_") and (label.endswith("_") or f"_{enum_name}__" in label))
