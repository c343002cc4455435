"""Damages protobuf bytes and compares what views of them read with google.protobuf.

The whole campaign::

    python -m tests.wire_view_campaign [--count 1000000] [--seed N] [--kernel]
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import functools
import random
import secrets
import struct
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import yaffjit as yj

TESTS = Path(__file__).resolve().parent
if str(TESTS) not in sys.path:  # as in pytest
    sys.path.insert(0, str(TESTS))

from google.protobuf.message import DecodeError as ProtobufError  # noqa: E402
from google.protobuf.unknown_fields import UnknownFieldSet  # noqa: E402
from wire_campaign import batches  # noqa: E402

from yaffjit.view import View, wire, wire_index, wire_view_class  # noqa: E402

LONGEST = 2**14

# What reading the content of a field takes.
NUMBER, TEXT, MESSAGE, MAP = range(4)


@functools.cache
def readings(message_class: Any) -> list[tuple[Any, str, bool, int]]:
    """(descriptor, name, whether it's repeated, what it is) of each field."""
    found = []
    for field in message_class.DESCRIPTOR.fields:
        what = NUMBER if field.enum_type is not None or field.message_type is None else MESSAGE
        if field.type in (field.TYPE_STRING, field.TYPE_BYTES):
            what = TEXT
        elif what == MESSAGE and field.message_type.GetOptions().map_entry:
            what = MAP
        found.append((field, field.name, field.is_repeated, what))
    return found


@functools.cache
def reaches_group(descriptor: Any) -> bool:
    waiting, known = [descriptor], {descriptor.full_name}
    while waiting:
        for field in waiting.pop().fields:
            if field.type == field.TYPE_GROUP:
                return True
            if field.message_type is not None and field.message_type.full_name not in known:
                known.add(field.message_type.full_name)
                waiting.append(field.message_type)
    return False


def alike(held: Any, wanted: Any) -> bool:
    """Equal values of one type; floats by their bits."""
    if type(held) is not type(wanted):
        return False
    if type(wanted) is float:
        return struct.pack("<d", held) == struct.pack("<d", wanted)
    return bool(held == wanted)


def compare(view: Any, message: Any, path: str = "") -> None:
    """Value, presence and elements of each field, oneofs, ListFields, unknown fields; else AssertionError."""
    message_class = type(message)
    for field, name, repeated, what in readings(message_class):
        here = f"{path}.{name}"
        held, wanted = getattr(view, name), getattr(message, name)
        if field.has_presence:
            assert View.HasField(view, name) == message_class.HasField(message, name), here
        if what == MAP:
            of_messages = field.message_type.fields_by_name["value"].message_type is not None
            assert len(held) == len(wanted), here
            assert set(held) == set(wanted), here
            for key, element in held.items():
                if type(key) is bytes:
                    continue  # text that isn't UTF-8, whose value protobuf's maps don't give
                if of_messages:
                    compare(element, wanted[key], f"{here}[{key!r}]")
                else:
                    assert alike(element, wanted[key]), f"{here}[{key!r}]"
        elif what == MESSAGE and repeated:
            assert len(held) == len(wanted), here
            for i, element in enumerate(held):
                compare(element, wanted[i], f"{here}[{i}]")
        elif what == MESSAGE:
            if message_class.HasField(message, name):
                compare(held, wanted, here)
            else:
                assert View.ListFields(held) == [], here
        elif repeated:
            assert len(held) == len(wanted), here
            assert all(map(alike, held, wanted)), here
        else:
            assert alike(held, wanted), here
    for oneof in message_class.DESCRIPTOR.oneofs:
        assert View.WhichOneof(view, oneof.name) == message_class.WhichOneof(message, oneof.name), path
    compare_unknown(yj.unknown_fields(view), UnknownFieldSet(message), message_class.DESCRIPTOR, path)
    listed = [field.number for field, _ in View.ListFields(view)]
    assert listed == [field.number for field, _ in message_class.ListFields(message)], path


def compare_unknown(held: Any, wanted: Any, descriptor: Any, path: str) -> None:
    """``descriptor`` is that of the message, None within groups."""
    assert [(f.number, f.wire_type) for f in held] == [(f.field_number, f.wire_type) for f in wanted], path
    for field, other in zip(held, wanted, strict=True):
        known = descriptor and descriptor.fields_by_number.get(field.number)
        if field.wire_type == 3:
            compare_unknown(field.value, other.data, None, path)
        elif known is not None and known.enum_type is not None and field.wire_type == 0:
            assert (field.value ^ other.data) & 0xFFFFFFFF == 0, path  # protobuf may have written it anew
        elif known is None or field.wire_type != 2 or known.message_type is None:  # else a pair, written anew
            assert field.value == other.data, path


def read_all(view: Any) -> None:
    """Read whatever the public API gives."""
    for field, _, repeated, what in readings(type(view)):
        value = getattr(view, field.name)
        elements = value if repeated else [value]
        if what == MAP:
            elements = value.values()
        for element in elements:
            if isinstance(element, View) and View.ListFields(element):
                read_all(element)


def outcome(message_type: yj.MessageType, payload: bytes) -> str:
    """What became of one message: accepted, refused or not met; AssertionError where it's wrong."""
    message: Any = None
    with contextlib.suppress(ProtobufError):
        message = message_type.message_class.FromString(payload)
    if message is not None:
        view = message_type.view_protobuf(payload)
        compare(view, message)
        assert View.to_message(view) == message
        return "accepted"
    try:
        read_all(message_type.view_protobuf(payload))
    except yj.DecodeError as met:
        assert isinstance(met, yj.VerifyError), met
        assert met.message == message_type.full_name
        assert met.position is not None
        assert 0 <= met.position <= len(payload)
        try:
            message_type.verify_protobuf(payload)
        except yj.VerifyError as first:
            assert first.position is not None
            if reaches_group(message_type.message_class.DESCRIPTOR):
                # Its end is looked for, as that of an unknown group, before what lies in it is read.
                return "refused, perhaps in a group"
            assert first.position <= met.position
            if (first.position, first.path) == (met.position, met.path):
                assert str(first) == str(met)
                return "refused, first fault"
        return "refused, later fault"
    return "refused, not met"


def run(count: int, seed: int, own: bool = False) -> Counter[str]:
    """Compares so many messages; what became of them."""
    told: Counter[str] = Counter()
    done = 0
    for message_type, payloads in batches(random.Random(seed), own):
        for payload in payloads:
            try:
                told[outcome(message_type, payload)] += 1
            except Exception as error:
                error.args = (f"{message_type.full_name}: {payload.hex()}: {error}",)
                raise
        done += len(payloads)
        if done >= count:
            return told
    raise AssertionError


def run_by_kernel(count: int, seed: int) -> Counter[str]:
    """The same with messages of any size opened by the kernel."""
    kept = wire.LARGE_NBYTES
    assert wire_index.work.load() is not None
    wire.LARGE_NBYTES = 0
    try:
        return run(count, seed)
    finally:
        wire.LARGE_NBYTES = kept


def read_guarded(count: int, seed: int) -> None:
    """Read messages that lie beside pages that can't be read, opened by the kernel; to run as a process."""
    from guard import Guard

    assert wire_index.work.load() is not None
    wire.LARGE_NBYTES = 0
    guard = Guard(LONGEST)
    told: Counter[str] = Counter()
    for message_type, payloads in batches(random.Random(seed)):
        make = wire_view_class(message_type.schema._plan, message_type.full_name)
        for payload in payloads:
            if not 0 < len(payload) <= LONGEST:
                continue
            for address in (guard.at_begin(payload), guard.at_end(payload)):
                held = (ctypes.c_uint8 * len(payload)).from_address(address)
                try:
                    read_all(make(memoryview(held).cast("B").toreadonly(), 0, len(payload)))
                    told["read"] += 1
                except yj.DecodeError:
                    told["refused"] += 1
        if told.total() >= count:
            print(f"guarded: {dict(told)}")
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    parser.add_argument("--kernel", action="store_true", help="messages of any size are opened by the kernel")
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    started = time.monotonic()
    told = (run_by_kernel if args.kernel else run)(args.count, args.seed)
    print(f"{args.count} messages in {time.monotonic() - started:.0f} s: {dict(told)}")


if __name__ == "__main__":
    main()
