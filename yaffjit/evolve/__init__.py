"""Whether a change of a schema keeps data readable: two schemas compared, change by change."""

from yaffjit.evolve.compare import compare_schemas
from yaffjit.evolve.model import Change, SchemaComparison, Verdict

__all__ = ["Change", "SchemaComparison", "Verdict", "compare_schemas"]
