"""What the types of a schema are called in a stub: flat names, since a protocol can't hold classes."""

from __future__ import annotations

import keyword

from yaffjit.schema.model import SchemaDef

# Of the stub itself; what a field with such a name would hide.
SCHEMA, ENUMS = "Schema", "Enums"
MODULES = ("builtins", "collections", "datetime", "enum", "typing", "yaffjit")


def class_names(schema: SchemaDef) -> dict[str, str]:
    """Names of classes by full names of messages and enums, map entries left out.

    Those of the package that was asked for go without it: ``ads.Banner.Item`` is ``Banner_Item``; those of
    other packages have it: ``google_protobuf_Timestamp``. What a field, another type or Python has already
    gets underscores behind.
    """
    own = own_package(schema)
    fields = {f.name for message in schema.messages.values() for f in message.fields}
    taken = {SCHEMA, ENUMS, *MODULES, *fields}
    names: dict[str, str] = {}
    wanted = [name for name, message in schema.messages.items() if not message.is_map_entry]
    for full_name in (*wanted, *schema.enums):
        inner = full_name.removeprefix(f"{own}.") if own else full_name
        name = inner.replace(".", "_")
        while name in taken or f"{name}View" in taken or not is_usable(name):
            name += "_"
        taken |= {name, f"{name}View"}
        names[full_name] = name
    return names


def own_package(schema: SchemaDef) -> str:
    """The package of what was asked for, which comes first in a schema."""
    file = first_file(schema)
    return str(schema.pool.FindFileByName(file).package) if file else ""


def first_file(schema: SchemaDef) -> str:
    """The name of the file that was asked for, "" if it declares nothing."""
    files = [message.file for message in schema.messages.values()]
    return next(iter(files or [enum.file for enum in schema.enums.values()]), "")


def is_usable(name: str) -> bool:
    """Whether Python's grammar takes a name; `from` it doesn't."""
    return name.isidentifier() and not keyword.iskeyword(name)
