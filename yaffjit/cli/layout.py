"""`yaffjit layout`: where the fields of messages lie."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import yaffjit as yj
from yaffjit.cli.options import (
    add_command,
    add_json_option,
    add_schema_options,
    load_schema,
    path_text,
    positive,
    print_json,
)
from yaffjit.cli.readers import add_framing_option, reader_of
from yaffjit.errors import SchemaError

if TYPE_CHECKING:
    from yaffjit.build.payloads import Payloads
    from yaffjit.codec.layouts import LayoutSample, TypeSample
    from yaffjit.plan import MessagePlan

SAMPLE_ROWS = 100_000
TYPE_ROWS = 2000  # of which types are looked at, one message after the other
TYPE_HEADER = ("message", "layout", "messages", "fields set", "bytes flat", "bytes sparse", "why")
FIELD_KEYS = (
    *("name", "number", "id", "kind", "repeated", "is_map", "message", "enum", "explicit", "oneof"),
    *("default", "width", "offset"),
)
FEW = 0.05  # of the messages, for which two layouts in one file aren't worth it


def add_layout(commands: Any) -> None:
    parser = add_command(
        commands,
        "layout",
        _layout,
        "print where each field of a message lies under YaFF, what that costs, and what it can't hold",
        "yaffjit layout ads.proto                  all message types of the schema\n"
        "yaffjit layout ads.proto ads.Banner       the fields of one\n"
        "yaffjit layout ads.proto ads.Banner --sample banners.pb     which layout --layout should name\n"
        "yaffjit layout ads.proto ads.Banner --json",
    )
    parser.add_argument(
        "schema", type=path_text, metavar="SCHEMA", help="a .proto file, or a file with a FileDescriptorSet"
    )
    parser.add_argument("message", metavar="MESSAGE", nargs="?", help="full name of a message type")
    parser.add_argument(
        "--sample",
        type=path_text,
        metavar="FILE",
        help="measure messages of this file under each layout, and say what would be chosen and why",
    )
    add_framing_option(parser)
    parser.add_argument(
        "--rows",
        type=positive,
        default=SAMPLE_ROWS,
        metavar="N",
        help=f"how many messages of it at most (default: {SAMPLE_ROWS:,})",
    )
    add_json_option(parser)
    add_schema_options(parser)
    parser.set_defaults(parser=parser)


def _layout(parsed: argparse.Namespace) -> None:
    from yaffjit.render import layout_text, schema_text

    if parsed.sample is not None and parsed.message is None:
        parsed.parser.error("--sample needs the MESSAGE")
    schema = load_schema(parsed)
    if parsed.sample is not None:
        reader = reader_of([parsed.sample], parsed.framing, lambda: schema)
        if parsed.json:
            print_json(sampled_values(schema[parsed.message].plan, reader, parsed.rows))
            return
        print("\n".join(_sampled(schema[parsed.message].plan, reader, parsed.rows)))
        return
    if parsed.json:
        names = list(schema.messages) if parsed.message is None else [parsed.message]
        found = [layout_values(schema[name]) for name in names]
        print_json(found if parsed.message is None else found[0])
        return
    if parsed.message is not None:
        print(layout_text(schema[parsed.message].plan))
        return
    unsupported = schema.unsupported
    plans = (
        (name, SchemaError(unsupported[name]) if name in unsupported else message_type.plan)
        for name, message_type in schema.messages.items()
    )
    print(schema_text(schema.definition, plans))


def layout_values(message_type: yj.MessageType) -> dict[str, Any]:
    """The layout of a message type as plain values, or why YaFF can't hold it."""
    from yaffjit.render import losses, warnings

    name = message_type.full_name
    if (fault := message_type.schema.unsupported.get(name)) is not None:
        return {"message": name, "unsupported": fault}
    mp = message_type.plan
    return {
        "message": name,
        "layout": mp.layout,
        "always_sparse": mp.layout == "sparse" or (mp.gapped and mp.layout == "dynamic"),
        "nbytes_of_slots": mp.limit,
        "fields": [{key: getattr(f, key) for key in FIELD_KEYS} for f in mp.fields],
        "lost": dict(mp.lost),
        "cost": warnings(mp),
        "losses": losses(mp),
    }


def sampled_values(mp: MessagePlan, reader: Payloads, rows: int) -> dict[str, Any]:
    """What `_sampled` prints, as plain values."""
    from yaffjit.codec.layouts import sampled_layouts, sampled_types

    payloads: list[bytes] = []
    whole = sampled_layouts(mp, _parts(reader, rows, payloads))
    message_class = mp.plan.schema.message_class(mp.full_name)
    types = sampled_types(mp, [message_class.FromString(payload) for payload in payloads])
    choice = _choice(mp, whole)
    return {
        "message": mp.full_name,
        **dataclasses.asdict(whole),
        "choice": choice.partition(":")[0].lower(),
        "why": choice,
        "types": [dataclasses.asdict(found) for found in types],
    }


def _sampled(mp: MessagePlan, reader: Payloads, rows: int) -> Iterator[str]:
    """What messages take under each layout, as lines."""
    from yaffjit.codec.layouts import sampled_layouts, sampled_types
    from yaffjit.render import text_table

    payloads: list[bytes] = []
    whole = sampled_layouts(mp, _parts(reader, rows, payloads))
    message_class = mp.plan.schema.message_class(mp.full_name)
    types = sampled_types(mp, [message_class.FromString(payload) for payload in payloads])
    yield f"{whole.messages:,} messages of {mp.full_name}, {whole.protobuf_nbytes:,} bytes of protobuf"
    yield ""
    header = ("--layout", "bytes", "of protobuf", "sparse messages")
    yield text_table(header, _layout_rows(whole), right=header[1:])
    yield ""
    yield _choice(mp, whole)
    yield ""
    yield f"Types in the first {len(payloads):,} messages, bytes on average without what lies out of line:"
    yield text_table(TYPE_HEADER, map(_type_row, types), right=TYPE_HEADER[2:6])


def _parts(reader: Payloads, rows: int, payloads: list[bytes]) -> Iterator[tuple[Any, Any]]:
    """So many rows, the first of which are put aside too."""
    for data, offsets, _ in reader.batches():
        count = min(len(offsets) - 1, rows)
        few = offsets[: min(count, TYPE_ROWS - len(payloads)) + 1].tolist()
        payloads += [bytes(data[begin:end]) for begin, end in itertools.pairwise(few)]
        yield data, offsets[: count + 1]
        rows -= count
        if not rows:
            return


def _layout_rows(whole: LayoutSample) -> Iterator[tuple[str, ...]]:
    for layout, nbytes in whole.nbytes.items():
        share = _percent(nbytes, whole.protobuf_nbytes)
        sparse = whole.sparse.get(layout)
        yield layout, f"{nbytes:,}", share, "" if sparse is None else _percent(sparse, whole.messages)


def _choice(mp: MessagePlan, whole: LayoutSample) -> str:
    """Which layout to name, and why."""
    flat, sparse = whole.nbytes["flat"], whole.nbytes["sparse"]
    if flat == sparse:
        fixed = mp.layout != "dynamic"
        return f"Any: {f'the root is {mp.layout} by its schema' if fixed else 'all take the same'}."
    share = whole.sparse["auto"] / max(whole.messages, 1)
    saved = _percent(flat - whole.nbytes["auto"], flat)
    if share < FEW:
        return f"flat: sparse would save more than a tenth in only {_percent(share, 1)} of the messages."
    layout = "sparse" if share > 1 - FEW else "auto"
    return (
        f"{layout}: sparse saves more than a tenth in {_percent(share, 1)} of the messages, {saved} in all."
    )


def _type_row(found: TypeSample) -> tuple[str, ...]:
    count = found.messages
    flat, sparse = found.flat_nbytes / count, found.sparse_nbytes / count
    if found.layout == "fixed":
        why = "fixed: all its fields have room in it"
    elif found.layout != "dynamic":
        why = f"{found.layout} by its schema"
    elif found.gapped:
        why = "always sparse: its ids have gaps"
    else:
        density = _percent(found.set, found.fields * count)
        why = f"{density} of its fields are set: {'flat' if flat <= sparse else 'sparse'} is smaller"
    shown = f"{found.set / count:.1f} of {found.fields}"
    return found.name, found.layout, f"{count:,}", shown, f"{flat:.1f}", f"{sparse:.1f}", why


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / max(whole, 1):.1f}%"
