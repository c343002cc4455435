"""Jitted functions that read one path of messages in one's own arrays."""

from __future__ import annotations

import re
from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.core.datamodel import models, register_default
from numba.core.imputils import lower_constant
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from yaffjit.errors import CompileTypeError, SchemaError, VerifyError
from yaffjit.jit.constants import refuse_disk_cache
from yaffjit.jit.copies import Reader, copied_type
from yaffjit.jit.emit.outline import I32, I64, POINTER
from yaffjit.jit.integers import uint64_exact
from yaffjit.jit.keys import PlanType
from yaffjit.jit.refusals import refusal, shown
from yaffjit.plan.model import MessagePlan
from yaffjit.plan.paths import parse_path


def getter(mp: MessagePlan, path: str) -> Any:
    """A jitted function ``(data: uint8[:], pos: int) -> value`` that reads what a path leads to.

    Args:
        mp: the root message.
        path: a number, text or bytes, or a whole repeated field of these, in the language of
            `yaffjit.plan.paths`: "stats.ctr", "tags", "items[0].price", 'attrs["size"]'.

    Returns:
        The function, usable from Python and in ``@njit``: ``data`` is a contiguous array of uint8, or bytes,
        and ``pos`` is where a message buffer (its root offset) starts in it. It gives a number, a str, bytes,
        an array of the field's own dtype for repeated numbers and a list for repeated text: copies, which
        stay what they are when the array changes. What is absent reads as its default, as does a missing key;
        an index out of range raises IndexError, as does a ``pos`` that isn't within ``data``.
        A jitted function that uses it isn't cached on disk.

    Requires: the buffer at ``pos`` is a well-formed message of this type, as `MessageType.verify` tells;
    nothing but its root offset is checked (VerifyError).

    Raises:
        SchemaError: it isn't a path, or it leads to a message, a whole map or repeated messages.
    """
    copied_type(mp, parse_path(mp, path), path)
    return _function(mp, path, "value")


def presence(mp: MessagePlan, path: str) -> Any:
    """A jitted function ``(data: uint8[:], pos: int) -> bool``: whether what a path leads to is there.

    The path, in the language that `getter` takes, may lead to a field with presence, to a key of a map or to
    an index of a repeated field. What is in an absent message, or under a missing key or index, isn't there.

    Raises:
        SchemaError: it isn't a path, or it leads to a field without presence.
    """
    last = parse_path(mp, path)[-1]
    if last.index is None and not last.f.explicit:
        raise SchemaError(f"Field {last.mp.full_name}.{last.f.name} does not have presence.")
    return _function(mp, path, "presence")


class PathType(PlanType):
    """What a jitted function reads; it has no value at run time.

    Args:
        mp: the root message.
        path: from there.
        what: "value" or "presence".
    """

    label = "path"

    def __init__(self, mp: MessagePlan, path: str, what: str) -> None:
        super().__init__(mp, path, what)
        self.path = path
        self.what = what


register_default(PathType)(models.OpaqueModel)


class _Path:
    def __init__(self, mp: MessagePlan, path: str, what: str) -> None:
        self._numba_type_ = PathType(mp, path, what)


@lower_constant(PathType)
def _constant(context: Any, builder: ir.IRBuilder, path: PathType, value: Any) -> ir.Value:
    return context.get_dummy_value()


_VERBS = {"value": "get", "presence": "has"}
_DOCS = {
    "value": "``(data: uint8[:], pos: int) -> {path}`` of the {full_name} whose buffer starts at ``pos``.",
    "presence": (
        "``(data: uint8[:], pos: int) -> bool``: whether the {full_name} whose buffer starts at ``pos`` "
        "has {path}."
    ),
}


def _function(mp: MessagePlan, path: str, what: str) -> Any:
    memo = mp.plan.memo
    key = (what, mp.full_name, path)
    made = memo.get(key)
    if made is None:
        wanted = _Path(mp, path, what)

        def read(data, pos):  # type: ignore[no-untyped-def]
            return read_path(data, pos, wanted)

        # numba takes them over; it makes symbols of the name.
        read.__name__ = read.__qualname__ = "_".join([_VERBS[what], *re.findall(r"[A-Za-z0-9_]+", path)])
        read.__doc__ = _DOCS[what].format(path=path, full_name=mp.full_name)
        made = memo.setdefault(key, njit(read))
    return made


_NOT_A_BUFFER = "the root offset at pos leads out of the data: there is no YaFF buffer"


@intrinsic
def read_path(typingctx, data, pos, path):  # type: ignore[no-untyped-def]
    """``read_path(data, pos, path)``: what a path leads to in the buffer at ``data[pos]``.

    The bytes may change while the caller runs. IndexError where ``pos`` isn't within ``data``, VerifyError
    where what lies there can't be a buffer.
    """
    if not (
        isinstance(data, types.Buffer) and data.ndim == 1 and data.dtype == types.uint8 and data.layout == "C"
    ):
        raise refusal(CompileTypeError, f"a getter takes a contiguous array of uint8, not {shown(data)}")
    if not (isinstance(pos, types.Integer) or pos is uint64_exact):
        raise refusal(CompileTypeError, f"pos is an integer, not {shown(pos)}")
    steps = parse_path(path.mp, path.path)
    is_value = path.what == "value"
    result = copied_type(path.mp, steps, path.path) if is_value else types.boolean

    def codegen(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        refuse_disk_cache(builder)  # its argument types don't tell the schema
        array = context.make_array(data)(context, builder, args[0])
        last = builder.sub(array.nitems, I64(4))
        outside = builder.or_(
            builder.icmp_signed("<", args[1], I64(0)), builder.icmp_signed(">", args[1], last)
        )
        with cgutils.if_unlikely(builder, outside):
            context.call_conv.return_user_exc(builder, IndexError, ("pos isn't within the data",))
        buffer = builder.gep(builder.bitcast(array.data, POINTER), [args[1]])
        root = builder.zext(builder.load(builder.bitcast(buffer, I32.as_pointer()), align=1), I64)
        # No verification, but the bytes of another format mostly end here and not in a crash.
        within = builder.and_(
            builder.icmp_unsigned(">=", root, I64(4)),
            builder.icmp_unsigned("<", root, builder.sub(array.nitems, args[1])),
        )
        with cgutils.if_unlikely(builder, builder.not_(within)):
            context.call_conv.return_user_exc(builder, VerifyError, (_NOT_A_BUFFER,))
        reader = Reader(context, builder, builder.gep(buffer, [root]))
        return reader.value(steps) if is_value else reader.presence(steps)

    # A uint64 of 2**63 and more is negative as an int64, so it's outside as well.
    return result(data, pos if pos is uint64_exact else types.int64, path), codegen
