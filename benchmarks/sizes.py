"""Bytes of a message by how many of its fields are set, beside protobuf and FlatBuffers, and of real data."""

from __future__ import annotations

import itertools
import random
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import yaffjit as yj
from benchmarks.timing import Amount, Curve

FIELDS = (5, 50)
PERCENTS = (5, 25, 50, 75, 100)
MESSAGES = 400
QUICK_MESSAGES = 40
# What "auto" may be beside the better of the two pure choices, and "smallest".
AUTO, SMALLEST = 1.10, 1.01
# The kinds of the fields in turn, what a value of each is, and FlatBuffers' method for it.
KINDS = ("int64", "double", "string", "uint32", "bool", "float")

# Real data beside the repository, if it is there: each file's schema, there or in a package.
CORPORA = Path(__file__).parents[2] / "shared" / "corpora"
SCHEMAS = {
    "osm-ways": ("osm_way.proto", "osm.Way"),
    "pprof-samples": ("pprof_sample.proto", "pprof.Sample"),
    "tf-examples": ("tf_example.proto", "tf.Example"),
    "sentencepiece-pieces": ("sentencepiece_piece.proto", "sentencepiece.Piece"),
    "otlp-spans": ("opentelemetry.proto.trace.v1.trace_pb2", "opentelemetry.proto.trace.v1.Span"),
    "gtfs-stop-updates-nyct": (
        "google.transit.gtfs_realtime_pb2",
        "transit_realtime.TripUpdate.StopTimeUpdate",
    ),
}

Message = dict[str, Any]


def amounts(quick: bool) -> Iterator[Amount]:
    for fields in FIELDS:
        with tempfile.TemporaryDirectory(prefix="yaffjit-benchmark-") as folder:
            row_type = message_type(Path(folder), fields)
        for percent in PERCENTS:
            messages = made(fields, percent, QUICK_MESSAGES if quick else MESSAGES)
            sizes = mean_sizes(row_type, messages, fields)
            curve = Curve(
                f"bytes a message by the share of its {fields} fields that are set",
                "percent of the fields that are set",
                percent,
                "bytes a message",
                sizes,
            )
            race = f"bytes of a message of {fields} fields, of which {percent} % are set"
            better = min(sizes["yaffjit, flat"], sizes["yaffjit, sparse"])
            yield Amount(race, "yaffjit, auto", sizes["yaffjit, auto"], AUTO * better, curve)
            yield Amount(race, "yaffjit, smallest", sizes["yaffjit, smallest"], SMALLEST * better)
    yield from of_corpora(quick)


def of_corpora(quick: bool) -> Iterator[Amount]:
    """The mean size of a message of each file of real data."""
    if not CORPORA.exists():
        print("the corpora aren't beside the repository: left out", flush=True)
        return
    for number, (name, (source, full_name)) in enumerate(SCHEMAS.items(), 1):
        try:
            schema = yj.load_schema(CORPORA / source if source.endswith(".proto") else import_module(source))
        except ImportError as missing:
            print(f"{missing.name} isn't installed: {name} is left out (pip install '.[test]')", flush=True)
            continue
        messages = yj.read_delimited(CORPORA / f"{name}.delim")
        raw = list(itertools.islice(messages, QUICK_MESSAGES) if quick else messages)
        sizes = encoded_sizes(schema[full_name], raw)
        curve = Curve(
            "bytes a message of each corpus", "the corpus, by its row", number, "bytes a message", sizes
        )
        better = min(sizes["yaffjit, flat"], sizes["yaffjit, sparse"])
        race = f"bytes of a message of {name}"
        yield Amount(race, "yaffjit, auto", sizes["yaffjit, auto"], AUTO * better, curve)
        yield Amount(race, "yaffjit, smallest", sizes["yaffjit, smallest"], SMALLEST * better)


def message_type(folder: Path, fields: int) -> yj.MessageType:
    lines = "\n".join(
        f"  optional {KINDS[number % len(KINDS)]} f{number} = {number + 1};" for number in range(fields)
    )
    path = folder / "sizes.proto"
    path.write_text(f'syntax = "proto3";\npackage sizes;\nmessage Row {{\n{lines}\n}}\n')
    return yj.load_schema(path)["sizes.Row"]


def made(fields: int, percent: int, count: int) -> list[Message]:
    """Messages with so many percent of their fields set: other ones in each, at least one."""
    rng = random.Random(f"{fields} {percent}")
    messages = []
    for _ in range(count):
        chosen = rng.sample(range(fields), max(1, round(fields * percent / 100)))
        messages.append({f"f{number}": value(KINDS[number % len(KINDS)], rng) for number in sorted(chosen)})
    return messages


def value(kind: str, rng: random.Random) -> Any:
    if kind == "string":
        return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz ", k=rng.randint(4, 20)))
    if kind == "bool":
        return True
    if kind == "int64":
        return rng.randrange(1, 1 << 40)
    if kind == "uint32":
        return rng.randrange(1, 1 << 20)
    return rng.randrange(1, 1 << 20) / 1024  # also a float32


def mean_sizes(row_type: yj.MessageType, messages: list[Message], fields: int) -> Mapping[str, float]:
    """Bytes a message, by encoding."""
    protobufs = [row_type.message_class(**message) for message in messages]
    raw = [message.SerializeToString() for message in protobufs]
    found = encoded_sizes(row_type, raw)
    try:
        found["FlatBuffers"] = mean(len(flat_buffer(message, fields)) for message in messages)
    except ImportError:
        print("FlatBuffers isn't installed: left out (pip install '.[bench]')", flush=True)
    return found


def encoded_sizes(row_type: yj.MessageType, raw: list[bytes]) -> dict[str, float]:
    """Bytes a message as YaFF by layout, and as protobuf."""
    found = {}
    for layout in ("flat", "sparse", "auto", "smallest"):
        found[f"yaffjit, {layout}"] = row_type.transcode(raw, layout=layout).nbytes / len(raw)
    found["google.protobuf"] = mean(map(len, raw))
    return found


def flat_buffer(message: Message, fields: int) -> bytes:
    """The message as a FlatBuffers table with a slot a field, as generated code would write it."""
    import flatbuffers

    builder = flatbuffers.Builder(64)
    texts = {name: builder.CreateString(text) for name, text in message.items() if isinstance(text, str)}
    builder.StartObject(fields)
    # Larger slots first, as flatc's own order is: less padding.
    for kind, prepend in (
        ("int64", builder.PrependInt64Slot),
        ("double", builder.PrependFloat64Slot),
        ("string", builder.PrependUOffsetTRelativeSlot),
        ("uint32", builder.PrependUint32Slot),
        ("float", builder.PrependFloat32Slot),
        ("bool", builder.PrependBoolSlot),
    ):
        for name, content in message.items():
            number = int(name[1:])
            if KINDS[number % len(KINDS)] == kind:
                prepend(number, texts.get(name, content), 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def mean(numbers: Iterable[int]) -> float:
    listed = list(numbers)
    return sum(listed) / len(listed)
