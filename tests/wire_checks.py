"""Compares what transcodes and checks protobuf bytes with google.protobuf and `encode`."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
from wire_messages import expected

import yaffjit as yj
from yaffjit.codec import transcode, verify_protobuf
from yaffjit.codec.encode import LAYOUTS
from yaffjit.codec.stretches import Transcoded
from yaffjit.codec.transcode import transcode_many
from yaffjit.codec.verify_protobuf_plain import check_plain
from yaffjit.errors import DecodeError, VerifyError
from yaffjit.plan.wire_tables import wire_table


@cache
def load_kernels() -> None:
    """From here on the compiled kernels decide, however little work there is."""
    assert transcode.work.load() is not None
    assert verify_protobuf.work.load() is not None


def joined(payloads: list[bytes]) -> tuple[bytes, np.ndarray]:
    return b"".join(payloads), np.cumsum([0, *map(len, payloads)])


def outcomes(made: Transcoded) -> list[bytes | str]:
    """A buffer or the name of an error for each row."""
    found: list[bytes | str] = []
    for row, (begin, end) in enumerate(zip(made.offsets[:-1], made.offsets[1:], strict=True)):
        error = made.errors.get(row)
        if error is None:
            found.append(made.data[begin:end].tobytes())
        else:
            found.append("DecodeError" if isinstance(error, DecodeError) else "EncodeError")
    return found


def by_kernel(
    message_type: yj.MessageType, payloads: list[bytes], layout: str, tier: str = "table"
) -> Transcoded:
    load_kernels()
    return transcode_many(
        message_type.plan, *joined(payloads), layout, threads=1, keep_errors=True, tier=tier
    )


def check_transcoding(
    message_type: yj.MessageType,
    payloads: list[bytes],
    layouts: tuple[str, ...] = LAYOUTS,
    tier: str = "table",
) -> Counter[str]:
    """How many were written, and refused by what."""
    told: Counter[str] = Counter()
    for layout in layouts:
        made = by_kernel(message_type, payloads, layout, tier)
        for payload, found in zip(payloads, outcomes(made), strict=True):
            wanted = expected(message_type, payload, layout)
            told[wanted if isinstance(wanted, str) else "written"] += 1
            assert found == wanted, f"{message_type.full_name}, {layout}: {payload.hex()}"
    return told


def check_uncarried(message_type: yj.MessageType, payloads: list[bytes], tier: str = "table") -> None:
    """The kernel and the plain check count the same fields that aren't carried."""
    made = by_kernel(message_type, payloads, "flat", tier)
    counted: Counter[tuple[str, int]] = Counter()
    for row, payload in enumerate(payloads):
        if row not in made.errors:
            counted += check_plain(
                message_type.schema._plan, message_type.full_name, payload, message_type.plan
            )
    assert made.uncarried == counted, [payload.hex() for payload in payloads]
    assert made.uncounted == 0


def check_acceptance(message_type: yj.MessageType, payloads: list[bytes]) -> int:
    """The kernel and the plain check accept what protobuf accepts; how many these are."""
    load_kernels()
    plan, name = message_type.schema._plan, message_type.full_name
    kernel = verify_protobuf.work.loaded
    table = wire_table(plan, name)
    assert kernel is not None and table.complete
    accepted = 0
    for payload in payloads:
        wanted = True
        try:
            message_type.message_class.FromString(payload)
        except Exception:
            wanted = False
        data, offsets = np.frombuffer(payload, np.uint8), np.array([0, len(payload)])
        found = verify_protobuf._accepted(kernel, table, data, offsets) == 1
        plain = True
        try:
            check_plain(plan, name, payload)
        except VerifyError as error:
            plain = False
            assert 0 <= (error.position or 0) <= len(payload)
        assert (found, plain) == (wanted, wanted), f"{name}: {payload.hex()}"
        accepted += wanted
    return accepted
