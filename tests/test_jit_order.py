"""What jitted code is given and refused doesn't depend on what numba compiled before.

Two processes compile the same: one after a parallel function that nothing of ours comes to, so that numba has
loaded all rules of its own when ours are registered, and one with nothing before.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
import numpy as np
from test_jit_refused import REFUSED, SCHEMA, function

import yaffjit as yj

TESTS = Path(__file__).parent
# Of these numba has rules too, which would give something else, or refuse by another name.
CONTESTED = [
    "v.raw[1:]",
    "v.raw == b'abc'",
    "b'b' in v.raw",
    "bool(v.raw) + bool(v.text) + bool(v.tags) + bool(v.id)",
    "len(v.text) + len(v.tags) + len(v.sizes)",
    "max(v.id, 7)",
    "v.id < 2.5",
    "v.id in (7, 8)",
    "min(v.id, 2.5)",
    "v.text in v.tags",
    "np.asarray([v.id])",
    "np.array((v.id,))",
    "np.full(2, v.id)",
    "np.max(v.tags)",
    "np.sqrt(v.id)",
    "v.raw['a']",
    "v[0]",
    "len(v)",
]


def outcomes(parallel_first: bool) -> dict[str, str]:
    """What each code gives, or the sentence that refuses it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "refused.proto")
        path.write_text(SCHEMA)
        Row = yj.load_schema(path)["refused.Row"]
    row = Row.view(Row.encode({"text": "a", "raw": b"abc", "tags": ["b"], "id": 7}))
    if parallel_first:
        numba.njit(lambda x: x.sum(), parallel=True)(np.arange(5))
    assert ("yaffjit.jit" in sys.modules) is False
    found = {}
    for code in (*CONTESTED, *REFUSED):
        try:
            found[code] = repr(numba.njit(function(code))(row))
        except Exception as error:
            found[code] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return found


def test_results_and_refusals_whatever_was_compiled_before() -> None:
    program = "import json, test_jit_order; print(json.dumps(test_jit_order.outcomes({})))"
    first, second = (
        subprocess.Popen(
            [sys.executable, "-c", f"import sys; sys.path[:0] = [{str(TESTS)!r}]; {program.format(before)}"],
            stdout=subprocess.PIPE,
            cwd=TESTS.parent,
        )
        for before in (True, False)
    )
    after_parallel, alone = (json.loads(process.communicate()[0]) for process in (first, second))
    assert after_parallel == alone
    assert alone["len(v.text) + len(v.tags) + len(v.sizes)"] == "2"
    assert all("Typing" not in found and "\\n" not in found for found in alone.values()), alone
