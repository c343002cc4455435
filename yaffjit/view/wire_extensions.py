"""Extensions of messages in protobuf bytes, as ``message.Extensions[...]`` of protobuf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yaffjit.view.base import Getter, Test
    from yaffjit.view.wire import WireView


class Extensions:
    """The extensions of one view, by their FieldDescriptors of the schema's pool; a loop gives those set."""

    __slots__ = ("_view",)

    def __init__(self, view: WireView) -> None:
        self._view = view

    def __getitem__(self, extension: Any) -> Any:
        return find_extension(self._view, extension)[2](self._view)

    def __contains__(self, extension: Any) -> bool:
        return find_extension(self._view, extension)[1](self._view)

    def __iter__(self) -> Iterator[Any]:
        return (field for field, is_set, _ in self._view._extensions_.values() if is_set(self._view))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def find_extension(view: WireView, extension: Any) -> tuple[Any, Test, Getter]:
    """Descriptor, whether it's set, and getter of an extension; KeyError as protobuf raises it."""
    full_name = getattr(extension, "full_name", None)
    found = view._extensions_.get(full_name or "")
    if found is not None and found[0].number == extension.number:
        return found
    if full_name is None:
        raise KeyError(f"Object {extension!r} is not a field descriptor")
    if not getattr(extension, "is_extension", False):
        raise KeyError(f"Field {full_name} is not an extension")
    raise KeyError(f"Extension doesn't match ({view._wire_.full_name} vs {full_name})")
