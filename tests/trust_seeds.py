"""What the campaign of `trust_campaign` begins with: message types, and right buffers of each.

Of the golden vectors, of schemas and messages at random, of the schema for the verifiers' tests, and of the
corpora where they are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

from conftest import CORPORA
from mutants import seeds
from trust_mutator import Mutator
from vectors import TESTS
from wire_messages import Maker

import yaffjit as yj
from yaffjit.plan import MessagePlan

LARGEST = 4096  # bytes of a buffer to begin with
BUFFERS = 12  # of a type, that are damaged
LAYOUTS = ("flat", "sparse")
# What CI takes: all layouts, kinds, presence, containers and maps between them, and few types, since readers
# are compiled for each.
FEW_GOLDEN = (
    "golden.scalars.Plain",
    "golden.layouts.FlOpt",
    "golden.gaps.HolesOpt",
    "golden.maps.StrMsg",
)
FEW_RANDOM = 1
MANY_RANDOM = 40
OWN = ("Banner", "Tree", "Packed", "Removed", "Point", "Pinned")
FEW_OWN = ("Banner",)
FILES = {
    "tf-examples.delim": ("tf_example.proto", "tf.Example"),
    "osm-ways.delim": ("osm_way.proto", "osm.Way"),
    "pprof-samples.delim": ("pprof_sample.proto", "pprof.Sample"),
    "sentencepiece-pieces.delim": ("sentencepiece_piece.proto", "sentencepiece.Piece"),
    "otlp-spans.delim": ("opentelemetry.proto.trace.v1.trace_pb2", "opentelemetry.proto.trace.v1.Span"),
    "gtfs-stop-updates-nyct.delim": (
        "google.transit.gtfs_realtime_pb2",
        "transit_realtime.TripUpdate.StopTimeUpdate",
    ),
}
FEW_FILES = ("tf-examples.delim",)


@dataclass
class Family:
    """A message type, with buffers that a message type wrote, perhaps of an older schema."""

    name: str
    mp: MessagePlan
    buffers: tuple[tuple[MessagePlan, bytes], ...]

    @cached_property
    def mutators(self) -> list[Mutator]:
        return [Mutator(writer, buf) for writer, buf in self.buffers]

    @cached_property
    def capacity(self) -> int:
        return max(len(buf) for _, buf in self.buffers) + 64


Maker_of = Callable[[], "Family | None"]


def makers(seed: int, few: bool) -> list[tuple[str, Maker_of]]:
    """Names of families and what makes them; the same ones for a seed."""
    return [*golden(few), *own(seed, few), *at_random(seed, few), *corpora(few)]


def golden(few: bool) -> Iterator[tuple[str, Maker_of]]:
    by_type: dict[tuple[str, str], list[tuple[MessagePlan, MessagePlan, bytes]]] = {}
    for seed in seeds():
        writer = seed.plans[0]
        if few and writer.full_name not in FEW_GOLDEN:
            continue
        for mp in seed.plans:
            if len(seed.buf) <= LARGEST:
                by_type.setdefault((mp.full_name, mp.fingerprint), []).append((mp, writer, seed.buf))
    for (name, fingerprint), found in by_type.items():
        buffers = tuple((writer, buf) for _, writer, buf in found)
        yield (
            f"{name} {fingerprint[:6]}",
            lambda name=name, mp=found[0][0], held=buffers: Family(name, mp, held),
        )


def own(seed: int, few: bool) -> Iterator[tuple[str, Maker_of]]:
    schema = yj.load_schema(TESTS / "schemas" / "verify.proto")
    for name in FEW_OWN if few else OWN:
        yield f"verify.{name}", lambda name=name: _of_type(schema[f"verify.{name}"], f"{seed} {name}")


def at_random(seed: int, few: bool) -> Iterator[tuple[str, Maker_of]]:
    """Schemas that hypothesis draws, the same ones for a seed."""
    drawn: list[yj.Schema] = []
    count = FEW_RANDOM if few else MANY_RANDOM

    def family(number: int) -> Family | None:
        if not drawn:
            drawn.extend(_random_schemas(seed, count))
        schema = drawn[number]
        name = max(schema.messages.keys() - schema.unsupported.keys(), key=lambda name: _size(schema, name))
        return _of_type(schema[name], f"{seed} {number}")

    for number in range(count):
        yield f"random {number}", lambda number=number: family(number)


def _size(schema: yj.Schema, name: str) -> tuple[int, str]:
    return len(schema[name].plan.fields), name


def _random_schemas(seed: int, count: int) -> list[yj.Schema]:
    import hypothesis
    from strategies import schemas

    found: list[Any] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(max_examples=4 * count, database=None, phases=[hypothesis.Phase.generate])
    @hypothesis.given(schemas())
    def draw(schema: Any) -> None:
        if schema.roots:
            found.append(schema)

    draw()
    # The first examples that hypothesis draws are the smallest ones.
    largest = sorted(found, key=lambda schema: -schema.file.ByteSize())[:count]
    return [yj.load_schema(schema.descriptor_set.SerializeToString()) for schema in largest]


def corpora(few: bool) -> Iterator[tuple[str, Maker_of]]:
    for name in FEW_FILES if few else FILES:
        if (CORPORA / name).exists():
            yield name, lambda name=name: _of_corpus(name)


def _of_corpus(name: str) -> Family | None:
    source, full_name = FILES[name]
    schema = yj.load_schema(CORPORA / source if source.endswith(".proto") else import_module(source))
    message_type = schema[full_name]
    payloads = list(yj.read_delimited(CORPORA / name))
    chosen = sorted(payloads[:: max(1, len(payloads) // 200)], key=len)[:: max(1, 200 // BUFFERS)]
    made = [message_type.message_class.FromString(payload) for payload in chosen]
    return _family(name, message_type, made)


def _of_type(message_type: yj.MessageType, seed: str) -> Family | None:
    maker = Maker(random.Random(seed))
    made = [message_type.message_class()]
    for _ in range(2000):
        if len(made) == BUFFERS:
            break
        payload = maker.message(message_type.message_class.DESCRIPTOR)
        try:
            message = message_type.message_class.FromString(payload)
        except Exception:  # it's made to be refused now and then
            continue
        # What's empty is damaged soon.
        if len(payload) > (20 if len(made) < BUFFERS // 2 else 100) or maker.happens(0.01):
            made.append(message)
    return _family(message_type.full_name, message_type, made)


def _family(name: str, message_type: yj.MessageType, messages: list[Any]) -> Family | None:
    buffers = []
    for message in messages:
        for layout in LAYOUTS:
            try:
                buf = message_type.encode(message, layout=layout)
            except yj.EncodeError:
                continue
            if len(buf) <= LARGEST:
                buffers.append((message_type.plan, buf))
    return Family(name, message_type.plan, tuple(buffers)) if buffers else None
