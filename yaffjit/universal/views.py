"""Views of documents: what is asked for is looked up in the bytes, the rest isn't read.

A container has no table of what is in it, so a look-up reads past all that comes before. Loops don't: each
item is found where the one before it ended.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload

from yaffjit.universal.codec import byte_view, read_options, read_part
from yaffjit.universal.codes import COLLECTION, DEFAULT_MAX_DEPTH, OBJECT, Order
from yaffjit.universal.compiled import Looker, loaded
from yaffjit.universal.paths import known_paths, path_of, path_of_key, path_of_steps
from yaffjit.universal.plain_look import PlainLooker
from yaffjit.universal.refusals import KindError, kind_of

if TYPE_CHECKING:
    from yaffjit.view.owner import Owner

_ONE_DEEPER = 1 << 20  # of the flags
_ABSENT: Any = object()
_SHOWN_ITEMS = 6
_SHOWN_LEVELS = 3
_SHOWN_CHARACTERS = 60
_plain = PlainLooker()
_T = TypeVar("_T")


class Source:
    """The bytes that views of one document share.

    Attributes:
        data: bytes or a memoryview of them.
        look: what looks up.
    """

    __slots__ = ("_owner", "data", "look")

    def __init__(self, data: Any, owner: Owner | None = None) -> None:
        self.data = data
        self.look: Any = _plain
        self.looker()
        self._owner = owner

    def looker(self) -> Any:
        """What looks up from now on: compiled code, once a process has done enough to repay loading it."""
        if self.look is _plain:
            self.look = loaded.looker_for(len(self.data)) or _plain
            if self.look is not _plain and self.look is not _installed:
                _install(self)
        return self.look

    def owner(self) -> Owner:
        """What keeps the bytes in their place while jitted code reads them; made at first use."""
        if self._owner is None:
            from yaffjit.view.owner import Owner, making

            with making:
                self._owner = self._owner or Owner(self.data)
        return self._owner


# What `View.get` does at once, without its code in Python.
_installed: Any = None


def _install(source: Source) -> None:
    from yaffjit.universal.fast_get import install

    global _installed
    if isinstance(source.look, Looker):
        install(source.look, ObjectView(source, 1 << 40, 1 << 41), (View, ObjectView))
    _installed = source.look


class View:
    """A container in a document: an `ObjectView` or a `CollectionView`."""

    __slots__ = ("__weakref__", "_data", "_flags", "_look", "_source", "_word")
    __hash__: ClassVar[None] = None  # type: ignore[assignment]
    _kind: ClassVar[int]

    def __init__(self, source: Source, word: int, flags: int) -> None:
        self._source = source
        self._data = source.data
        self._look = source.look
        self._word = word
        self._flags = flags

    def get(self, path: str, default: Any = None) -> Any:
        """What a path leads to: a scalar as Python's value, a container as a view.

        Args:
            path: as ``a.b[3].c``; ``['a.b']`` for keys with dots or brackets, ``[-1]`` for the last item.
            default: given where the path leads nowhere.

        Raises:
            DocumentError: the bytes on the way aren't those of a document.
            ValueError: it isn't a path.
        """
        try:
            steps = known_paths[path]
        except KeyError:
            steps = path_of(path)
        if self._look is _plain:
            self._look = self._source.looker()
        found = self._look.find(self._data, self._word, self._flags, steps, default)
        if type(found) is not tuple or found is default:
            return found
        return self._part(found, len(steps.steps))

    def get_int(self, path: str, default: int = 0) -> int:
        """`get` of an integer; null counts as absent.

        Raises:
            KindError: a TypeError: something else is there.
        """
        found: int = self._typed(path, default, int, "an integer")
        return found

    def get_float(self, path: str, default: float = 0.0) -> float:
        """`get` of a float or an integer, as a float; null counts as absent. Raises `KindError`."""
        found = self.get(path, _ABSENT)
        if type(found) is int:
            return float(found)
        if found is _ABSENT or found is None:
            return default
        return self._as(found, float, path, "a number")

    def get_bool(self, path: str, default: bool = False) -> bool:
        """`get` of true or false; null counts as absent. Raises `KindError`."""
        found: bool = self._typed(path, default, bool, "a bool")
        return found

    def get_text(self, path: str, default: str = "") -> str:
        """`get` of text; null counts as absent. Raises `KindError`."""
        found: str = self._typed(path, default, str, "text")
        return found

    def has(self, path: str) -> bool:
        """Whether a path leads to something, null too. Raises as `get` does."""
        return self.get(path, _ABSENT) is not _ABSENT

    def at(self, path: str) -> Any:
        """`get` of what must be there. Raises KeyError where it isn't."""
        found = self.get(path, _ABSENT)
        if found is _ABSENT:
            raise KeyError(path)
        return found

    def value(self) -> Any:
        """All of it as dicts, lists and scalars, as `yaffjit.universal.loads` gives them.

        Raises:
            DocumentError: it isn't well-formed.
        """
        return read_part(self._data, self._word, self._flags)

    def _typed(self, path: str, default: Any, kind: type, wanted: str) -> Any:
        found = self.get(path, _ABSENT)
        return default if found is _ABSENT or found is None else self._as(found, kind, path, wanted)

    def _as(self, found: Any, kind: type[_T], path: str, wanted: str) -> _T:
        if type(found) is not kind:
            raise KindError(path, kind_of(found), wanted)
        return found

    def _part(self, place: tuple[int, int], depth: int) -> View:
        word, code = place
        cls = ObjectView if code == OBJECT else CollectionView
        return cls(self._source, word, self._flags + depth * _ONE_DEEPER)

    def _begin(self) -> int:
        """The word of the first item."""
        compact = self._flags & 1
        position, pending = divmod(self._word, 32)
        if pending or not compact:
            return (position if pending else position + 1) * 32
        byte: int = self._data[position]
        return (position + 1) * 32 + 16 + (byte >> 4)

    def _pairs(self) -> Iterator[tuple[Any, Any]]:
        word = self._begin()
        while True:
            item = self._look.next_item(self._data, word, self._flags, self._kind)
            if item is None:
                return
            key, value, word = item
            yield key, self._part(value, 1) if type(value) is tuple else value

    def __len__(self) -> int:
        count: int = self._look.count(self._data, self._word, self._flags)
        return count

    def __bool__(self) -> bool:
        return self._look.next_item(self._data, self._begin(), self._flags, self._kind) is not None

    def __eq__(self, other: object) -> bool:
        """Compares what `value` gives, with that of another view or with anything else."""
        if isinstance(other, View):
            other = other.value()
        elif not isinstance(other, dict if self._kind == OBJECT else list):
            return NotImplemented
        return bool(self.value() == other)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_shown(self, _SHOWN_LEVELS)})"

    # What jitted code reads.

    @property
    def _owner_(self) -> Owner:
        return self._source.owner()

    @property
    def _nbytes(self) -> int:
        return len(self._data)

    @property
    def _numba_type_(self) -> Any:
        from yaffjit.universal.jitted import view_type

        return view_type


class ObjectView(View, Mapping[str, Any]):
    """An object: a mapping of text to values. Of keys that are there twice a look-up finds the first.

    ``get`` takes a path, not a key.
    """

    __slots__ = ()
    _kind = OBJECT

    def __getitem__(self, key: str) -> Any:
        if type(key) is not str:
            raise TypeError(f"keys of an object are text, not {type(key).__name__}")
        found = self._look.find(self._data, self._word, self._flags, path_of_key(key), _ABSENT)
        if found is _ABSENT:
            raise KeyError(key)
        return self._part(found, 1) if type(found) is tuple else found

    def __contains__(self, key: object) -> bool:
        if type(key) is not str:
            return False
        found = self._look.find(self._data, self._word, self._flags, path_of_key(key), _ABSENT)
        return found is not _ABSENT

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self._pairs())

    def keys(self) -> KeysView[str]:
        return KeysView(self)

    def values(self) -> ValuesView[Any]:
        return _Values(self)

    def items(self) -> ItemsView[str, Any]:
        return _Items(self)

    get = View.get
    __eq__ = View.__eq__


class _Values(ValuesView[Any]):
    def __iter__(self) -> Iterator[Any]:
        return (value for _, value in self._mapping._pairs())  # type: ignore[attr-defined]

    def __contains__(self, value: object) -> bool:
        return any(value is one or value == one for one in self)


class _Items(ItemsView[str, Any]):
    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return self._mapping._pairs()  # type: ignore[attr-defined,no-any-return]


class CollectionView(View, Sequence[Any]):
    """A collection: a sequence of values. A slice of it is a list."""

    __slots__ = ()
    _kind = COLLECTION

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return list(self)[index]
        if not hasattr(index, "__index__"):
            raise TypeError(f"indexes of a collection are integers or slices, not {type(index).__name__}")
        position = index.__index__()
        found = self._look.find(self._data, self._word, self._flags, path_of_steps((position,)), _ABSENT)
        if found is _ABSENT:
            raise IndexError(f"index {position} is out of range: the collection has {len(self)} items")
        return self._part(found, 1) if type(found) is tuple else found

    def __iter__(self) -> Iterator[Any]:
        return (value for _, value in self._pairs())

    def __reversed__(self) -> Iterator[Any]:
        return iter(list(self)[::-1])

    __eq__ = View.__eq__


def view(
    buf: Any,
    *,
    order: Order = "swapped",
    compact: bool = True,
    null: bool = False,
    max_depth: int = DEFAULT_MAX_DEPTH,
) -> Any:
    """The document in a buffer, not decoded: a view of its object or collection; a scalar as Python's value.

    Nothing is checked ahead: what is read is checked then, and bytes that are skipped are only for their
    structure. The bytes must not change while jitted code reads them.

    Args:
        buf: bytes or any contiguous buffer, which stays exported while a view lives.
        order, compact, null, max_depth: as for `yaffjit.universal.loads`.

    Raises:
        DocumentError: no value is there.
        TypeError, ValueError: ``buf`` isn't a buffer, or isn't contiguous.
    """
    _, flags = read_options(compact, order, null, False, None, max_depth)
    return value_at(Source(byte_view(buf)), 0, flags)


def value_at(source: Source, word: int, flags: int) -> Any:
    """What a word of a cursor names: a view of a container, or a scalar."""
    found = source.look.find(source.data, word, flags, path_of(""), None)
    if type(found) is not tuple:
        return found
    return (ObjectView if found[1] == OBJECT else CollectionView)(source, word, flags)


def _shown(value: Any, levels: int) -> str:
    """A value as it's printed, of long ones only the begin."""
    if not isinstance(value, View):
        text = repr(value)
        return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 4]}...{text[-1]}"
    shown: list[str] = []
    is_object = value._kind == OBJECT
    for key, held in value._pairs() if levels else iter(()):
        if len(shown) == _SHOWN_ITEMS:
            shown.append("...")
            break
        text = _shown(held, levels - 1)
        shown.append(f"{_shown(key, 0)}: {text}" if is_object else text)
    if not levels and value:
        shown.append("...")
    inside = ", ".join(shown)
    return f"{{{inside}}}" if is_object else f"[{inside}]"
