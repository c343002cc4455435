"""The YaFF format as plain Python: the executable specification against which everything else is checked.

It works from google.protobuf descriptors and messages alone and imports nothing of the package under
test. It's written to be read beside the description of the format, and to be obviously right; not fast.
The bytes are those of the C++ library, but for two rules by which nothing is lost: an implicit -0.0 is
written, and a float slot that the presence rule of the compact form couldn't tell from an absent one
sets the explicit bit.

    write(message, layout="flat", slice=None) -> bytes
    read(descriptor, data, slice=None) -> message of that descriptor
    carried(message, slice=None) -> what reading must give back for it
    lay_out(descriptor, slice=None) -> Layout
"""

from .carried import carried
from .layout import Layout, SpecError, lay_out
from .reader import read
from .writer import write

__all__ = ["Layout", "SpecError", "carried", "lay_out", "read", "write"]
