"""The demo: its data is realistic and always the same, its three ways agree, its text says so."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import yaffjit as yj
from yaffjit import demo

ROWS = 1500


@pytest.fixture(scope="module")
def message_type() -> yj.MessageType:
    return yj.load_schema(demo.SCHEMA_FILE)["ads.Banner"]


def test_run_prints_every_step(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    demo.run(ROWS, keep=str(tmp_path))
    out = capsys.readouterr().out
    assert out.startswith("1,500 ad banners, made up from a fixed seed\n")
    assert "score() of 1,500 banners; all three agree." in out
    names = re.findall(r"^(\S.*?)  +[\d.,]+ ms +[\d,]+ ns +[\d,.]+x$", out, re.MULTILINE)
    assert names == ["protobuf: parse, score()", "index.columns(...), numpy", "jitted loop over score()"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ads.proto", "banners.arrow", "banners.pb"]


def test_three_ways_must_agree(message_type: yj.MessageType, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = list(demo.banners(message_type.message_class, 100))
    recs = yj.records(message_type, [message_type.encode(message) for message in messages])
    payloads = [message.SerializeToString() for message in messages]
    monkeypatch.setattr(demo, "jitted_scores", lambda banners, scores: scores.fill(1.0))
    with pytest.raises(
        yj.YaffjitError, match=r"^demo: 'jitted loop over score\(\)' disagrees with protobuf$"
    ):
        demo._compare(100, message_type.message_class, payloads, recs)


def test_banners_are_the_same_for_the_same_seed(message_type: yj.MessageType) -> None:
    made = list(demo.banners(message_type.message_class, 40))
    assert made == list(demo.banners(message_type.message_class, 60))[:40]
    assert made != list(demo.banners(message_type.message_class, 40, seed=1))
    assert made[0].title == "Free delivery on every violin, 399 in stock"  # type: ignore[attr-defined]


def test_banners_are_like_real_ones(message_type: yj.MessageType) -> None:
    made = list(demo.banners(message_type.message_class, ROWS))
    sizes = [len(message_type.encode(message)) for message in made]
    assert 280 < np.mean(sizes) < 340
    members = {message.WhichOneof("contact") for message in made}
    assert members == {None, "phone", "email", "account_id"}
    for name in ("stats", "geo", "daily_limit", "language"):
        assert 0.3 < np.mean([message.HasField(name) for message in made]) < 0.99, name
    assert {message.state for message in made} == {1, 2, 3}  # type: ignore[attr-defined]
    assert len({message.id for message in made}) == ROWS  # type: ignore[attr-defined]
    scores = [demo.score(message) for message in made]
    assert 0.3 < np.mean(np.array(scores) > 0.0) < 0.8


def test_one_function_for_messages_and_views(message_type: yj.MessageType) -> None:
    for message in demo.banners(message_type.message_class, 50):
        view = message_type.view(message_type.encode(message))
        assert demo.score(view) == demo.score(message)
