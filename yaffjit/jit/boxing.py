"""Views and records into jitted code and back.

What comes in is read from a few attributes; what goes out is made by `box_view`, which finds the bytes by
their owner. The owner is numba's counted record of the buffer, held without counting: the argument keeps it
alive for the call. Of a view that jitted code made it's the record of an array, which the Python view holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba.core import boxing as _boxing  # noqa: F401  (registers numba's boxer of lists, which ours replaces)
from numba.core import cgutils, types
from numba.core.pythonapi import _boxers
from numba.cpython.listobj import ListInstance
from numba.extending import NativeValue, box, unbox
from numpy.lib.array_utils import byte_bounds

from yaffjit.errors import YaffjitError
from yaffjit.jit.emit.outline import I64, NULL, POINTER
from yaffjit.jit.keys import KeyedType, find_plan
from yaffjit.jit.lifetime import walk
from yaffjit.jit.types import BorrowedType, MessageViewType, RecordsType

if TYPE_CHECKING:
    from yaffjit.plan.build import Plan
    from yaffjit.view import View
    from yaffjit.view.owner import Owner
    from yaffjit.view.yaff import YaffView


def _attribute(c: Any, obj: ir.Value, name: str) -> ir.Value:
    """A new reference to an attribute; null with an exception set where there's none.

    The name becomes a Python string once a process, not at each call.
    """
    b = c.builder
    symbol = f"yaffjit.attribute.{name}"
    slot = b.module.globals.get(symbol)
    if slot is None:
        slot = ir.GlobalVariable(b.module, c.pyapi.pyobj, symbol)
        slot.initializer = c.pyapi.pyobj(None)
        slot.linkage = "internal"
    with b.if_then(cgutils.is_null(b, b.load(slot)), likely=False):
        make = cgutils.get_or_insert_function(
            b.module, ir.FunctionType(c.pyapi.pyobj, [POINTER]), "PyUnicode_InternFromString"
        )
        b.store(b.call(make, [c.context.insert_const_string(b.module, name)]), slot)
    return c.pyapi.object_getattr(obj, b.load(slot))


def integer(c: Any, obj: ir.Value, name: str) -> ir.Value:
    """An int attribute, as an i64; -1 with an exception set where there's none."""
    attribute = _attribute(c, obj, name)
    value = cgutils.alloca_once_value(c.builder, I64(-1))
    with c.builder.if_then(cgutils.is_not_null(c.builder, attribute)):
        c.builder.store(c.pyapi.long_as_longlong(attribute), value)
        c.pyapi.decref(attribute)
    return c.builder.load(value)


def _read_owner(c: Any, owner: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Address of an owner's bytes and its native record, as pointers; takes the reference to the owner."""
    b = c.builder
    address = cgutils.alloca_once_value(b, NULL)
    record = cgutils.alloca_once_value(b, NULL)
    with b.if_then(cgutils.is_not_null(b, owner)):
        handle = _attribute(c, owner, "handle")
        with b.if_then(cgutils.is_not_null(b, handle)):
            words = b.bitcast(c.pyapi.bytes_as_string(handle), POINTER.as_pointer())
            b.store(b.load(words), address)
            b.store(b.load(b.gep(words, [I64(1)])), record)
            c.pyapi.decref(handle)
        c.pyapi.decref(owner)
    return b.load(address), b.load(record)


def read_view_owner(c: Any, obj: ir.Value) -> tuple[ir.Value, ir.Value]:
    """`_read_owner` of a view's owner, which is made if it has none."""
    b = c.builder
    owner = cgutils.alloca_once_value(b, _attribute(c, obj, "_owner_"))
    with b.if_then(b.icmp_unsigned("==", b.load(owner), c.pyapi.borrow_none())):
        c.pyapi.decref(b.load(owner))
        b.store(c.pyapi.call_method(obj, "_native_owner_"), owner)
    return _read_owner(c, b.load(owner))


@unbox(MessageViewType)
def _unbox_view(view: MessageViewType, obj: ir.Value, c: Any) -> NativeValue:
    b = c.builder
    native = cgutils.create_struct_proxy(view)(c.context, b)
    address, native.owner = read_view_owner(c, obj)
    native.pointer = b.gep(address, [integer(c, obj, "_pos_")])
    c.context.nrt.incref(b, view, native._getvalue())
    return NativeValue(native._getvalue(), is_error=cgutils.is_not_null(b, c.pyapi.err_occurred()))


@unbox(RecordsType)
def _unbox_records(records: RecordsType, obj: ir.Value, c: Any) -> NativeValue:
    b = c.builder
    native = cgutils.create_struct_proxy(records)(c.context, b)
    native.start = integer(c, obj, "_start")
    native.count = integer(c, obj, "_count")
    _, native.owner = _read_owner(c, _attribute(c, obj, "_owner"))
    # Python code, which may raise, mustn't be called once something was raised.
    with b.if_then(cgutils.is_null(b, c.pyapi.err_occurred()), likely=True):
        native.table = b.inttoptr(integer(c, obj, "_table_address"), POINTER)
    return NativeValue(native._getvalue(), is_error=cgutils.is_not_null(b, c.pyapi.err_occurred()))


@box(MessageViewType)
def _box_view(view: MessageViewType, value: ir.Value, c: Any) -> ir.Value:
    b, api = c.builder, c.pyapi
    native = cgutils.create_struct_proxy(view)(c.context, b, value)
    source = get_source(c, view, native.owner)
    function = constant(c, box_view)
    key = constant(c, (view.mp.fingerprint, view.mp.full_name))
    address = api.long_from_ulonglong(b.ptrtoint(native.pointer, I64))
    result = api.call_function_objargs(function, [key, address, source])
    for obj in (function, key, address, source):
        api.decref(obj)
    return result


@box(RecordsType)
def _box_records(records: RecordsType, value: ir.Value, c: Any) -> ir.Value:
    # Not at compile time: a function that gives records to another jitted one has this wrapper too.
    c.pyapi.err_set_string(
        "PyExc_TypeError", "records don't come out of jitted code: return row numbers, and slice them outside"
    )
    return c.pyapi.get_null_object()


def _box_list(typ: Any, value: ir.Value, c: Any) -> ir.Value:
    """A list, of which numba would go on filling the rest after an item that can't be made into an object."""
    if not any(isinstance(part, KeyedType) for part in walk(typ)):
        return _box_numbas_list(typ, value, c)
    b, api = c.builder, c.pyapi
    items = ListInstance(c.context, b, typ, value)
    result = cgutils.alloca_once_value(b, items.parent)
    with b.if_else(cgutils.is_not_null(b, items.parent)) as (came_in, made_here):
        with came_in:
            api.incref(items.parent)
        with made_here:
            b.store(api.list_new(items.size), result)
            with b.if_then(cgutils.is_not_null(b, b.load(result))):
                _fill_list(c, typ, items, result)
    c.context.nrt.decref(b, typ, value)
    return b.load(result)


def _fill_list(c: Any, typ: Any, items: Any, result: ir.Value) -> None:
    """Put the items into the new list that a variable holds; null instead of it if one can't be made."""
    b, api = c.builder, c.pyapi
    with cgutils.for_range(b, items.size) as loop:
        item = items.getitem(loop.index)
        items.incref_value(item)
        obj = c.box(typ.dtype, item)
        with b.if_then(cgutils.is_null(b, obj), likely=False):
            api.decref(b.load(result))
            b.store(api.get_null_object(), result)
            loop.do_break()
        api.list_setitem(b.load(result), loop.index, obj)


# numba's decorator for boxers refuses a second one.
_box_numbas_list = _boxers.functions[types.List]
_boxers.functions[types.List] = _box_list


def constant(c: Any, value: object) -> ir.Value:
    """A new reference to a Python object that can be pickled."""
    if c.env_manager is None:
        return c.pyapi.unserialize(c.pyapi.serialize_object(value))
    known = c.env_manager.read_const(c.env_manager.add_const(value))
    c.pyapi.incref(known)
    return known


def get_source(c: Any, typ: BorrowedType, owner: ir.Value) -> ir.Value:
    """What `owner_of` takes for the owner of a native value; a new reference, in the place of the value's."""
    b = c.builder
    source = cgutils.alloca_once_value(b, c.pyapi.borrow_none())
    with b.if_then(cgutils.is_not_null(b, owner)):
        if typ.owned:  # it takes the value's reference
            b.store(c.pyapi.nrt_meminfo_as_pyobject(owner), source)
        else:
            # The third word of a record is the Python object that it was made for.
            words = b.bitcast(owner, c.pyapi.pyobj.as_pointer())
            b.store(b.load(b.gep(words, [I64(2)])), source)
    if not typ.owned:
        c.pyapi.incref(b.load(source))
    return b.load(source)


def owner_of(source: Any) -> Owner | None:
    """The owner of the bytes that something from jitted code points into.

    Args:
        source: None for a null owner; `Held` of what is borrowed, whose owner the argument of the jitted
            function keeps alive; else numba's record of an array.
    """
    from yaffjit.view.owner import Held, Owner

    if source is None:
        return None
    held = source if isinstance(source, Held) else source.parent
    if isinstance(held, Held):
        return held.living()
    return Owner(memoryview(np.asarray(_Memory(source)).data))


class _Memory:
    """The bytes under a numba record, as numpy takes them; it holds the record.

    They are those of the array or buffer that it was made for, or those that numba allocated.
    """

    def __init__(self, record: Any) -> None:
        self._record = record
        if record.parent is None:
            low, high = record.data, record.data + memoryview(record).nbytes
        else:
            self._array = np.asarray(memoryview(record.parent))  # an export, so that nothing is resized
            low, high = byte_bounds(self._array)
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "shape": (high - low,),
            "data": (low, True),
        }


def box_view(key: tuple[str, str], address: int, source: Any) -> View:
    """The Python view of a message that comes out of jitted code.

    Args:
        key: fingerprint and full name of the message.
        address: of the message, 0 for the default instance.
        source: of the bytes, as `owner_of` takes it; None for a default instance.
    """
    owner = owner_of(source)
    cls = view_class_of(key, owner.plan if owner is not None else None)
    if not address:
        return cls._default_()
    assert owner is not None
    return cls(*owner.place(address))


def view_class_of(key: tuple[str, str], plan: Plan | None) -> type[YaffView]:
    """The class that a result has: that of the owner's own schema, if this has an equal message."""
    cls: type[YaffView] | None = plan.memo.get(key) if plan is not None else None
    if cls is None:
        from yaffjit.view import view_class

        fingerprint, full_name = key
        mp = plan[full_name] if plan is not None and full_name in plan.schema.messages else None
        if mp is None or mp.fingerprint != fingerprint:
            mp = find_plan(fingerprint, full_name)
        if mp is None:
            raise YaffjitError(f"the schema of {full_name} isn't loaded any more")
        cls = view_class(mp)
        if plan is not None:
            plan.memo[key] = cls
    return cls
