"""What a message's fields are on the wire: all that are declared, also those that YaFF doesn't carry."""

from __future__ import annotations

from dataclasses import dataclass

from yaffjit.plan.model import SCALAR_WIDTH, FieldPlan, MessagePlan
from yaffjit.schema.model import KINDS

VARINT, FIXED64, BYTES, GROUP, END, FIXED32 = range(6)
_WIRE_TYPES = {
    "double": FIXED64,
    "fixed64": FIXED64,
    "sfixed64": FIXED64,
    "float": FIXED32,
    "fixed32": FIXED32,
    "sfixed32": FIXED32,
    "string": BYTES,
    "bytes": BYTES,
    "message": BYTES,
    "group": GROUP,
}


@dataclass(frozen=True, slots=True)
class WireField:
    """A declared field.

    Attributes:
        oneof: the name of its oneof, else "".
        numbers: those of a closed enum, ascending; others go to the unknown fields. None for all else.
        default_bits: of a singular scalar's declared default, as stored in ``width`` bytes.
        width: bytes of a scalar in memory, 0 for what is none.
        is_carried: whether views have it.
        delimited: a message that is written as a group.
    """

    number: int
    kind: str
    repeated: bool
    oneof: str
    numbers: tuple[int, ...] | None
    default_bits: int
    width: int
    is_carried: bool
    delimited: bool = False

    @property
    def wire_type(self) -> int:
        """Of a value alone, not in a packed run."""
        return GROUP if self.delimited else _WIRE_TYPES.get(self.kind, VARINT)

    @property
    def is_scalar(self) -> bool:
        return self.width > 0

    @property
    def packable(self) -> bool:
        """Whether values may lie in packed runs, whatever the schema says of them."""
        return self.repeated and self.is_scalar

    @property
    def tag(self) -> int:
        return self.number << 3 | self.wire_type

    @property
    def packed_tag(self) -> int:
        return self.number << 3 | BYTES


def wire_field(mp: MessagePlan, f: FieldPlan) -> WireField:
    """A field of a plan as it is on the wire."""
    return next(known for known in declared_fields(mp) if known.number == f.number)


def declared_fields(mp: MessagePlan) -> tuple[WireField, ...]:
    """The declared fields of a message by ascending number."""
    memo = mp.plan.memo
    key = ("wire_fields", mp.full_name)
    found: tuple[WireField, ...] | None = memo.get(key)
    if found is None:
        found = memo[key] = tuple(_fields(mp))
    return found


def _fields(mp: MessagePlan) -> list[WireField]:
    schema = mp.plan.schema
    carried = {f.number: f for f in mp.fields}
    declared = schema.pool.FindMessageTypeByName(mp.full_name).fields_by_number
    found = []
    for f in sorted(schema.messages[mp.full_name].fields, key=lambda f: f.number):
        enum = schema.enums[f.type_name] if f.kind == "enum" else None
        known = carried.get(f.number)
        found.append(
            WireField(
                number=f.number,
                kind=f.kind,
                repeated=f.repeated,
                oneof=f.oneof,
                numbers=tuple(sorted({n for _, n in enum.values})) if enum and enum.closed else None,
                default_bits=known.declared_bits if known else 0,
                width=SCALAR_WIDTH.get(f.kind, 0),
                is_carried=known is not None,
                delimited=KINDS[declared[f.number].type] == "group",
            )
        )
    return found
