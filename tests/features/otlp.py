"""Features of spans of a trace."""

from __future__ import annotations

from typing import Any

from opentelemetry.proto.trace.v1 import trace_pb2

MESSAGE = "opentelemetry.proto.trace.v1.Span"


def milliseconds(span: Any) -> Any:
    return (span.end_time_unix_nano - span.start_time_unix_nano) / 1e6


def is_slow_client(span: Any) -> Any:
    if span.kind != trace_pb2.Span.SPAN_KIND_CLIENT:
        return False
    return span.end_time_unix_nano - span.start_time_unix_nano > 5_000_000


def failed(span: Any) -> Any:
    return span.status.code == trace_pb2.Status.STATUS_CODE_ERROR, len(span.status.message)


def http_status(span: Any) -> Any:
    """An attribute is found by going through all of them."""
    for attribute in span.attributes:
        if attribute.key == "http.status_code" or attribute.key == "http.response.status_code":
            return attribute.value.int_value // 100
    return 0


def attribute_kinds(span: Any) -> Any:
    texts = integers = others = 0
    for attribute in span.attributes:
        kind = attribute.value.WhichOneof("value")
        if kind == "string_value":
            texts += len(attribute.value.string_value)
        elif kind == "int_value":
            integers += attribute.value.int_value
        elif kind is not None:
            others += 1
    return texts, integers, others


def trace_shard(span: Any) -> Any:
    shard = 0
    for byte in span.trace_id[:4]:
        shard = shard * 256 + byte
    return shard % 16, span.parent_span_id == b"", len(span.span_id)


def operation(span: Any) -> Any:
    return span.name.split(" ")[0].lower(), span.name[:4] == "GET "


def keys_by_prefix(span: Any) -> Any:
    counts: dict[str, int] = {}
    for attribute in span.attributes:
        prefix = attribute.key.split(".")[0]
        counts[prefix] = counts.get(prefix, 0) + 1
    return counts
