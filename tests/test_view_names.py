"""Fields and enum constants named like what views or Python have themselves."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numba
import pytest

import yaffjit as yj
from yaffjit.view import View


def loaded(folder: Path, body: str) -> yj.MessageType:
    path = folder / "names.proto"
    path.write_text(f'syntax = "proto3"; package names; {body}')
    return yj.load_schema(path)["names.M"]


# What views had or have, and all that Python looks for on objects or on their classes.
NAMES = sorted(
    {
        *(
            "_pos",
            "_data",
            "_head",
            "_meta",
            "_owner",
            "_plan",
            "_access",
            "_default",
            "_default_view",
            "mro",
        ),
        *("__getattr__", "__del__", "__dict__", "__weakref__", "__qualname__", "__classcell__", "__slots__"),
        *(
            "__bool__",
            "__len__",
            "__iter__",
            "__contains__",
            "__getitem__",
            "__call__",
            "__index__",
            "__next__",
        ),
        *("__copy__", "__deepcopy__", "__set_name__", "__mro__", "__bases__", "__name__", "__annotations__"),
        *("__array__", "__array_interface__", "__buffer__", "__class_getitem__", "__match_args__", "__set__"),
        *("__get__", "__enter__", "__await__", "__float__", "__abstractmethods__", "__instancecheck__"),
        *(name for name in dir(View) if name[0] != "_" or name.startswith("__")),
    }
)


def test_each_name_is_a_fields_own(tmp_path: Path) -> None:
    fields = "".join(f" int32 {name} = {number};" for number, name in enumerate(NAMES, 1))
    message_type = loaded(tmp_path, f"message M {{{fields} }}")
    content = {name: 100 + number for number, name in enumerate(NAMES, 1)}
    view = message_type.view(message_type.encode(content))
    for name, value in content.items():
        assert getattr(view, name) == value, name
        with pytest.raises(AttributeError, match="is read-only"):
            setattr(view, name, 1)
    assert getattr(message_type.view(message_type.encode({})), "__len__", None) == 0
    # Python looks on the class, as it does for protobuf's messages.
    assert bool(view)
    assert isinstance(view, View)
    assert view == view
    assert copy.copy(view) is view
    assert repr(view).startswith("# names.M, view\n")
    assert set(NAMES) <= set(dir(view))
    assert yj.to_dict(view) == content
    assert View.to_message(view) == message_type.decode(message_type.encode(content))
    assert message_type.encode(view) == message_type.encode(content)
    columns = yj.records(message_type, [message_type.encode(content)]).columns(*NAMES)
    assert [int(columns[name][0]) for name in NAMES] == list(content.values())


def test_such_views_in_jitted_code(tmp_path: Path) -> None:
    message_type = loaded(
        tmp_path, "message M { int32 _pos = 1; int32 __len__ = 2; int32 _owner = 3; M m = 4; }"
    )

    @numba.njit
    def read(m: Any) -> Any:
        return m._pos, m._owner, m.__len__, m.m

    view = message_type.view(message_type.encode({"_pos": 5, "__len__": 6, "_owner": 7, "m": {"_pos": 8}}))
    *numbers, child = read(view)
    assert numbers == [5, 7, 6]
    assert (child._pos, child.__len__) == (8, 0)


@pytest.mark.parametrize("name", ["_data_", "_pos_", "_plan_", "_numba_type_", "_default_"])
def test_names_that_views_keep(tmp_path: Path, name: str) -> None:
    message_type = loaded(tmp_path, f"message M {{ int32 {name} = 1; int32 n = 2; }}")
    buf = message_type.encode({name: 5})
    with pytest.raises(yj.SchemaError) as caught:
        message_type.view(buf)
    assert str(caught.value) == f"names.M has no views: they keep the name of its field {name} for themselves"
    assert getattr(message_type.decode(buf), name) == 5
    assert yj.records(message_type, [buf]).columns(name)[name].tolist() == [5]


CONSTANTS = [
    *(
        "__qualname__",
        "__classcell__",
        "__module__",
        "__slots__",
        "__bool__",
        "__len__",
        "__getattr__",
        "__del__",
    ),
    *("__init__", "__new__", "__hash__", "__eq__", "__getattribute__", "__init_subclass__", "__set_name__"),
    *("HasField", "to_message", "ListFields", "Clear", "_pos_", "_plan_", "_access_", "_default_", "mro"),
]


def test_constants_hide_nothing(tmp_path: Path) -> None:
    values = "".join(f" {name} = {number};" for number, name in enumerate(CONSTANTS, 1))
    body = f"message M {{ enum E {{ A = 0;{values} PLAIN = 99; }} optional E e = 1; int32 n = 2; }}"
    message_type = loaded(tmp_path, body)
    view = message_type.view(message_type.encode({"e": "HasField", "n": 3}))
    assert (view.e, view.n, view.A, view.PLAIN, type(view).PLAIN) == (
        CONSTANTS.index("HasField") + 1,
        3,
        0,
        99,
        99,
    )
    assert view.HasField("e")
    assert view.to_message() == message_type.decode(message_type.encode(view))
    assert [field.name for field, _ in view.ListFields()] == ["e", "n"]
    assert bool(view)
    assert copy.copy(view) is view
    assert view.E.Value("__len__") == CONSTANTS.index("__len__") + 1
    with pytest.raises(AttributeError):
        _ = view.unknown
