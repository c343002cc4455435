"""Real data: an index of each corpus gives back what google.protobuf reads, and leads to the known answers.

The answers were computed with google.protobuf alone. Skipped where the folder is missing.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import columns_spec
import numba
import numpy as np
import pytest
import spec
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from walk import check_view, wire

import yaffjit as yj
from yaffjit.plan.columns import expand

# Where each corpus has its schema: a file beside it, or a generated module of a PyPI package.
SOURCES = {
    "osm-ways.delim": ("osm_way.proto", "osm.Way"),
    "pprof-samples.delim": ("pprof_sample.proto", "pprof.Sample"),
    "tf-examples.delim": ("tf_example.proto", "tf.Example"),
    "sentencepiece-pieces.delim": ("sentencepiece_piece.proto", "sentencepiece.Piece"),
    "otlp-spans.delim": ("opentelemetry.proto.trace.v1.trace_pb2", "opentelemetry.proto.trace.v1.Span"),
    "gtfs-stop-updates-nyct.delim": (
        "google.transit.gtfs_realtime_pb2",
        "transit_realtime.TripUpdate.StopTimeUpdate",
    ),
}
SPEC_STRIDE = 97  # the specification and the walk through a view take about a millisecond a message


@dataclass
class Corpus:
    name: str
    answers: dict[str, Any]
    payloads: list[bytes]
    type: yj.MessageType
    built: Any
    index: Any

    def parsed(self, row: int) -> Message:
        """What google.protobuf reads, without what YaFF doesn't carry."""
        message = self.type.message_class.FromString(self.payloads[row])
        message.DiscardUnknownFields()
        return message


@pytest.fixture(scope="module", params=SOURCES)
def corpus(request: pytest.FixtureRequest, corpora: Path, tmp_path_factory: Any) -> Iterator[Corpus]:
    name = request.param
    source, full_name = SOURCES[name]
    schema = yj.load_schema(corpora / source if source.endswith(".proto") else import_module(source))
    path = tmp_path_factory.mktemp("corpora") / f"{name}.arrow"
    built = yj.build_index(path, schema[full_name], yj.read_delimited(corpora / name))
    answers = json.loads((corpora / "answers.json").read_text())[name]
    payloads = list(yj.read_delimited(corpora / name))
    yield Corpus(name, answers, payloads, schema[full_name], built, yj.open_index(path))


def test_each_record_comes_back(corpus: Corpus) -> None:
    assert len(corpus.index) == corpus.built.rows == len(corpus.payloads) == corpus.answers["records"]
    for row in range(len(corpus.index)):
        decoded = corpus.type.decode(corpus.index.payload(row))
        assert wire(decoded) == wire(corpus.parsed(row)), f"row {row}"


def test_what_is_not_carried_is_counted(corpus: Corpus) -> None:
    rows = 0
    counts: Counter[str] = Counter()
    for payload in corpus.payloads:
        before = counts.total()
        count_unknown(corpus.type.message_class.FromString(payload), counts)
        rows += counts.total() > before
    assert corpus.built.unknown_fields == counts
    assert rows == corpus.answers["unknown"] or is_overwritten(corpus)


def count_unknown(message: Message, counts: Counter[str]) -> None:
    for unknown in UnknownFieldSet(message):
        counts[f"{message.DESCRIPTOR.full_name} #{unknown.field_number}"] += 1
    for field, held in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            children = held.values() if field.message_type.fields_by_name["value"].message_type else ()
        else:
            children = held if field.is_repeated else [held]
        for child in children:
            count_unknown(child, counts)


def is_overwritten(corpus: Corpus) -> bool:
    """xds-protos puts an older copy of opentelemetry-proto's modules over it, depending on who comes last.

    That copy doesn't have Span.flags, which each record has.
    """
    fields = corpus.type.message_class.DESCRIPTOR.fields_by_name
    if corpus.name != "otlp-spans.delim" or "flags" in fields:
        return False
    name = "opentelemetry.proto.trace.v1.Span #16"
    return bool(corpus.built.unknown_fields == {name: corpus.answers["records"]})


def test_bytes_are_those_of_the_specification(corpus: Corpus) -> None:
    for row in range(0, len(corpus.index), SPEC_STRIDE):
        assert corpus.index.payload(row).hex() == spec.write(corpus.parsed(row)).hex(), f"row {row}"
        sparse = corpus.type.encode(corpus.parsed(row), layout="sparse")
        assert sparse.hex() == spec.write(corpus.parsed(row), "sparse").hex(), f"row {row}"


def test_views_equal_messages(corpus: Corpus) -> None:
    for row in range(0, len(corpus.index), SPEC_STRIDE):
        check_view(corpus.index[row], corpus.parsed(row))


def test_answers_by_columns(corpus: Corpus) -> None:
    BY_COLUMNS[corpus.name](corpus.index, corpus.answers)


def osm_columns(index: Any, answers: dict[str, Any]) -> None:
    columns = index.columns("id", "info.version", "refs", "len(refs)", "len(keys)", "refs[0]")
    present = columns.present("info")
    assert present.sum() == answers["with_info"]
    assert columns["info.version"][present].max() == answers["max_version"]
    assert columns["id"].sum() == answers["id_sum"]
    assert math.isclose(columns["len(refs)"].mean(), answers["mean_refs"], rel_tol=1e-12)
    assert columns["len(keys)"].sum() == answers["tags"]
    assert columns["refs[0]"].sum() == answers["first_ref_sum"]
    refs = columns["refs"]
    # Delta coded: a way is closed where all but the first add up to 0.
    totals = np.concatenate(([0], np.cumsum(refs.values)))
    several = columns["len(refs)"] > 1
    rest = totals[refs.offsets[1:]] - totals[refs.offsets[:-1] + several]
    assert (several & (rest == 0)).sum() == answers["closed"]


def pprof_columns(index: Any, answers: dict[str, Any]) -> None:
    columns = index.columns("location_id", "value[-1]", "len(label)")
    assert math.isclose(columns["location_id"].lengths.mean(), answers["mean_depth"], rel_tol=1e-12)
    assert columns["location_id"].values.max() == answers["max_location"]
    assert columns["value[-1]"].sum() == answers["last_value_sum"]
    assert columns["len(label)"].sum() == answers["labels"]


def tf_columns(index: Any, answers: dict[str, Any]) -> None:
    lists = ("bytes_list", "float_list", "int64_list")
    lengths = {
        name: [f'len(features.feature["{name}"].{kind}.value)' for kind in lists]
        for name in answers["missing"]
    }
    payment = 'features.feature["payment_type"].bytes_list.value[0]:dictionary'
    fare = 'features.feature["fare"].float_list.value[0]'
    columns = index.columns(payment, fare, *(path for paths in lengths.values() for path in paths))
    missing = {
        name: int((sum(columns[path] for path in paths) == 0).sum()) for name, paths in lengths.items()
    }
    assert missing == answers["missing"]
    names = [name.decode() for name in columns[payment].values]
    assert set(names) == answers["fare_by_payment"].keys()
    for code, name in enumerate(names):
        count, mean = answers["fare_by_payment"][name]
        fares = columns[fare][columns[payment].codes == code]
        assert len(fares) == count
        assert math.isclose(fares.mean(dtype=np.float64), mean, rel_tol=1e-9)


def sentencepiece_columns(index: Any, answers: dict[str, Any]) -> None:
    columns = index.columns("type", "score", "piece", "len(piece)")
    numbers, counts = np.unique(columns["type"], return_counts=True)
    assert dict(zip(map(str, numbers), counts, strict=True)) == answers["by_type"]
    assert columns.present("type").sum() == answers["explicit_type"]
    assert math.isclose(columns["score"].sum(dtype=np.float64), answers["score_sum"], rel_tol=1e-12)
    assert math.isclose(columns["len(piece)"].mean(), answers["mean_chars"], rel_tol=1e-12)
    assert sum(piece.startswith("\u2581") for piece in columns["piece"]) == answers["underscore"]


def otlp_columns(index: Any, answers: dict[str, Any]) -> None:
    kinds = "attributes.value.value:category"
    columns = index.columns(
        "kind", "start_time_unix_nano", "end_time_unix_nano", "status.code", "len(attributes)", kinds
    )
    milliseconds = (columns["end_time_unix_nano"] - columns["start_time_unix_nano"]) / 1e6
    for kind, (count, mean) in answers["mean_ms_by_kind"].items():
        chosen = columns["kind"] == int(kind)
        assert chosen.sum() == count
        assert math.isclose(milliseconds[chosen].mean(), mean, rel_tol=1e-12)
    assert np.isin(columns["kind"], [int(kind) for kind in answers["mean_ms_by_kind"]]).all()
    assert (columns["status.code"] == 2).sum() == answers["errors"]
    assert columns["len(attributes)"].sum() == answers["attributes"] == len(columns[kinds].values)
    code = list(columns[kinds].values.values).index("string_value")
    assert (columns[kinds].values.codes == code).sum() == answers["string_attributes"]


def gtfs_columns(index: Any, answers: dict[str, Any]) -> None:
    columns = index.columns("arrival.time", "departure.time", "stop_id:dictionary")
    both = columns.present("arrival.time") & columns.present("departure.time")
    dwell = columns["departure.time"] - columns["arrival.time"]
    assert both.sum() == answers["dwell_n"]
    assert math.isclose(dwell[both].mean(), answers["mean_dwell"], rel_tol=1e-12)
    assert columns.present("arrival").sum() == answers["arrivals"]
    delayed = columns.present("arrival.delay") | columns.present("departure.delay")
    assert delayed.sum() == answers["with_delay"]
    assert len(columns["stop_id:dictionary"].values) == answers["distinct_stops"]


BY_COLUMNS: dict[str, Callable[[Any, dict[str, Any]], None]] = {
    "osm-ways.delim": osm_columns,
    "pprof-samples.delim": pprof_columns,
    "tf-examples.delim": tf_columns,
    "sentencepiece-pieces.delim": sentencepiece_columns,
    "otlp-spans.delim": otlp_columns,
    "gtfs-stop-updates-nyct.delim": gtfs_columns,
}


NESTED = {
    "tf-examples.delim": (
        "features.feature.kind:category",
        "features.feature.bytes_list.*",
        "features.feature.float_list.*",
        'features.feature["fare"].float_list.*',
    ),
    "osm-ways.delim": ("*", "info.*"),
    "pprof-samples.delim": ("*", "label.*"),
    "otlp-spans.delim": ("*", "attributes.*", "attributes.value.*", "events.attributes.value.*"),
}


def test_columns_are_those_of_protobuf(corpus: Corpus) -> None:
    """All of its own fields, and of what is in them, of some rows."""
    rows = range(0, len(corpus.index), SPEC_STRIDE)
    recs = corpus.index[::SPEC_STRIDE]
    globs = NESTED.get(corpus.name, ("*",))
    paths = [path for glob in globs for path in expand(corpus.type.plan, glob)]
    columns_spec.check(recs.columns(*globs), [corpus.parsed(row) for row in rows], paths)


def test_answers_by_a_jitted_function(corpus: Corpus) -> None:
    """One for each file, over all of its messages."""
    BY_JIT[corpus.name](corpus.index, corpus.answers)


@numba.njit
def osm_totals(ways):
    refs = tags = closed = with_info = id_sum = first_sum = max_version = 0
    for way in ways:
        refs += len(way.refs)
        tags += len(getattr(way, "keys"))  # noqa: B009
        if len(way.refs) > 1 and sum(way.refs[1:]) == 0:
            closed += 1
        if way.HasField("info"):
            with_info += 1
        id_sum += way.id
        if len(way.refs) > 0:
            first_sum += way.refs[0]
        max_version = max(max_version, way.info.version)
    return refs, tags, closed, with_info, id_sum, first_sum, max_version


def osm_jit(index: Any, answers: dict[str, Any]) -> None:
    refs, *others = osm_totals(index)
    assert math.isclose(refs / len(index), answers["mean_refs"], rel_tol=1e-12)
    names = ("tags", "closed", "with_info", "id_sum", "first_ref_sum", "max_version")
    assert others == [answers[name] for name in names]


@numba.njit
def pprof_totals(samples):
    depth = values = labels = 0
    max_location = 0
    for sample in samples:
        depth += len(sample.location_id)
        values += sample.value[-1]
        labels += len(sample.label)
        for location in sample.location_id:
            if location > max_location:
                max_location = int(location)
    return depth, values, labels, max_location


def pprof_jit(index: Any, answers: dict[str, Any]) -> None:
    depth, *others = pprof_totals(index)
    assert math.isclose(depth / len(index), answers["mean_depth"], rel_tol=1e-12)
    assert others == [answers[name] for name in ("last_value_sum", "labels", "max_location")]


@numba.njit
def tf_totals(examples, names, payments):
    missing = np.zeros(len(names), np.int64)
    counts = np.zeros(len(payments), np.int64)
    sums = np.zeros(len(payments))
    for example in examples:
        features = example.features.feature
        for k in range(len(names)):
            feature = features[names[k]]
            if not feature.bytes_list.value and not feature.float_list.value and not feature.int64_list.value:
                missing[k] += 1
        payment = features["payment_type"].bytes_list.value[0]
        fare = features["fare"].float_list.value
        for k in range(len(payments)):
            if payment == payments[k] and len(fare) > 0:
                counts[k] += 1
                sums[k] += fare[0]
    return missing, counts, sums


def tf_jit(index: Any, answers: dict[str, Any]) -> None:
    names, payments = tuple(answers["missing"]), tuple(answers["fare_by_payment"])
    missing, counts, sums = tf_totals(index, names, tuple(name.encode() for name in payments))
    assert dict(zip(names, missing, strict=True)) == answers["missing"]
    for name, count, total in zip(payments, counts, sums, strict=True):
        assert count == answers["fare_by_payment"][name][0]
        assert math.isclose(total / count, answers["fare_by_payment"][name][1], rel_tol=1e-9)


@numba.njit
def sentencepiece_totals(pieces):
    by_type = np.zeros(10, np.int64)
    chars = explicit = underscore = 0
    score = 0.0
    for piece in pieces:
        by_type[piece.type] += 1
        chars += len(piece.piece)
        if piece.HasField("type"):
            explicit += 1
        if piece.piece.startswith("\u2581"):
            underscore += 1
        score += piece.score
    return by_type, chars, explicit, underscore, score


def sentencepiece_jit(index: Any, answers: dict[str, Any]) -> None:
    by_type, chars, explicit, underscore, score = sentencepiece_totals(index)
    assert {str(number): count for number, count in enumerate(by_type) if count} == answers["by_type"]
    assert (explicit, underscore) == (answers["explicit_type"], answers["underscore"])
    assert math.isclose(chars / len(index), answers["mean_chars"], rel_tol=1e-12)
    assert math.isclose(score, answers["score_sum"], rel_tol=1e-12)


@numba.njit
def otlp_totals(spans):
    counts = np.zeros(8, np.int64)
    milliseconds = np.zeros(8)
    errors = attributes = strings = 0
    for span in spans:
        if span.status.code == 2:
            errors += 1
        attributes += len(span.attributes)
        for attribute in span.attributes:
            if attribute.value.WhichOneof("value") == "string_value":
                strings += 1
        counts[span.kind] += 1
        milliseconds[span.kind] += float(span.end_time_unix_nano - span.start_time_unix_nano) / 1e6
    return counts, milliseconds, errors, attributes, strings


def otlp_jit(index: Any, answers: dict[str, Any]) -> None:
    counts, milliseconds, errors, attributes, strings = otlp_totals(index)
    assert (errors, attributes, strings) == (
        answers["errors"],
        answers["attributes"],
        answers["string_attributes"],
    )
    assert {str(kind) for kind in np.flatnonzero(counts)} == answers["mean_ms_by_kind"].keys()
    for kind, (count, mean) in answers["mean_ms_by_kind"].items():
        assert counts[int(kind)] == count
        assert math.isclose(milliseconds[int(kind)] / count, mean, rel_tol=1e-9)


@numba.njit
def gtfs_totals(updates):
    dwells = dwell = arrivals = delayed = 0
    stops = set()
    for update in updates:
        if update.HasField("arrival"):
            arrivals += 1
        if update.arrival.HasField("time") and update.departure.HasField("time"):
            dwells += 1
            dwell += update.departure.time - update.arrival.time
        if update.arrival.HasField("delay") or update.departure.HasField("delay"):
            delayed += 1
        stops.add(str(update.stop_id))
    return dwells, dwell, arrivals, delayed, len(stops)


def gtfs_jit(index: Any, answers: dict[str, Any]) -> None:
    dwells, dwell, *others = gtfs_totals(index)
    assert dwells == answers["dwell_n"]
    assert math.isclose(dwell / dwells, answers["mean_dwell"], rel_tol=1e-12)
    assert others == [answers[name] for name in ("arrivals", "with_delay", "distinct_stops")]


BY_JIT: dict[str, Callable[[Any, dict[str, Any]], None]] = {
    "osm-ways.delim": osm_jit,
    "pprof-samples.delim": pprof_jit,
    "tf-examples.delim": tf_jit,
    "sentencepiece-pieces.delim": sentencepiece_jit,
    "otlp-spans.delim": otlp_jit,
    "gtfs-stop-updates-nyct.delim": gtfs_jit,
}


def test_answers_by_views(corpus: Corpus) -> None:
    """All of them, by protobuf's reading API in plain Python."""
    BY_VIEWS[corpus.name](corpus.index, corpus.answers)


def osm_views(index: Any, answers: dict[str, Any]) -> None:
    refs = tags = closed = with_info = id_sum = first_sum = max_version = 0
    for way in index:
        refs += len(way.refs)
        tags += len(way.keys)
        closed += len(way.refs) > 1 and sum(way.refs[1:]) == 0  # delta coded
        with_info += way.HasField("info")
        id_sum += way.id
        first_sum += way.refs[0] if way.refs else 0
        max_version = max(max_version, way.info.version)
    assert refs / len(index) == pytest.approx(answers["mean_refs"], rel=1e-12)
    assert (tags, closed, with_info) == (answers["tags"], answers["closed"], answers["with_info"])
    assert (id_sum, first_sum) == (answers["id_sum"], answers["first_ref_sum"])
    assert max_version == answers["max_version"]


def pprof_views(index: Any, answers: dict[str, Any]) -> None:
    depth = values = labels = max_location = 0
    for sample in index:
        depth += len(sample.location_id)
        values += sample.value[-1]
        labels += len(sample.label)
        max_location = max(max_location, max(sample.location_id, default=0))
    assert depth / len(index) == pytest.approx(answers["mean_depth"], rel=1e-12)
    assert (values, labels) == (answers["last_value_sum"], answers["labels"])
    assert max_location == answers["max_location"]


def tf_views(index: Any, answers: dict[str, Any]) -> None:
    missing: Counter[str] = Counter()
    fares: dict[str, list[float]] = defaultdict(list)
    for example in index:
        features = example.features.feature
        for name in answers["missing"]:
            missing[name] += not values_of(features[name])
        payment = values_of(features["payment_type"])[0].decode()
        fares[payment] += values_of(features["fare"])[:1]
    assert {name: missing[name] for name in answers["missing"]} == answers["missing"]
    assert fares.keys() == answers["fare_by_payment"].keys()
    for payment, (count, mean) in answers["fare_by_payment"].items():
        assert len(fares[payment]) == count
        assert sum(fares[payment]) / count == pytest.approx(mean, rel=1e-9)


def values_of(feature: Any) -> list[Any]:
    kind = feature.WhichOneof("kind")
    return list(getattr(feature, kind).value) if kind is not None else []


def sentencepiece_views(index: Any, answers: dict[str, Any]) -> None:
    by_type: Counter[str] = Counter()
    chars = explicit = underscore = 0
    score = 0.0
    for piece in index:
        by_type[str(piece.type)] += 1
        chars += len(piece.piece)
        explicit += piece.HasField("type")
        underscore += piece.piece.startswith("\u2581")
        score += piece.score
    assert by_type == answers["by_type"]
    assert (explicit, underscore) == (answers["explicit_type"], answers["underscore"])
    assert chars / len(index) == pytest.approx(answers["mean_chars"], rel=1e-12)
    assert score == pytest.approx(answers["score_sum"], rel=1e-12)


def otlp_views(index: Any, answers: dict[str, Any]) -> None:
    errors = attributes = strings = 0
    milliseconds: dict[str, list[float]] = defaultdict(list)
    for span in index:
        errors += span.status.code == 2
        attributes += len(span.attributes)
        strings += sum(a.value.WhichOneof("value") == "string_value" for a in span.attributes)
        milliseconds[str(span.kind)].append((span.end_time_unix_nano - span.start_time_unix_nano) / 1e6)
    assert (errors, attributes) == (answers["errors"], answers["attributes"])
    assert strings == answers["string_attributes"]
    for kind, (count, mean) in answers["mean_ms_by_kind"].items():
        assert len(milliseconds[kind]) == count
        assert sum(milliseconds[kind]) / count == pytest.approx(mean, rel=1e-9)


def gtfs_views(index: Any, answers: dict[str, Any]) -> None:
    dwells = []
    arrivals = delayed = 0
    stops = set()
    for update in index:
        arrivals += update.HasField("arrival")
        if update.arrival.HasField("time") and update.departure.HasField("time"):
            dwells.append(update.departure.time - update.arrival.time)
        delayed += update.arrival.HasField("delay") or update.departure.HasField("delay")
        stops.add(update.stop_id)
    assert (len(dwells), arrivals) == (answers["dwell_n"], answers["arrivals"])
    assert sum(dwells) / len(dwells) == pytest.approx(answers["mean_dwell"], rel=1e-12)
    assert (delayed, len(stops)) == (answers["with_delay"], answers["distinct_stops"])


BY_VIEWS: dict[str, Callable[[Any, dict[str, Any]], None]] = {
    "osm-ways.delim": osm_views,
    "pprof-samples.delim": pprof_views,
    "tf-examples.delim": tf_views,
    "sentencepiece-pieces.delim": sentencepiece_views,
    "otlp-spans.delim": otlp_views,
    "gtfs-stop-updates-nyct.delim": gtfs_views,
}
