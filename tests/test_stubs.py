"""`yaffjit stubs`: what mypy makes of a user's program with them, and that views have what they say."""

from __future__ import annotations

import ast
import keyword
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, struct_pb2

import yaffjit as yj
from yaffjit.cli import main
from yaffjit.stubs import stub_text, write_stub

ROOT = Path(__file__).parents[1]
SOURCE = """
syntax = "proto3";
package a.b;
import "google/protobuf/timestamp.proto";
import "google/protobuf/struct.proto";

enum State { STATE_UNKNOWN = 0; STATE_ON = 1; }
message Item {
  enum Kind { NONE = 0; mro = 1; from = 2; }
  message Part { int64 id = 1; }
  Part part = 1; Kind kind = 2; repeated Part parts = 3;
}
message Banner {
  int64 id = 1; double price = 2; string title = 3; bytes raw = 4; bool on = 5; State state = 6;
  Item item = 7; repeated Item items = 8; repeated string tags = 9; repeated float weights = 10;
  map<string, int32> counts = 11; map<int64, Item> by_id = 12; optional uint32 limit = 13;
  oneof contact { string phone = 14; Item.Part part = 15; }
  oneof other { int32 one = 16; int32 two = 17; }
  google.protobuf.Timestamp when = 18; google.protobuf.Struct more = 19;
  int32 from = 20; int32 class = 21; int32 int = 22; int32 str = 23; int32 typing = 24; int32 property = 25;
  string Shadow = 26;
}
message Shadow { int32 x = 1; }
message Empty {}
message Own { int32 HasField = 1; int32 to_message = 2; Own own = 3; }
"""

# "E: code" is an error that mypy must find in the line, "R: type" what it must reveal there.
PROGRAM = """
from __future__ import annotations
from typing import TYPE_CHECKING, Iterator, cast
import yaffjit as yj

if TYPE_CHECKING:
    import ads_yaff as ads

schema = cast("ads.Schema", yj.load_schema("ads.proto"))
Banner = schema["a.b.Banner"]
v = Banner.view(b"")

reveal_type(v.id)  # R: int
reveal_type(v.price)  # R: float
reveal_type(v.title)  # R: str
reveal_type(v.raw)  # R: bytes
reveal_type(v.on)  # R: bool
reveal_type(v.state)  # R: int
reveal_type(v.item.part.id)  # R: int
reveal_type(v.items[0].parts)  # R: Sequence[Item_PartView]
reveal_type(v.tags)  # R: Sequence[str]
reveal_type(v.tags[-1])  # R: str
reveal_type(v.weights)  # R: Sequence[float]
reveal_type(v.counts)  # R: Mapping[str, int]
reveal_type(v.counts.get("x", 0))  # R: int
reveal_type(v.by_id[3])  # R: ItemView
reveal_type(v.WhichOneof("contact"))  # R: Literal['phone'] | Literal['part'] | None
reveal_type(v.WhichOneof("other"))  # R: Literal['one'] | Literal['two'] | None
reveal_type(v.when.ToDatetime())  # R: datetime
reveal_type(v.more["x"])  # R: Any
reveal_type(v.int)  # R: int
reveal_type(v.HasField("limit"))  # R: bool
reveal_type(v.HasField("contact"))  # R: bool
reveal_type(v.to_message())  # R: Any
reveal_type(getattr(v, "from"))  # R: Any
reveal_type(schema.enums["a.b.State"].STATE_ON)  # R: Literal[State.STATE_ON]?
reveal_type(Banner.view_protobuf(b"").item)  # R: ItemView
reveal_type(schema["a.b.Item.Part"].view(b""))  # R: Item_PartView
reveal_type(schema["google.protobuf.Timestamp"].view(b"").seconds)  # R: int
reveal_type(schema["a.b.Shadow"].view(b"").x)  # R: int

recs = yj.records(Banner, [])
reveal_type(recs[0])  # R: BannerView
reveal_type(recs[1:].take([0]).head()[0].price)  # R: float
reveal_type(yj.open_index("x", Banner)[0])  # R: BannerView
reveal_type(next(iter(yj.open_packed("x", Banner))))  # R: BannerView
reveal_type(yj.open_index("x")[0])  # R: Any
reveal_type(yj.load_schema("ads.proto")["a.b.Banner"].view(b""))  # R: Any


def score(banner: ads.Banner) -> float:
    if banner.HasField("item") and banner.WhichOneof("contact") == "phone":
        return banner.price * len(banner.tags)
    return len(banner.prise)  # E: attr-defined


class Message:
    '''As generated code for type checkers declares a message: its attributes can be set.'''
    id: int

    def HasField(self, field_name: str) -> bool: ...
    def WhichOneof(self, oneof_group: str) -> None: ...
    def ListFields(self) -> list[tuple[object, object]]: ...
    def SerializeToString(self) -> bytes: ...
    def ByteSize(self) -> int: ...
    def IsInitialized(self) -> bool: ...


def total(parts: Iterator[ads.Item_Part]) -> int:
    return sum(part.id for part in parts)


def selected(banners: yj.Records[ads.Banner]) -> list[float]:
    return [score(banner) for banner in banners]


score(v)
selected(recs)
total(iter([Message()]))
total(iter(v.items[0].parts))
total(iter(v.items))  # E: arg-type
score(v.item)  # E: arg-type
v.HasField("id")  # E: arg-type
v.HasField("nothing")  # E: arg-type
v.WhichOneof("item")  # E: call-overload
v.price = 3.0  # E: misc
v.title + 1  # E: operator
v.tags.append("x")  # E: attr-defined
v.item.prt  # E: attr-defined
schema["a.b.Baner"]  # E: call-overload
schema.enums["a.b.Stat"]  # E: call-overload
schema["a.b.Empty"].view(b"").HasField("x")  # E: arg-type
limit: str = v.limit  # E: assignment
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stubs")
    (folder / "ads.proto").write_text(SOURCE)
    assert main(["stubs", str(folder / "ads.proto"), "-o", str(folder / "typings")]) == 0
    return folder


@pytest.mark.slow
def test_mypy_knows_the_fields(folder: Path) -> None:
    (folder / "user.py").write_text(PROGRAM)
    environment = {**os.environ, "MYPYPATH": os.pathsep.join([str(folder / "typings"), str(ROOT)])}
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary"]
    command += ["--config-file=", "--cache-dir", str(folder / "cache"), "--disable-error-code=empty-body"]
    done = subprocess.run(
        [*command, "user.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stderr == ""
    wanted, found = [], []
    for number, line in enumerate(PROGRAM.splitlines(), 1):
        _, is_wanted, what = line.partition("  # ")
        if is_wanted:
            wanted.append((number, what))
    for line in done.stdout.splitlines():
        number = int(line.split(":")[1])
        if (revealed := re.search(r'Revealed type is "(.*)"', line)) is not None:
            found.append((number, f"R: {short(revealed[1])}"))
        elif (error := re.search(r": error: .*\[([\w-]+)\]$", line)) is not None:
            found.append((number, f"E: {error[1]}"))
    assert found == wanted, done.stdout


def short(type: str) -> str:
    """A type's text as both old and new mypy have it, without modules."""
    found = re.sub(r"\b(?:\w+\.)+(?=[A-Z][a-z]\w*|int|str|float|bool|bytes|datetime)", "", type)
    found = re.sub(r"Literal\[('\w+'(?:, '\w+')+)\]", lambda many: literals(many[1]), found)
    union = re.fullmatch(r"Union\[(.*)\]", found)
    return union[1].replace("], ", "] | ") if union else found


def literals(many: str) -> str:
    return " | ".join(f"Literal[{one}]" for one in many.split(", "))


def classes(text: str) -> dict[str, set[str]]:
    """The names that each class of a stub declares."""
    return {
        found.name: {item.name for item in found.body if isinstance(item, ast.FunctionDef)}
        for found in ast.parse(text).body
        if isinstance(found, ast.ClassDef)
    }


def test_views_have_what_stubs_say(folder: Path) -> None:
    schema = yj.load_schema(folder / "ads.proto")
    found = classes((folder / "typings" / "ads_yaff.pyi").read_text())
    names = {"a.b.Banner": "Banner", "a.b.Item.Part": "Item_Part", "a.b.Shadow": "Shadow_", "a.b.Own": "Own"}
    names |= {
        "google.protobuf.Timestamp": "google_protobuf_Timestamp",
        "google.protobuf.Struct": "google_protobuf_Struct",
    }
    for full_name, name in names.items():
        message_type = schema[full_name]
        view = message_type.view_protobuf(b"")
        fields = {f.name for f in message_type.message_class.DESCRIPTOR.fields}
        declared = found[name] | found[f"{name}View"]
        assert all(hasattr(view, attribute) for attribute in declared)
        unreadable = {field for field in fields if keyword.iskeyword(field) or field == "typing"}
        assert fields - declared == unreadable
    assert (
        "    # from: builtins.int, by getattr(view, 'from')\n"
        in (folder / "typings" / "ads_yaff.pyi").read_text()
    )


def test_enums_are_those_of_the_schema(folder: Path) -> None:
    schema = yj.load_schema(folder / "ads.proto")
    text = (folder / "typings" / "ads_yaff.pyi").read_text()
    kind = schema.enums["a.b.Item.Kind"]
    assert list(kind.__members__) == ["NONE", "member_mro", "from"]
    block = text.partition("class Item_Kind(enum.IntEnum):\n")[2]
    assert block.startswith(
        "    NONE = 0\n    member_mro = 1\n    # from = 2: a keyword; read it by its number\n"
    )


def test_files_and_modules(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = yj.load_schema(folder / "ads.proto")
    assert write_stub(schema.definition, folder / "more", "mine") == folder / "more" / "mine.pyi"
    assert "import mine\n" in (folder / "more" / "mine.pyi").read_text()
    with pytest.raises(yj.SchemaError, match="a module can't be named 'my-module'"):
        write_stub(schema.definition, folder, "my-module")
    Shadow = schema["a.b.Shadow"]
    yj.build_index(folder / "shadows.arrow", Shadow, [Shadow.message_class(x=1)])
    capsys.readouterr()
    assert main(["stubs", str(folder / "shadows.arrow"), "-o", str(folder / "more")]) == 0
    assert capsys.readouterr().out.startswith(str(folder / "more" / "ads_yaff.pyi"))
    assert (folder / "more" / "ads_yaff.pyi").read_text() == stub_text(schema.definition, "ads_yaff")


@pytest.mark.parametrize("source", [descriptor_pb2, struct_pb2])
def test_protobufs_own_schemas(source: Any) -> None:
    text = stub_text(yj.load_schema(source).definition, "m")
    assert {"Schema", "Enums", "_Message"} < classes(text).keys()


def test_a_schema_may_be_empty() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="e.proto", syntax="proto3")
    empty = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    assert classes(stub_text(yj.load_schema(empty).definition, "m"))["Schema"] >= {"enums", "messages"}
