"""How a view class is put together from what its message type has; the same for each representation."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, TypeVar

from yaffjit.errors import SchemaError
from yaffjit.view.base import Access, Getter, Missing, View, near_names_error, read_only
from yaffjit.view.wellknown import helpers

AnyView = TypeVar("AnyView", bound=View)


def assemble(
    base: type[AnyView], access: Access, docs: Mapping[str, str], missing: Mapping[str, str], **own: Any
) -> type[AnyView]:
    """A class of views of one message type.

    Args:
        base: the views of the representation and layout.
        access: how its fields are read.
        docs: name of each field that has an attribute, and what `help` says of it.
        missing: the other declared fields, and why they can't be read.
        own: attributes of the class.
    """
    descriptor = access.descriptor
    kept, taken = _own_names(base)
    names: dict[str, Any] = {f"{f.name.upper()}_FIELD_NUMBER": f.number for f in descriptor.fields}
    names.update(
        (name, value)
        for name, value in _enum_names(descriptor).items()
        if name not in taken and not _is_special(name)
    )
    names.update(helpers(descriptor.full_name))
    names["DESCRIPTOR"] = descriptor
    special: dict[str, Getter] = {}
    for name, doc in docs.items():
        if name in kept:
            raise SchemaError(
                f"{descriptor.full_name} has no views: they keep the name of its field {name} for themselves"
            )
        if _is_special(name):
            special[name] = access.getters[name]
        else:
            names[name] = property(access.getters[name], read_only, doc=doc)
    for name, reason in missing.items():
        if name not in kept and not _is_special(name):
            names.setdefault(name, Missing(reason))
    names.update(
        __slots__=(),
        __module__="yaffjit.view",
        __doc__=f"A view of {descriptor.full_name}.",
        _access_=access,
        **own,
    )
    # Python's own tracebacks suggest names, IPython's don't. It isn't there always because each read would
    # take half as long again: Python doesn't specialise the properties of a class that has it.
    if "IPython" in sys.modules:
        names["__getattr__"] = near_names_error
    if special:
        names.update(_special_access(special))
    return type(descriptor.name, (base,), names)


def _own_names(base: type[View]) -> tuple[frozenset[str], frozenset[str]]:
    """What this package reads of views, and numba of all values; and all names of views.

    An enum's constants hide none of the latter, as in protobuf.
    """
    known = dir(base)
    kept = frozenset(
        name for name in (*known, "_plan_", "_access_", "_schema_") if name[0] == name[-1] == "_" != name[1]
    )
    return kept, kept.union(known)


def _enum_names(descriptor: Any) -> dict[str, Any]:
    """Enums and their constants, which protobuf has as attributes of the message that declares them."""
    from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

    names: dict[str, Any] = {}
    for name, enum in descriptor.enum_types_by_name.items():
        names[name] = EnumTypeWrapper(enum)
        names.update((value.name, value.number) for value in enum.values)
    return names


def _is_special(name: str) -> bool:
    """A name that Python looks for on classes: nothing that isn't Python's may be there."""
    return name.startswith("__") and name.endswith("__")


def _special_access(special: Mapping[str, Getter]) -> dict[str, Any]:
    """Attribute access of a class whose fields have names like ``__len__``: only an instance has these."""

    def get_attribute(view: View, name: str) -> Any:
        get = special.get(name)
        return object.__getattribute__(view, name) if get is None else get(view)

    def set_attribute(view: View, name: str, value: Any) -> None:
        if name in special:
            read_only(view, value)
        object.__setattr__(view, name, value)

    return {"__getattribute__": get_attribute, "__setattr__": set_attribute}
