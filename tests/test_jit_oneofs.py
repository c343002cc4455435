"""WhichOneof in jitted code: protobuf's results, compared, kept in variables, brought out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jit_kinds
import numba
import pytest
from vectors import load_vectors

import yaffjit

GOLDEN = Path(__file__).parent / "schemas" / "golden"
LAYOUTS = ("flat", "sparse", "dynamic")


def which(m: Any) -> Any:
    return m.WhichOneof("pick")


def branches(m: Any) -> Any:
    chosen = m.WhichOneof("pick")
    if chosen == "number":
        return 1, m.number
    if chosen == "other":
        return 2, m.other.plain_int32
    if "flag" == chosen:  # noqa: SIM300
        return 3, int(m.flag)
    if chosen is None:
        return 0, 0
    return 4, 0


def last_of_two(m: Any) -> Any:
    kept = None
    for _ in range(2):
        kept = m.WhichOneof("pick")
    return kept


def comparisons(m: Any) -> Any:
    chosen = m.WhichOneof("pick")
    kept = None
    for _ in range(2):
        kept = m.WhichOneof("pick")
    return (
        True if chosen else False,  # noqa: SIM210
        not chosen,
        chosen is not None,
        chosen != "flag",
        "name" != chosen,  # noqa: SIM300
        chosen == "no such member",
        chosen == m.child.WhichOneof("pick"),
        chosen == None,  # noqa: E711
        kept == "number",
        kept is None,
        kept is not None,
        kept == None,  # noqa: E711
        True if kept else False,  # noqa: SIM210
        not kept,
        kept == chosen,
        m.HasField("pick"),
        m.HasField("number"),
        m.HasField("other"),
        m.HasField("name"),
        m.HasField("flag"),
        m.number,
        m.flag,
        m.other.maybe_int32,
    )


jitted_which = numba.njit(which)
jitted_branches = numba.njit(branches)
jitted_last_of_two = numba.njit(last_of_two)
jitted_comparisons = numba.njit(comparisons)

CONTENTS: tuple[dict[str, Any], ...] = (
    {},
    {"number": 0},
    {"number": 7},
    {"other": {}},
    {"other": {"plain_int32": 5, "maybe_int32": 0}},
    {"name": ""},
    {"flag": False},
    {"flag": True, "child": {"flag": True}},
    {"number": 2, "child": {"number": 1}},
)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_equal_protobufs(layout: str) -> None:
    message_type = jit_kinds.message_type(layout)
    for content in CONTENTS:
        message = message_type.message_class(**content)
        view = message_type.view(message_type.encode(content))
        for plain, jitted in (
            (which, jitted_which),
            (branches, jitted_branches),
            (comparisons, jitted_comparisons),
        ):
            assert jitted(view) == plain(view) == plain(message), (content, plain.__name__)


@numba.njit
def is_named(m, name):
    return m.WhichOneof("pick") == name, m.WhichOneof("pick") != name, name == m.WhichOneof("pick")


def test_comparison_with_a_name_that_only_the_running_code_knows() -> None:
    message_type = jit_kinds.message_type("dynamic")
    for content in CONTENTS[:3]:
        view = message_type.view(message_type.encode(content))
        for name in ("number", "numbers", ""):
            assert is_named(view, name) == is_named.py_func(view, name)


def test_the_member_that_counts_where_an_older_schema_set_several() -> None:
    """Two former singular fields that became a oneof: value, HasField and WhichOneof agree."""
    reader = yaffjit.load_schema(GOLDEN / "evo_v1.proto")["golden.evo1.OneSide"]
    oneof = reader.plan.oneofs[0]
    records = [r for r in load_vectors() if r["message"] == "golden.evo2.OneSide"]
    assert {r["layout"] for r in records} == {"flat", "sparse"}
    for record in records:
        data = record["yaff"]
        message = reader.decode(data)
        chosen = message.WhichOneof(oneof.name)
        assert [reader.presence(name)(data, 0) for name in oneof.fields] == [
            name == chosen for name in oneof.fields
        ]
        for name in oneof.fields:
            if reader.plan.by_name[name].is_scalar:
                assert reader.getter(name)(data, 0) == getattr(message, name)


def test_truth_of_a_message() -> None:
    message_type = jit_kinds.message_type("dynamic")
    view = message_type.view(message_type.encode({}))
    assert numba.njit(lambda m: (bool(m), not m.child, bool(m.child.child)))(view) == (True, False, True)
