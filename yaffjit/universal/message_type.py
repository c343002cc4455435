"""What message types do with universal documents; loads nothing before it's called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.protobuf.message import Message


class UniversalMethods:
    """Methods of `yaffjit.message_type.MessageType`."""

    def to_universal(self: Any, message: Any, **options: Any) -> bytes:
        """A universal document of a view or message, by protobuf's JSON mapping.

        Args:
            message: a view, or a protobuf message of this type.
            options: ``enums="numbers"`` instead of names; ``json_names=True`` for keys; and those of
                `yaffjit.universal.dumps`.

        Raises:
            EncodeError: a well-known type's content has no JSON form, or it's null, without ``null=True``.
        """
        from yaffjit.universal.bridge import to_universal

        return to_universal(self.schema.definition.pool, self.full_name, message, **options)

    def from_universal(self: Any, buf: Any, **options: Any) -> Message:
        """The message that a universal document has, by protobuf's JSON mapping.

        Args:
            buf: bytes or any contiguous buffer.
            options: ``ignore_unknown=True`` to pass over keys that aren't fields; and those of
                `yaffjit.universal.loads`.

        Raises:
            DecodeError: it isn't a document (`yaffjit.universal.DocumentError`), or not one of this type.
        """
        from yaffjit.universal.bridge import from_universal

        made: Message = from_universal(self.schema.definition.pool, self.message_class(), buf, **options)
        return made
