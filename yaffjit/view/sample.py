"""The beginning of a message that is too long to be shown whole: what its first lines of text need."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from yaffjit.view.base import View
from yaffjit.view.maps import MapView
from yaffjit.view.repeated import Repeated


def sample(view: View, lines: int, width: int) -> Any:
    """A protobuf message whose text begins as the view's would.

    It has at least ``lines`` lines of its text, if there are as many; text that is longer than ``width``
    characters is cut there. Nothing behind that is read.
    """
    message = view._schema_.message_class(view._access_.descriptor.full_name)()
    _Sample(lines, width).fill(message, view)
    return message


class _Sample:
    def __init__(self, lines: int, width: int) -> None:
        self.lines = lines  # that are left
        self.width = width

    def fill(self, message: Any, view: View) -> None:
        for field, listed, get in view._access_.listed:
            if self.lines <= 0:
                return
            if not listed(view):
                continue
            value = get(view)
            if isinstance(value, View):
                self.lines -= 1
                held = getattr(message, field.name)
                type(held).SetInParent(held)
                self.fill(held, value)
            elif isinstance(value, MapView):
                self.fill_map(getattr(message, field.name), value)
            elif isinstance(value, Repeated):
                self.fill_list(getattr(message, field.name), value)
            else:
                self.lines -= 1
                with suppress(*_refused(value)):
                    setattr(message, field.name, self.cut(value))

    def fill_list(self, container: Any, values: Repeated) -> None:
        for row in range(len(values)):
            if self.lines <= 0:
                return
            self.lines -= 1
            value = values[row]
            if isinstance(value, View):
                self.fill(container.add(), value)
            else:
                with suppress(*_refused(value)):
                    container.append(self.cut(value))

    def fill_map(self, container: Any, values: MapView) -> None:
        for key, value in values.items():
            if self.lines <= 0:
                return
            self.lines -= 1
            own_key = self.cut(key)
            if isinstance(value, View):
                self.fill(container[own_key], value)
            else:
                with suppress(*_refused(value)):
                    container[own_key] = self.cut(value)

    def cut(self, value: Any) -> Any:
        return value[: self.width] if isinstance(value, (str, bytes)) else value


def _refused(value: Any) -> tuple[type[Exception], ...]:
    """What setting a value may raise: a closed enum takes no other numbers, which protobuf doesn't show."""
    return (ValueError,) if isinstance(value, int) else ()
