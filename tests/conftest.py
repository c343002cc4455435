"""What all tests share: hypothesis profiles and the data beside the tests."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from vectors import TESTS, load_vectors

# What runs in the background of a shell ignores Ctrl-C, and so would all processes that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A compilation by numba makes very many objects that live for long: with Python's own thresholds a seventh of
# the time of compiling goes to looking at them again and again.
gc.set_threshold(20_000, 10, 20)

CORPORA = TESTS.parents[1] / "shared" / "corpora"

# "ci" is deterministic and short. A long campaign: YAFFJIT_HYPOTHESIS=long, with YAFFJIT_EXAMPLES to change
# the count; it draws other examples each time and prints how to run a failing one again.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=int(os.environ.get("YAFFJIT_EXAMPLES", "80")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.register_profile(
    "long",
    parent=settings.get_profile("ci"),
    derandomize=False,
    print_blob=True,
    max_examples=int(os.environ.get("YAFFJIT_EXAMPLES", "5000")),
)
settings.load_profile(os.environ.get("YAFFJIT_HYPOTHESIS", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--few", type=int, metavar="N", help="of each parametrized test, only the first N cases, and the last"
    )


@pytest.hookimpl(trylast=True)  # of those that marks and names leave
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    few = config.getoption("--few")
    if few is None:
        return
    names = [item.nodeid.partition("[")[0] for item in items]
    last, seen = dict(zip(names, items, strict=True)), Counter[str]()
    left_out = []
    for name, item in zip(names, items, strict=True):
        seen[name] += 1
        if seen[name] > few and item is not last[name]:
            left_out.append(item)
    config.hook.pytest_deselected(items=left_out)
    gone = set(left_out)
    items[:] = [item for item in items if item not in gone]


@pytest.fixture(scope="session")
def golden_schemas() -> Path:
    """Folder of the `.proto` files of the vectors."""
    return TESTS / "schemas" / "golden"


@pytest.fixture(scope="session")
def vectors() -> tuple[dict[str, Any], ...]:
    return load_vectors()


@pytest.fixture(scope="session")
def corpora() -> Path:
    """Folder of real data; tests that use it are skipped where it's missing."""
    if not CORPORA.is_dir():
        pytest.skip(f"no {CORPORA}")
    return CORPORA


@pytest.fixture(params=["plain", "kernel"])
def split_by(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """By which code readers of files split blocks into messages."""
    from yaffjit.build import framed

    loaded = framed._Loaded()
    loaded.left = 0 if request.param == "kernel" else 1 << 60
    monkeypatch.setattr(framed, "_loaded", loaded)
    return str(request.param)
