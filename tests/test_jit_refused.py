"""What docs/jit.md says is refused in jitted code is, by one sentence: a line here for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import yaffjit as yj
from yaffjit.errors import CompileError

SCHEMA = """
syntax = "proto3";
package refused;
import "google/protobuf/timestamp.proto";
message Row {
  string text = 1;
  bytes raw = 2;
  repeated string tags = 3;
  map<string, double> sizes = 4;
  google.protobuf.Timestamp when = 5;
  repeated Row rows = 6;
  uint64 id = 7;
}
"""
REFUSED = [
    "v == v",
    "v.rows == v.rows",
    "v.ListFields()",
    "v.SerializeToString()",
    "v.ByteSize()",
    "v.to_message()",
    "v.DESCRIPTOR",
    "v.Clear()",
    "v.txt",
    "v.HasField('text')",
    "v.HasField(v.text)",
    "int(v.text)",
    "float(v.text)",
    "repr(v.text)",
    "v.text.encode()",
    "v.text.removeprefix('a')",
    "v.text.format(1)",
    "v.raw.decode()",
    "v.raw.hex()",
    "str(v.raw)",
    "v.raw + b'a'",
    "v.raw[::2]",
    "v.text % 1",
    "v.tags + v.tags",
    "v.tags * 2",
    "v.tags < v.tags",
    "tuple(v.tags)",
    "np.asarray(v.tags)",
    "sorted(v.rows)",
    "dict(v.sizes)",
    "v.sizes < v.sizes",
    "v.sizes.setdefault('a', 1.0)",
    "v.when < v.when",
    "v.when.ToJsonString()",
    "v.when.ToDatetime(None)",
    "{v}",
    "set(v.tags)",
    "-v.id",
]


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("refused") / "refused.proto"
    path.write_text(SCHEMA)
    Row = yj.load_schema(path)["refused.Row"]
    return Row.view(Row.encode({"text": "a", "tags": ["b"], "sizes": {"c": 1.0}}))


def function(code: str) -> Callable[[Any], Any]:
    namespace: dict[str, Any] = {"np": np}
    exec(f"def f(v):\n    return {code}", namespace)
    return namespace["f"]


@pytest.mark.parametrize("code", REFUSED)
def test_refused_in_one_sentence(row: Any, code: str) -> None:
    with pytest.raises(CompileError) as caught:
        numba.njit(function(code))(row)
    assert "\n" not in caught.value.text
