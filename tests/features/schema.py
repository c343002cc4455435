"""The schema of the functions here, loaded once; what generated modules would give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaffjit as yj

SCHEMA = yj.load_schema(Path(__file__).parents[1] / "schemas" / "features.proto")

Item: Any = SCHEMA["features.Item"].message_class
Action: Any = SCHEMA.enums["features.Action"]
