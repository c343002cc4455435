"""The protobuf reading API of a view, checked against google.protobuf where both have an answer."""

from __future__ import annotations

import copy
import math
import mmap
import pickle
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import text_format
from vectors import TESTS
from walk import check_view

import yaffjit as yj
from yaffjit.view import View, default_view, view_class, view_unchecked

SCHEMAS = TESTS / "schemas"
LAYOUTS = ["flat", "sparse"]
BANNER = """
    id: 18446744073709551615 price: 0.25 limit: 0 color: COLD title: "tea \\303\\251" raw: "\\000\\377"
    leaf { n: -1 text: "leaf" } tags: "a" tags: "" weights: 1.5 weights: -0.0 leaves { } leaves { n: 7 }
    attrs { key: "x" value: 1.5 } attrs { key: "" value: 0 } by_id { key: -1 value { n: 3 } }
    account: 5 parent { id: 2 parent { title: "far" } } active: true
"""


@cache
def schema(name: str) -> yj.Schema:
    return yj.load_schema(SCHEMAS / name)


@pytest.fixture
def banner_type() -> yj.MessageType:
    return schema("views.proto")["views.Banner"]


def message_of(message_type: yj.MessageType, text: str) -> Any:
    return text_format.Parse(text, message_type.message_class())


@pytest.fixture(params=LAYOUTS)
def banner(request: pytest.FixtureRequest, banner_type: yj.MessageType) -> tuple[Any, Any]:
    """A view and the message that it must equal."""
    message = message_of(banner_type, BANNER)
    return banner_type.view(banner_type.encode(message, layout=request.param)), message


# --- every kind, under every layout, with implicit and explicit presence ---

KINDS: dict[str, list[Any]] = {
    "double": [0.0, -0.0, 1.5, math.inf, math.nan],
    "float": [0.0, -0.0, 1.5, -math.inf, math.nan],
    "int32": [0, -1, 2**31 - 1, -(2**31)],
    "int64": [0, -1, 2**63 - 1, -(2**63)],
    "uint32": [0, 1, 2**32 - 1],
    "uint64": [0, 1, 2**64 - 1],
    "sint32": [0, -1, -(2**31)],
    "sint64": [0, -1, -(2**63)],
    "fixed32": [0, 2**32 - 1],
    "fixed64": [0, 2**64 - 1],
    "sfixed32": [0, -(2**31)],
    "sfixed64": [0, -(2**63)],
    "bool": [False, True],
    "E": [0, 1, -7, 1000],
    "string": ["", "text", "\0é", "x" * 300],
    "bytes": [b"", b"\xff\0", b"x" * 300],
    "Leaf": [{}, {"n": 1}],
}


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> yj.Schema:
    """A message for each pinned layout and presence, with a field of each kind, singular and repeated."""
    lines = ['syntax = "proto3"; package kinds; import "yaff/proto/options.proto";']
    lines.append("enum E { ZERO = 0; ONE = 1; } message Leaf { int32 n = 1; }")
    for layout in ("FIXED", "FLAT", "SPARSE", "DYNAMIC"):
        for presence in ("", "optional "):
            name = f"{layout.title()}{'Explicit' if presence else 'Implicit'}"
            lines.append(f"message {name} {{ option (yaff.proto.message) = {{layout: LAYOUT_{layout}}};")
            for number, kind in enumerate(KINDS, 1):
                if kind == "Leaf" and not presence:
                    continue
                lines.append(f"  {presence}{kind} {kind.lower()}_ = {number};")
            for number, kind in enumerate(KINDS, len(KINDS) if not presence else len(KINDS) + 1):
                lines.append(f"  repeated {kind} {kind.lower()}_s = {number};")
            lines.append("}")
    path = tmp_path_factory.mktemp("kinds") / "kinds.proto"
    path.write_text("\n".join(lines))
    return yj.load_schema(path)


@pytest.mark.parametrize("presence", ["Implicit", "Explicit"])
@pytest.mark.parametrize("layout", ["Fixed", "Flat", "Sparse", "DynamicFlat", "DynamicSparse"])
def test_every_kind(kinds: yj.Schema, layout: str, presence: str) -> None:
    dynamic = layout.startswith("Dynamic")
    message_type = kinds[f"kinds.{'Dynamic' if dynamic else layout}{presence}"]
    written_as = "sparse" if layout == "DynamicSparse" else "flat"
    singular = [
        kind for kind in KINDS if f"{kind.lower()}_" in message_type.message_class.DESCRIPTOR.fields_by_name
    ]
    for kind in singular:
        for value in KINDS[kind]:
            check_kind(message_type, {f"{kind.lower()}_": value}, written_as)
    for kind, values in KINDS.items():
        check_kind(message_type, {f"{kind.lower()}_s": values}, written_as)
    everything = {f"{kind.lower()}_": KINDS[kind][-1] for kind in singular}
    everything.update({f"{kind.lower()}_s": values for kind, values in KINDS.items()})
    check_kind(message_type, everything, written_as)
    check_kind(message_type, {}, written_as)


def check_kind(message_type: yj.MessageType, fields: dict[str, Any], layout: str) -> None:
    buf = message_type.encode(message_type.message_class(**fields), layout=layout)
    # What FIXED can't hold is decode's to know: it is tested against the vectors.
    check_view(message_type.view(buf), message_type.decode(buf))
    check_view(message_type.view(memoryview(buf)), message_type.decode(buf))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_ids_above_31(layout: str) -> None:
    wide = schema("views.proto")["views.Wide"]
    for text in ("", "n: -5", 'maybe: 0 text: "t" leaf { n: 1 } numbers: [1, 2]', "low: 1 n: 2 maybe: 3"):
        message = message_of(wide, text)
        check_view(wide.view(wide.encode(message, layout=layout)), message)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_declared_defaults(layout: str) -> None:
    holds = schema("views2.proto")["views2.Holds"]
    for text in (
        "",
        "plain { } fixed { }",
        "plain { i32: 0 yes: false f: 0 text: '' u64: 0 } fixed { i32: 0 }",
    ):
        message = message_of(holds, text)
        view = holds.view(holds.encode(message, layout=layout))
        check_view(view, message)
        for held, wanted in ((view.plain, message.plain), (view.fixed, message.fixed)):
            check_view(held, wanted)
    absent = holds.view(holds.encode({}, layout=layout)).fixed
    # YaFF's own defaults are others: 0.333333 and 0.
    assert absent.third == 0.33333333
    assert absent.gear == 3


def test_default_equal_values_are_present() -> None:
    defaults = schema("views2.proto")["views2.Defaults"]
    message = defaults.message_class(i32=-17, yes=True, third=0.33333333, gear=3, s64=-(2**63), f=1.5)
    for layout in LAYOUTS:
        check_view(defaults.view(defaults.encode(message, layout=layout)), message)


# --- presence and oneofs ---


@pytest.mark.parametrize("name", ["id", "tags", "attrs", "nope", 5, None, b"nope", ["id"]])
def test_has_field_raises_what_protobuf_raises(banner: tuple[Any, Any], name: Any) -> None:
    view, message = banner
    with pytest.raises(ValueError) as expected:
        message.HasField(name)
    with pytest.raises(ValueError) as raised:
        view.HasField(name)
    assert str(raised.value) == str(expected.value)


@pytest.mark.parametrize(
    "name", ["limit", "leaf", "phone", "account", "person", "contact", "_limit", b"limit"]
)
def test_has_field(banner: tuple[Any, Any], name: Any) -> None:
    view, message = banner
    assert view.HasField(name) is message.HasField(name)


@pytest.mark.parametrize("name", ["contact", "_limit", b"contact"])
def test_which_oneof(banner: tuple[Any, Any], name: Any) -> None:
    view, message = banner
    assert view.WhichOneof(name) == message.WhichOneof(name)


@pytest.mark.parametrize("name", ["id", "nope", 5])
def test_which_oneof_raises_what_protobuf_raises(banner: tuple[Any, Any], name: Any) -> None:
    view, message = banner
    with pytest.raises(ValueError) as expected:
        message.WhichOneof(name)
    with pytest.raises(ValueError) as raised:
        view.WhichOneof(name)
    assert str(raised.value) == str(expected.value)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_of_several_oneof_members_one_counts(layout: str) -> None:
    fields, choice = (schema("views.proto")[f"views.{name}"] for name in ("Fields", "Choice"))
    for values in (
        {"number": 1, "other": 2},
        {"number": 0, "other": 0},
        {"number": 1, "text": "t"},
        {"text": "", "leaf": {}, "other": 0},
        {"text": "t", "leaf": {"n": 1}, "number": 3},
    ):
        buf = fields.encode(values, layout=layout)
        view, message = choice.view(buf), choice.decode(buf)
        assert message.WhichOneof("kind") is not None
        check_view(view, message)
        for name in values:
            if not message.HasField(name) and name != "leaf":
                assert getattr(view, name) == getattr(message, name)
        assert view.leaf == message.leaf


# --- fields as attributes ---


def test_absent_messages_read_as_their_default(banner: tuple[Any, Any]) -> None:
    view, message = banner
    assert view.person.text == message.person.text == ""
    assert view.parent.parent.parent.parent.leaf.n == 0
    assert not view.parent.parent.parent.HasField("leaf")
    assert view.leaf.n == -1


def test_default_view(banner_type: yj.MessageType) -> None:
    view = default_view(banner_type.plan)
    check_view(view, banner_type.message_class())
    assert view == banner_type.message_class()
    assert default_view(banner_type.plan) is view


def test_fields_that_yaff_does_not_carry(banner: tuple[Any, Any]) -> None:
    view, _ = banner
    text = "YaFF doesn't carry field views.Banner.dropped: deprecated"
    with pytest.raises(AttributeError) as raised:
        view.dropped  # noqa: B018
    assert str(raised.value) == text
    with pytest.raises(ValueError) as refused:
        view.HasField("dropped")
    assert str(refused.value) == text
    assert "dropped" not in dir(view)


def test_views_are_read_only(banner: tuple[Any, Any]) -> None:
    view, _ = banner
    with pytest.raises(AttributeError) as raised:
        view.id = 5
    assert str(raised.value) == (
        "a view of views.Banner is read-only: change its to_message() and encode that"
    )
    with pytest.raises(AttributeError):
        view.nope = 5
    with pytest.raises(AttributeError):
        del view.id
    with pytest.raises(AttributeError) as refused:
        view.ClearField("id")
    assert str(refused.value) == "views are read-only: change a view's to_message() and encode that"
    with pytest.raises(AttributeError, match="views have no extensions"):
        view.Extensions  # noqa: B018
    with pytest.raises(TypeError):
        view.tags[0] = "x"
    with pytest.raises(TypeError):
        view.attrs["x"] = 1.0


def test_unknown_names(banner: tuple[Any, Any]) -> None:
    view, _ = banner
    with pytest.raises(AttributeError) as raised:
        view.pirce  # noqa: B018
    # What Python suggests names by when it prints the error.
    assert raised.value.name == "pirce"
    assert raised.value.obj is view
    assert "price" in dir(view)
    assert not hasattr(view, "pirce")


@pytest.mark.parametrize(
    ("method", "name", "near"),
    [
        ("HasField", "laef", " (did you mean 'leaf'?)"),
        ("HasField", b"laef", " (did you mean 'leaf'?)"),
        ("HasField", "contact2", " (did you mean 'contact'?)"),
        ("HasField", "zzzzzz", ""),
        ("WhichOneof", "zzzzzz", ""),
    ],
)
def test_presence_of_unknown_names(banner: tuple[Any, Any], method: str, name: Any, near: str) -> None:
    view, message = banner
    with pytest.raises(ValueError) as of_protobuf:
        getattr(message, method)(name)
    with pytest.raises(ValueError) as raised:
        getattr(view, method)(name)
    text = name if isinstance(name, str) else name.decode()
    assert str(raised.value) == f'Protocol message Banner has no "{text}" field{near}.'
    assert str(of_protobuf.value).startswith(f'Protocol message Banner has no "{text}" field')
    # Python's traceback shows nothing of how names are looked up.
    assert raised.value.__suppress_context__
    assert raised.value.__cause__ is None


def test_unknown_names_in_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", object())
    message_type = yj.load_schema(SCHEMAS / "views.proto")["views.Banner"]
    view = message_type.view(message_type.encode({}))
    with pytest.raises(AttributeError) as raised:
        view.pirce  # noqa: B018
    assert str(raised.value) == "views.Banner has no field 'pirce' (did you mean 'price'?)"
    assert view.price == 0.0


@pytest.mark.parametrize("name", ["dropped", "CopyFrom", "MergeFromString", "Extensions", "Clear"])
def test_what_a_view_says_of_a_name_is_the_same_in_notebooks(
    banner: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with pytest.raises(AttributeError) as plain:
        getattr(banner[0], name)
    monkeypatch.setitem(sys.modules, "IPython", object())
    message_type = yj.load_schema(SCHEMAS / "views.proto")["views.Banner"]
    with pytest.raises(AttributeError) as shown:
        getattr(message_type.view(message_type.encode({})), name)
    assert str(shown.value) == str(plain.value)


def test_enums_and_constants(banner: tuple[Any, Any]) -> None:
    view, message = banner
    for owner in (view, type(view)):
        assert owner.RED == message.RED == 1
        assert owner.Color.Value("COLD") == -3
        assert owner.Color.Name(2) == "BLUE"
        assert owner.LIMIT_FIELD_NUMBER == 3
        assert owner.DESCRIPTOR is message.DESCRIPTOR
    assert view.color == view.COLD
    assert type(view.color) is int


def test_keyword_names() -> None:
    keyword = schema("views.proto")["views.Keyword"]
    view = keyword.view(keyword.encode({"class": 1, "from": {"n": 2}, "None": [3]}))
    assert getattr(view, "class") == 1
    assert getattr(view, "from").n == 2
    assert list(getattr(view, "None")) == [3]


def test_names_that_clash() -> None:
    shadows = schema("views.proto")["views.Shadows"]
    message = shadows.message_class()
    for field in message_fields(shadows):
        if field.is_repeated:
            getattr(message, field.name).append(field.number)
        elif field.message_type is None and field.cpp_type == field.CPPTYPE_INT32:
            setattr(message, field.name, field.number)
    view = shadows.view(shadows.encode(message))
    # A field wins over every other name, as it does on protobuf's messages.
    for field in message_fields(shadows):
        assert getattr(view, field.name) == getattr(message, field.name), field.name
    assert isinstance(view._data_, bytes)
    assert type(view).__name__ == "Shadows"
    assert bool(view)
    # Nothing of ours depends on the names, and all fields are still there.
    kind = type(message)
    listed = [(field.name, value) for field, value in View.ListFields(view)]
    assert listed == [(field.name, value) for field, value in kind.ListFields(message)]
    assert ("_data", 10) in listed
    assert View.HasField(view, "FromString")
    assert View.WhichOneof(view, "_FromString") == "FromString"
    assert View.to_message(view) == message
    assert View.SerializeToString(view) == kind.SerializeToString(message)
    assert view == message
    assert yj.to_dict(view) == yj.to_dict(message)
    assert shadows.encode(view) == shadows.encode(yj.to_dict(view)) == shadows.encode(message)
    assert repr(view).startswith("# views.Shadows, view\nHasField: 1\n")
    assert {"HasField", "view", "_data"} <= set(dir(view))


def message_fields(message_type: yj.MessageType) -> Any:
    return message_type.message_class.DESCRIPTOR.fields


# --- as a message ---


def test_list_fields(banner: tuple[Any, Any]) -> None:
    view, message = banner
    listed = view.ListFields()
    assert [field for field, _ in listed] == [field for field, _ in message.ListFields()]
    assert [value for _, value in listed] == [value for _, value in message.ListFields()]


def test_serialized_forms(banner: tuple[Any, Any]) -> None:
    view, message = banner
    assert view.SerializeToString(deterministic=True) == message.SerializeToString(deterministic=True)
    assert type(message).FromString(view.SerializeToString()) == message
    assert type(message).FromString(view.SerializePartialToString(deterministic=False)) == message
    assert view.ByteSize() == message.ByteSize()
    assert view.IsInitialized()
    assert type(view.to_message()) is type(message)
    assert view.to_message() == message
    assert view.leaf.to_message() == message.leaf
    assert view.parent.parent.to_message() == message.parent.parent


def test_missing_required_fields() -> None:
    needs = schema("views2.proto")["views2.Needs"]
    view = needs.view(needs.encode(needs.message_class(other=1)))
    assert not view.IsInitialized()
    assert view.FindInitializationErrors() == ["need"]
    assert view.SerializePartialToString() == b"\x10\x01"
    with pytest.raises(Exception, match="missing required fields: need"):
        view.SerializeToString()


def test_equality(banner: tuple[Any, Any], banner_type: yj.MessageType) -> None:
    view, message = banner
    other = banner_type.view(banner_type.encode(message, layout="sparse"))
    assert view == message
    assert message == view
    assert view == other
    assert (view != other) is False
    assert view != message.leaf
    assert view != view.leaf
    assert view != 5
    assert view is not None and view != None  # noqa: E711
    message.price += 1
    assert view != message
    assert message != view
    assert view.leaf == message.leaf
    # proto3: a set 0 isn't an absent one
    assert banner_type.view(banner_type.encode({"limit": 0})) != banner_type.message_class()
    # protobuf compares NaN by its bits
    nan = banner_type.message_class(price=math.nan)
    assert banner_type.view(banner_type.encode(nan)) == nan


def test_equality_across_copies_of_a_schema(banner: tuple[Any, Any]) -> None:
    view, message = banner
    again = yj.load_schema(SCHEMAS / "views.proto")["views.Banner"]
    assert view == again.message_class.FromString(message.SerializeToString())
    assert view == again.view(again.encode(message))
    assert view != again.message_class(id=1)


def test_views_are_not_hashable(banner: tuple[Any, Any]) -> None:
    for value in banner:
        with pytest.raises(TypeError, match="unhashable type"):
            hash(value)


def test_views_are_true(banner_type: yj.MessageType) -> None:
    assert banner_type.view(banner_type.encode({}))
    assert default_view(banner_type.plan).leaf


def test_text(banner: tuple[Any, Any], banner_type: yj.MessageType) -> None:
    view, message = banner
    assert str(view) == str(message)
    assert repr(view) == f"# views.Banner, view\n{message}".rstrip("\n")
    assert text_format.Parse(repr(view), type(message)()) == message
    assert repr(view.leaf) == '# views.Leaf, view\nn: -1\ntext: "leaf"'
    assert repr(default_view(banner_type.plan)) == "# views.Banner, view, empty"


def test_long_reprs_are_cut(banner_type: yj.MessageType) -> None:
    view = banner_type.view(banner_type.encode({"title": "x" * 1000, "tags": ["t"] * 100}))
    lines = repr(view).splitlines()
    assert lines[0] == "# views.Banner, view"
    assert lines[1] == 'title: "' + "x" * 392 + " ..."
    assert lines[-1] == "# ... 41 more lines"
    assert len(lines) == 62
    assert str(view) == str(view.to_message())


def test_repr_of_text_that_is_not_utf8(banner_type: yj.MessageType) -> None:
    buf = banner_type.encode({"title": "tea"}).replace(b"tea", b"\xfftt")
    view = banner_type.view_unchecked(buf)
    assert repr(view).startswith("# views.Banner, view; can't be shown: ")
    with pytest.raises(UnicodeDecodeError):
        view.title  # noqa: B018


def test_dir_and_completion(banner: tuple[Any, Any]) -> None:
    view, message = banner
    names = view.__dir__()
    fields = [field.name for field in message.DESCRIPTOR.fields if field.name != "dropped"]
    assert names[: len(fields)] == fields
    assert {"HasField", "to_message", "RED", "Color"} <= set(names)
    assert not {"Clear", "MergeFrom", "_data", "Extensions"} & set(names)
    assert type(view).price.__doc__ == "Field 2: double."
    assert type(view).attrs.__doc__ == "Field 11: map."
    assert type(view).leaves.__doc__ == "Field 10: repeated views.Leaf."


def test_copies_and_pickles(banner: tuple[Any, Any]) -> None:
    view, _ = banner
    assert copy.copy(view) is view
    assert copy.deepcopy([view])[0] is view
    with pytest.raises(TypeError) as raised:
        pickle.dumps(view.leaf)
    assert str(raised.value) == (
        "a view of views.Leaf can't be pickled: it only points into a buffer; pickle its SerializeToString()"
    )


# --- buffers ---


def test_buffers_that_cannot_change_are_not_copied(banner_type: yj.MessageType, tmp_path: Path) -> None:
    message = message_of(banner_type, BANNER)
    buf = banner_type.encode(message)
    assert banner_type.view(buf)._data_ is buf
    path = tmp_path / "banner.yaff"
    path.write_bytes(buf)
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    array = np.frombuffer(buf, np.uint8)
    for buffer, address in (
        (memoryview(buf), array.ctypes.data),
        (array, array.ctypes.data),
        (array.view(np.int8), array.ctypes.data),
        (pa.py_buffer(buf), array.ctypes.data),
        (mapped, np.frombuffer(mapped, np.uint8).ctypes.data),
    ):
        view = banner_type.view(buffer)
        check_view(view, message)
        assert np.frombuffer(view._data_, np.uint8).ctypes.data == address
        assert memoryview(view._data_).readonly
    with pytest.raises(BufferError):
        mapped.close()


def test_buffers_that_can_change_are_copied(banner_type: yj.MessageType) -> None:
    buf = banner_type.encode({"title": "before"})
    for writable in (
        bytearray(buf),
        np.frombuffer(buf, np.uint8).copy(),
        memoryview(bytearray(buf)).toreadonly(),
    ):
        view = banner_type.view(writable)
        target = writable.obj if isinstance(writable, memoryview) else writable
        memoryview(target)[:] = bytes(len(buf))
        assert view.title == "before"


def test_trusted_buffers_are_never_copied(banner_type: yj.MessageType) -> None:
    buf = bytearray(banner_type.encode({"title": "before"}))
    view = banner_type.view_unchecked(buf)
    buf[buf.index(b"before") :][:6]
    buf[buf.index(b"before")] = ord("B")
    assert view.title == "Before"


def test_views_are_verified(banner_type: yj.MessageType) -> None:
    buf = banner_type.encode({"title": "tea"})
    for broken in (b"", buf[:3], buf[:-1], b"\xff" + buf[1:]):
        with pytest.raises(yj.VerifyError):
            banner_type.view(broken)
        with pytest.raises(yj.VerifyError):
            banner_type.view(bytearray(broken))
    for broken in (b"", buf[:3], buf[:5], b"\xff\xff\xff\xff" + buf[4:]):
        with pytest.raises(yj.VerifyError) as raised:
            banner_type.view_unchecked(broken)
        assert str(raised.value) == (
            f"views.Banner: the buffer of {len(broken)} bytes ends before the root message"
        )
    with pytest.raises(TypeError):
        banner_type.view(5)


def test_one_class_for_each_plan(banner: tuple[Any, Any], banner_type: yj.MessageType) -> None:
    view, _ = banner
    assert type(view) is view_class(banner_type.plan) is type(view.parent)
    assert type(view.leaf) is type(view.leaves[0])
    assert isinstance(view, View)
    assert type(view_unchecked(banner_type.plan, banner_type.encode({}))) is type(view)
    assert not hasattr(view, "__dict__")


@pytest.mark.parametrize("name", ["\ud800", b"\xff", "no\0such", b"no", "", 5, None])
def test_names_that_no_field_has(banner: tuple[Any, Any], name: Any) -> None:
    for method in ("HasField", "WhichOneof"):
        for value in banner:
            with pytest.raises(ValueError, match="field"):
                getattr(value, method)(name)


def test_equality_with_what_is_no_such_message(banner_type: yj.MessageType, tmp_path: Path) -> None:
    view = banner_type.view(banner_type.encode({"title": "tea"}))
    path = tmp_path / "other.proto"
    path.write_text('syntax = "proto2"; package views; message Banner { optional bytes title = 5; }')
    title = banner_type.message_class.DESCRIPTOR.fields_by_name["title"].number
    path.write_text(path.read_text().replace("= 5", f"= {title}"))
    other = yj.load_schema(path)["views.Banner"]
    assert view == other.message_class(title=b"tea")
    assert view == other.view(other.encode({"title": b"tea"}))
    for title in (b"\xff", b"coffee"):
        assert view != other.message_class(title=title)
        assert view != other.view(other.encode({"title": title}))

    class Disguised:
        DESCRIPTOR = banner_type.message_class.DESCRIPTOR

    assert view != Disguised()
    assert view != 5


def test_serializing_takes_its_option_as_protobuf_does(banner: tuple[Any, Any]) -> None:
    view, message = banner
    for option in (True, False, None):
        for method in ("SerializeToString", "SerializePartialToString"):
            by_place = getattr(view, method)(option)
            assert by_place == getattr(view, method)(deterministic=option)
            assert type(message).FromString(by_place).ByteSize() == message.ByteSize()
    assert view.SerializeToString(True) == message.SerializeToString(True)


def test_functions_that_make_views_say_what_they_do(banner_type: yj.MessageType) -> None:
    assert (banner_type.view.__name__, banner_type.view_unchecked.__name__) == ("view", "view_unchecked")
    for function, start in (
        (banner_type.view, "A zero-copy view of the message in a buffer, which is verified first."),
        (banner_type.view_unchecked, "A zero-copy view of the message in a buffer that is trusted."),
    ):
        assert function.__doc__ is not None
        assert function.__doc__.startswith(start)
