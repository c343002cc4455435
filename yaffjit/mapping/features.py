"""`map`, `filter` and features: a user's function with the loops that were compiled for it.

Loops are kept as long as the function: what is kept here doesn't mention the function itself.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from yaffjit.errors import CompileError
from yaffjit.forks import renew_in_forks
from yaffjit.mapping.functions import check_arguments, check_call, check_compiled, check_returns
from yaffjit.mapping.plain import map_plain
from yaffjit.progress import progress_bar

if TYPE_CHECKING:
    from yaffjit.mapping.arrays import Column
    from yaffjit.rows import Records


def map_records(
    records: Records,
    function: Callable[..., Any],
    threads: int | None = None,
    jit: bool = True,
    args: tuple[Any, ...] = (),
    progress: bool | None = None,
) -> Any:
    """See `Records.map`."""
    columns, make = _columns(records, function, threads, jit, args, progress)
    arrays = [column.finished() for column in columns]
    return arrays[0] if make is None else make(arrays)


def mapped_columns(records: Records, function: Callable[..., Any], threads: int | None) -> list[Column]:
    """As `map_records`, but what is missing is told apart from NaN: a column for each value of a row."""
    return _columns(records, function, threads, True, (), False)[0]


def filter_records(
    records: Records,
    function: Callable[..., Any],
    threads: int | None = None,
    jit: bool = True,
    args: tuple[Any, ...] = (),
    progress: bool | None = None,
) -> Records:
    """See `Records.filter`."""
    columns, make = _columns(records, function, threads, jit, args, progress)
    true = columns[0].truth() if make is None else None
    if true is None:
        values = columns[0].values
        what = "a tuple" if make is not None else f"{'an array of ' * (values.ndim - 1)}{values.dtype}"
        raise TypeError(f"filter asks whether {_name(function)} is true, which {what} isn't: return a bool")
    chosen: Records = records[true]
    return chosen


def _columns(
    records: Records,
    function: Callable[..., Any],
    threads: int | None,
    jit: bool,
    args: tuple[Any, ...],
    progress: bool | None,
) -> tuple[list[Column], Any]:
    if isinstance(function, Feature):
        function = function.__wrapped__
    if not isinstance(args, (tuple, list)):
        raise TypeError(
            f"args must be a tuple of what the function takes after the row, not {type(args).__name__}"
        )
    args = tuple(args)
    name = _name(function)
    if not jit:
        plain = getattr(function, "py_func", function)
        if not callable(plain):
            raise TypeError(f"map takes a function, not {type(function).__name__}")
        check_returns(plain, name)
        check_call(plain, name, args)
        with progress_bar(f"map {name}", len(records), "rows", progress) as bar:
            return map_plain(records, plain, args, name, bar.update)
    from yaffjit.mapping.compiled import map_compiled

    compiled = compiled_of(function)
    check_arguments(args)
    check_call(getattr(function, "py_func", function), name, args)
    loop, result = compiled.loop(function, records, args)
    with progress_bar(f"map {name}", len(records), "rows", progress) as bar:
        return map_compiled(records, loop, result, args, name, threads, bar.update), result.make


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


class Compiled:
    """What was compiled for one function.

    It mentions no such function: its dispatcher is of a copy, or belongs to the user.
    """

    def __init__(self) -> None:
        # Held for a moment only: while numba compiles one function, it may ask for the dispatcher of another.
        self._lock = threading.Lock()
        renew_in_forks(self, "_lock", threading.Lock)
        self._dispatcher: Any = None
        self._reads: list[tuple[str, Any]] = []
        self._loops: dict[Any, Any] = {}

    def dispatcher(self, function: Any) -> Any:
        """The function as a jitted one: made anew where a global or closure variable is another object."""
        if not isinstance(function, FunctionType):
            return function
        reads = list(_reads(function))
        with self._lock:
            if self._dispatcher is None or not _same(reads, self._reads):
                from numba import njit

                self._dispatcher = njit(_copy(function))
                self._reads = reads
                self._loops = {}
            return self._dispatcher

    def loop(self, function: Any, records: Records, args: tuple[Any, ...]) -> Any:
        """The loop over such records with such arguments, and the `Result`.

        Raises:
            CompileError: the function can't be compiled, or returns what can't be kept.
        """
        from numba.core.compiler_lock import global_compiler_lock

        from yaffjit.jit.mapping import compile_loop, returned_type
        from yaffjit.jit.results import result_of

        dispatcher = self.dispatcher(function)
        instead = f"map({_name(function)}, jit=False)"
        key = records._numba_type_, _types_of(args, instead)
        loops = self._loops
        found = loops.get(key)
        if found is None:
            with global_compiler_lock:  # of two threads the second finds what the first one compiled
                found = loops.get(key)
                if found is None:
                    with _hint(instead):
                        returned = returned_type(dispatcher, *key)
                    result = result_of(returned, dispatcher.py_func)
                    found = loops[key] = compile_loop(dispatcher, *key), result
        return found


_compiled: weakref.WeakKeyDictionary[Any, Compiled] = weakref.WeakKeyDictionary()
_making = threading.Lock()
renew_in_forks(sys.modules[__name__], "_making", threading.Lock)


def compiled_of(function: Any) -> Compiled:
    """What was compiled for a function, or will be.

    Raises:
        TypeError: it isn't a plain function, nor a jitted one, or can't be called by position.
    """
    if not isinstance(function, FunctionType):
        from numba.core.dispatcher import Dispatcher

        if not isinstance(function, Dispatcher):
            raise TypeError(
                f"map compiles plain functions, not {type(function).__name__}: "
                "pass a function with args=(...), or jit=False"
            )
    found = _compiled.get(function)
    if found is not None:
        return found
    check_compiled(function, _name(function))
    with _making:
        return _compiled.setdefault(function, Compiled())


def _copy(function: FunctionType) -> FunctionType:
    made = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__module__ = function.__module__
    made.__qualname__ = function.__qualname__
    return made


def _reads(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The globals and closure variables that numba takes for constants, but not the function itself.

    Also those of features among them.
    """
    seen: set[Any] = {function}
    waiting = [function]
    while waiting:
        for name, value in _named_values(waiting.pop()):
            inner = value.__wrapped__ if isinstance(value, Feature) else None
            if value is not function and inner is not function:
                yield name, value
            if isinstance(inner, FunctionType) and inner not in seen:
                seen.add(inner)
                waiting.append(inner)


def _named_values(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name in _global_names(function.__code__):
        yield name, function.__globals__.get(name)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not yet set
            yield name, None


@functools.lru_cache(maxsize=1024)
def _global_names(code: CodeType) -> tuple[str, ...]:
    """Names that code, with the functions in it, may look up in its globals."""
    names = dict.fromkeys(code.co_names)
    for part in code.co_consts:
        if isinstance(part, CodeType):
            names.update(dict.fromkeys(_global_names(part)))
    return tuple(names)


def _same(reads: list[tuple[str, Any]], before: list[tuple[str, Any]]) -> bool:
    return len(reads) == len(before) and all(
        name == old_name and value is old
        for (name, value), (old_name, old) in zip(reads, before, strict=True)
    )


def _types_of(args: tuple[Any, ...], instead: str) -> tuple[Any, ...]:
    from numba import typeof
    from numba.core.errors import NumbaError

    types = []
    for number, value in enumerate(args):
        try:
            types.append(typeof(value))
        except (ValueError, NumbaError) as error:
            text = f"args[{number}] can't be passed to jitted code: {error}"
            raise TypeError(f"{text}; {instead} runs it in Python") from None
    return tuple(types)


@contextlib.contextmanager
def _hint(instead: str) -> Iterator[None]:
    """Add to an error of the compiler what runs in Python."""
    from numba.core.errors import NumbaError

    instead += " runs it in Python"
    try:
        yield
    except CompileError as error:
        raise type(error)(f"{error.text.removesuffix('.')}; {instead}", error.file, error.line) from None
    except NumbaError as error:
        plain = re.search(
            r"Untyped \w+ name '(\w+)': Cannot determine Numba type of <class 'function'>", str(error)
        )
        if plain:
            which = f"{plain[1]} is a plain function"
            instead = f"{which}: jitted code calls those with @numba.njit or @yj.feature; {instead}"
        error.patch_message(f"{error}\n{instead}")
        raise


class Feature:
    """A function of one message that also takes records, and views at the speed of jitted code.

    ``f(recs)`` is ``recs.map(function)``: an array, or a tuple of arrays. ``f(view)`` calls it jitted, and
    ``f(message)`` as it is. More arguments are passed on. What was compiled is kept for the next call. Other
    features and jitted functions may call it.

    Attributes:
        __wrapped__: the function.

    Raises:
        TypeError: it isn't a plain function, nor a jitted one.
    """

    __wrapped__: Callable[..., Any]

    def __init__(self, function: Callable[..., Any]) -> None:
        compiled_of(function)
        functools.update_wrapper(self, function)

    def __call__(
        self, argument: Any, /, *args: Any, threads: int | None = None, progress: bool | None = None
    ) -> Any:
        """The function's result for a view or message, or its results for records.

        Args:
            argument: records, a view or a protobuf message.
            args: what the function takes after it.
            threads, progress: for records, see `Records.map`.
        """
        from yaffjit.rows import Records
        from yaffjit.view import View

        function = self.__wrapped__
        if isinstance(argument, Records):
            return map_records(argument, function, threads, args=args, progress=progress)
        if isinstance(argument, View):
            with _hint(f"{_name(function)}.__wrapped__"):
                return compiled_of(function).dispatcher(function)(argument, *args)
        return getattr(function, "py_func", function)(argument, *args)

    @property
    def _numba_type_(self) -> Any:
        """What numba takes it for in jitted code, that of other features too: a jitted function."""
        from numba.core import types

        function = self.__wrapped__
        return types.Dispatcher(compiled_of(function).dispatcher(function))

    def __reduce__(self) -> Any:
        """By name if that is where any process finds it, else with the function's code."""
        function = self.__wrapped__
        if not isinstance(function, FunctionType):  # numba's way to pickle it
            return Feature, (function,)
        name = function.__qualname__
        found = _by_name(function.__module__, name)
        if function.__module__ != "__main__" and found in (self, function):
            return name if found is self else (Feature, (function,))
        from numba import cloudpickle

        return _unpickled, (cloudpickle.dumps(function),)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.__wrapped__.__qualname__}>"


def feature(function: Callable[..., Any]) -> Feature:
    """``f = feature(score)``, or ``@feature`` above a function: see `Feature`."""
    return Feature(function)


def _by_name(module: str, name: str) -> Any:
    try:
        return functools.reduce(getattr, name.split("."), sys.modules[module])
    except (AttributeError, KeyError):
        return None


def _unpickled(pickled: bytes) -> Feature:
    from numba import cloudpickle

    return Feature(cloudpickle.loads(pickled))
