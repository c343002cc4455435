"""Columns of universal documents: filled as plain Python would fill them, written as `dumps` writes dicts."""

from __future__ import annotations

import gc
import random
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from universal_mutants import mutants

import yaffjit as yj
from yaffjit import universal
from yaffjit.universal import columnar, compiled, dumps, encode_columns, encoding, loads

pytestmark = pytest.mark.slow

columns = universal.columns


class Ways:
    """Compiled code, all of it loaded, and none of it."""

    def __init__(self) -> None:
        self.compiled = compiled.Loaded()
        self.compiled.load()
        self.plain = compiled.Loaded()
        self.plain._can_load = False


@pytest.fixture(scope="module")
def ways() -> Ways:
    return Ways()


@pytest.fixture(autouse=True, params=["plain", "compiled"])
def way(request: Any, ways: Ways, monkeypatch: pytest.MonkeyPatch) -> str:
    """By which code columns are read and written."""
    chosen = getattr(ways, request.param)
    if request.param == "compiled":  # at once, however small
        monkeypatch.setattr(chosen, "for_bytes", lambda nbytes: chosen.codec)
        chosen.looker = chosen.looker or compiled.Looker()
    for module in (columnar, encoding):
        monkeypatch.setattr(module, "loaded", chosen)
    return str(request.param)


def spec(records: list[dict[str, Any]], name: str) -> tuple[list[Any], list[bool]]:
    """Values of a key by record, and whether they are there."""
    found = [record.get(name) for record in records]
    return found, [value is not None for value in found]


DTYPES = {
    "i": np.int64,
    "s": np.int16,
    "u": np.uint8,
    "f": np.float64,
    "h": np.float32,
    "b": np.bool_,
    "t": str,
}
RECORD = st.fixed_dictionaries(
    {},
    optional={
        "i": st.integers(-(2**63), 2**63 - 1) | st.none(),
        "s": st.integers(-(2**15), 2**15 - 1),
        "u": st.integers(0, 255) | st.none(),
        "f": st.floats(allow_nan=False) | st.integers(-(2**53), 2**53),
        "h": st.floats(width=32, allow_nan=False) | st.integers(-(2**24), 2**24),
        "b": st.booleans() | st.none(),
        "t": st.text(max_size=40) | st.none(),
        "other": st.recursive(
            st.none() | st.integers(-5, 5),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
            ),
        ),
    },
)
OPTIONS = st.fixed_dictionaries(
    {
        "compact": st.booleans(),
        "order": st.sampled_from(["swapped", "little", "big"]),
        "strings": st.sampled_from(["utf8", "latin1", "utf16"]),
        "width": st.sampled_from(["java", "smallest"]),
    }
)


def check(records: list[dict[str, Any]], cols: Any, dtypes: dict[str, Any] = DTYPES) -> None:
    assert cols.rows == len(records) and list(cols) == list(dtypes)
    for name, dtype in dtypes.items():
        values, present = spec(records, name)
        column = cols[name]
        assert cols.present(name).tolist() == present
        if dtype is str:
            assert isinstance(column, universal.MaskedTextColumn) and list(column) == values
            assert column.to_arrow().to_pylist() == values
        else:
            assert isinstance(column, np.ma.MaskedArray) and column.dtype == dtype
            expected = [None if v is None else dtype(v).item() for v in values]
            assert column.tolist() == expected and not column.data[~np.array(present, bool)].any()


@given(records=st.lists(RECORD, max_size=8), options=OPTIONS)
def test_any_records(records: list[dict[str, Any]], options: dict[str, Any]) -> None:
    reading = {"compact": options["compact"], "order": options["order"], "null": True}
    check(records, columns(dumps(records, null=True, **options), DTYPES, **reading))
    documents = [dumps(record, null=True, **options) for record in records]
    check(records, columns(documents, DTYPES, **reading))
    offsets = np.cumsum([3, *map(len, documents)])
    check(records, columns((b"???" + b"".join(documents) + b"!", offsets), DTYPES, **reading))


ALIKE = {"i": np.int64, "n": np.int32, "f": np.float64, "h": np.float32, "b": np.bool_, "j": np.int64}


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("order", ["swapped", "little", "big"])
def test_records_at_one_stride_and_those_that_break_it(compact: bool, order: Any) -> None:
    rng = np.random.default_rng(1)
    given = {
        "i": rng.integers(-(2**63), 2**63 - 1, 1500),
        "n": rng.integers(-(2**31), 2**31 - 1, 1500, np.int32),
        "f": rng.random(1500),
        "h": rng.random(1500, np.float32),
        "b": rng.random(1500) < 0.5,
        "j": rng.integers(-100, 100, 1500).astype(np.int8),
    }
    whole = encode_columns(given, compact=compact, order=order)
    records = loads(whole, compact=compact, order=order)
    assert whole == dumps(
        [dict(zip(given, row, strict=True)) for row in zip(*given.values(), strict=True)],
        compact=compact,
        order=order,
    )
    check(records, columns(whole, ALIKE, compact=compact, order=order), ALIKE)
    some = {"j": np.float32, "missing": np.int8, "n": np.int64, "t": str}
    check(records, columns(whole, some, compact=compact, order=order), some)
    check(records, columns(whole, {}, compact=compact, order=order), {})
    for change in (
        {"b": None},
        {"b": 2},
        {"more": 1},
        {"i": 5},
        {"f": 1},
    ):
        for at in (0, 700, 1499):
            broken = [{**record, **(change if row == at else {})} for row, record in enumerate(records)]
            rows = [dict(zip(given, row, strict=True)) for row in zip(*given.values(), strict=True)]
            rows[at].update(change)
            data = dumps(rows, compact=compact, order=order, null=True)
            try:
                cols = columns(data, ALIKE, compact=compact, order=order, null=True)
            except universal.KindError as error:
                assert change == {"b": 2} and str(error) == (
                    f"row {at}, column 'b': an integer where a bool is asked for"
                )
            else:
                assert change != {"b": 2}
                check(broken, cols, ALIKE)


LIKE = {"i": np.int64, "a": str, "n": np.int16, "b": np.bool_, "z": str, "h": np.float64, "none": str}


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("order", ["swapped", "little", "big"])
def test_like_records_with_texts_and_those_that_break_it(compact: bool, order: Any) -> None:
    rng = random.Random(5)
    lengths = [0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100, 127]
    texts = [
        ["ab\u0439\U0001f600"[i % 7 == 0 and i > 500 :] * 40 for i in range(1100)],
        ["x" * rng.choice(lengths) for _ in range(1100)],
    ]
    texts[0] = [text.encode()[: 2 * rng.choice(lengths[:9])].decode(errors="ignore") for text in texts[0]]
    given = {
        "i": np.array([rng.randrange(-(2**63), 2**63) for _ in range(1100)]),
        "a": texts[0],
        "n": np.arange(1100, dtype=np.int16),
        "b": np.arange(1100) % 3 == 0,
        "z": texts[1],
        "h": np.arange(1100, dtype=np.float32),
    }
    rows = [dict(zip(given, row, strict=True)) for row in zip(*given.values(), strict=True)]
    columns_given = {**given, "a": pa.array(given["a"]), "z": pa.array(given["z"])}
    assert encode_columns(columns_given, compact=compact, order=order) == dumps(
        rows, compact=compact, order=order
    )
    for change in (
        {},
        {"b": None},
        {"more": 1},
        {"a": "y" * 128},
        {"z": "\u0439" * 64},
        {"a": None},
        {"i": 5},
        {"none": "here"},
    ):
        for at in (0, 1, 300, 1099):
            broken = [{**row, **(change if i % 1100 == at else {})} for i, row in enumerate(rows)]
            data = dumps(broken, compact=compact, order=order, null=True)
            kept = {key: LIKE[key] for key in rng.sample(list(LIKE), rng.randrange(1, 8))}
            for dtypes in (LIKE, kept):
                check(broken, columns(data, dtypes, compact=compact, order=order, null=True), dtypes)


@pytest.mark.parametrize("damage", [b"\xff", b"\x80", b"\xed\xa0\x80"])
def test_text_in_like_records_is_checked(damage: bytes) -> None:
    data = bytearray(dumps([{"a": "\u0439" * 4, "i": i} for i in range(600)]))
    stride = len(dumps({"a": "\u0439" * 4, "i": 1}))
    begin = data.index("\u0439".encode(), 400 * stride)
    data[begin : begin + len(damage)] = damage
    with pytest.raises(universal.DocumentError) as caught:
        columns(bytes(data), {"a": str})
    with pytest.raises(universal.DocumentError) as expected:
        loads(bytes(data))
    assert str(caught.value) == str(expected.value)


def test_columns_grow() -> None:
    rng = random.Random(3)
    records: list[dict[str, Any]] = [{"t": "x" * rng.randrange(9), "i": i} for i in range(3000)]
    records += [{"i": 2**40, "t": "\u0439" * 2000}] * 40 + [{}] * 9000 + [{"t": "end", "i": 0}]
    dtypes = {"t": str, "i": np.int64}
    for options in ({}, {"compact": False}, {"strings": "utf16"}, {"strings": "latin1"}):
        data = dumps(records, **options)
        check(records, columns(data, dtypes, compact=options.get("compact", True)), dtypes)
    check(records, columns([dumps(record) for record in records], dtypes), dtypes)


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (128, "i1", "128 doesn't fit: int8 holds -128 to 127"),
        (-1, "u8", "-1 doesn't fit: uint64 holds 0 to 18446744073709551615"),
        (-1, "u1", "-1 doesn't fit: uint8 holds 0 to 255"),
        (2**31, ">i4", "2147483648 doesn't fit: int32 holds -2147483648 to 2147483647"),
        (2**53 + 1, "f8", f"{2**53 + 1} doesn't fit: float64 holds all integers only up to {2**53}"),
        (-(2**63) + 1, "f8", f"{-(2**63) + 1} doesn't fit: float64 holds all integers only up to {2**53}"),
        (2**24 + 1, "f4", "16777217 doesn't fit: float32 holds all integers only up to 16777216"),
        (1e300, "f4", f"1e+300 doesn't fit: float32 holds -{np.finfo('f4').max} to {np.finfo('f4').max}"),
    ],
)
def test_what_does_not_fit(value: Any, dtype: str, text: str) -> None:
    for source in (dumps([{"x": 1}, {"x": value}]), [dumps({"x": 1}), dumps({"x": value})]):
        with pytest.raises(yj.errors.NumberOverflowError) as caught:
            columns(source, {"x": dtype})
        assert str(caught.value) == f"row 1, column 'x': {text}"


def test_what_fits_exactly() -> None:
    for value in (2**53, -(2**63), 2**62 + 2**40, 3 * 2**60, 0):
        assert columns(dumps([{"x": value}]), {"x": "f8"})["x"].tolist() == [float(value)]
    for value in (2**24, 2**40 + 2**20, -(2**63)):
        assert columns(dumps([{"x": value}]), {"x": "f4"})["x"].tolist() == [float(value)]
    inf = columns(dumps([{"x": float("inf")}, {"x": float("-inf")}, {"x": float("nan")}]), {"x": "f4"})["x"]
    assert inf[0] == float("inf") and inf[1] == float("-inf") and np.isnan(inf[2])
    assert columns(dumps([{"x": 0.1}]), {"x": "f4"})["x"][0] == np.float32(0.1)


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        ("a", "i4", "text where an integer is asked for"),
        (1.5, "i4", "a float where an integer is asked for"),
        (True, "i4", "a bool where an integer is asked for"),
        ([], "f8", "a collection where a number is asked for"),
        ({"a": 1}, str, "an object where text is asked for"),
        (1, "?", "an integer where a bool is asked for"),
        (1, str, "an integer where text is asked for"),
    ],
)
def test_values_of_other_kinds(value: Any, dtype: Any, text: str) -> None:
    for source in (dumps([{"x": value}]), [dumps({"x": value})]):
        with pytest.raises(universal.KindError) as caught:
            columns(source, {"x": dtype})
        assert str(caught.value) == f"row 0, column 'x': {text}"


def test_what_is_no_collection_of_objects() -> None:
    for source, text in (
        (dumps({"a": 1}), "the document: an object where a collection of objects is asked for"),
        (dumps(5), "the document: an integer where a collection of objects is asked for"),
        (dumps([{}, [1]]), "row 1: a collection where an object is asked for"),
        ([dumps({}), dumps("x")], "row 1: text where an object is asked for"),
    ):
        with pytest.raises(universal.KindError) as caught:
            columns(source, {"a": "i4"})
        assert str(caught.value) == text
    for dtypes, text in (
        (
            {"a": "c8"},
            "column 'a' is asked for as complex64; there are bool, integers, float32, float64, str",
        ),
        ({"a": "f2"}, "column 'a' is asked for as float16; there are bool, integers, float32, float64, str"),
        ({"a": "U3"}, "column 'a' is asked for as <U3; there are bool, integers, float32, float64, str"),
        ({1: "i4"}, "columns are named by text, not int"),
    ):
        with pytest.raises(TypeError) as refused:
            columns(b"\x43", dtypes)
        assert str(refused.value) == text
    for offsets, text in (
        (np.array([0, 2, 1]), "offsets fall from 2 to 1 in row 1"),
        (np.array([0, 3]), "offsets go from 0 to 3, but the data has 2 bytes"),
        (np.array([-1, 2]), "offsets go from -1 to 2, but the data has 2 bytes"),
        (np.array([0.5]), "offsets are one more integer than documents, not float64(1,)"),
    ):
        with pytest.raises(ValueError) as wrong:
            columns((b"\x21\x21", offsets), {})
        assert str(wrong.value) == text


# ---- what is wrong ----


def result(function: Any) -> str:
    try:
        return str(function())
    except (yj.DecodeError, universal.KindError, yj.errors.NumberOverflowError) as error:
        return f"{type(error).__name__}: {error}"


def test_every_cut_raises_what_loads_raises() -> None:
    records = [
        {"i": 1, "b": True, "t": "caf\xe9"},
        {"b": False, "o": [{}], "i": 2**40},
        {"t": "\u0439", "f": 1.5},
    ]
    records += [{"i": i, "b": True, "f": 0.5} for i in range(4)]
    for compact in (True, False):
        for strings in ("utf8", "latin1", "utf16"):
            data = dumps(records, compact=compact, strings=strings)
            for nbytes in range(len(data)):
                cut = data[:nbytes]
                expected = result(lambda cut=cut, c=compact: loads(cut, compact=c))
                assert result(lambda cut=cut, c=compact: columns(cut, DTYPES, compact=c)) == expected
            document = dumps(records[0], compact=compact, strings=strings)
            whole = dumps({}, compact=compact)
            for nbytes in range(len(document)):
                cut = document[:nbytes]
                expected = result(lambda cut=cut, c=compact: loads(cut, compact=c))
                kind, _, rest = expected.partition(": ")
                found = result(lambda cut=cut, c=compact, w=whole: columns([w, cut], DTYPES, compact=c))
                path, _, sentence = rest.rpartition(": ")
                prefix = f"{path}: " if path else ""
                assert found == f"{kind}: {prefix}row 1: {sentence}"


def test_mutants_are_read_alike(ways: Ways, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever isn't refused has the values that `loads` gives."""
    rng = random.Random(4)
    refused = 0
    seeds = [
        dumps([{"k1": 5, "k2": 1.5, "k3": "x", "k4": True, "k5": None}] * 5, null=True, compact=compact)
        for compact in (True, False)
    ]
    dtypes = {"k1": "i2", "k2": "f4", "k3": str, "k4": "?", "k5": "u4", "k6": "f8"}
    for i, mutant in enumerate(mutants(4_000, seed=3)):
        data = bytearray(mutant if i % 2 else rng.choice(seeds))
        for _ in range(rng.randrange(3) if i % 2 else rng.randrange(1, 3)):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        options = {"compact": rng.random() < 0.5, "null": True}
        try:
            records = loads(data, **options)
        except yj.DecodeError as error:
            expected = f"{type(error).__name__}: {error}"
            found = result(lambda data=data, o=options: columns(data, dtypes, **o))
            # Text that isn't asked for is passed over, and what doesn't fit may come first.
            unread = "UTF" in expected and not found.startswith("Document")
            assert found == expected or unread or "Kind" in found or "Overflow" in found
            refused += 1
            continue
        try:
            cols = columns(data, dtypes, **options)
        except (universal.KindError, yj.errors.NumberOverflowError):
            refused += 1
            continue
        assert cols.rows == len(records)
        for name in dtypes:
            assert cols.present(name).tolist() == [record.get(name) is not None for record in records]
    assert refused > 1_000


# ---- writing ----

ARRAYS = st.sampled_from(
    ["b1", "i1", "u1", "<i2", ">u2", "i4", "u4", "i8", "u8", "f2", "f4", ">f8", "U", "O", "arrow", "nulls"]
)


@given(
    kinds=st.lists(ARRAYS, max_size=4),
    rows=st.integers(0, 5),
    seed=st.integers(0, 99),
    masked=st.booleans(),
    options=OPTIONS,
    width=st.sampled_from([None, "java", "smallest"]),
    null=st.booleans(),
)
def test_columns_are_written_as_dumps_writes_records(
    kinds: list[str], rows: int, seed: int, masked: bool, options: dict[str, Any], width: Any, null: bool
) -> None:
    rng = np.random.default_rng(seed)
    texts = [["", "a", "caf\xe9", "\u0439", "\U0001f600", "x" * 130][i] for i in rng.integers(0, 6, rows)]
    given: dict[str, Any] = {}
    values: dict[str, list[Any]] = {}
    for number, kind in enumerate(kinds):
        name = ["k", "\xe9", "\u0439" * 70, ""][number]
        mask = rng.random(rows) < 0.3 if masked or kind == "nulls" else np.zeros(rows, bool)
        if kind in ("U", "O", "arrow"):
            held = [None if m and kind != "U" else t for m, t in zip(mask, texts, strict=True)]
            mask = np.zeros(rows, bool) if kind == "U" else mask
            given[name] = pa.array(held, pa.string()) if kind == "arrow" else np.array(held, kind)
            values[name] = held
            continue
        if kind == "nulls":
            given[name] = pa.array(rng.integers(-9, 9, rows), pa.int16(), mask=mask)
            array = rng.integers(0, 1, rows).astype(np.int16)
            array[~mask] = given[name].drop_null().to_numpy()
        else:
            array = (rng.random(rows) * 300 - (150 if kind[-2] != "u" else 0)).astype(kind)
            given[name] = np.ma.MaskedArray(array, mask) if masked else array
        wide = array.tolist() if width and array.dtype.kind in "iu" else list(array)
        values[name] = [None if m else v for m, v in zip(mask, wide, strict=True)]
    # Without columns nobody knows how many rows there are.
    records = [
        {name: held[row] for name, held in values.items() if null or held[row] is not None}
        for row in range(rows if kinds else 0)
    ]
    options = {**options, "width": width or "java"}
    expected = dumps(records, null=null, **options)
    assert encode_columns(given, null=null, **{**options, "width": width}) == expected


def test_written_columns_come_back_and_tables_are_taken() -> None:
    table = pa.table(
        {"a": pa.chunked_array([[1, 2], [None]]), "t": pa.array(["x", None, "y"]).dictionary_encode()}
    )
    data = encode_columns(table)
    assert loads(data) == [{"a": 1, "t": "x"}, {"a": 2}, {"t": "y"}]
    assert encode_columns(table.to_batches()[0]) == encode_columns(table.slice(0, 2))
    again = columns(data, {"a": np.int64, "t": str})
    assert again.to_arrow().to_pydict() == table.to_pydict()
    assert encode_columns(again) == data
    one, two = np.int64(1), np.int64(2)
    expected = [{"a": one, "t": "x"}, {"a": two, "t": None}, {"a": None, "t": "y"}]
    assert encode_columns(again, null=True) == dumps(expected, null=True)
    assert encode_columns({}) == encode_columns({"a": []}) == dumps([])
    assert loads(encode_columns({"a": pa.nulls(2)})) == [{}, {}]
    part = columns(data, {"t": str})["t"][1:]
    assert list(part) == [None, "y"] and part.to_arrow().to_pylist() == [None, "y"]
    assert loads(encode_columns({"t": part})) == [{}, {"t": "y"}]


def test_columns_that_cannot_be_written() -> None:
    for wrong, kind, text in (
        ({"a": [1], "b": [1, 2]}, ValueError, "column 'b' has 2 rows, but column 'a' has 1"),
        (
            {"a": np.array([0, 2**63], np.uint64)},
            yj.EncodeError,
            "column 'a', row 1: the integer needs 65 bits, but there are 64",
        ),
        ({"a": ["x\ud800"]}, yj.EncodeError, "column 'a', row 0: the text has a lone surrogate"),
        ({"\ud800": [1]}, yj.EncodeError, "column '\\ud800': the key has a lone surrogate"),
        ({1: [1]}, yj.EncodeError, "a key is of type int, but keys are text"),
        ({"a": np.array([1, "x"], object)}, TypeError, "column 'a', row 0: text is needed, not int"),
        (
            {"a": np.zeros((2, 2))},
            TypeError,
            "column 'a' is float64 of shape (2, 2); there are bools, numbers and text, in one dimension",
        ),
        (
            {"a": np.zeros(1, "M8[s]")},
            TypeError,
            "column 'a' is datetime64[s] of shape (1,); there are bools, numbers and text, in one dimension",
        ),
        (
            {"a": pa.array([b"x"])},
            TypeError,
            "column 'a' is of Arrow's binary; there are bools, numbers and text",
        ),
        ([1], TypeError, "columns are a mapping or an Arrow table, not list"),
    ):
        with pytest.raises(kind) as caught:
            encode_columns(wrong)
        assert str(caught.value) == text
    with pytest.raises(ValueError, match=r"^width is 'kept' \('java', 'smallest'\)$"):
        encode_columns({}, width="kept")  # type: ignore[arg-type]


def test_columns_keep_no_memory() -> None:
    rows = [{"i": i, "t": "x" * i} for i in range(60)]
    whole = dumps(rows)
    wrong: list[Any] = [
        whole[:-20],
        dumps([*rows, {"i": "x"}]),
        dumps([*rows, 5]),
        dumps({}),
        whole[:200] + b"\xff",
    ]
    unwritable: list[Any] = [
        {"a": np.arange(5), "t": ["x", None, "y", "z", "\ud800"]},
        {"a": np.array([2**64 - 1], np.uint64)},
        {"a": np.arange(3), "b": np.arange(4)},
    ]
    dtypes = {"i": np.int32, "t": str}
    held = [whole, int, str, None, universal.KindError, *dtypes]

    def work(count: int) -> None:
        refused = 0
        for _ in range(count):
            columns(whole, dtypes), encode_columns({"a": pa.array(["q"] * 50), "b": np.arange(50)})
            for data in wrong:
                for source in (data, [data, whole]):
                    try:
                        columns(source, dtypes)
                    except (yj.errors.YaffjitError, TypeError):
                        refused += 1
            for given_columns in unwritable:
                try:
                    encode_columns(given_columns)
                except (yj.EncodeError, ValueError):
                    refused += 1
        assert refused == count * (2 * len(wrong) + len(unwritable))

    work(20)
    grown = []
    for _ in range(4):  # what is kept grows each time, caches don't
        gc.collect()
        before, blocks = [sys.getrefcount(one) for one in held], sys.getallocatedblocks()
        work(200)
        gc.collect()
        after = [sys.getrefcount(one) for one in held]
        assert all(abs(a - b) < 200 for a, b in zip(after, before, strict=True))
        grown.append(sys.getallocatedblocks() - blocks)
    assert min(grown) < 200, grown  # one object kept by one kind of call would be 200
