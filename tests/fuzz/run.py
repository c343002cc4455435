"""Runs one target under atheris, which looks for inputs that reach new code::

python tests/fuzz/run.py TARGET [atheris's own options, -max_total_time=60 say]
"""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
for folder in (str(TESTS), str(TESTS.parent)):
    if folder not in sys.path:
        sys.path.insert(0, folder)

HOW = "atheris isn't installed: python -m pip install atheris (CPython 3.11 to 3.13, Linux)"


def main(arguments: list[str]) -> int:
    try:
        import atheris
    except ImportError:
        print(HOW, file=sys.stderr)
        return 2
    with atheris.instrument_imports(include=["yaffjit"]):
        from fuzz import corpus, targets
    if len(arguments) < 2 or arguments[1] not in targets.TARGETS:
        print(f"{__doc__}\ntargets: {', '.join(targets.TARGETS)}", file=sys.stderr)
        return 2
    name = arguments[1]
    folder = Path.cwd() / f"fuzz-{name}"
    folder.mkdir(exist_ok=True)
    for number, data in enumerate(corpus.inputs(name)):
        (folder / f"right-{number}").write_bytes(data)
    atheris.Setup([arguments[0], *arguments[2:], str(folder)], targets.TARGETS[name])
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
