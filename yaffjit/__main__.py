"""``python -m yaffjit``: the command line."""

from yaffjit.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
