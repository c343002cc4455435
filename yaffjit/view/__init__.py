"""The protobuf reading API in plain Python over YaFF and protobuf bytes: no copies, no numba."""

from __future__ import annotations

from yaffjit.view.base import View
from yaffjit.view.classes import view_class
from yaffjit.view.convert import to_dict, to_json
from yaffjit.view.entry import default_view, view, view_unchecked, viewer, viewer_unchecked
from yaffjit.view.unknown import UnknownField, unknown_fields
from yaffjit.view.wire import WireView, protobuf_viewer, wire_view_class

__all__ = [
    "UnknownField",
    "View",
    "WireView",
    "default_view",
    "protobuf_viewer",
    "to_dict",
    "to_json",
    "unknown_fields",
    "view",
    "view_class",
    "view_unchecked",
    "viewer",
    "viewer_unchecked",
    "wire_view_class",
]
