"""Fields by dotted path: what a loop over rows stores.

The paths are part of a numba type, so a loop that uses them is ordinary source that numba's disk cache takes:

    paths = Paths(mp, ("id", "stats.ctr"), presences=("stats.ctr",))
    outs = tuple(np.empty(n, dtype) for dtype in paths.dtypes)       # values first, then presences (bool)

    @numba.njit(cache=True, nogil=True)
    def run(records, paths, outs, begin, end):
        for row in range(begin, end):
            store_row(message_at(records, row), paths, outs, row)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import NumbaTypeError
from numba.core.imputils import lower_constant
from numba.core.typing.templates import Signature
from numba.extending import NativeValue, intrinsic, unbox
from numba.np.arrayobj import make_array

from yaffjit.errors import SchemaError
from yaffjit.jit.emit import yaff
from yaffjit.jit.emit.outline import I8, NULL
from yaffjit.jit.types import MessageViewType, PathsType
from yaffjit.plan.model import SCALAR_CODE, FieldPlan, MessagePlan
from yaffjit.plan.paths import parse_path

Steps = tuple[tuple[MessagePlan, FieldPlan], ...]

# numba types of stored numbers, by their character in `SCALAR_CODE`.
ELEMENTS = {
    "?": types.boolean,
    "i": types.int32,
    "I": types.uint32,
    "q": types.int64,
    "Q": types.uint64,
    "f": types.float32,
    "d": types.float64,
}


def resolve(mp: MessagePlan, path: str) -> Steps:
    """The fields that a path goes through, each with the message that it's in.

    Raises:
        SchemaError: it isn't a path (`yaffjit.plan.paths`), or it goes through elements of repeated fields or
            values of maps.
    """
    steps = parse_path(mp, path)
    for step in steps:
        if step.index is not None:
            what = "values of maps" if step.f.is_map else "elements of repeated fields"
            raise SchemaError(
                f"path {path!r} of {mp.full_name}: {what} can't be columns: field {step.f.name}"
            )
    return tuple((step.mp, step.f) for step in steps)


def what_is(f: FieldPlan) -> str:
    """What a field is, if no number, for a sentence."""
    if f.is_map:
        return "a map"
    return "repeated" if f.repeated else {"string": "text"}.get(f.kind, f.kind)


def _check_is_number(mp: MessagePlan, path: str) -> None:
    f = resolve(mp, path)[-1][1]
    if f.kind == "message" and not f.repeated:
        raise SchemaError(f"path {path!r} of {mp.full_name} is a message: name a field of {f.message}")
    if f.repeated or f.kind in ("string", "bytes"):
        raise SchemaError(
            f"path {path!r} of {mp.full_name}: a column holds one number, bool or enum a row, "
            f"but field {f.name} is {what_is(f)}"
        )


class Paths:
    """Which fields a jitted loop reads, as an argument for it; of no size at run time.

    Args:
        mp: the root message.
        values: paths of singular scalars and enums.
        presences: paths whose presence is asked for: whether the field and all messages on its path are set;
            for a field without presence of its own, whether the message that it's in is.

    Raises:
        SchemaError: a path isn't one of these.
    """

    def __init__(
        self, mp: MessagePlan, values: tuple[str, ...] = (), presences: tuple[str, ...] = ()
    ) -> None:
        for path in values:
            _check_is_number(mp, path)
        for path in presences:
            resolve(mp, path)
        self.mp = mp
        self._numba_type_ = PathsType(mp, tuple(values), tuple(presences))

    @property
    def dtypes(self) -> tuple[str, ...]:
        """numpy dtypes of what `store_row` stores: of each value as in the field, then ``?`` per presence."""
        paths = self._numba_type_
        kinds = [resolve(self.mp, path)[-1][1].kind for path in paths.values]
        return (*(SCALAR_CODE[kind] for kind in kinds), *("?" for _ in paths.presences))


@unbox(PathsType)
def _unbox_paths(paths: PathsType, obj: ir.Value, c: Any) -> NativeValue:
    return NativeValue(c.context.get_dummy_value())


@lower_constant(PathsType)
def _constant_paths(context: Any, builder: ir.IRBuilder, paths: PathsType, value: Any) -> ir.Value:
    return context.get_dummy_value()


class _Walk:
    """Follows the paths of one row, each message on them once.

    It doesn't rely on LLVM's merging, which gives up on large functions.
    """

    def __init__(self, builder: ir.IRBuilder, mp: MessagePlan, message: ir.Value) -> None:
        self.builder = builder
        self.mp = mp
        self.messages: dict[tuple[str, ...], ir.Value] = {(): message}

    def _message(self, steps: Steps) -> ir.Value:
        """The pointer to the message that the steps lead to."""
        names = tuple(f.name for _, f in steps)
        found = self.messages.get(names)
        if found is None:
            outer = self._message(steps[:-1])
            found = yaff.reference(self.builder, *steps[-1], outer)
            self.messages[names] = found
        return found

    def value(self, path: str) -> ir.Value:
        """The stored scalar at a path."""
        steps = resolve(self.mp, path)
        return yaff.scalar(self.builder, *steps[-1], self._message(steps[:-1]))

    def presence(self, path: str) -> ir.Value:
        """Whether the field at a path and all messages on the way are set, as an i1."""
        steps = resolve(self.mp, path)
        message = self._message(steps[:-1])
        if steps[-1][1].explicit:
            return yaff.present(self.builder, *steps[-1], message)
        return self.builder.icmp_unsigned("!=", message, NULL)


@intrinsic
def store_row(  # type: ignore[no-untyped-def]
    typingctx, message, paths, outs, row
):
    """``store_row(message, paths, outs, row)``: store all paths' fields of a message at ``outs[k][row]``.

    ``outs`` is a tuple of one-dimensional arrays of the dtypes that `Paths.dtypes` tells. Messages on shared
    prefixes are looked up once.

    Requires: ``row`` is within each array.
    """
    if not (isinstance(message, MessageViewType) and isinstance(paths, PathsType)):
        raise NumbaTypeError("store_row takes a message view, paths, a tuple of arrays and a row")
    if message.mp.fingerprint != paths.mp.fingerprint:
        raise NumbaTypeError(
            f"the paths are of {paths.mp.full_name}, the message is of {message.mp.full_name}"
        )
    arrays = tuple(outs)
    expected = tuple(_stored_types(paths))
    if len(arrays) != len(expected):
        raise NumbaTypeError(f"store_row takes {len(expected)} arrays, one a path, not {len(arrays)}")
    for name, array, element in zip((*paths.values, *paths.presences), arrays, expected, strict=True):
        if (
            not isinstance(array, types.Array)
            or array.ndim != 1
            or not array.mutable
            or array.dtype != element
        ):
            raise NumbaTypeError(f"path {name}: {array} isn't a writable array of {element}")

    def codegen(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        pointer = cgutils.create_struct_proxy(message)(context, builder, args[0]).pointer
        walk = _Walk(builder, paths.mp, pointer)
        found = []
        for path in paths.values:
            value = walk.value(path)
            is_bool = resolve(paths.mp, path)[-1][1].kind == "bool"
            found.append(builder.icmp_unsigned("!=", value, I8(0)) if is_bool else value)
        found += [walk.presence(path) for path in paths.presences]
        for k, value in enumerate(found):
            array = make_array(arrays[k])(context, builder, builder.extract_value(args[2], k))
            slot = cgutils.get_item_pointer(context, builder, arrays[k], array, [args[3]])
            context.pack_value(builder, arrays[k].dtype, value, slot)
        return context.get_dummy_value()

    return types.void(message, paths, outs, types.intp), codegen


def _stored_types(paths: PathsType) -> Iterator[types.Type]:
    for path in paths.values:
        yield ELEMENTS[SCALAR_CODE[resolve(paths.mp, path)[-1][1].kind]]
    for _ in paths.presences:
        yield types.boolean
