"""Views of universal documents in jitted code; imported when the first one comes to numba."""

from __future__ import annotations

from numba.core.registry import cpu_target

import yaffjit.jit  # noqa: F401  (its rules come before those here)

# Imported for what they register.
from yaffjit.universal.jitted import access, boxing, getters, loops  # noqa: F401
from yaffjit.universal.jitted.type import owned_view_type, view_type

# numba looks for new registrations only before it compiles, and may be compiling now.
cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()

__all__ = ["owned_view_type", "view_type"]
