"""Fields as machine code: numba types of views and records, and jitted getters over one's own arrays."""

# The first: which rules numba asks before which mustn't depend on what was compiled before.
from yaffjit.jit import numba_rules  # noqa: F401  # isort: skip

# Some are imported for what they register with numba.
from yaffjit.jit import (  # noqa: F401
    attributes,
    boxing,
    builder,
    caching,
    floats,
    key_rows,
    lifetime,
    maps,
    message_types,
    oneofs,
    printing,
    raising,
    records,
    repeated,
    text,
    wire,
)
from yaffjit.jit.getters import getter, presence
from yaffjit.jit.message_types import message_type_type
from yaffjit.jit.types import message_type, records_type

# The last, by its own words.
from yaffjit.jit import unsupported  # noqa: F401  # isort: skip

__all__ = ["getter", "message_type", "message_type_type", "presence", "records_type"]
