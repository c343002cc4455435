"""`yaffjit.universal.View.get` as a method of C: it takes what a view has from where CPython keeps it.

Of a look-up that takes 100 ns, a method in Python that passes all this on takes more than half.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import int64
from numba.extending import intrinsic

from yaffjit.kernels.cached import cached, inner
from yaffjit.kernels.memory import load_i64
from yaffjit.kernels.objects import (
    SIZE,
    TYPE,
    call,
    decref,
    decref_if,
    dict_get,
    dict_set,
    err_occurred,
    get_buffer,
    int_value,
    new_int,
    new_presized_dict,
    new_reference,
    new_tuple,
    raise_by,
    release_buffer,
    room,
    tuple_get,
    tuple_set,
    tuple_size,
)
from yaffjit.kernels.universal_look import PLAIN_FLAGS, WRONG, value_of
from yaffjit.kernels.universal_made import BYTES, NONE, REFUSE
from yaffjit.kernels.universal_scan import ABSENT, BAD, find

# Words of the state: those of `universal_look`, whose operation isn't used, and addresses of objects: the
# dict of paths by text, what looks up as this does, the method in Python, what makes views, and tuple.
PATHS, LOOKER, IN_PYTHON, PART, TUPLE = range(9, 14)
STATE_WORDS = 14

# Where the slots of a view are, which CPython sorts by name.
DATA, FLAGS, LOOK, WORD = 16, 24, 32, 48
# And those of a bytes object before its data.
BYTES_HEAD = sys.getsizeof(b"") - 1

_NAME = "yaffjit_universal_get_state"
_INT64 = ir.IntType(64)


@intrinsic
def _state(typingctx: Any) -> Any:
    """The address of the state, which is known by its name: a method has nothing else that is its own."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        module = builder.module
        words = module.globals.get(_NAME) or ir.GlobalVariable(module, _INT64, _NAME)
        return builder.ptrtoint(words, _INT64)

    return int64(), codegen


@inner
def _in_python(state: int, itself: int, arguments: int, count: int, names: int) -> int:
    """What the method in Python gives."""
    keywords = tuple_size(names) if names != 0 else 0
    given = new_tuple(1 + count)
    named = new_presized_dict(keywords)
    result = 0
    if given != 0 and named != 0:
        tuple_set(given, 0, new_reference(itself))
        for i in range(count):
            tuple_set(given, 1 + i, new_reference(load_i64(arguments + 8 * i)))
        failed = 0
        for i in range(keywords):
            failed |= dict_set(named, tuple_get(names, i), load_i64(arguments + 8 * (count + i)))
        if failed == 0:
            result = call(load_i64(state + 8 * IN_PYTHON), given, named)
    decref_if(given)
    decref_if(named)
    return result


@inner
def _part(state: int, itself: int, place: int, path: int) -> int:
    """The view of a container, whose place is a tuple that is taken."""
    given = new_tuple(3)
    depth = new_int(load_i64(path + BYTES_HEAD))
    result = 0
    if given != 0 and depth != 0:
        tuple_set(given, 0, new_reference(itself))
        tuple_set(given, 1, new_reference(place))
        tuple_set(given, 2, new_reference(depth))
        result = call(load_i64(state + 8 * PART), given, 0)
    decref_if(given)
    decref_if(depth)
    decref(place)
    return result


@inner
def _get(state: int, itself: int, path: int, default: int) -> int:
    # None of what is read here is counted: nothing else runs before the last look at it.
    buf = load_i64(itself + DATA)
    word = int_value(load_i64(itself + WORD))
    flags = int_value(load_i64(itself + FLAGS))
    view = room(10)
    is_bytes = load_i64(buf + TYPE) == load_i64(state + 8 * BYTES)
    if is_bytes:
        data = buf + BYTES_HEAD
        nbytes = load_i64(buf + SIZE)
    else:
        if get_buffer(buf, view, PLAIN_FLAGS) != 0:
            return 0
        data = load_i64(view)
        nbytes = load_i64(view + 16)
    found = find(data, nbytes, word, flags, path + BYTES_HEAD)
    if found == ABSENT:
        made = new_reference(default)
    elif found == BAD:
        made = WRONG
    else:
        made = value_of(state, data, nbytes, found, flags)
    if made == WRONG:
        new_reference(buf)
    elif found >= 0 and made != 0 and load_i64(made + TYPE) == load_i64(state + 8 * TUPLE):
        made = _part(state, itself, made, path)
    if not is_bytes:
        release_buffer(view)
    if made != WRONG:
        return made
    flags_again = new_int(flags)
    if flags_again == 0:
        decref(buf)
        return 0
    raise_by(load_i64(state + 8 * REFUSE), 0, buf, flags_again, 0, 0)
    return 0


def get(itself: int, arguments: int, count: int, names: int) -> int:
    """The method's body: (path, default) -> what the path leads to, or the default.

    Requires: ``itself`` is a view; there are as many arguments, and behind them one for each name.
    """
    state = _state()
    path = 0
    is_usual = names == 0 and (count == 1 or count == 2)
    if is_usual and load_i64(itself + LOOK) == load_i64(state + 8 * LOOKER) and load_i64(itself + WORD) != 0:
        path = dict_get(load_i64(state + 8 * PATHS), load_i64(arguments))
        if path == 0 and err_occurred() != 0:
            return 0
    if path == 0:
        return _in_python(state, itself, arguments, count, names)
    return _get(state, itself, path, load_i64(arguments + 8) if count == 2 else load_i64(state + 8 * NONE))


def compile_get(state: int) -> Any:
    """The kernel of `get`, compiled or from disk; a process has one state, at this address."""
    llvm.add_symbol(_NAME, ctypes.c_void_p(state).value)
    kernel = cached(get)
    kernel.compile(int64(int64, int64, int64, int64))
    kernel.disable_compile()
    return kernel
