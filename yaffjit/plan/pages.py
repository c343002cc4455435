"""The table of pages by which jitted code finds rows in chunks (`yaffjit.rows.chunks` fills it)."""

from __future__ import annotations

PAGE_SHIFT = 16
PAGE_ROWS = 1 << PAGE_SHIFT
# In the table, where the addresses of pages begin; before them are two words of the only chunk.
PAGES_AT = 16
# A chunk: words, and in bytes where the second and the third are.
CHUNK_WORDS = 3
CHUNK_NBYTES = 8 * CHUNK_WORDS
OFFSETS_AT = 8
END_AT = 16
