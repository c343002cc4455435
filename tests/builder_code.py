"""Python source that copies a message field by field into a builder, for random schemas.

One function a message type and depth, each statement as a user would write it. The order of the fields is
given, so that what comes out by number didn't go in by it.
"""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from types import ModuleType
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

_HEAD = '''"""Copies messages into builders."""
import numba

message_type = None  # set by who imports it
'''


def copying(root: Descriptor, carried: dict[str, set[str]], depth: int, seed: int) -> str:
    """The source of a module with ``build(view)``, which gives the bytes of a copy.

    Args:
        root: the message.
        carried: the names of the fields that a view has, by the full name of their message.
        depth: how deep messages are copied.
        seed: of the order in which fields are set.
    """
    chance = random.Random(seed)
    functions: dict[str, str] = {}
    name = _function(root, carried, depth, chance, functions)
    build = f"""
@numba.njit
def build(view):
    b = message_type.builder()
    {name}(b, view)
    return b.finish()


@numba.njit
def build_twice(view, buffer):
    b = message_type.builder(buffer)
    {name}(b, view)
    b.finish()
    b.clear()
    {name}(b, view)
    return b.finish()
"""
    return _HEAD + "".join(functions.values()) + build


def _function(
    message: Descriptor, carried: dict[str, set[str]], depth: int, chance: Any, functions: dict[str, str]
) -> str:
    name = f"copy_{message.full_name.replace('.', '_')}_{depth}"
    if name in functions:
        return name
    functions[name] = ""  # its place: those that it calls come before it
    lines: list[str] = []
    fields = [f for f in message.fields if f.name in carried[message.full_name]]
    chance.shuffle(fields)
    for f in fields:
        lines += _statements(f, carried, depth, chance, functions)
    del functions[name]
    body = "".join(f"    {line}\n" for line in lines) or "    pass\n"
    functions[name] = f"\n\n@numba.njit\ndef {name}(b, v):\n{body}"
    return name


def _statements(
    f: FieldDescriptor, carried: dict[str, set[str]], depth: int, chance: Any, functions: dict[str, str]
) -> list[str]:
    read, put = _attribute("v", f), _attribute("b", f)
    if f.message_type is not None and f.message_type.GetOptions().map_entry:
        value = f.message_type.fields_by_name["value"]
        if value.message_type is None:
            return [f"for key in {read}:", f"    {put}[key] = {read}[key]"]
        if not depth:
            return []
        inner = _function(value.message_type, carried, depth - 1, chance, functions)
        return [f"for key in {read}:", f"    {inner}({put}[key], {read}[key])"]
    if f.message_type is not None:
        if not depth:
            return []
        inner = _function(f.message_type, carried, depth - 1, chance, functions)
        if f.is_repeated:
            return [f"for item in {read}:", f"    {inner}({put}.add(), item)"]
        return [f'if v.HasField("{f.name}"):', f"    {put}.SetInParent()", f"    {inner}({put}, {read})"]
    if f.is_repeated:
        return [f"{put}.extend({read})"]
    if f.has_presence:
        return [f'if v.HasField("{f.name}"):', f"    {put} = {read}"]
    return [f"{put} = {read}"]


def _attribute(target: str, f: FieldDescriptor) -> str:
    return f"{target}.{f.name}"


def imported(source: str, folder: Path, name: str, message_type: Any) -> ModuleType:
    """The module of a source, which lies in a file as other modules do."""
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.message_type = message_type  # type: ignore[attr-defined]
    return module
