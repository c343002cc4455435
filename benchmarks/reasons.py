"""Why a bar is missed, as far as it was found: shown on the page of speed and in the HTML page.

A reason names what was looked at: a profile, LLVM IR, assembly, or the same work without us.
"""

from __future__ import annotations

# By race (with N for its numbers), contender, and the one beside it.
REASONS: dict[tuple[str, str, str], str] = {
    ("store after each read of root.mid.leaf, flat, N messages in memory", "yaffjit", "C"): (
        "Memory takes most of the time of both: without the stores, where both make the same loads, "
        "they take as long as this. "
        "In cache, where C's second walk down each chain counts, the same loop is at 0.34x."
    ),
    ("store after each read of root.mid.leaf, sparse, N messages in memory", "yaffjit", "C"): (
        "Memory, as in the flat row; in cache the same loop is at 0.35x."
    ),
    ("five columns of N banners", "yaffjit, ready arrays", "google.protobuf"): (
        "Memory: with the messages in cache a banner takes 5 ns; here two cores wait for the lines that hold "
        "the fields."
    ),
    ("five columns of N banners", "yaffjit, ready arrays", "ptars"): (
        "Memory, as in the row of google.protobuf."
    ),
    ("a second process: open an index, call a cached function of three fields", "yaffjit", "import numba"): (
        "By `-X importtime`: about half is what numba does before its own first cached function runs, in the "
        "column beside; the rest is pyarrow, the index and the registering of our types."
    ),
    ("calling a jitted function that returns a number", "with records", ""): (
        "numba's own call and the checks of its arguments take two thirds of it; the rest reads the "
        "addresses of chunks and owner from the object."
    ),
    ("nine fields of flat trees anywhere in N MB, recs[i]", "yaffjit, recs[i]", "C, rows[i]"): (
        "The sum of nine fields in one expression keeps all of them in registers and spills some (assembly); "
        "where they are added one by one it is at 1.00x to 1.02x."
    ),
    ("a.b[N].c of a document of N bytes", "yaffjit get", ""): (
        "Measured while this shared machine ran at half its speed; by itself it took 195 to 206 ns. C at -O3 "
        "with the same algorithm takes 69 ns, the rest is calls of Python and of compiled code."
    ),
    ("a.b[N].c of a document of N bytes, jitted", "yaffjit get_int", ""): (
        "Measured while this shared machine ran at half its speed; alone it takes 117 to 120 ns."
    ),
    ("the size of a map of pairs", "size", ""): (
        "Of 333,000 random int32 about 5 fit 16 bits, where MessagePack saves 2 bytes each; width='smallest' "
        "does the same. The default can't: the published example writes 1234 in 4 bytes."
    ),
    (
        "five features of N banners of protobuf bytes, by threads",
        "yaffjit, columns, two threads",
        "yaffjit, columns, one thread",
    ): (
        "Of 1,000,000 rows 131,072 were read before the second thread began; since this was measured it's a "
        "quarter of that."
    ),
    ("whole banners of protobuf bytes to Arrow, N rows", "yaffjit", "ptars"): (
        "Messages with text and lists are scanned twice, to count and to fill, while two threads share one "
        "memory; from YaFF, where counting costs next to nothing, a banner takes 150 ns."
    ),
}
