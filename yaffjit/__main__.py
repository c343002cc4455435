"""The command line as a process: ``python -m yaffjit``, and the script ``yaffjit``."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import NoReturn

EXIT_INTERRUPTED = 130


def run() -> NoReturn:
    """Run one command, and end the process with its exit code."""
    try:
        from yaffjit.cli import main

        code = main()
    except KeyboardInterrupt:  # during the import
        code = EXIT_INTERRUPTED
    if code == EXIT_INTERRUPTED:
        # Not by sys.exit: where the interrupt met an `exec` (a dataclass that is being made, say), Python
        # remembers it although it was caught, and would end itself by the signal.
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, OSError, ValueError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    run()
