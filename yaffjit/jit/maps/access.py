"""How pairs of a map are reached, wherever they lie: what rules for maps in jitted code ask for.

A *pair* is an LLVM value that only the access that found it knows.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from yaffjit.jit.emit.outline import NULL
from yaffjit.jit.maps.fields import read_key, read_value
from yaffjit.jit.maps.search import Key, distinct, find, pairs_of
from yaffjit.jit.maps.type import MapPartType, MapType


class MapAccess:
    """The pairs of YaFF's maps: a pair is the pointer to it, null if there's none.

    In all methods ``typ`` is a map's type, or that of a part of one, and ``native`` its members.
    """

    def find(self, context: Any, builder: ir.IRBuilder, typ: Any, native: Any, key: Key, frozen: bool) -> Any:
        """The pair that has a key, in the form of `search.find`; or none.

        ``frozen``: the key's bytes don't change while the function runs that is lowered.
        """
        b = builder
        searchable = b.icmp_unsigned("!=", native.searchable, native.searchable.type(0))
        frozen = frozen and not typ.owned
        return find(b, pairs_of(typ.entry), native.members, native.count, searchable, key, frozen)

    def is_found(self, builder: ir.IRBuilder, pair: Any) -> ir.Value:
        """Whether there's a pair, as an i1."""
        return builder.icmp_unsigned("!=", pair, NULL)

    def key(self, context: Any, builder: ir.IRBuilder, typ: Any, pair: Any, owner: ir.Value) -> ir.Value:
        """The native key of a pair, without a reference of its own."""
        return read_key(context, builder, typ, pair, owner)

    def value(self, context: Any, builder: ir.IRBuilder, typ: Any, pair: Any, owner: ir.Value) -> ir.Value:
        """The native value of a pair; of none that of a missing key."""
        return read_value(context, builder, typ, pair, owner)

    def gives_reference(self, typ: Any) -> bool:
        """Whether `value` has a reference of its own."""
        return False

    def count(self, context: Any, builder: ir.IRBuilder, typ: Any, native: Any) -> ir.Value:
        """How many different keys there are, as an i64."""
        pairs = pairs_of(typ.entry)
        return distinct(builder, pairs, native.members, native.count, native.owner, not typ.owned)

    def is_any(self, context: Any, builder: ir.IRBuilder, typ: Any, native: Any) -> ir.Value:
        """Whether there's a pair at all, as an i1."""
        return builder.icmp_unsigned("!=", native.count, native.count.type(0))


_ACCESS = MapAccess()
# By the class of the type; other packages enter theirs here.
accesses: dict[type, MapAccess] = {MapType: _ACCESS, MapPartType: _ACCESS}


def access_of(typ: Any) -> MapAccess:
    """That of a type of maps or of parts of them."""
    return accesses[type(typ)]
