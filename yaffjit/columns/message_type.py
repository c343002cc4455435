"""What message types are in Arrow; loads nothing before it's called."""

from __future__ import annotations

from typing import Any


class ArrowMethods:
    """Methods of `yaffjit.message_type.MessageType`."""

    def arrow_schema(self: Any, paths: Any = None, *, enums: str = "dictionary", unit: str = "ns") -> Any:
        """The pyarrow Schema of ``recs.to_arrow(paths, enums=enums, unit=unit)``. SchemaError as there."""
        from yaffjit.columns.arrow import arrow_schema

        return arrow_schema(self.plan, paths, enums, unit)

    def __arrow_c_schema__(self) -> Any:
        """For libraries that take the schema of any other. It imports pyarrow."""
        return self.arrow_schema().__arrow_c_schema__()
