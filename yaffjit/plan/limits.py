"""Numbers and words that several rooms must agree on."""

from __future__ import annotations

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1
UINT64_MAX = 2**64 - 1

# Of messages within the root message, map pairs counted: what protobuf's parser takes.
MAX_DEPTH = 100

# What a function may return to `map`.
RESULTS = "a number, a bool, text, bytes, a date, a tuple of these, or a 1-D array of one length"
