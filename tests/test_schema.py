"""Loading schemas: every source, every language version, what is refused and in which words."""

from __future__ import annotations

import importlib
import math
import os
import pickle
import pkgutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from vectors import TESTS

import yaffjit as yj
from yaffjit.schema.options import options_file

ADS = """
syntax = "proto3";
package ads;
import "geo.proto";
enum State { option allow_alias = true; OFF = 0; ON = 1; LIVE = 1; }
message Banner {
  uint64 id = 1;
  optional float price = 2;
  State state = 3;
  Geo geo = 4;
  repeated string tags = 5;
  map<string, Banner> related = 6;
  oneof contact { string phone = 7; string mail = 8; }
  message Inner { Banner back = 1; }
  Inner inner = 9;
}
"""
GEO = 'syntax = "proto3"; package ads; message Geo { double lat = 1; double lon = 2; }'


@pytest.fixture
def ads(tmp_path: Path) -> Path:
    (tmp_path / "ads.proto").write_text(ADS)
    (tmp_path / "geo.proto").write_text(GEO)
    return tmp_path / "ads.proto"


def load_text(folder: Path, text: str, **options: Any) -> yj.Schema:
    path = folder / "schema.proto"
    path.write_text(text)
    return yj.load_schema(path, **options)


def test_a_file_and_its_imports(ads: Path) -> None:
    schema = yj.load_schema(ads)
    assert list(schema.messages) == ["ads.Banner", "ads.Banner.Inner", "ads.Geo"]
    assert schema["ads.Banner"].name == "Banner"
    assert "ads.Banner.RelatedEntry" in schema
    assert "ads.Nothing" not in schema
    fields = {f.name: f for f in schema.definition.messages["ads.Banner"].fields}
    assert [fields[name].explicit for name in ("id", "price", "geo", "phone", "tags")] == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert fields["price"].oneof == ""
    assert fields["mail"].oneof == "contact"
    assert fields["related"].is_map and fields["related"].repeated
    assert fields["state"].type_name == "ads.State"
    assert schema.definition.messages["ads.Banner"].oneofs[0].fields == ("phone", "mail")


def test_enums_are_int_enums_with_aliases(ads: Path) -> None:
    state = yj.load_schema(ads).enums["ads.State"]
    assert state.LIVE is state.ON  # type: ignore[attr-defined]
    assert state(1) == 1
    assert pickle.loads(pickle.dumps(state(1))) == 1


def test_include_folders(ads: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "geo.proto").rename(elsewhere / "geo.proto")
    with pytest.raises(yj.SchemaError, match=r"ads\.proto doesn't compile:\ngeo\.proto: File not found"):
        yj.load_schema(ads)
    assert "ads.Geo" in yj.load_schema(ads, include=[elsewhere])
    assert "ads.Geo" in yj.load_schema([ads, elsewhere / "geo.proto"])


def test_descriptor_sets_as_path_and_bytes(ads: Path, tmp_path: Path) -> None:
    data = yj.load_schema(ads).definition.descriptor_set
    (tmp_path / "ads.binpb").write_bytes(data)
    for source in (tmp_path / "ads.binpb", str(tmp_path / "ads.binpb"), data, bytearray(data)):
        schema = yj.load_schema(source)
        assert schema["ads.Banner"].plan.fingerprint == yj.load_schema(ads)["ads.Banner"].plan.fingerprint


def test_a_set_may_be_out_of_order_and_leave_out_well_known_files(tmp_path: Path) -> None:
    from google.protobuf import descriptor_pb2

    text = 'syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "yaff/proto/options.proto"; '
    schema = load_text(tmp_path, text + "message M { google.protobuf.Timestamp at = 1; }")
    files = descriptor_pb2.FileDescriptorSet.FromString(schema.definition.descriptor_set).file
    assert [file.name for file in files][-1] == "schema.proto"
    alone = descriptor_pb2.FileDescriptorSet(file=[files[-1]])
    assert "google.protobuf.Timestamp" in yj.load_schema(alone.SerializeToString())
    backwards = descriptor_pb2.FileDescriptorSet(file=list(files)[::-1])
    assert "M" in yj.load_schema(backwards.SerializeToString())


def test_generated_code(ads: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from google.protobuf import duration_pb2

    source = yj.load_schema(duration_pb2)
    duration = source["google.protobuf.Duration"]
    assert duration.message_class is duration_pb2.Duration
    for other in (
        duration_pb2.Duration,
        duration_pb2.Duration(seconds=1),
        duration_pb2.Duration.DESCRIPTOR,
        duration_pb2.DESCRIPTOR,
        [duration_pb2],
    ):
        assert yj.load_schema(other)["google.protobuf.Duration"].message_class is duration_pb2.Duration


def test_several_versions_in_one_process(tmp_path: Path) -> None:
    old = load_text(tmp_path, 'syntax = "proto3"; message M { int32 a = 1; }')
    new = load_text(tmp_path, 'syntax = "proto3"; message M { int32 a = 1; string b = 2; }')
    assert old["M"].plan.fingerprint != new["M"].plan.fingerprint
    assert old["M"].message_class is not new["M"].message_class
    assert [f.name for f in old["M"].plan.fields] == ["a"]
    assert old["M"].message_class(a=1).SerializeToString() == new["M"].message_class(a=1).SerializeToString()


def test_loading_from_several_threads(ads: Path) -> None:
    fingerprints: list[str] = []
    schema = yj.load_schema(ads)

    def work() -> None:
        fingerprints.append(yj.load_schema(ads)["ads.Banner"].plan.fingerprint)
        fingerprints.append(schema["ads.Banner"].plan.fingerprint)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fingerprints) == 12
    assert len(set(fingerprints)) == 1


EDITION = """
edition = "%s";
package e;
option features.field_presence = IMPLICIT;
enum Closed { option features.enum_type = CLOSED; A = 1; B = 2; }
message M {
  int32 implicit = 1;
  string unchecked = 2 [features.utf8_validation = NONE];
  M delimited = 3 [features.message_encoding = DELIMITED];
  Closed closed = 4 [features.field_presence = EXPLICIT];
  int32 five = 5 [features.field_presence = EXPLICIT, default = 5];
  repeated int32 list = 6 [features.repeated_field_encoding = EXPANDED];
  string text = 7;
  int32 must = 8 [features.field_presence = LEGACY_REQUIRED];
  message Deep { option deprecated = true; string quiet = 1; }
}
"""


@pytest.mark.parametrize("edition", ["2023", "2024"])
def test_editions(tmp_path: Path, edition: str) -> None:
    schema = load_text(tmp_path, EDITION % edition)
    fields = {f.name: f for f in schema.definition.messages["e.M"].fields}
    assert {f.name: f.explicit for f in fields.values()} == {
        "implicit": False,
        "unchecked": False,
        "delimited": True,
        "closed": True,
        "five": True,
        "list": False,
        "text": False,
        "must": True,
    }
    assert fields["delimited"].kind == "message"
    assert (fields["unchecked"].utf8, fields["text"].utf8) == (False, True)
    assert (fields["five"].default, fields["closed"].default) == (5, 1)
    assert fields["must"].required
    assert schema.definition.enums["e.Closed"].closed
    plan = schema["e.M"].plan
    assert (plan.by_name["closed"].default_bits, plan.by_name["closed"].declared_bits) == (0, 1)


def test_proto2(tmp_path: Path) -> None:
    text = r"""
    syntax = "proto2";
    enum Gear { LOW = 3; TOP = -1; }
    message class {
      optional float inf = 1 [default = inf];
      optional double minus = 2 [default = -inf];
      optional float nan = 3 [default = nan];
      optional string quotes = 4 [default = "a\"b\'c\\\0d\n"];
      optional bytes raw = 5 [default = "\xff\0\""];
      optional Gear gear = 6;
      optional Gear top = 7 [default = TOP];
      required int64 import = 8 [default = -9223372036854775808];
      optional bool def = 9 [default = true];
      optional string HasField = 10;
      extensions 100 to 200;
    }
    """
    schema = load_text(tmp_path, text)
    fields = {f.name: f for f in schema.definition.messages["class"].fields}
    assert fields["inf"].default == math.inf
    assert fields["minus"].default == -math.inf
    assert math.isnan(fields["nan"].default)  # type: ignore[arg-type]
    assert fields["quotes"].default == "a\"b'c\\\0d\n"
    assert fields["raw"].default == b'\xff\0"'
    assert (fields["gear"].default, fields["top"].default) == (3, -1)
    assert fields["import"].default == -(2**63)
    assert not fields["quotes"].utf8
    assert schema.definition.enums["Gear"].closed
    plan = schema["class"].plan
    assert plan.by_name["nan"].default_bits == 0x7FC00000
    assert plan.by_name["inf"].default_bits == 0x7F800000
    assert plan.by_name["minus"].default_bits == 0xFFF0000000000000
    assert (plan.by_name["gear"].default_bits, plan.by_name["gear"].declared_bits) == (0, 3)
    assert plan.by_name["top"].default_bits == 0xFFFFFFFF
    assert plan.by_name["import"].default_bits == 2**63


def test_public_imports(tmp_path: Path) -> None:
    (tmp_path / "base.proto").write_text('syntax = "proto3"; package base; message B { int32 v = 1; }')
    (tmp_path / "middle.proto").write_text('syntax = "proto3"; import public "base.proto";')
    schema = load_text(tmp_path, 'syntax = "proto3"; import "middle.proto"; message M { base.B b = 1; }')
    assert schema["M"].plan.child(schema["M"].plan.fields[0]).full_name == "base.B"


def test_options_are_found_without_being_there(tmp_path: Path) -> None:
    text = """
    syntax = "proto3"; import "yaff/proto/options.proto";
    message M { option (yaff.proto.message) = {layout: LAYOUT_FIXED}; 
      int32 a = 7 [(yaff.proto.field) = {id: 1}]; }
    """
    schema = load_text(tmp_path, text)
    assert schema["M"].plan.layout == "fixed"
    assert list(schema.messages) == ["M"]
    assert list(schema.enums) == []
    assert "yaff.proto.Message" in schema


def test_the_shipped_options_are_compiled_from_the_shipped_file(tmp_path: Path) -> None:
    from google.protobuf import descriptor_pb2

    folder = Path(yj.__file__).parent / "schema"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={folder}"]
    output = tmp_path / "options.binpb"
    subprocess.run([*command, f"--descriptor_set_out={output}", "yaff/proto/options.proto"], check=True)
    compiled = descriptor_pb2.FileDescriptorSet.FromString(output.read_bytes()).file[0]
    assert compiled == descriptor_pb2.FileDescriptorProto.FromString(options_file())


def test_python_names_as_enum_values(tmp_path: Path) -> None:
    schema = load_text(tmp_path, 'syntax = "proto3"; enum E { None = 0; mro = 1; _x_ = 2; True = 3; }')
    members = schema.enums["E"].__members__
    assert {name: int(value) for name, value in members.items()} == {
        "None": 0,
        "member_mro": 1,
        "member__x_": 2,
        "True": 3,
    }


def test_a_file_that_does_not_compile(tmp_path: Path) -> None:
    path = tmp_path / "schema.proto"
    with pytest.raises(yj.SchemaError) as caught:
        load_text(tmp_path, 'syntax = "proto3";\nmessage M {\n  int33 a = 1;\n}\n')
    assert str(caught.value) == (f'{path} doesn\'t compile:\n{path}:3:3: "int33" is not defined.')


def test_refused_sources(tmp_path: Path) -> None:
    def refuse(source: Any, text: str, **options: Any) -> None:
        with pytest.raises(yj.SchemaError) as caught:
            yj.load_schema(source, **options)
        assert str(caught.value) == text

    refuse(tmp_path / "no.proto", f"no such file: '{tmp_path / 'no.proto'}'")
    refuse([], "a schema needs at least one source")
    refuse(
        7,
        "can't load a schema from int: give .proto paths, a FileDescriptorSet (path or bytes), a generated "
        "module, a message class or a descriptor",
    )
    refuse(b"", "the source is neither a .proto nor a FileDescriptorSet: it holds no named file")
    (tmp_path / "x.py").write_text("print(1)")
    with pytest.raises(yj.SchemaError, match=r"x\.py is neither a \.proto nor a FileDescriptorSet: "):
        yj.load_schema(tmp_path / "x.py")
    refuse(tmp_path, f"a folder, not a file: '{tmp_path}'")
    (tmp_path / "a.proto").write_text('syntax = "proto3";')
    missing = tmp_path / "missing"
    refuse(tmp_path / "a.proto", f"no such include folder: {missing}", include=[missing])
    with pytest.raises(yj.SchemaError, match=r"^the source is neither a \.proto nor a FileDescriptorSet: "):
        yj.load_schema(b"\xff\xff\xff")


def test_a_set_that_lacks_a_file(tmp_path: Path) -> None:
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto(name="a.proto", dependency=["b.proto"])
    data = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    with pytest.raises(yj.SchemaError) as caught:
        yj.load_schema(data)
    assert str(caught.value) == "a.proto imports b.proto, which the descriptor set doesn't hold"


def test_an_unknown_message(ads: Path) -> None:
    schema = yj.load_schema(ads)
    with pytest.raises(yj.SchemaError) as enum:
        schema["ads.State"]
    assert str(enum.value) == (
        "the schema has no message 'ads.State': it is an enum, as schema.enums has them"
    )
    for name, near in (("Banner", "'ads.Banner'"), ("ads.Baner", "'ads.Banner', 'ads.Geo'")):
        with pytest.raises(yj.SchemaError) as caught:
            schema[name]
        assert str(caught.value).startswith(f"the schema has no message {name!r} (did you mean {near[:12]}")


UNSUPPORTED = """
syntax = "proto2";
import "yaff/proto/options.proto";
message Good { optional int32 a = 1; }
message Group { optional group G = 1 { optional int32 a = 1; } }
message High { optional int32 a = 8191; }
message Hole { option (yaff.proto.message) = {layout: LAYOUT_FLAT}; optional int32 a = 1;
  optional int32 b = 3; }
message FixedHole { option (yaff.proto.message) = {layout: LAYOUT_FIXED}; optional int32 a = 2; }
message FixedOneof { option (yaff.proto.message) = {layout: LAYOUT_FIXED}; oneof o { int32 a = 1; } }
message Unknown { option (yaff.proto.message) = {layout: LAYOUT_UNKNOWN}; }
message Twice { option (yaff.proto.message) = {}; option (yaff.proto.message) = {}; }
message SameId { optional int32 a = 1; optional int32 b = 2 [(yaff.proto.field) = {id: 1}]; }
message EmptyFixed { option (yaff.proto.message) = {layout: LAYOUT_FIXED}; }
message HoldsEmpty { optional EmptyFixed e = 1; }
message ListsEmpty { repeated EmptyFixed e = 1; }
message Above { optional Between b = 1; }
message Between { optional High h = 1; }
"""


def test_what_yaff_cannot_hold_is_listed_and_refused_at_first_use(tmp_path: Path) -> None:
    schema = load_text(tmp_path, UNSUPPORTED)
    assert dict(schema.unsupported) == {
        "Group": "Group: field g is a group",
        "High": "High: field a has id 8191, the highest is 8190",
        "Hole": "Hole: its layout is FLAT but no field has id 2: reserve it with a type, or renumber",
        "FixedHole": "FixedHole: its layout is FIXED but no field has id 1: "
        "reserve it with a type, or renumber",
        "FixedOneof": "FixedOneof: oneof o is in a FIXED message",
        "Unknown": "Unknown: its layout is LAYOUT_UNKNOWN",
        "Twice": "Twice: two (yaff.proto.message) entries have the slice name ''",
        "SameId": "SameId: field a and field b have the same id 1",
        "EmptyFixed": "EmptyFixed as a root message: it is FIXED and has no fields",
        "ListsEmpty": "ListsEmpty: field e is an array of EmptyFixed, which is FIXED and has no fields",
        "Above": "Above, field b: Between, field h: High: field a has id 8191, the highest is 8190",
        "Between": "Between, field h: High: field a has id 8191, the highest is 8190",
    }
    assert schema["High"].message_class(a=1).a == 1
    with pytest.raises(yj.SchemaError) as caught:
        _ = schema["High"].plan
    assert str(caught.value) == "YaFF can't hold High: field a has id 8191, the highest is 8190"
    assert [f.name for f in schema["Good"].plan.fields] == ["a"]


def test_pickles_name_the_same_schema(ads: Path) -> None:
    banner = yj.load_schema(ads)["ads.Banner"]
    copies = [pickle.loads(pickle.dumps(banner)) for _ in range(2)]
    assert copies == [banner, banner]
    assert pickle.loads(pickle.dumps(banner.schema)) is banner.schema
    assert pickle.loads(pickle.dumps(banner.plan)) is banner.plan
    (ads.parent / "empty.proto").write_text('syntax = "proto3"; enum Alone { NONE = 0; }')
    empty = yj.load_schema(ads.parent / "empty.proto")
    assert pickle.loads(pickle.dumps(empty)) is empty


def test_pickles_in_another_process_name_one_schema(ads: Path, tmp_path: Path) -> None:
    banner = yj.load_schema(ads)["ads.Banner"]
    for number in range(2):
        (tmp_path / f"{number}.pickle").write_bytes(pickle.dumps(banner))
    code = (
        "import pickle, sys\n"
        "first, second = [pickle.load(open(name, 'rb')) for name in sys.argv[1:]]\n"
        "print(first is second, first.plan.fingerprint)"
    )
    command = [sys.executable, "-c", code, tmp_path / "0.pickle", tmp_path / "1.pickle"]
    environment = {**os.environ, "PYTHONPATH": str(TESTS.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"True {banner.plan.fingerprint}\n"


def _modules(package: str) -> Iterator[ModuleType]:
    root = importlib.import_module(package)
    for found in pkgutil.walk_packages(root.__path__, f"{package}."):
        if found.name.endswith("_pb2"):
            yield importlib.import_module(found.name)


@pytest.mark.parametrize(
    ("package", "least"),
    [
        ("google.api", 300),
        ("google.rpc", 20),
        ("google.type", 20),
        ("opentelemetry.proto", 40),
        ("onnx", 20),
        ("envoy", 1500),
        ("xds", 100),
        ("udpa", 30),
    ],
)
def test_published_schemas_load_whole(package: str, least: int) -> None:
    modules = list(_modules(package))
    schema = yj.load_schema(modules)
    assert len(schema.messages) >= least
    assert dict(schema.unsupported) == {}
    for name in schema.messages:
        assert len(schema[name].plan.fingerprint) == 32


def chain(length: int, edge: str) -> bytes:
    """A set of ``length`` messages or files, each of which reaches the next; the last one has a fault."""
    from google.protobuf import descriptor_pb2

    files = descriptor_pb2.FileDescriptorSet()
    if edge == "import":
        for i in range(length):
            file = files.file.add(name=f"f{i}.proto", syntax="proto3")
            if i + 1 < length:
                file.dependency.append(f"f{i + 1}.proto")
        return files.SerializeToString()
    file = files.file.add(name="chain.proto", syntax="proto3")
    for i in range(length):
        message = file.message_type.add(name=f"M{i}")
        field = message.field.add(name="next", number=1, label=1)
        if i + 1 < length:
            field.type, field.type_name = field.TYPE_MESSAGE, f".M{i + 1}"
        else:
            field.type, field.number = field.TYPE_INT32, 9000
    return files.SerializeToString()


def test_long_import_chains() -> None:
    assert len(yj.load_schema(chain(3000, "import")).messages) == 0


def test_long_chains_of_messages_are_judged_once() -> None:
    schema = yj.load_schema(chain(3000, "message"))
    faults = schema.unsupported
    assert len(faults) == 3000
    assert faults["M2998"] == "M2998, field next: M2999: field next has id 9000, the highest is 8190"
    assert faults["M0"] == (
        "".join(f"M{i}, field next: " for i in range(8))
        + "..., M2999: field next has id 9000, the highest is 8190"
    )


def test_files_that_import_each_other() -> None:
    from google.protobuf import descriptor_pb2

    files = [
        descriptor_pb2.FileDescriptorProto(name=f"{a}.proto", dependency=[f"{b}.proto"])
        for a, b in ("ab", "bc", "ca")
    ]
    with pytest.raises(yj.SchemaError) as caught:
        yj.load_schema(descriptor_pb2.FileDescriptorSet(file=files).SerializeToString())
    assert str(caught.value) == "files import each other: a.proto -> b.proto -> c.proto -> a.proto"


def test_types_nested_deeper_than_protobuf_reads() -> None:
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto(name="deep.proto", syntax="proto3")
    message = file.message_type.add(name="M")
    for _ in range(90):
        message = message.nested_type.add(name="M")
    data = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    try:
        loaded = yj.load_schema(data)
    except yj.SchemaError:
        return
    assert len(loaded.messages) == 91


def test_a_chain_too_long_for_protobufs_classes() -> None:
    from google.protobuf import descriptor_pb2

    files = descriptor_pb2.FileDescriptorSet.FromString(chain(600, "message"))
    files.file[0].message_type[-1].field[0].number = 1
    message_type = yj.load_schema(files.SerializeToString())["M0"]
    try:
        _ = message_type.message_class
    except yj.SchemaError as error:
        assert str(error) == (
            "M0 reaches a chain of message types that is too long for protobuf's Python classes"
        )


def test_a_folder_with_a_colon(tmp_path: Path) -> None:
    folder = tmp_path / "a:b"
    folder.mkdir()
    (folder / "geo.proto").write_text(GEO)
    (folder / "ads.proto").write_text(ADS)
    assert "ads.Banner" in yj.load_schema(folder / "ads.proto")
    (folder / "geo.proto").write_text("nonsense")
    with pytest.raises(yj.SchemaError) as caught:
        yj.load_schema(folder / "ads.proto")
    assert f"{folder / 'ads.proto'}:4:1: Import" in str(caught.value)


def test_a_link_is_read_among_its_own_neighbours(ads: Path, tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    ads.rename(away / "blob")
    ads.symlink_to(away / "blob")
    assert "ads.Geo" in yj.load_schema(ads)


def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / b"b\xff.proto".decode("utf-8", "surrogateescape")
    path.write_text(GEO)
    with pytest.raises(
        yj.SchemaError, match=r"^protoc takes only paths in UTF-8, which '.*b\\udcff.proto' isn't$"
    ):
        yj.load_schema(path)


def test_odd_names_and_types(tmp_path: Path, ads: Path) -> None:
    with pytest.raises(yj.SchemaError, match=r"^no such file: ''$"):
        yj.load_schema("")
    with pytest.raises(yj.SchemaError, match=r"File name too long"):
        yj.load_schema("x" * 5000 + ".proto")
    with pytest.raises(TypeError, match=r"^include takes folders, not int$"):
        yj.load_schema(ads, include=[5])  # type: ignore[list-item]
    assert "ads.Geo" in yj.load_schema(ads, include=str(tmp_path))
    schema = yj.load_schema(ads)
    with pytest.raises(TypeError, match=r"^message types have names, so they aren't found by int$"):
        schema[5]  # type: ignore[index]
    assert [] not in schema


def test_enum_values_with_names_that_python_keeps_for_itself(tmp_path: Path) -> None:
    values = ("A", "mro", "member_mro", "_x_", "member__x_", "_E__p", "B__q", "__len__", "_")
    text = "".join(f"{name} = {number};" for number, name in enumerate(values))
    members = load_text(tmp_path, f'syntax = "proto2"; enum E {{ {text} }}').enums["E"]
    assert [int(member) for member in members] == list(range(len(values)))
    assert members["member_mro"] == 2
    assert members["member_mro_"] == 1
    assert members["B__q"] == 6
