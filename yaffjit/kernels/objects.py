"""CPython's objects from kernels: its C interface by the names of symbols, and builtins made of kernels.

A name is resolved when machine code is loaded, so code on disk holds no address. One that is missing would
crash even if it's never called, so nothing here may be compiled before `missing_symbols` gives nothing.

All objects are addresses (int64). Kernels that call these hold the GIL, so they are never ``nogil``.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import float64, int32, int64, types
from numba.extending import intrinsic

from yaffjit.kernels.cached import inner
from yaffjit.kernels.memory import load_i64, store_i64

_INT64 = ir.IntType(64)
_NAMES: list[str] = []


def _function(name: str, result: Any, *arguments: Any) -> Any:
    _NAMES.append(name)
    return types.ExternalFunction(name, result(*arguments))


# In the order of CPython's documentation. Each is as there; int64 are pointers and Py_ssize_t.
py_incref = _function("Py_IncRef", types.void, int64)
_py_decref = _function("Py_DecRef", types.void, int64)
err_occurred = _function("PyErr_Occurred", int64)
err_matches = _function("PyErr_ExceptionMatches", int32, int64)
err_clear = _function("PyErr_Clear", types.void)
err_no_memory = _function("PyErr_NoMemory", int64)
call = _function("PyObject_Call", int64, int64, int64, int64)
object_hash = _function("PyObject_Hash", int64, int64)
get_buffer = _function("PyObject_GetBuffer", int32, int64, int64, int32)
release_buffer = _function("PyBuffer_Release", types.void, int64)
int_value = _function("PyLong_AsLongLong", int64, int64)
int_value_and_overflow = _function("PyLong_AsLongLongAndOverflow", int64, int64, int64)
new_int = _function("PyLong_FromLongLong", int64, int64)
float_value = _function("PyFloat_AsDouble", float64, int64)
new_float = _function("PyFloat_FromDouble", int64, float64)
new_bytes = _function("PyBytes_FromStringAndSize", int64, int64, int64)
bytes_data = _function("PyBytes_AsString", int64, int64)
bytes_size = _function("PyBytes_Size", int64, int64)
resize_bytes = _function("_PyBytes_Resize", int32, int64, int64)
text_as_utf8 = _function("PyUnicode_AsUTF8AndSize", int64, int64, int64)
text_as_latin1 = _function("PyUnicode_AsLatin1String", int64, int64)
text_as_utf16 = _function("PyUnicode_AsUTF16String", int64, int64)
new_text = _function("PyUnicode_New", int64, int64, int32)
text_of_utf8 = _function("PyUnicode_DecodeUTF8", int64, int64, int64, int64)
text_of_latin1 = _function("PyUnicode_DecodeLatin1", int64, int64, int64, int64)
text_of_utf16 = _function("PyUnicode_DecodeUTF16", int64, int64, int64, int64, int64)
new_tuple = _function("PyTuple_New", int64, int64)
tuple_size = _function("PyTuple_Size", int64, int64)
tuple_get = _function("PyTuple_GetItem", int64, int64, int64)
tuple_set = _function("PyTuple_SetItem", int32, int64, int64, int64)
new_list = _function("PyList_New", int64, int64)
list_size = _function("PyList_Size", int64, int64)
list_get = _function("PyList_GetItem", int64, int64, int64)
list_set = _function("PyList_SetItem", int32, int64, int64, int64)
new_presized_dict = _function("_PyDict_NewPresized", int64, int64)
dict_size = _function("PyDict_Size", int64, int64)
dict_get = _function("PyDict_GetItemWithError", int64, int64, int64)
dict_set = _function("PyDict_SetItem", int32, int64, int64, int64)
dict_next = _function("PyDict_Next", int32, int64, int64, int64, int64)
gc_disable = _function("PyGC_Disable", int32)
gc_enable = _function("PyGC_Enable", int32)

# C's own.
memcpy = types.ExternalFunction("memcpy", int64(int64, int64, int64))
memcmp = types.ExternalFunction("memcmp", int32(int64, int64, int64))
malloc = types.ExternalFunction("malloc", int64(int64))
realloc = types.ExternalFunction("realloc", int64(int64, int64))
free = types.ExternalFunction("free", types.void(int64))


def missing_symbols() -> list[str]:
    """The names that this interpreter lacks; all of them where it isn't CPython, or runs without a GIL."""
    if sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return list(_NAMES)
    return [name for name in _NAMES if not hasattr(ctypes.pythonapi, name)]


# Where CPython keeps what; read directly only where `layout` finds it so.
TYPE = 8
SIZE = 16  # of lists, tuples, dicts and text
ITEMS = 24  # of a tuple; of a list, their address
TEXT_STATE = 32
ASCII = 0x60  # bits of the state: compact and ASCII
FLOAT = 16
INT_HEAD = 16
DIGITS = 24
DIGIT_BITS = 30

# What `layout` gives: nothing is known; objects are as above, with heads of integers as up to CPython 3.11 or
# since 3.12.
UNKNOWN, OLD_INTS, NEW_INTS = 0, 1, 2


def layout() -> int:
    """How objects lie in memory, found by looking at some."""
    if struct.calcsize("P") != 8 or sys.byteorder != "little" or hasattr(sys, "gettotalrefcount"):
        return UNKNOWN

    def word(thing: Any, at: int, form: str = "<q") -> Any:
        return struct.unpack(form, ctypes.string_at(id(thing) + at, struct.calcsize(form)))[0]

    def number(value: int, head: int, *digits: int) -> bool:
        found = [word(value, DIGITS + 4 * i, "<I") for i in range(len(digits))]
        return word(value, INT_HEAD) == head and found == list(digits)

    ascii_text, other_text = "abcdefg!" + str(len(_NAMES)), "ab\u0439"
    nbytes = len(ascii_text)
    items: list[Any] = [ascii_text, other_text, None]
    kinds: list[Any] = [items, ascii_text, 1.5, 7, {}, ()]
    same = (
        all(word(thing, TYPE) == id(type(thing)) for thing in kinds)
        and ctypes.string_at(id(ascii_text) + ASCII_HEAD, nbytes + 1) == ascii_text.encode() + b"\0"
        and word(ascii_text, SIZE) == nbytes
        and word(ascii_text, TEXT_STATE, "<I") & ASCII == ASCII
        and word(other_text, TEXT_STATE, "<I") & ASCII != ASCII
        and word(1.25, FLOAT, "<d") == 1.25
        and word({"a": 1, "b": 2}, SIZE) == 2
        and word(items, SIZE) == word(tuple(items), SIZE) == 3
        and all(word(tuple(items), ITEMS + 8 * i) == id(item) for i, item in enumerate(items))
        and ctypes.string_at(word(items, ITEMS), 24) == struct.pack("<3q", *map(id, items))
    )
    if not same:
        return UNKNOWN
    small, negative, wide, zero = 12345, -12345, 3 << 40, 0
    high_digit = 3 << 10
    # Since 3.12 the references of objects that live for ever aren't counted.
    if sys.version_info < (3, 12):
        heads, found = (1, -1, 2, 0), OLD_INTS
    else:
        heads, found = (8, 10, 16, 1), NEW_INTS
    known = (
        number(small, heads[0], small)
        and number(negative, heads[1], small)
        and number(wide, heads[2], 0, high_digit)
        and number(zero, heads[3])
    )
    return found if known else UNKNOWN


# Bytes of an ASCII text before its characters.
ASCII_HEAD = sys.getsizeof("") - 1


@inner
def decref(thing: int) -> None:
    """Give a reference back."""
    _py_decref(thing)


@inner
def decref_if(thing: int) -> None:
    """Give a reference back, if there is one."""
    if thing != 0:
        _py_decref(thing)


@inner
def new_reference(thing: int) -> int:
    """The object, with one more reference."""
    py_incref(thing)
    return thing


@inner
def hold(thing: int, layout: int) -> int:
    """`new_reference`, faster where integers are old: there all references are counted, since 3.12 not."""
    if layout == OLD_INTS:
        store_i64(thing, load_i64(thing) + 1)
    else:
        py_incref(thing)
    return thing


@inner
def release(thing: int, layout: int) -> None:
    """`decref` of what mostly has other references too."""
    count = load_i64(thing)
    if layout == OLD_INTS and count > 1:
        store_i64(thing, count - 1)
    else:
        _py_decref(thing)


@intrinsic(prefer_literal=True)
def room(typingctx: Any, count: Any) -> Any:
    """The address of ``count`` (a constant) words on the stack, which aren't filled with zeros.

    Numba fills what it allocates on the stack, at each call.
    """
    if not isinstance(count, types.IntegerLiteral):
        return None
    words = count.literal_value

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        with builder.goto_entry_block():
            area = builder.alloca(ir.ArrayType(_INT64, words))
        return builder.ptrtoint(area, _INT64)

    return types.int64(count), codegen


@intrinsic
def float_of_bits(typingctx: Any, bits: Any) -> Any:
    """The float64 whose bits are an int64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@intrinsic
def float_of_bits32(typingctx: Any, bits: Any) -> Any:
    """The float64 equal to the float32 whose bits are the low ones of an int64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        narrow = builder.bitcast(builder.trunc(args[0], ir.IntType(32)), ir.FloatType())
        return builder.fpext(narrow, ir.DoubleType())

    return types.float64(types.int64), codegen


@intrinsic
def bits_of_float(typingctx: Any, number: Any) -> Any:
    """The bits of a float64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], _INT64)

    return types.int64(types.float64), codegen


@intrinsic
def bits_of_float32(typingctx: Any, number: Any) -> Any:
    """The bits of the float32 nearest to a float64, as a nonnegative int64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        narrow = builder.fptrunc(args[0], ir.FloatType())
        return builder.zext(builder.bitcast(narrow, ir.IntType(32)), _INT64)

    return types.int64(types.float64), codegen


@intrinsic
def byte_swapped(typingctx: Any, word: Any) -> Any:
    """An int64 with its bytes in the opposite order."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bswap(args[0])

    return types.int64(types.int64), codegen


_ODD_BYTES = 0x00FF00FF00FF00FF


@inner
def ordered(word: int, bits: int, order: int) -> int:
    """The low bits of a word in one of the orders of bytes (swapped, little, big), or back again.

    Requires: the other bits are zero. Source: ``reordered`` of `yaffjit.universal.codes`.
    """
    if order == 0:
        return ((word & _ODD_BYTES) << 8) | ((word >> 8) & _ODD_BYTES)
    if order == 1:
        return word
    word = byte_swapped(word)
    return word if bits == 64 else (word >> (64 - bits)) & ((1 << bits) - 1)


_FLOAT32_INFINITY = 0x7F800000
_FLOAT64_INFINITY = -0x20000000000000  # without its sign, one bit to the left


@inner
def float32_fits(number: float) -> bool:
    """Whether a float64 doesn't become infinite as a float32, unless it is."""
    is_infinite = bits_of_float32(number) & 0x7FFFFFFF == _FLOAT32_INFINITY
    return not is_infinite or bits_of_float(number) << 1 == _FLOAT64_INFINITY


@inner
def call_one(function: int, argument: int) -> int:
    """What a function of Python gives for an object; 0 with an exception."""
    arguments = new_tuple(1)
    if arguments == 0:
        return 0
    tuple_set(arguments, 0, new_reference(argument))
    result = call(function, arguments, 0)
    decref(arguments)
    return result


@inner
def raise_by(function: int, a: int, b: int, c: int, d: int, e: int) -> None:
    """Call a function of Python that raises.

    Args:
        a, d, e: numbers that it's given.
        b, c: objects that it's given; the references are taken.
    """
    arguments = new_tuple(5)
    if arguments == 0:
        decref(b)
        decref(c)
        return
    first = new_int(a)
    fourth = new_int(d)
    fifth = new_int(e)
    tuple_set(arguments, 0, first)
    tuple_set(arguments, 1, b)
    tuple_set(arguments, 2, c)
    tuple_set(arguments, 3, fourth)
    tuple_set(arguments, 4, fifth)
    if first != 0 and fourth != 0 and fifth != 0:
        decref_if(call(function, arguments, 0))
    decref(arguments)


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_METH_KEYWORDS, _METH_FASTCALL = 0x02, 0x80
_alive: list[_MethodDef] = []  # for ever, as the builtins made of them may be


def make_builtin(name: str, kernel: Any, itself: Any) -> Callable[..., Any]:
    """A function of Python that runs a kernel.

    Args:
        kernel: compiled for (address of ``itself``, address of the array of arguments, their number), all
            int64; gives a new reference, or 0 where it has set an exception.
        itself: an object that the kernel is always given.
    """
    method = _method(name, kernel, _METH_FASTCALL, None)
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    make: Any = prototype(("PyCFunction_NewEx", ctypes.pythonapi))
    made: Callable[..., Any] = make(ctypes.addressof(method), itself, None)
    return made


def make_method(owner: type, name: str, kernel: Any, doc: str) -> Any:
    """A method of a class that runs a kernel.

    Args:
        kernel: compiled for (address of the instance, address of the array of arguments, number of those
            without a name, address of the tuple of the names of the others or 0); else as of `make_builtin`.
        doc: with the signature, as CPython has it in its own.
    """
    method = _method(name, kernel, _METH_FASTCALL | _METH_KEYWORDS, doc.encode())
    make: Any = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)(
        ("PyDescr_NewMethod", ctypes.pythonapi)
    )
    return make(owner, ctypes.addressof(method))


def _method(name: str, kernel: Any, flags: int, doc: bytes | None) -> _MethodDef:
    (signature,) = kernel.signatures
    compiled = kernel.overloads[signature]
    address = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cfunc_wrapper_name)
    method = _MethodDef(name.encode(), address, flags, doc)
    _alive.append(method)
    return method
