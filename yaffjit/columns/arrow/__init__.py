"""Records as Arrow has them: whole messages, or chosen paths, as nested columns in batches."""

from yaffjit.columns.arrow.convert import BATCH_ROWS, arrow_schema, one_batch, reader, to_arrow

__all__ = ["BATCH_ROWS", "arrow_schema", "reader", "one_batch", "to_arrow"]
