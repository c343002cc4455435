"""Views of protobuf bytes in jitted code: one scan a message, merged fragments, errors, lifetimes, caches."""

from __future__ import annotations

import gc
import os
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import types
from wire_readers import READERS, message_type, read_all, same

import yaffjit as yj
from yaffjit.jit import message_type as view_type
from yaffjit.jit import records_type
from yaffjit.jit.types import WireViewType
from yaffjit.jit.wire.faults import WireError

All = message_type("wire_jit.All")
Wide = message_type("wire_jit.Wide")


def made(**values: Any) -> bytes:
    data: bytes = All.message_class(**values).SerializeToString()
    return data


def leaf_of(view: Any) -> Any:
    return view.leaf


def sum_of(view: Any) -> Any:
    return view.leaf.a + view.leaf.b + view.f_int32 + view.number


jitted_leaf_of = numba.njit(leaf_of)
jitted_sum_of = numba.njit(sum_of)


# ---- scans ----


def scans(function: Any) -> dict[str, int]:
    """Calls of scans in the optimized code of a function, by the message's name."""
    found: dict[str, int] = {}
    code = function.inspect_llvm(function.signatures[0])
    body = code[code.index("define") :]
    for name in re.findall(r"call [^\n]*@yaffjit\.scan\.([\w.]+?)\.[0-9a-f]{32}", body):
        found[name] = found.get(name, 0) + 1
    return found


@numba.njit
def five(records, out):  # type: ignore[no-untyped-def]
    for row in range(len(records)):
        view = records[row]
        out[row, 0] = view.f_int64
        out[row, 1] = view.f_double
        out[row, 2] = view.message.a
        out[row, 3] = view.f_bool
        out[row, 4] = view.HasField("f_enum")
        out[row, 5] = view.message.b


@numba.njit
def wide_twice(view):  # type: ignore[no-untyped-def]
    first = view.w1 + view.w2
    if first > 3:
        return first + view.w20
    return first + view.w33 + view.w1


def test_a_message_is_scanned_once() -> None:
    message = {"f_int64": 4, "f_double": 2.5, "message": {"a": 3, "b": -4}, "f_bool": False, "f_enum": 7}
    records = yj.records(All, [made(**message)] * 3, representation="protobuf")
    out = np.zeros((3, 6))
    five(records, out)
    assert out.tolist() == [[4, 2.5, 3, 0, 1, -4]] * 3
    assert scans(five) == {"wire_jit.All": 1}  # that of the small message is opened where it's called
    assert wide_twice(Wide.view_protobuf(Wide.message_class(w1=1, w2=5, w20=7).SerializeToString())) == 13
    assert scans(wide_twice) == {"wire_jit.Wide": 1}


# ---- values ----


@pytest.mark.parametrize("name", READERS)
def test_empty_and_full_messages_read_as_protobufs(name: str) -> None:
    typ = message_type(name)
    message = typ.message_class()
    for f in message.DESCRIPTOR.fields:
        if f.name.startswith(("f_", "w")) and f.type not in (f.TYPE_STRING, f.TYPE_BYTES):
            value = f.enum_type.values[-1].number if f.enum_type else f.default_value
            setattr(message, f.name, value if isinstance(value, float) else type(value)(not value))
    for held in (typ.message_class(), message):
        view = typ.view_protobuf(held.SerializeToString())
        for plain, read in READERS[name]:
            assert same(read(view), plain(held))


def test_widths_signs_and_exact_integers() -> None:
    @numba.njit
    def read(view):  # type: ignore[no-untyped-def]
        return view.f_uint64 == 2**60 + 1, view.f_uint32, view.f_sint32, view.f_fixed32

    view = All.view_protobuf(made(f_uint64=2**60, f_uint32=2**32 - 1, f_sint32=-(2**31)))
    assert read(view) == (False, 2**32 - 1, -(2**31), 2**32 - 1)


def test_fragments_of_a_message_are_merged() -> None:
    parts = [made(leaf={"a": 1, "many": [1, 2]}), made(f_int32=9), made(leaf={"b": 5, "many": [3]})]
    payload = b"".join(parts)
    view = All.view_protobuf(payload)
    expected = All.message_class.FromString(payload)
    assert jitted_sum_of(view) == sum_of(expected) == 1 + 5 + 9
    leaf = jitted_leaf_of(view)
    del view
    gc.collect()
    assert (leaf.a, leaf.b, list(leaf.many)) == (1, 5, [1, 2, 3])
    assert jitted_leaf_of.py_func is leaf_of


def test_fragments_within_fragments_are_merged() -> None:
    parts = [
        made(leaf={"next": {"a": 1}}),
        made(leaf={"next": {"b": 2, "next": {"a": 7}}}),
        made(leaf={"b": 3}),
    ]
    payload = b"".join(parts)
    expected = All.message_class.FromString(payload)

    def read(view):  # type: ignore[no-untyped-def]
        inner = view.leaf.next
        return inner.a, inner.b, inner.next.a, view.leaf.b

    assert numba.njit(read)(All.view_protobuf(payload)) == read(expected) == (1, 2, 7, 3)

    @numba.njit
    def read_array(data):  # type: ignore[no-untyped-def]
        leaf = All.view_protobuf(data).leaf
        return leaf.next.a, leaf.next.next.a, leaf

    a, deep, leaf = read_array(np.frombuffer(payload, np.uint8))
    assert (a, deep, leaf.next.b) == (1, 7, 2)


def test_fragments_of_a_oneofs_member_count_since_it_was_set() -> None:
    parts = [
        made(message={"a": 1, "b": 2}),
        made(number=5),
        made(message={"a": 3}),
        made(message={"shade": 0}),
    ]

    def read(view):  # type: ignore[no-untyped-def]
        return view.message.a, view.message.b, view.message.shade, view.number, view.WhichOneof("pick")

    jitted = numba.njit(read)
    for count in range(len(parts) + 1):
        payload = b"".join(parts[:count])
        expected = read(All.message_class.FromString(payload))
        assert jitted(All.view_protobuf(payload)) == expected


def test_groups_of_editions_are_messages(tmp_path: Path) -> None:
    path = tmp_path / "groups.proto"
    path.write_text(
        'edition = "2023"; package groups;'
        "message Inner { int32 a = 1; int32 b = 2; Inner c = 3 [features.message_encoding = DELIMITED]; }"
        "message Outer { Inner one = 1 [features.message_encoding = DELIMITED]; int32 x = 2; }"
    )
    Outer = yj.load_schema(path)["groups.Outer"]
    contents = ({"one": {"a": 1}}, {"x": 3}, {"one": {"b": 2, "c": {"a": 8}}}, {"one": {"c": {"b": 9}}})
    payload = b"".join(Outer.message_class(**content).SerializeToString() for content in contents)

    def read(view):  # type: ignore[no-untyped-def]
        return view.one.a, view.one.b, view.one.c.a, view.one.c.b, view.x

    jitted = numba.njit(read)

    @numba.njit
    def read_array(data):  # type: ignore[no-untyped-def]
        return jitted(Outer.view_protobuf(data))

    assert read(Outer.message_class.FromString(payload)) == (1, 2, 8, 9, 3)
    assert jitted(Outer.view_protobuf(payload)) == (1, 2, 8, 9, 3)
    assert read_array(np.frombuffer(payload, np.uint8)) == (1, 2, 8, 9, 3)


def test_a_member_that_views_lack_clears_the_others() -> None:
    payload = made(number=5) + All.message_class(gone=1).SerializeToString()

    @numba.njit
    def read(view):  # type: ignore[no-untyped-def]
        return view.number, view.WhichOneof("pick"), view.HasField("number"), view.HasField("pick")

    assert read(All.view_protobuf(payload)) == (0, None, False, False)


def test_numbers_that_a_closed_enum_lacks_are_unknown_fields() -> None:
    payload = made(closed=7, f_enum=7) + b"\xa8\x01\x05" + b"\x70\x05"
    expected = All.message_class.FromString(payload)
    assert (expected.closed, expected.f_enum) == (7, 7)

    @numba.njit
    def read(view):  # type: ignore[no-untyped-def]
        return view.closed, view.f_enum, view.HasField("closed")

    assert read(All.view_protobuf(payload)) == (7, 7, True)


# ---- errors ----

# What is said of the field, and of the message if there's none.
OF_FIELD = {
    b"\x28": "f_int32: a varint doesn't end within the 0 bytes that are left at byte 1",
    b"\x28" + b"\xff" * 10 + b"\1": "f_int32: a varint has over 10 bytes at byte 1",
    b"\x08\x01\x09\0\0": "f_double: a value of 8 bytes, but 2 are left at byte 3",
    b"\x7a\x05abc": "f_string: a size of 5 bytes, but 3 are left at byte 1",
    b"\x7a\xff\xff\xff\xff\x0f": "f_string: a size of 4294967295 bytes (at most 2147483647) at byte 1",
    b"\x2f": "f_int32: wire type 7 (at most 5) at byte 0",
    b"\xc3\x3e\x08\x01": "#1000: group 1000 has no end at byte 0",
    b"\xc3\x3e\xcc\x3e": "#1000: end of group 1001 within group 1000 at byte 2",
    b"\xb8\x01\x02\xc2\x01\x03abc": "doubles[0]: 3 bytes of packed values that take 8 each at byte 5",
    b"\xb8\x01\x02\xb8\x01\x04\xb8\x01": "many[2]: a varint doesn't end within the 0 bytes that are left"
    " at byte 8",
    b"\x83\x01" * 101: "f_bytes: messages nested 101 deep (at most 100) at byte 200",
}
OF_MESSAGE = {
    b"\x00": "field number 0 (at least 1) at byte 0",
    b"\xff\xff\xff\xff\x1f": "tag 8589934591 (at most 4294967295) at byte 0",
    b"\x2c": "end of group 5 without its beginning at byte 0",
}
BROKEN = {
    **{payload: f"wire_jit.All, field {text}" for payload, text in OF_FIELD.items()},
    **{payload: f"wire_jit.All: {text}" for payload, text in OF_MESSAGE.items()},
}


@numba.njit
def read_some(view):  # type: ignore[no-untyped-def]
    return view.f_int32 + len(view.doubles)


@numba.njit
def read_row(records, row):  # type: ignore[no-untyped-def]
    return read_some(records[row])


@numba.njit
def read_or(records, row):  # type: ignore[no-untyped-def]
    try:
        return read_some(records[row])
    except Exception:
        return -99


@pytest.mark.parametrize("payload", BROKEN)
def test_a_broken_message_is_told_as_by_verify(payload: bytes) -> None:
    records = yj.records(All, [b"", payload], representation="protobuf")
    with pytest.raises(yj.DecodeError) as told:
        read_row(records, 1)
    assert str(told.value) == BROKEN[payload]
    with pytest.raises(yj.DecodeError) as verified:
        All.verify_protobuf(payload)
    assert str(told.value) == str(verified.value)
    assert isinstance(told.value, yj.VerifyError)
    assert read_or(records, 1) == -99
    assert read_row(records, 0) == read_or(records, 0) == -(2**31)


def test_an_error_of_a_message_within_is_relative_to_that() -> None:
    payload = b"\x28\x01\x8a\x01\x02\x08\x80"

    @numba.njit
    def read(view):  # type: ignore[no-untyped-def]
        return view.leaf.a

    records = yj.records(All, [payload], representation="protobuf")
    assert read_row(records, 0) == 1  # the message within isn't entered

    @numba.njit
    def read_first(records):  # type: ignore[no-untyped-def]
        return read(records[0])

    with pytest.raises(yj.DecodeError) as told:
        read_first(records)
    error = told.value
    assert (
        str(error)
        == "wire_jit.Leaf, field a: a varint doesn't end within the 1 bytes that are left at byte 1"
    )
    assert (error.message, error.path, error.position, error.found, error.limit) == (
        "wire_jit.Leaf",
        "a",
        1,
        1,
        10,
    )
    assert isinstance(error, WireError)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.address) == (str(error), error.address)


# ---- views and records as values ----


def test_rows_in_both_forms() -> None:
    @numba.njit
    def read(records):  # type: ignore[no-untyped-def]
        total = 0
        for view in records:
            total = 10 * total + view.f_int32
        by_row = 0
        for row in range(len(records)):
            by_row = 10 * by_row + records[row].f_int32
        return total, by_row, records[-1].f_int32, records[1:][0].f_int32

    payloads = [made(f_int32=number) for number in (1, 2, 3, 4)]
    data = b"".join(payloads)
    offsets = np.cumsum([0, *map(len, payloads)])
    regular = yj.records(All, (data, offsets), representation="protobuf")
    scattered = regular.take([3, 1, 0])
    assert numba.typeof(regular) == records_type(All.plan, False, "protobuf")
    assert numba.typeof(scattered) == records_type(All.plan, True, "protobuf")
    assert read(regular) == (1234, 1234, 4, 2)
    assert read(scattered) == (421, 421, 1, 2)


def test_views_in_variables_tuples_lists_and_results() -> None:
    @numba.njit
    def best(records):  # type: ignore[no-untyped-def]
        found = None
        for view in records:
            if found is None or view.f_int32 > found.f_int32:
                found = view
        return found

    @numba.njit
    def several(view):  # type: ignore[no-untyped-def]
        return view, [view.leaf], (view.leaf.next, 1)

    records = yj.records(All, [made(f_int32=n, leaf={"a": n}) for n in (3, 8, 5)], representation="protobuf")
    found = best(records)
    assert (found.f_int32, type(found)) == (8, type(records[1]))
    view, leaves, (absent, one) = several(found)
    assert (view.f_int32, leaves[0].a, absent.a, one) == (8, 8, 0, 1)
    assert best(records[:0]) is None


def test_loops_on_several_cores_merge_fragments() -> None:
    @numba.njit(parallel=True)
    def sums(records):  # type: ignore[no-untyped-def]
        out = np.zeros(len(records), np.int64)
        for row in numba.prange(len(records)):
            out[row] = records[row].leaf.a + records[row].leaf.b
        return out

    @numba.njit(nogil=True)
    def total(records):  # type: ignore[no-untyped-def]
        found = 0
        for view in records:
            found += view.leaf.a + view.leaf.b
        return found

    payload = made(leaf={"a": 2}) + made(leaf={"b": 3})
    records = yj.records(All, [payload] * 500, representation="protobuf")
    assert sums(records).tolist() == [5] * 500
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(total, [records] * 8)) == [2500] * 8


def test_an_array_is_read_as_it_is_when_it_is_read() -> None:
    @numba.njit
    def read(count):  # type: ignore[no-untyped-def]
        data = np.zeros(2, np.uint8)
        data[0] = 0x28
        total = 0
        for number in range(count):
            data[1] = number
            view = All.view_protobuf(data)
            first = view.f_int32
            data[1] = number + 1
            total += 100 * first + view.f_int32
        return total

    assert read(10) == sum(100 * n + n + 1 for n in range(10))


def test_a_view_of_an_array_outlives_its_function() -> None:
    @numba.njit
    def make(number):  # type: ignore[no-untyped-def]
        data = np.zeros(4, np.uint8)
        data[0], data[1], data[2], data[3] = 0x8A, 0x01, 0x02, 0x08
        return All.view_protobuf(np.append(data, np.uint8(number))).leaf

    assert [make(number).a for number in (5, 6)] == [5, 6]


def test_what_outlives_its_bytes_is_refused() -> None:
    view = All.view_protobuf(b"")

    @numba.njit
    def keep(view):  # type: ignore[no-untyped-def]
        kept = numba.typed.List()
        kept.append(view)
        return kept

    @numba.njit
    def constant():  # type: ignore[no-untyped-def]
        return view.f_int32

    with pytest.raises(yj.EscapeError, match=r"a view of wire_jit.All can't be stored in a typed List"):
        keep(view)
    with pytest.raises(yj.EscapeError, match=r"a view of wire_jit.All can't be a global"):
        constant()


def test_wrong_names_and_comparisons_are_refused_as_on_other_views() -> None:
    view = All.view_protobuf(b"")
    with pytest.raises(AttributeError, match=r"wire_jit.All has no field 'f_int' \(did you mean"):
        numba.njit(lambda view: view.f_int)(view)
    with pytest.raises(ValueError, match=r'Protocol message All has no "nope" field'):
        numba.njit(lambda view: view.HasField("nope"))(view)
    with pytest.raises(TypeError, match="messages aren't compared in jitted code"):
        numba.njit(lambda view: view == view)(view)


# ---- types and caches ----


def test_types_are_known_by_their_keys() -> None:
    wire = view_type(All.plan, "protobuf")
    assert isinstance(wire, WireViewType)
    assert wire != view_type(All.plan) and wire.name != view_type(All.plan).name
    assert pickle.loads(pickle.dumps(wire)) == wire
    assert wire.as_owned() != wire and pickle.loads(pickle.dumps(wire.as_owned())).owned
    assert wire.field_type(All.plan.by_name["f_float"]) == types.float64
    assert wire.field_type(All.plan.by_name["leaf"]) == view_type(
        All.plan.child(All.plan.by_name["leaf"]), "protobuf"
    )


CACHED = """
import numba, sys
import yaffjit as yj
from wire_readers import message_type
All = message_type("wire_jit.All")

@numba.njit(cache=True)
def read(view):
    return view.leaf.a + view.leaf.b + view.f_int32

parts = [All.message_class(leaf=leaf).SerializeToString() for leaf in ({"a": 1}, {"b": 2})]
print(read(All.view_protobuf(b"".join(parts))) + 2**31)
@numba.njit
def of_row(records):
    return read(records[0])
try:
    of_row(yj.records(All, [b"\\x28"], representation="protobuf"))
except yj.DecodeError as error:
    print(error)
print(sum(read.stats.cache_hits.values()), sum(read.stats.cache_misses.values()))
"""


@pytest.mark.slow
def test_the_disk_cache_hits_in_a_second_process(tmp_path: Path) -> None:
    tests = Path(__file__).parent
    script = tmp_path / "cached.py"
    script.write_text(CACHED)
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join([str(tests.parent), str(tests)]),
    }
    told = [
        subprocess.run(
            [sys.executable, str(script)],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
            timeout=240,
        ).stdout.splitlines()
        for _ in range(2)
    ]
    fault = "wire_jit.All, field f_int32: a varint doesn't end within the 0 bytes that are left at byte 1"
    assert told[0] == ["3", fault, "0 1"]
    assert told[1] == ["3", fault, "1 0"]


def test_all_kinds_are_read_by_one_function_on_both_representations() -> None:
    held = All.message_class(f_int64=7, f_string="x", leaf={"a": 4}, closed=7)
    jitted = numba.njit(read_all)
    assert same(jitted(All.view_protobuf(held.SerializeToString())), read_all(held))
    assert same(jitted(All.view(All.encode(held))), read_all(held))
