"""Verdicts on changes of a schema, tried out: data of each schema is read by the other, in both formats."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from evolution_cases import CASES, NOT, SAFE, SOME, Case
from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

import yaffjit as yj

# What the messages of two schemas don't show: data from before a reserve, another root, invalid text.
UNSEEN = ("reserved_number_used", "enum_value_reused", "reserve_dropped", "its_type_is_ignored", "utf8")
LAYOUTS = ("flat", "sparse")


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> tuple[yj.Schema, yj.Schema]:
    """All old schemas and all new ones, each case in a package of its own."""
    folder = tmp_path_factory.mktemp("evolve")
    loaded = []
    for side in (0, 1):
        paths = []
        for case in CASES:
            path = folder / str(side) / f"{package_of(case)}.proto"
            path.parent.mkdir(exist_ok=True)
            path.write_text(
                f'syntax = "{case.syntax[side]}"; package {package_of(case)};\n'
                f'import "yaff/proto/options.proto";\n{(case.old, case.new)[side]}\n'
            )
            paths.append(path)
        loaded.append(yj.load_schema(paths))
    return loaded[0], loaded[1]


def package_of(case: Case) -> str:
    return "c_" + re.sub(r"\W+", "_", case.name)


def compared(schemas: tuple[yj.Schema, yj.Schema], case: Case) -> yj.SchemaComparison:
    return yj.compare_schemas(*schemas, message=f"{package_of(case)}.M")


@pytest.mark.parametrize("case", CASES, ids=package_of)
def test_verdicts(case: Case, schemas: tuple[yj.Schema, yj.Schema]) -> None:
    changes = compared(schemas, case).changes
    found = {change.kind: (change.yaff.grade, change.protobuf.grade) for change in changes}
    assert found == case.kinds, [(change.where, change.what) for change in changes]
    assert len({(change.where, change.kind) for change in changes}) == len(changes)
    json = {change.json.grade for change in changes if change.json is not None}
    assert json == ({case.json} if case.json else set())
    for change in changes:
        for verdict in (change.yaff, change.protobuf, change.json):
            if verdict is not None:
                assert re.fullmatch(r"[A-Z].*[^.]\.", verdict.rule), verdict
                assert verdict.advice == "" or re.fullmatch(r"[A-Z].*[^.]\.", verdict.advice), verdict


@pytest.mark.parametrize("case", [case for case in CASES if case.name not in UNSEEN], ids=package_of)
@pytest.mark.parametrize("format", ["yaff", "protobuf"])
def test_verdicts_are_what_happens(case: Case, format: str, schemas: tuple[yj.Schema, yj.Schema]) -> None:
    verdict = compared(schemas, case).grade([format])
    outcomes = list(tried(case, format, schemas))
    if verdict == SAFE:
        assert set(outcomes) == {"equal"}, outcomes
    elif verdict == SOME:
        assert "equal" in outcomes and set(outcomes) != {"equal"}, outcomes
    else:
        assert verdict == NOT
        assert set(outcomes) != {"equal"}, outcomes


def tried(case: Case, format: str, schemas: tuple[yj.Schema, yj.Schema]) -> Any:
    """What becomes of each message: "equal", or what is wrong."""
    types = [schema[f"{package_of(case)}.M"] for schema in schemas]
    back = {new: old for old, new in case.renamed.items()}
    for writer, reader, texts, names in (
        (*types, case.written, case.renamed),
        (*reversed(types), case.rewritten, back),
    ):
        for text in texts:
            message = text_format.Parse(text, writer.message_class())
            for layout in LAYOUTS if format == "yaff" else ("",):
                yield outcome(writer, reader, message, layout, names)


def outcome(
    writer: yj.MessageType, reader: yj.MessageType, message: Message, layout: str, names: dict[str, str]
) -> str:
    try:
        if layout:
            buf = writer.encode(message, layout=layout)
            found, decoded = reader.view(buf), reader.decode(buf)
        else:
            decoded = found = reader.message_class()
            decoded.MergeFromString(message.SerializePartialToString())
            if not decoded.IsInitialized():
                raise DecodeError("a required field isn't set")
        differences = difference(message, found, decoded, names)
    except (yj.YaffjitError, DecodeError, UnicodeDecodeError) as error:
        return f"refused: {error}"
    return differences or "equal"


def difference(written: Any, found: Any, decoded: Any, names: dict[str, str]) -> str:
    """The first field that doesn't read as it was written, or that nobody wrote; "" if there is none.

    `found` is read as a view, `decoded` as a message.
    """
    partners = {names.get(f.name, f.name): f for f in written.DESCRIPTOR.fields}
    for f in decoded.DESCRIPTOR.fields:
        partner = partners.get(f.name)
        if partner is not None and (f.GetOptions().deprecated or partner.GetOptions().deprecated):
            continue
        view_only = f.enum_type is not None and f.enum_type.is_closed and found is not decoded
        for reading in (found,) if view_only else (found, decoded):
            if partner is None:
                if f.name in [listed.name for listed, _ in reading.ListFields()]:
                    return f"{f.name} was never written"
                continue
            values = getattr(written, partner.name), getattr(reading, f.name)
            unset = f.message_type is not None and f.has_presence and not reading.HasField(f.name)
            if not (unset or same(*values)) or renumbered(partner, f, values[0]):
                return f"{f.name}: {values[0]!r} reads as {values[1]!r}"
            if f.has_presence:
                was_set = written.HasField(partner.name) if partner.has_presence else bool(values[0])
                if was_set != reading.HasField(f.name):
                    return f"{f.name}: HasField {was_set} reads as {reading.HasField(f.name)}"
    return ""


def same(written: Any, found: Any) -> bool:
    """Whether two values are equal in what both schemas have."""
    if hasattr(written, "ListFields") and hasattr(found, "ListFields"):
        return not difference(written, found, found, {})
    if is_single(written) != is_single(found):  # one element is what a singular field holds
        single, several = (written, found) if is_single(written) else (found, written)
        return list(map(plain, several)) == ([plain(single)] if single else [])
    if is_single(written):
        return bool(plain(written) == plain(found))
    if hasattr(written, "items") or hasattr(found, "items"):
        ours, theirs = pairs_of(written), pairs_of(found)
        keys = [key for key, _ in ours] == [key for key, _ in theirs]
        return keys and all(same(a, b) for (_, a), (_, b) in zip(ours, theirs, strict=True))
    return len(written) == len(found) and all(map(same, written, found))


def renumbered(partner: FieldDescriptor, f: FieldDescriptor, value: Any) -> bool:
    """Whether the name of an enum's value has another number for the reader."""
    if partner.enum_type is None or f.enum_type is None or value not in partner.enum_type.values_by_number:
        return False
    name = partner.enum_type.values_by_number[value].name
    return f.enum_type.values_by_name[name].number != value if name in f.enum_type.values_by_name else False


def plain(value: Any) -> Any:
    """A value such that text and messages equal their bytes."""
    if isinstance(value, str):
        return value.encode()
    if hasattr(value, "SerializeToString"):
        return value.SerializeToString()
    return value


def is_single(value: Any) -> bool:
    return isinstance(value, (str, bytes, int, float)) or hasattr(value, "ListFields")


def pairs_of(held: Any) -> list[tuple[Any, Any]]:
    """Those of a map, or of a list of messages that have a key and a value."""
    if hasattr(held, "items"):
        return [(key, held[key]) for key in sorted(held)]
    return sorted(((pair.key, pair.value) for pair in held), key=lambda pair: pair[0])


def test_text_is_checked_by_proto3_only(schemas: tuple[yj.Schema, yj.Schema]) -> None:
    old, new = (schema["c_utf8.M"] for schema in schemas)
    assert compared(schemas, next(case for case in CASES if case.name == "utf8")).grade() == SOME
    buf = schemas[1]["c_string_bytes.M"].encode({"f": b"\xff"})  # bytes and text have one layout
    old.verify(buf)
    with pytest.raises(yj.VerifyError):
        new.verify(buf)
    data = b"\x0a\x01\xff"
    old.message_class.FromString(data)
    with pytest.raises(DecodeError):
        new.message_class.FromString(data)


def test_a_schema_is_what_it_is_loaded_from(schemas: tuple[yj.Schema, yj.Schema], tmp_path: Path) -> None:
    old, new = schemas
    name = "c_added.M"
    expected = yj.compare_schemas(old, new, message=name)
    sets = []
    for side, schema in enumerate(schemas):
        sets.append(tmp_path / f"{side}.binpb")
        sets[-1].write_bytes(schema.definition.descriptor_set)
    assert yj.compare_schemas(*sets, message=name) == expected
    yj.build_index(tmp_path / "i.arrow", old[name], [old[name].message_class(a=5)])
    yj.build_index(tmp_path / "d", old[name], [old[name].message_class(a=5)])
    for index in (tmp_path / "i.arrow", tmp_path / "d", yj.open_index(tmp_path / "i.arrow")):
        assert yj.compare_schemas(index, new) == expected


def loaded(folder: Path, files: dict[str, str], slice: str | None = None) -> yj.Schema:
    folder.mkdir()
    for name, text in files.items():
        imports = 'import "yaff/proto/options.proto";'
        (folder / name).write_text(f'syntax = "proto3"; package t; {imports} {text}')
    return yj.load_schema([folder / name for name in files], include=[folder], slice=slice)


def found(comparison: yj.SchemaComparison) -> list[tuple[str, str, str, str]]:
    return [
        (change.where, change.kind, change.yaff.grade, change.protobuf.grade) for change in comparison.changes
    ]


def test_types_come_and_go_and_move(tmp_path: Path) -> None:
    parts = "message Gone { Part part = 1; } message Part { int32 y = 1; }"
    old = loaded(
        tmp_path / "old",
        {
            "a.proto": f"message Root {{ int32 x = 1; }} {parts}",
            "b.proto": "message Moved { int32 z = 1; } enum Old { NONE = 0; SOME = 1; }",
        },
    )
    more = "message Moved { int32 z = 1; } message More { Root r = 5; }"
    new = loaded(
        tmp_path / "new",
        {
            "a.proto": f"message Root {{ int32 x = 1; }} {more}",
            "b.proto": "enum New { NONE = 0; SOME = 1; }",
        },
    )
    comparison = yj.compare_schemas(old, new)
    assert sorted(found(comparison)) == [
        ("t.Gone", "message-removed", SOME, SOME),  # nothing has it as a part, so there may be data of it
        ("t.More", "message-added", SAFE, SAFE),
        ("t.Moved", "message-moved", SAFE, SAFE),
        ("t.Old", "enum-renamed", SAFE, SAFE),
        ("t.Part", "message-removed", SAFE, SAFE),
    ]
    assert comparison.grade() == SOME
    assert (comparison.count("safe"), comparison.count("conditional")) == (4, 1)
    assert "moved from b.proto to a.proto" in [change.what for change in comparison.changes]
    assert found(yj.compare_schemas(old, new, message="t.Root")) == []


def test_a_file_of_another_name_is_no_move(tmp_path: Path) -> None:
    text = "message M { int32 x = 1; }"
    old = loaded(tmp_path / "old", {"old.proto": text})
    new = loaded(tmp_path / "new", {"new.proto": text})
    assert found(yj.compare_schemas(old, new)) == []


def test_a_slice_is_compared_by_itself(tmp_path: Path) -> None:
    option = 'option (yaff.proto.message) = { slice_name: "s" };'
    field = "int32 a = 1 [(yaff.proto.field) = { id: 1 }]; int32 b = 2 [(yaff.proto.field) = { id: 2 %s }];"
    sides = []
    for name, slice_name in (("old", ""), ("new", 'slice_name: "other"')):
        text = f"message M {{ {option} {field % slice_name} }}"
        sides.append(loaded(tmp_path / name, {"m.proto": text}))
    assert found(yj.compare_schemas(*sides)) == []
    assert found(yj.compare_schemas(*sides, slice="s")) == [("t.M.b", "field-left", SAFE, SAFE)]


def test_what_yaff_never_held_has_no_yaff_verdict(tmp_path: Path) -> None:
    """No such bytes exist, so whatever changes is safe for them."""
    old = loaded(tmp_path / "old", {"m.proto": "message M { int32 far = 9000; int32 a = 1; }"})
    new = loaded(tmp_path / "new", {"m.proto": "message M { int32 far = 9000; int64 a = 1; }"})
    assert found(yj.compare_schemas(old, new)) == [("t.M.a", "field-type", SAFE, SOME)]
    assert found(yj.compare_schemas(new, old)) == [("t.M.a", "field-type", SAFE, SOME)]


def test_to_dict_is_plain(schemas: tuple[yj.Schema, yj.Schema]) -> None:
    case = next(case for case in CASES if case.name == "renamed")
    made = compared(schemas, case).to_dict()
    assert made["grade"] == SAFE
    (change,) = made["changes"]
    assert (change["kind"], change["json"]["grade"]) == ("field-renamed", NOT)
    assert compared(schemas, case).grade(["json"]) == NOT
