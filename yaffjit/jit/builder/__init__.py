"""Messages that jitted code builds and writes as protobuf bytes.

A builder is counted, as are its nested messages, repeated fields and maps, which all hold it: nothing that
they point to is given back before. What was got before a builder was cleared is refused once it's used.
"""

# They are imported for what they register with numba.
from yaffjit.jit.builder import fields, maps, repeated, whole  # noqa: F401
