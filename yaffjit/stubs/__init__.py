"""Classes for type checkers and editors: what a schema's views have, which at run time nothing declares."""

from yaffjit.stubs.write import stub_name, stub_text, write_stub

__all__ = ["stub_name", "stub_text", "write_stub"]
