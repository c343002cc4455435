"""Views and cursors of universal documents: what they find is what `loads` gives, or its error."""

from __future__ import annotations

import contextlib
import inspect
import random
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from universal_mutants import documents, mutants

import yaffjit as yj
from yaffjit import universal
from yaffjit.universal import compiled, dumps, loads, paths, views
from yaffjit.universal.codec import read_options
from yaffjit.universal.codes import path_text
from yaffjit.universal.paths import known_paths, path_of, path_of_steps
from yaffjit.universal.plain_look import PlainLooker

pytestmark = pytest.mark.slow

view = universal.view


class Loaded(compiled.Loaded):
    """What `view` looks up with."""

    def __init__(self, looker: Any) -> None:
        super().__init__()
        self.codec = None
        self.looker = looker
        self._can_load = False


@pytest.fixture(scope="module")
def lookers() -> dict[str, Any]:
    return {"plain": PlainLooker(), "compiled": compiled.Looker()}


@pytest.fixture(autouse=True, params=["plain", "compiled"])
def way(request: Any, lookers: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """By which code things are looked up."""
    monkeypatch.setattr(sys.modules["yaffjit.universal.views"], "loaded", Loaded(lookers[request.param]))


DOCUMENT = {
    "a": {"b": [1, 2.5, "x", {"c": True, "d.e": [[], {}], "": None}], "q": False},
    "\u0439": "\U0001f600" * 3,
    "caf\xe9": -(2**40),
    "k" * 40: "long key",
    "f": np.float32(0.1),
}
OPTIONS = [
    {"compact": compact, "order": order, "strings": strings, "width": width}
    for compact in (True, False)
    for order, width in (("swapped", "java"), ("big", "smallest"), ("little", "java"))
    for strings in ("utf8", "latin1", "utf16")
]


def reading(options: dict[str, Any]) -> dict[str, Any]:
    return {"null": True, **{name: options[name] for name in ("compact", "order") if name in options}}


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values())))
def test_a_view_gives_what_loads_gives(options: dict[str, Any]) -> None:
    data = dumps(DOCUMENT, null=True, **options)
    read = reading(options)
    obj = loads(data, **read)
    for buf in (data, bytearray(data), memoryview(data), np.frombuffer(data, np.uint8)):
        v = view(buf, **read)
        assert isinstance(v, Mapping) and isinstance(v["a"]["b"], Sequence)
        assert v == obj and v.value() == obj and obj == v and v == view(data, **read)
        assert list(v) == list(v.keys()) == list(obj) and len(v) == len(obj)
        assert list(v.values()) == list(obj.values()) and list(v.items()) == list(obj.items())
        assert dict(v["a"]["b"][3]) == obj["a"]["b"][3]
        assert v.get("a.b[3].c") is True and v.get("a.b[3]['d.e'][0]") == []
        assert v.get("a.b[-1].c") is True and v.get("a.b[-5]") is None
        assert v.get("a.b[3]['']", 5) is None and v.get("a.b[4]", 5) == 5 and v.get("a[0]", 5) == 5
        assert v.get("", 5) == obj and v.get("a.b.c") is None and v.get("q") is None
        assert v.get("\u0439") == obj["\u0439"] and v["caf\xe9"] == -(2**40) and v["k" * 40] == "long key"
        assert "a" in v and "z" not in v and 3 not in v and "\ud800" not in v
        b = v["a"]["b"]
        assert list(b) == obj["a"]["b"] and b[-2] == "x" and b[1:3] == [2.5, "x"] and 2.5 in b and 9 not in b
        assert list(reversed(b)) == obj["a"]["b"][::-1] and b.index("x") == 2
        assert bool(b) and not b[3]["d.e"][0]
        assert True in v["a"]["b"][3].values()


def test_scalars_are_themselves_and_default_may_be_anything() -> None:
    for value in (True, 5, -1.5, "text", 2**40):
        assert view(dumps(value)) == value and type(view(dumps(value))) is type(value)
    default = (1, 2)
    assert view(dumps({})).get("x", default) is default
    assert view(b"\x00", null=True) is None


def test_typed_getters() -> None:
    obj = {"i": 7, "f": 1.5, "t": "x", "b": True, "n": None, "o": {}, "c": []}
    v = view(dumps(obj, null=True), null=True)
    assert (v.get_int("i"), v.get_float("f"), v.get_float("i")) == (7, 1.5, 7.0)
    assert (v.get_text("t"), v.get_bool("b")) == ("x", True)
    assert type(v.get_float("i")) is float
    for path in ("n", "zz", "o.x"):
        found = v.get_int(path, 3), v.get_float(path, 0.5), v.get_text(path, "d"), v.get_bool(path, True)
        assert found == (3, 0.5, "d", True)
    for getter, path, text in (
        (v.get_int, "f", "f: a float where an integer is asked for"),
        (v.get_int, "b", "b: a bool where an integer is asked for"),
        (v.get_float, "t", "t: text where a number is asked for"),
        (v.get_text, "o", "o: an object where text is asked for"),
        (v.get_bool, "c", "c: a collection where a bool is asked for"),
    ):
        with pytest.raises(universal.KindError) as caught:
            getter(path)
        assert str(caught.value) == text and isinstance(caught.value, TypeError)


def test_what_is_not_there() -> None:
    v = view(dumps({"a": [1, 2]}))
    with pytest.raises(KeyError, match="'b'"):
        v["b"]
    with pytest.raises(TypeError, match=r"^keys of an object are text, not int$"):
        v[0]
    for index in (2, -3, 2**70):
        with pytest.raises(IndexError, match=rf"^index {index} is out of range: the collection has 2 items$"):
            v["a"][index]
    with pytest.raises(TypeError, match=r"^indexes of a collection are integers or slices, not str$"):
        v["a"]["0"]
    with pytest.raises(TypeError, match=r"^a path is text, as 'a\.b\[3\]\.c', not int$"):
        v.get(3)
    with pytest.raises(TypeError, match="unhashable"):
        hash(v)
    assert v != {"a": [1]} and v != 5 and v["a"] != {"a": 1}


@pytest.mark.parametrize(
    "text", [".a", "a..b", "a[", "a[x]", "a]", "[0]b", "a.[0]", "['a]", r"['\x']", "[" + "9" * 9999 + "]"]
)
def test_what_is_no_path(text: str) -> None:
    with pytest.raises(ValueError, match=r"^not a path, as a\.b\[3\]\.c is one: .*, at character \d+$"):
        view(dumps({})).get(text)


@given(steps=st.lists(st.text(st.characters(exclude_categories=())) | st.integers(-(2**62), 2**62)))
def test_paths_are_what_errors_print(steps: list[Any]) -> None:
    if len(steps) <= 16:
        assert path_of(path_text(steps)).steps == tuple(steps)


def test_known_paths_are_bounded() -> None:
    v = view(dumps({"a": 1}))
    for i in range(10_000):
        assert v.get(f"a{i}") is None
    assert len(paths.known_paths) <= 4096


def test_repr() -> None:
    v = view(dumps({"a": [1] * 9, "b": {"c": {"d": {"e": 1}}}, "t": "x" * 99}))
    assert repr(v) == (
        "ObjectView({'a': [1, 1, 1, 1, 1, 1, ...], 'b': {'c': {'d': {...}}}, "
        "'t': 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'})"
    )
    assert repr(v["b"]["c"]) == "ObjectView({'d': {'e': 1}})"
    assert repr(view(dumps([[], {}]))) == "CollectionView([[], {}])"


def test_the_first_of_duplicate_keys_is_found() -> None:
    v = view(bytes.fromhex("d1 01 61 d5 01 61 26"))
    assert v["a"] is True and list(v.items()) == [("a", True), ("a", False)] and v.value() == {"a": False}


# ---- any document, by every path ----

SCALARS = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=9)
OBJECTS = st.recursive(
    SCALARS | st.none(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=4), inner, max_size=5),
    max_leaves=25,
)


def parts(obj: Any, steps: tuple[Any, ...] = ()) -> Any:
    yield steps, obj
    if isinstance(obj, dict | list):
        for step, held in obj.items() if isinstance(obj, dict) else enumerate(obj):
            yield from parts(held, (*steps, step))


@given(obj=OBJECTS, options=st.sampled_from(OPTIONS))
def test_every_path_of_any_document(obj: Any, options: dict[str, Any]) -> None:
    data = dumps(obj, null=True, **options)
    read = reading(options)
    v = view(data, **read)
    assert v == obj
    if not isinstance(obj, dict | list):
        return
    assert len(v) == len(obj)
    for steps, held in parts(obj):
        found = v.get(path_text(steps), parts) if len(steps) <= 16 else held
        assert found == held
        if isinstance(held, dict | list):
            assert found.value() == held and len(found) == len(held) and bool(found) == bool(held)
            assert list(found) == list(held)


# ---- what is wrong ----


def walk(value: Any, budget: list[int]) -> None:
    """Read all of a view, item by item."""
    if isinstance(value, universal.ObjectView):
        for key, held in value.items():
            budget[0] -= 1
            if budget[0] < 0:
                return
            value.get(path_text([key]))
            walk(held, budget)
    elif isinstance(value, universal.CollectionView):
        len(value)
        for held in value:
            budget[0] -= 1
            if budget[0] < 0:
                return
            walk(held, budget)


def error_of(function: Any) -> str:
    try:
        function()
    except yj.DecodeError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def test_every_cut_raises_what_loads_raises() -> None:
    for data in documents()[::4]:
        for compact in (True, False):
            for nbytes in range(len(data)):
                cut = data[:nbytes]
                expected = error_of(lambda cut=cut, c=compact: loads(cut, compact=c, null=True))
                found = error_of(lambda cut=cut, c=compact: walk(view(cut, compact=c, null=True), [10**6]))
                assert found in (expected, "")
                if found == "":  # what follows the document, which views don't read
                    assert "follow" in expected


def test_mutants_raise_what_loads_raises() -> None:
    rng = random.Random(8)
    for data in mutants(3_000, seed=2):
        options = {
            "compact": rng.random() < 0.5,
            "null": rng.random() < 0.7,
            "order": rng.choice(["swapped", "little"]),
            "max_depth": rng.choice([512, 3]),
        }
        expected = error_of(lambda data=data, o=options: loads(data, **o))
        found = error_of(lambda data=data, o=options: walk(view(data, **o), [10**4]))
        assert found in (expected, "")
        if not expected:
            assert not found
        elif not found:
            assert "follow" in expected


def test_depth_is_counted_from_the_document() -> None:
    nested: Any = 1
    for _ in range(512):
        nested = [nested]
    v = view(dumps(nested))
    for _ in range(511):
        v = v[0]
    assert v.value() == [1] and v[0] == 1
    for max_depth in (1, 511):
        v = view(dumps(nested), max_depth=max_depth)
        deeper = rf"nesting is deeper than {max_depth} \(max_depth\)"
        with pytest.raises(universal.DocumentError, match=deeper):
            for _ in range(512):
                v = v[0]
    deep = dumps([0, nested], max_depth=513), "nesting is deeper than 512 (max_depth)"
    with pytest.raises(universal.DocumentError) as caught:
        len(view(deep[0]))
    assert deep[1] in str(caught.value)


def test_references_are_given_back_and_buffers_let_go(lookers: dict[str, Any]) -> None:
    data = bytearray(dumps({"a": [1.5, "x" * 50, {"b": 10**12}], "z": "end"}))
    bad = bytearray(data[:-3])
    default = object()

    def rounds(count: int) -> None:
        v, w = view(data), view(bad)
        for _ in range(count):
            v.get("a[1]", default), v.get("a[9]", default), v.get("a[2].b"), v.get("a[2]"), len(v), list(v)
            for read in (lambda: w.get("z"), lambda: list(w), lambda: len(w), w.value):
                with contextlib.suppress(yj.DecodeError):
                    read()

    rounds(30)
    before = sys.getrefcount(default), sys.getrefcount(None), sys.getallocatedblocks()
    rounds(300)
    after = sys.getrefcount(default), sys.getrefcount(None), sys.getallocatedblocks()
    assert after[0] == before[0] and abs(after[1] - before[1]) < 250 and abs(after[2] - before[2]) < 100
    data.append(0)  # BufferError if it's still exported
    bad.append(0)


# ---- cursors ----


@given(obj=OBJECTS, options=st.sampled_from(OPTIONS))
def test_a_cursor_passes_values(obj: Any, options: dict[str, Any]) -> None:
    data = dumps([obj, obj], null=True, **options)
    c = universal.cursor(data, **reading(options))
    assert (c.word, c.peek(), c.code(), c.depth) == (0, 3, 3, 1)
    first = c.word
    c.skip()
    second, depth = c.word, c.depth
    assert c.value() == obj and c.code() == 4 and c.depth == 0
    c.seek(first, depth)
    assert c.value() == obj and c.word == second


def test_a_cursor_by_hand() -> None:
    c = universal.cursor(dumps([{"Value": 1234}]))
    assert [c.code(), c.pending, c.code(), c.code()] == [3, 17, 1, 13]
    assert repr(c) == "<Cursor at byte 2 of 13, pending 25>"
    assert c.payload(13) == "Value" and c.payload(c.code()) == 1234
    assert (c.code(), c.code(), c.peek(), c.position) == (2, 4, None, 13)
    with pytest.raises(ValueError, match=r"^code 4 has no payload$"):
        c.payload(4)
    with pytest.raises(ValueError, match=r"^word 5 isn't one of a cursor$"):
        c.seek(5)
    with pytest.raises(ValueError, match="its bytes have changed, or a cursor isn't where a code is"):
        c.code()


def test_path_words() -> None:
    assert path_of_steps(("ab", -1)).hex() == (
        "02000000000000000000000000000000020000000000000061620000000000000100000000000000ffffffffffffffff"
    )


def test_get_as_a_method_of_c() -> None:
    """It does what the method in Python does, however it's called."""
    looker = compiled.Looker()
    source = views.Source(dumps({"a": {"b": [1, "x", [2], {}]}, "n": None}, null=True))
    source.look = looker
    views._install(source)
    get = views.View.get
    assert type(get).__name__ == "method_descriptor" and universal.ObjectView.get is get
    assert str(inspect.signature(get)) == "(self, /, path, default=None)" and "Args:" in get.__doc__
    v = views.value_at(source, 0, read_options(True, "swapped", True, False, None, 512)[1])
    assert v.get("a.b[0]") == v.get(path="a.b[0]") == v.get("a.b[0]", default=5) == 1
    assert v.get("a.b[-3]") == "x" and v.get("n", 5) is None and v.get("zz") is None
    default = (7, 3)
    assert v.get("zz", default) is v.get("zz", default=default) is default
    assert isinstance(v.get("a.b[2]"), universal.CollectionView) and v.get("a.b").get("[2][0]") == 2
    assert isinstance(v.get("a.b[3]"), universal.ObjectView) and v.get("a") == {"b": [1, "x", [2], {}]}
    for wrong in ((), ("a", 1, 2), ("a",) * 9, (5,), (b"a",), ([],)):
        with pytest.raises(TypeError):
            v.get(*wrong)
    for names in ({"x": 1}, {"path": "a", "default": 1, "more": 2}):
        with pytest.raises(TypeError):
            v.get("a", **names)
    with pytest.raises(TypeError, match="View"):
        get(5, "a")
    with pytest.raises(ValueError, match="not a path"):
        v.get("a..b")
    with pytest.raises(AttributeError):
        universal.ObjectView.__new__(universal.ObjectView).get("a")
    before = [sys.getrefcount(thing) for thing in (v, source.data, default, known_paths["zz"])]
    damaged = views.Source(memoryview(source.data[:9]))
    damaged.look = looker
    cut = views.value_at(damaged, 0, 512 << 8 | 1)
    for _ in range(1000):
        v.get("zz", default), v.get("a.b[3]"), v.get("a.b[0]"), v.get("a.b[1]")
        with pytest.raises(yj.DecodeError):
            cut.get("zz", default)
    assert [sys.getrefcount(thing) for thing in (v, source.data, default, known_paths["zz"])] == before


def test_look_ups_alone_load_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "loaded", compiled.Loaded())
    monkeypatch.setattr(compiled, "PLAIN_DOCUMENTS", 5)
    seen = universal.view(dumps({"a": {"b": [1, 2]}, "t": "x" * 10}))
    assert seen._look is views._plain
    for _ in range(10):
        assert (seen.get("a.b[1]"), seen.get("t"), seen.get("a.c", 7)) == (2, "x" * 10, 7)
    if views.loaded.codec is not None:  # else this interpreter can't run it
        assert isinstance(seen._look, compiled.Looker)
