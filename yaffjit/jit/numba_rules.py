"""Has numba load all rules of its own, so that ours come after them in every process.

numba asks the rules for an operator or a function in the order in which they were registered, and it loads
many of its own only when it first compiles something. If that was a function that nothing of ours had come
to, ours would be registered after them, and else before them. What must come before numba's says so
(`refuse_calls`, ``first``; ``metadata`` with a target).
"""

from __future__ import annotations

from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

# Another thread that compiles has them loaded. It isn't waited for, as it may wait for this import.
if global_compiler_lock._lock.acquire(blocking=False):
    try:
        cpu_target.target_context.refresh()  # the typing context too
    finally:
        global_compiler_lock._lock.release()
