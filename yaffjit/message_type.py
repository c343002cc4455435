"""One message type of a schema: the public methods, each a thin face of the room that does the work."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic

from yaffjit.columns.message_type import ArrowMethods
from yaffjit.errors import SchemaError
from yaffjit.forks import renew_properties
from yaffjit.introduce import load_jit
from yaffjit.markup import Shown
from yaffjit.typed import AnyView
from yaffjit.universal.message_type import UniversalMethods

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from yaffjit.api import Schema
    from yaffjit.codec.builder import Builder
    from yaffjit.drawing import Drawing
    from yaffjit.plan import MessagePlan


@renew_properties
class MessageType(ArrowMethods, UniversalMethods, Shown, Generic[AnyView]):
    """One message type of a schema: encodes, decodes, verifies, makes views and jitted getters."""

    def __init__(self, schema: Schema, full_name: str) -> None:
        self.schema = schema
        self.full_name = full_name

    @property
    def name(self) -> str:
        """The name without package and outer messages."""
        return self.full_name.rpartition(".")[2]

    @functools.cached_property
    def plan(self) -> MessagePlan:
        """The message laid out under YaFF.

        Raises:
            SchemaError: YaFF can't hold the message as a root; `Schema.unsupported` lists these.
        """
        plan = self.schema._plan
        fault = plan.fault(self.full_name)
        if fault is not None:
            raise SchemaError(f"YaFF can't hold {fault}")
        return plan[self.full_name]

    @functools.cached_property
    def message_class(self) -> type[Message]:
        """The google.protobuf class of this message, from the schema's own pool."""
        return self.schema.definition.message_class(self.full_name)

    @functools.cached_property
    def numba_type(self) -> Any:
        """The numba type of this message's views, for explicit signatures."""
        from yaffjit.jit import message_type

        return message_type(self.plan)

    @functools.cached_property
    def _numba_type_(self) -> Any:
        """The numba type of this message type itself, in functions that make views."""
        load_jit()
        from yaffjit.jit import message_type_type

        return message_type_type(self.plan)

    @functools.cached_property
    def records_type(self) -> Any:
        """The numba type of this message's records, for explicit signatures.

        That of an index, of ``(data, offsets)``, of Arrow's binary columns without nulls, and of slices.
        """
        from yaffjit.jit import records_type

        return records_type(self.plan)

    @functools.cached_property
    def scattered_records_type(self) -> Any:
        """The numba type of records whose messages lie anywhere: of lists of bytes, selections, null rows."""
        from yaffjit.jit import records_type

        return records_type(self.plan, scattered=True)

    def encode(self, message: Any, layout: str = "flat") -> bytes:
        """The YaFF bytes of a message.

        Args:
            message: a protobuf message of this type (of any pool), a view, or a dict of field values.
            layout: how messages of the dynamic layout are written: "flat"; "sparse"; "auto": sparse where
                that saves more than 10% of the buffer; "smallest": sparse where that is smaller.

        Raises:
            EncodeError: names the field path of the value that can't be written.
        """
        from yaffjit.codec.encode import encode

        return encode(self.plan, message, layout)

    def decode(self, buf: Any) -> Message:
        """The protobuf message that a buffer holds.

        Raises:
            DecodeError: the buffer isn't well-formed (`VerifyError`), or a text isn't UTF-8.
        """
        from yaffjit.codec.decode import decode

        return decode(self.plan, buf)

    @functools.cached_property
    def view(self) -> Callable[[Any], AnyView]:
        """``view(buf)``: a zero-copy view of a buffer, which is verified first.

        ``buf``: bytes or any contiguous buffer; what is writable is copied, so that it stays as verified.
        Raises `VerifyError`.
        """
        from yaffjit.view import viewer

        return viewer(self.plan)  # type: ignore[return-value]

    @functools.cached_property
    def view_protobuf(self) -> Callable[[Any], AnyView]:
        """``view_protobuf(data)``: a view of protobuf bytes; nothing is decoded until it's read.

        Opening scans the top level; nested messages are scanned when they're entered, text is checked when
        it's read. Messages that YaFF can't hold have such views too. ``data``: bytes or any contiguous
        buffer; what is writable is copied, so that it stays as scanned. Raises `VerifyError`, which is a
        `DecodeError`, for what is met.
        """
        from yaffjit.view import protobuf_viewer

        return protobuf_viewer(self.schema._plan, self.full_name)  # type: ignore[return-value]

    @functools.cached_property
    def view_unchecked(self) -> Callable[[Any], AnyView]:
        """``view_unchecked(buf)``: a zero-copy view of a buffer that is trusted.

        Requires: the buffer is a well-formed message of this type, and stays unchanged while the view lives.
        """
        from yaffjit.view import viewer_unchecked

        return viewer_unchecked(self.plan)  # type: ignore[return-value]

    def builder(self, buffer: Any = None) -> Builder:
        """A message to be built field by field and written as protobuf bytes; usable in ``@njit``.

        Args:
            buffer: what ``finish()`` writes into, a writable array of uint8; None for a new array each time.
        """
        from yaffjit.codec.builder import Builder

        return Builder(self.schema.definition, self.full_name, buffer)

    def update_protobuf(self, data: Any, changes: Mapping[str, Any]) -> bytes:
        """Protobuf bytes with some fields changed, and all others, unknown ones too, copied as they are.

        Args:
            data: bytes, any contiguous buffer, or a view of this type.
            changes: values as `encode` takes them by path, None to unset: ``{"id": 2, "stats.ctr": None}``.

        Raises:
            DecodeError: protobuf doesn't accept the bytes.
            EncodeError: names the path that isn't there, or whose value can't be written.
        """
        from yaffjit.codec.update import update_protobuf

        return update_protobuf(self.schema._plan, self.full_name, data, changes)

    def verify(self, buf: Any, utf8: bool = True) -> None:
        """Check that no reader can leave the buffer, whatever it reads.

        Args:
            buf: bytes or any contiguous buffer.
            utf8: also check the text of string fields where protobuf does.

        Raises:
            VerifyError: names the message, the field path, the byte position and the two numbers compared.
        """
        from yaffjit.codec.verify import verify

        verify(self.plan, buf, utf8=utf8)

    def verify_protobuf(self, data: Any) -> None:
        """Check that protobuf's parser accepts bytes as a message of this type.

        Messages that YaFF can't hold can be checked too.

        Args:
            data: bytes or any contiguous buffer.

        Raises:
            VerifyError: names the message, the field path, the byte position and the two numbers compared.
        """
        from yaffjit.codec.verify_protobuf import verify_protobuf

        verify_protobuf(self.schema._plan, self.full_name, data)

    def draw(self, buf: Any, representation: str = "yaff") -> Drawing:
        """A picture of a message's bytes: what each is for, with field names and values.

        A notebook shows it, ``.save("message.svg")`` writes it, ``print`` gives the same as text. Bytes that
        aren't well-formed are shown as far as they can be read, with the reason.

        Args:
            buf: bytes or any contiguous buffer; of a long one the beginning is shown.
            representation: how the message is encoded: "yaff" or "protobuf".

        Raises:
            ValueError: the representation isn't one of these.
        """
        data = memoryview(buf).tobytes()
        if representation == "protobuf":
            from yaffjit.view.anatomy import draw_protobuf

            return draw_protobuf(self.schema._plan, self.full_name, data)
        if representation != "yaff":
            raise ValueError(
                f"representation {representation!r} isn't supported; supported: 'yaff', 'protobuf'"
            )
        from yaffjit.codec.anatomy import draw

        return draw(self.plan, data)

    def transcode(
        self, messages: Any, layout: str = "flat", representation: str = "yaff", threads: int | None = None
    ) -> Any:
        """Protobuf messages as records, or records as protobuf messages; no Python object for each.

        Args:
            messages: protobuf messages, as whatever `records` takes: a list of bytes, ``(data, offsets)``, an
                Arrow column, or records of protobuf bytes; for ``representation="protobuf"`` records of YaFF.
            layout: how YaFF messages of the dynamic layout are written: "flat"; "sparse"; "auto": sparse
                where that saves more than 10% of the message; "smallest": sparse where that is smaller.
            representation: what comes out: "yaff" or "protobuf".
            threads: how many work at the same time, None for one a core.

        Returns:
            `Records`, whose bytes are those of `encode`; or `yaffjit.rows.ProtobufPayloads`: ``data``,
            ``offsets``, ``[i]``, ``to_arrow()``, which `yaffjit.records` takes too. These are the bytes that
            protobuf serializes, with maps by ascending key.

        Raises:
            DecodeError: names the row, message, field path, byte position and the two numbers compared.
            EncodeError: names the row and the field path of a value that YaFF can't hold.
        """
        from yaffjit.rows.transcoded import transcode

        return transcode(self.plan, messages, layout, representation, threads)

    def getter(self, path: str) -> Any:
        """A jitted function ``(data: uint8[:], pos: int) -> value`` that reads what a path leads to.

        Paths: "stats.ctr", "tags", "tags[-1]", "items[0].price", 'attrs["size"]', "scores[5]". ``pos`` is
        where a message's buffer (its root offset) starts in ``data``. It is usable in ``@njit``. Numbers
        come out, and copies: str, bytes, arrays of repeated numbers, lists of repeated text.

        Requires: the buffer at ``pos`` is a well-formed message of this type.

        Raises:
            SchemaError: it isn't a path, or it leads to messages or a whole map.
        """
        from yaffjit.jit import getter

        return getter(self.plan, path)

    def presence(self, path: str) -> Any:
        """Like `getter`, but tells whether what the path leads to is there: a field, a key, an index.

        Raises:
            SchemaError: it isn't a path, or it leads to a field without presence.
        """
        from yaffjit.jit import presence

        return presence(self.plan, path)

    def _html_(self) -> str:
        from yaffjit.render import layout_html

        return layout_html(self.plan)

    def __repr__(self) -> str:
        return f"<MessageType {self.full_name}>"

    def __reduce__(self) -> Any:
        return operator.getitem, (self.schema, self.full_name)
