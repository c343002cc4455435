"""What views of protobuf's well-known types have beside their fields; `yaffjit.view.wellknown` adds it."""

from __future__ import annotations

_TIMES = (
    "    def ToJsonString(self) -> builtins.str: ...",
    "    def ToNanoseconds(self) -> builtins.int: ...",
    "    def ToMicroseconds(self) -> builtins.int: ...",
    "    def ToMilliseconds(self) -> builtins.int: ...",
    "    def ToSeconds(self) -> builtins.int: ...",
)

# Lines of the view's class by the full name of the message.
HELPERS = {
    "google.protobuf.Timestamp": (
        "    def ToDatetime(self, tzinfo: datetime.tzinfo | None = None) -> datetime.datetime: ...",
        *_TIMES,
    ),
    "google.protobuf.Duration": ("    def ToTimedelta(self) -> datetime.timedelta: ...", *_TIMES),
    "google.protobuf.Any": (
        "    def Is(self, descriptor: typing.Any) -> builtins.bool: ...",
        "    def TypeName(self) -> builtins.str: ...",
        "    def Unpack(self, msg: typing.Any) -> builtins.bool: ...",
    ),
    "google.protobuf.FieldMask": ("    def ToJsonString(self) -> builtins.str: ...",),
    "google.protobuf.Struct": (
        "    def __getitem__(self, key: builtins.str) -> typing.Any: ...",
        "    def __iter__(self) -> collections.abc.Iterator[builtins.str]: ...",
        "    def __len__(self) -> builtins.int: ...",
        "    def keys(self) -> collections.abc.KeysView[builtins.str]: ...",
        "    def values(self) -> collections.abc.ValuesView[typing.Any]: ...",
        "    def items(self) -> collections.abc.ItemsView[builtins.str, typing.Any]: ...",
    ),
    "google.protobuf.ListValue": (
        "    def __getitem__(self, index: builtins.int) -> typing.Any: ...",
        "    def __len__(self) -> builtins.int: ...",
        "    def items(self) -> builtins.list[typing.Any]: ...",
    ),
}
