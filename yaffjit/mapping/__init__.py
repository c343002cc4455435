"""A function of one message over many: compiled, on all cores, into numpy arrays."""

from yaffjit.mapping.features import Feature, feature, filter_records, map_records

__all__ = ["Feature", "feature", "filter_records", "map_records"]
