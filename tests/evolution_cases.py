"""Each kind of change of a schema: the verdicts that must be given, and messages that show them."""

from __future__ import annotations

from dataclasses import dataclass, field

SAFE, SOME, NOT = "safe", "conditional", "unsafe"


@dataclass(frozen=True)
class Case:
    """A change of message M.

    Attributes:
        kinds: of all changes that are found, each with its two verdicts: YaFF's and protobuf's.
        old, new: what the files say after the package.
        written: messages of the old schema, in text format.
        rewritten: messages of the new one.
        renamed: names of fields in the new schema by those in the old one.
        json: JSON's verdict, where one of the changes has one.
    """

    name: str
    kinds: dict[str, tuple[str, str]]
    old: str
    new: str
    written: tuple[str, ...]
    rewritten: tuple[str, ...]
    renamed: dict[str, str] = field(default_factory=dict)
    json: str = ""
    syntax: tuple[str, str] = ("proto3", "proto3")


def layout(name: str, more: str = "") -> str:
    return f"option (yaff.proto.message) = {{ layout: LAYOUT_{name} {more} }};"


def typed(old: str, new: str, yaff: str, wire: str, *values: tuple[str, str], **options: object) -> Case:
    """Field f of one type, then of another; values as (old text, new text)."""
    more = str(options.pop("more", ""))
    texts = [tuple(f"f: {text} after: 7" if text else "after: 7" for text in pair) for pair in values]
    return Case(
        f"{old}-{new}",
        {"field-type": (yaff, wire)},
        f"message M {{ {old} f = 1; int32 after = 2; }} {more}",
        f"message M {{ {new} f = 1; int32 after = 2; }} {more}",
        tuple(text for text, _ in texts),
        tuple(text for _, text in texts),
        **options,  # type: ignore[arg-type]
    )


P2 = ("proto2", "proto2")
PART = "message S { int32 a = 1; }"
ENUM = "enum E { ZERO = 0; ONE = 1; }"
TYPES = (
    typed("int32", "int64", NOT, SOME, ("5", "5"), ("-1", "1099511627776")),
    typed("int32", "uint32", SOME, SOME, ("5", "5"), ("-1", "4294967295")),
    typed("int32", "sint32", SAFE, NOT, ("5", "5"), ("-3", "-3")),
    typed("sint32", "uint32", SOME, NOT, ("5", "5"), ("-3", "4294967295")),
    typed("int32", "fixed32", SOME, NOT, ("5", "5"), ("-3", "4294967295")),
    typed("fixed32", "sfixed32", SOME, SOME, ("5", "5"), ("4294967295", "-3")),
    typed("fixed64", "sfixed64", SOME, SOME, ("5", "5"), ("18446744073709551615", "-3")),
    typed("int64", "uint64", SOME, SOME, ("5", "5"), ("-1", "18446744073709551615")),
    typed("sint64", "int64", SAFE, NOT, ("5", "5"), ("-1", "-1")),
    typed("sint32", "sint64", NOT, SOME, ("5", "5"), ("-1", "1099511627776")),
    typed("int32", "bool", NOT, SOME, ("1", "true"), ("5", "true")),
    typed("int32", "E", SAFE, SAFE, ("1", "ONE"), ("77", "77"), more=ENUM),
    typed("uint32", "E", SOME, SOME, ("1", "ONE"), ("4294967295", "-1"), more=ENUM),
    typed("int64", "E", NOT, SOME, ("1", "ONE"), ("1099511627776", "1"), more=ENUM),
    typed("float", "double", NOT, NOT, ("1.5", "1.5")),
    typed("float", "int32", NOT, NOT, ("1.5", "3")),
    typed("float", "fixed32", NOT, NOT, ("1.5", "3")),
    typed("double", "fixed64", NOT, NOT, ("1.5", "3")),
    typed("bool", "uint32", NOT, SOME, ("true", "1"), ("true", "2")),
    typed("string", "bytes", SOME, SOME, ('"x"', '"x"'), ('"y"', '"\\xff"')),
    typed("string", "int32", NOT, NOT, ('"x"', "3")),
    typed("bytes", "S", NOT, SOME, ('"\\x08\\x05"', "{a: 5}"), ('"x"', ""), more=PART),
    typed("string", "S", NOT, NOT, ('"\\xce\\xb1"', "{a: 5}"), more=PART),
    typed("int32", "S", NOT, NOT, ("5", "{a: 5}"), more=PART),
    typed("repeated int32", "repeated int64", NOT, SOME, ("[5, 6]", "[5, 6]"), ("[-1]", "[1099511627776]")),
    typed("repeated int32", "repeated uint32", SOME, SOME, ("[5, 6]", "[5, 6]"), ("[-1]", "[4294967295]")),
    typed("repeated string", "repeated bytes", SOME, SOME, ('["x"]', '["x"]'), ('["y"]', '["\\xff"]')),
    typed("repeated float", "repeated fixed32", NOT, NOT, ("[1.5]", "[3]")),
)


def body(fields: str, more: str = "") -> str:
    return f"message M {{ {fields} }} {more}"


def one(kind: str, yaff: str, wire: str) -> dict[str, tuple[str, str]]:
    return {kind: (yaff, wire)}


FIELDS = (
    Case(
        "added",
        one("field-added", SAFE, SAFE),
        body("int32 a = 1;"),
        body("int32 a = 1; string b = 2; repeated int32 c = 3; M d = 4;"),
        ("a: 5", ""),
        ('a: 5 b: "x" c: [1, 2] d { a: 3 }', ""),
    ),
    Case(
        "added_below_a_gap",
        one("field-added", SAFE, SAFE),
        body("int32 a = 1;"),
        body("int32 a = 1; string b = 9;"),
        ("a: 5", ""),
        ('a: 5 b: "x"', ""),
    ),
    Case(
        "removed",
        one("field-removed", SAFE, SAFE),
        body("int32 a = 1; int64 b = 2; string c = 3; double d = 4;"),
        body('reserved 2; reserved "b"; int32 a = 1; string c = 3; double d = 4;'),
        ('a: 5 b: 6 c: "x" d: 1.5', "d: 1.5"),
        ('a: 5 c: "x" d: 1.5', "d: 1.5"),
    ),
    Case(
        "removed_with_a_typed_reserve",
        one("field-removed", SAFE, SAFE),
        body(f"{layout('FLAT')} int32 a = 1; int64 b = 2; string c = 3;"),
        body(
            f"{layout('FLAT', 'reserved_fields { id: 2 type: TYPE_INT64 }')} reserved 2; reserved 'b';"
            "int32 a = 1; string c = 3;"
        ),
        ('a: 5 b: 6 c: "x"', 'c: "x"'),
        ('a: 5 c: "x"', 'c: "x"'),
    ),
    Case(
        "removed_with_a_reserve_of_another_type",
        {"field-removed": (SAFE, SAFE), "message-slot": (NOT, SAFE)},
        body("int32 a = 1; int64 b = 2; string c = 3;"),
        body(f"{layout('DYNAMIC', 'reserved_fields { id: 2 type: TYPE_BOOL }')} int32 a = 1; string c = 3;"),
        ('a: 5 b: 6 c: "x"',),
        ('a: 5 c: "x"',),
    ),
    Case(
        "number",
        one("field-number", NOT, NOT),
        body("int32 a = 1; int32 b = 2;"),
        body("int32 a = 1; int32 b = 3;"),
        ("a: 5 b: 6",),
        ("a: 5 b: 6",),
    ),
    Case(
        "number_with_the_same_id",
        one("field-number", SAFE, NOT),
        body("int32 a = 1; int32 b = 2;"),
        body("int32 a = 1; int32 b = 3 [(yaff.proto.field) = { id: 2 }];"),
        ("a: 5 b: 6",),
        ("a: 5 b: 6",),
    ),
    Case(
        "numbers_swapped",
        one("field-number", NOT, NOT),
        body("int32 a = 1; int32 b = 2;"),
        body("int32 a = 2; int32 b = 1;"),
        ("a: 5 b: 6",),
        ("a: 5 b: 6",),
    ),
    Case(
        "id",
        one("field-id", NOT, SAFE),
        body("int32 a = 1; int32 b = 2;"),
        body("int32 a = 1 [(yaff.proto.field) = { id: 2 }]; int32 b = 2 [(yaff.proto.field) = { id: 1 }];"),
        ("a: 5 b: 6",),
        ("a: 5 b: 6",),
    ),
    Case(
        "number_reused",
        {"number-reused": (NOT, NOT), "field-number": (NOT, NOT)},
        body("int32 a = 1; int32 b = 2;"),
        body("int32 a = 1; int32 c = 2; int32 b = 3;"),
        ("a: 5 b: 6",),
        ("a: 5 b: 6 c: 7",),
    ),
    Case(
        "reserved_number_used",
        one("number-reused", NOT, NOT),
        body("int32 a = 1; reserved 2;"),
        body("int32 a = 1; int32 c = 2;"),
        (),
        (),
    ),
    Case(
        "renamed",
        one("field-renamed", SAFE, SAFE),
        body("int32 a = 1; string b = 2;"),
        body("int32 a = 1; string c = 2;"),
        ('a: 5 b: "x"',),
        ('a: 5 c: "x"',),
        renamed={"b": "c"},
        json=NOT,
    ),
    Case(
        "renamed_with_its_json_name",
        one("field-renamed", SAFE, SAFE),
        body("int32 a = 1; string b = 2;"),
        body('int32 a = 1; string c = 2 [json_name = "b"];'),
        ('a: 5 b: "x"',),
        ('a: 5 c: "x"',),
        renamed={"b": "c"},
    ),
    Case(
        "json_name",
        one("field-json-name", SAFE, SAFE),
        body("int32 a = 1;"),
        body('int32 a = 1 [json_name = "other"];'),
        ("a: 5",),
        ("a: 5",),
        json=NOT,
    ),
    Case(
        "repeated",
        one("field-label", NOT, NOT),
        body("int32 a = 1;"),
        body("repeated int32 a = 1;"),
        ("a: 5",),
        ("a: [5]", "a: [5, 6]"),
    ),
    Case(
        "repeated_text",
        one("field-label", NOT, SOME),
        body("string a = 1;"),
        body("repeated string a = 1;"),
        ('a: "x"',),
        ('a: "x"', 'a: ["x", "y"]'),
    ),
    Case(
        "packed",
        one("field-packed", SAFE, SAFE),
        body("repeated int32 a = 1; repeated double b = 2;"),
        body("repeated int32 a = 1 [packed = false]; repeated double b = 2 [packed = false];"),
        ("a: [1, -2, 3] b: [1.5, 2.5]",),
        ("a: [1, -2, 3] b: [1.5, 2.5]",),
    ),
    Case(
        "presence",
        one("field-presence", SOME, SAFE),
        body("int32 a = 1; M b = 2;"),
        body("optional int32 a = 1; M b = 2;"),
        ("a: 5", "b {}"),
        ("a: 5", "a: 0"),
    ),
    Case(
        "presence_of_text",
        one("field-presence", SAFE, SAFE),
        body("string a = 1; M b = 2;"),
        body("optional string a = 1; M b = 2;"),
        ('a: "x"', "b {}"),
        ('a: "x"', 'a: ""'),
    ),
    Case(
        "presence_where_nothing_else_has_any",
        one("field-presence", SAFE, SAFE),
        body("int32 a = 1; string b = 2;"),
        body("optional int32 a = 1; string b = 2;"),
        ("a: 5", 'b: "x"'),
        ("a: 5", 'a: 0 b: "x"'),
    ),
    Case(
        "required",
        one("field-required", SAFE, NOT),
        body("optional int32 a = 1; optional int32 b = 2;"),
        body("optional int32 a = 1; required int32 b = 2;"),
        ("a: 5", "a: 5 b: 6"),
        ("a: 5 b: 6",),
        syntax=P2,
    ),
    Case(
        "not_required",
        one("field-required", SAFE, SOME),
        body("optional int32 a = 1; required int32 b = 2;"),
        body("optional int32 a = 1; optional int32 b = 2;"),
        ("a: 5 b: 6",),
        ("a: 5", "a: 5 b: 6"),
        syntax=P2,
    ),
    Case(
        "default",
        one("field-default", NOT, SOME),
        body("optional int32 a = 1 [default = 3]; optional int32 b = 2;"),
        body("optional int32 a = 1 [default = 4]; optional int32 b = 2;"),
        ("a: 5", "b: 6"),
        ("a: 5", "b: 6"),
        syntax=P2,
    ),
    Case(
        "default_of_text",
        one("field-default", NOT, SOME),
        body('optional string a = 1 [default = "x"];'),
        body("optional string a = 1;"),
        ('a: "y"', ""),
        ('a: "y"', ""),
        syntax=P2,
    ),
    Case(
        "default_of_an_enum_said",
        one("field-default", NOT, SAFE),
        body("optional E a = 1;", "enum E { ONE = 1; TWO = 2; }"),
        body("optional E a = 1 [default = ONE];", "enum E { ONE = 1; TWO = 2; }"),
        ("a: TWO", ""),
        ("a: TWO", "a: ONE"),
        syntax=P2,
    ),
    Case(
        "default_said",
        {},
        body("optional int32 a = 1; optional string b = 2;"),
        body('optional int32 a = 1 [default = 0]; optional string b = 2 [default = ""];'),
        ("a: 2", 'b: "x"'),
        ("a: 2", 'b: "x"'),
        syntax=P2,
    ),
    Case(
        "utf8",
        one("field-utf8", SOME, SOME),
        body("optional string a = 1;"),
        body("optional string a = 1;"),
        ('a: "x"',),
        ('a: "x"',),
        syntax=("proto2", "proto3"),
    ),
    Case(
        "deprecated",
        one("field-deprecated", SAFE, SAFE),
        body("int32 a = 1; int64 b = 2; string c = 3;"),
        body("int32 a = 1; int64 b = 2 [deprecated = true]; string c = 3;"),
        ('a: 5 c: "x"',),
        ('a: 5 c: "x"',),
    ),
    Case(
        "not_deprecated",
        one("field-deprecated", SAFE, SAFE),
        body("int32 a = 1; int64 b = 2 [deprecated = true]; string c = 3;"),
        body("int32 a = 1; int64 b = 2; string c = 3;"),
        ('a: 5 c: "x"',),
        ('a: 5 c: "x"',),
    ),
)

ONEOFS = (
    Case(
        "into_a_new_oneof",
        one("oneof-joined", SAFE, SAFE),
        body("int32 a = 1; string b = 2;"),
        body("int32 a = 1; oneof o { string b = 2; }"),
        ('a: 5 b: "x"', "a: 5"),
        ('a: 5 b: "x"', "a: 5"),
    ),
    Case(
        "a_number_into_a_new_oneof",
        {"oneof-joined": (SAFE, SAFE), "field-presence": (SOME, SAFE)},
        body("int32 a = 1; M b = 2;"),
        body("oneof o { int32 a = 1; } M b = 2;"),
        ("a: 5", "b {}"),
        ("a: 5", "b {}"),
    ),
    Case(
        "several_into_a_new_oneof",
        one("oneof-joined", SOME, SOME),
        body("int32 a = 1; string b = 2;"),
        body("oneof o { int32 a = 1; string b = 2; }"),
        ("a: 5", 'b: "x"', 'a: 5 b: "x"'),
        ("a: 5", 'b: "x"'),
    ),
    Case(
        "into_an_existing_oneof",
        one("oneof-joined", NOT, NOT),
        body("oneof o { int32 a = 1; } string b = 2;"),
        body("oneof o { int32 a = 1; string b = 2; }"),
        ('a: 5 b: "x"',),
        ("a: 5", 'b: "x"'),
    ),
    Case(
        "out_of_a_oneof_of_one",
        one("oneof-left", SAFE, SAFE),
        body("int32 a = 1; oneof o { string b = 2; }"),
        body("int32 a = 1; optional string b = 2;"),
        ('a: 5 b: "x"', "a: 5", 'b: ""'),
        ('a: 5 b: "x"', "a: 5", 'b: ""'),
    ),
    Case(
        "out_of_a_oneof",
        one("oneof-left", SOME, SOME),
        body("oneof o { int32 a = 1; string b = 2; }"),
        body("oneof o { int32 a = 1; } optional string b = 2;"),
        ("a: 5", 'b: "x"'),
        ("a: 5", 'a: 5 b: "x"'),
    ),
    Case(
        "renamed_oneof",
        one("oneof-renamed", SAFE, SAFE),
        body("oneof o { int32 a = 1; string b = 2; }"),
        body("oneof p { int32 a = 1; string b = 2; }"),
        ("a: 5", 'b: "x"'),
        ("a: 5", 'b: "x"'),
    ),
    Case(
        "added_to_a_oneof",
        one("field-added", SAFE, SAFE),
        body("oneof o { int32 a = 1; string b = 2; }"),
        body("oneof o { int32 a = 1; string b = 2; double c = 3; }"),
        ("a: 5", 'b: "x"'),
        ("a: 5", "c: 1.5"),
    ),
)

PAIR = "message P { KEY key = 1; VALUE value = 2; }"
FIXED_PAIR = f"message P {{ {layout('FIXED')} string key = 1; int32 value = 2; }}"
MAPS = (
    Case(
        "map_value",
        one("field-map", NOT, SOME),
        body("map<string, int32> a = 1;"),
        body("map<string, int64> a = 1;"),
        ('a { key: "x" value: 5 }',),
        ('a { key: "x" value: 5 }', 'a { key: "x" value: 1099511627776 }'),
    ),
    Case(
        "map_value_of_another_sign",
        one("field-map", SOME, SOME),
        body("map<string, int32> a = 1;"),
        body("map<string, uint32> a = 1;"),
        ('a { key: "x" value: 5 }', 'a { key: "x" value: -5 }'),
        ('a { key: "x" value: 5 }',),
    ),
    Case(
        "map_of_pairs",
        one("field-map", SOME, SOME),
        body("repeated P a = 1;", FIXED_PAIR),
        body("map<string, int32> a = 1;", FIXED_PAIR),
        ('a { key: "x" value: 5 }', 'a { key: "x" value: 5 } a { key: "x" value: 6 }'),
        ('a { key: "x" value: 5 } a { key: "y" value: 6 }',),
    ),
    Case(
        "map_of_dynamic_pairs",
        one("field-map", NOT, SOME),
        body("repeated P a = 1;", "message P { string key = 1; int32 value = 2; }"),
        body("map<string, int32> a = 1;", "message P { string key = 1; int32 value = 2; }"),
        ('a { key: "x" value: 5 }', 'a { key: "x" value: 5 } a { key: "x" value: 6 }'),
        ('a { key: "x" value: 5 } a { key: "y" value: 6 }',),
    ),
    Case(
        "map_to_text",
        one("field-map", NOT, NOT),
        body("map<string, int32> a = 1;"),
        body("string a = 1;"),
        ('a { key: "x" value: 5 }',),
        ('a: "y"',),
    ),
)

THREE = 'a: 5 b: 6 c: "x"'


def laid(old: str, new: str, yaff: str) -> Case:
    fields = "int32 a = 1; int64 b = 2; string c = 3;"
    return Case(
        f"{old.lower()}_{new.lower()}",
        one("message-layout", yaff, SAFE),
        body(f"{layout(old)} {fields}"),
        body(f"{layout(new)} {fields}"),
        (THREE,),
        (THREE,),
    )


LAYOUTS = (
    laid("DYNAMIC", "FLAT", SOME),
    laid("DYNAMIC", "SPARSE", SOME),
    laid("FLAT", "DYNAMIC", SOME),
    laid("SPARSE", "DYNAMIC", SOME),
    laid("FLAT", "SPARSE", NOT),
    laid("SPARSE", "FLAT", NOT),
    laid("FIXED", "FLAT", NOT),
    laid("FIXED", "DYNAMIC", NOT),
    laid("DYNAMIC", "FIXED", NOT),
    Case(
        "flat_grows",
        one("field-added", SAFE, SAFE),
        body(f"{layout('FLAT')} int32 a = 1;"),
        body(f"{layout('FLAT')} int32 a = 1; int64 b = 2;"),
        ("a: 5", ""),
        ("a: 5 b: 6", ""),
    ),
    Case(
        "fixed_grows",
        one("field-added", NOT, SAFE),
        body(f"{layout('FIXED')} int32 a = 1;"),
        body(f"{layout('FIXED')} int32 a = 1; int64 b = 2;"),
        ("a: 5",),
        ("a: 5 b: 6",),
    ),
    Case(
        "fixed_shrinks",
        one("field-removed", NOT, SAFE),
        body("repeated P a = 1;", f"message P {{ {layout('FIXED')} int32 x = 1; int64 y = 2; }}"),
        body(
            "repeated P a = 1;", f"message P {{ {layout('FIXED')} int32 x = 1; reserved 2; reserved 'y'; }}"
        ),
        ("a { x: 5 y: 6 } a { x: 7 }",),
        ("a { x: 5 } a { x: 7 }",),
    ),
    Case(
        "fixed_keeps_its_slots",
        one("field-removed", SAFE, SAFE),
        body("repeated P a = 1;", f"message P {{ {layout('FIXED')} int32 x = 1; int64 y = 2; }}"),
        body(
            "repeated P a = 1;",
            f"message P {{ {layout('FIXED', 'reserved_fields { id: 2 type: TYPE_INT64 }')} int32 x = 1; }}",
        ),
        ("a { x: 5 y: 6 } a { x: 7 }",),
        ("a { x: 5 } a { x: 7 }",),
    ),
    Case(
        "fixed_deprecates",
        one("field-deprecated", SAFE, SAFE),
        body("repeated P a = 1;", f"message P {{ {layout('FIXED')} int64 y = 1; int32 x = 2; }}"),
        body(
            "repeated P a = 1;",
            f"message P {{ {layout('FIXED')} int64 y = 1 [deprecated = true]; int32 x = 2; }}",
        ),
        ("a { x: 5 } a { x: 7 }",),
        ("a { x: 5 } a { x: 7 }",),
    ),
    Case(
        "flat_loses_a_slot",
        {"field-removed": (NOT, SAFE), "message-layout": (SOME, SAFE)},
        body(f"{layout('FLAT')} int32 a = 1; int64 b = 2; string c = 3;"),
        body("int32 a = 1; string c = 3;"),
        (THREE,),
        ('a: 5 c: "x"',),
    ),
    Case(
        "flat_is_refused",
        {"field-removed": (NOT, SAFE), "message-fault": (NOT, SAFE)},
        body(f"{layout('FLAT')} int32 a = 1; int64 b = 2; string c = 3;"),
        body(f"{layout('FLAT')} int32 a = 1; string c = 3;"),
        (THREE,),
        ('a: 5 c: "x"',),
    ),
    Case(
        "an_element_becomes_inline",
        one("message-layout", NOT, SAFE),
        body("repeated P a = 1;", "message P { int32 x = 1; }"),
        body("repeated P a = 1;", f"message P {{ {layout('FIXED')} int32 x = 1; }}"),
        ("a { x: 5 }",),
        ("a { x: 5 }",),
    ),
    Case(
        "its_type_is_ignored",
        {"field-left": (SAFE, SAFE), "message-layout": (SOME, SAFE)},
        body("int32 a = 1; P b = 2; string c = 3;", "message P { int32 x = 1; }"),
        body(
            "int32 a = 1; P b = 2; string c = 3;",
            "message P { option (yaff.proto.message) = { ignore: true }; int32 x = 1; }",
        ),
        ('a: 5 c: "x"',),
        ('a: 5 c: "x"',),
    ),
)

STATES = "enum E { ZERO = 0; ONE = 1; TWO = 2; }"
TYPES_OF_FIELDS = (
    Case(
        "enum_value_added",
        one("enum-value-added", SAFE, SAFE),
        body("E a = 1;", "enum E { ZERO = 0; ONE = 1; }"),
        body("E a = 1;", STATES),
        ("a: ONE",),
        ("a: TWO",),
        json=SOME,
    ),
    Case(
        "closed_enum_value_added",
        one("enum-value-added", SAFE, SOME),
        body("optional E a = 1;", "enum E { ZERO = 0; ONE = 1; }"),
        body("optional E a = 1;", STATES),
        ("a: ONE",),
        ("a: ONE", "a: TWO"),
        syntax=P2,
        json=SOME,
    ),
    Case(
        "enum_value_removed",
        one("enum-value-removed", SAFE, SAFE),
        body("E a = 1;", STATES),
        body("E a = 1;", "enum E { reserved 2; ZERO = 0; ONE = 1; }"),
        ("a: ONE", "a: TWO"),
        ("a: ONE",),
        json=NOT,
    ),
    Case(
        "enum_value_renamed",
        one("enum-value-renamed", SAFE, SAFE),
        body("E a = 1;", "enum E { ZERO = 0; ONE = 1; }"),
        body("E a = 1;", "enum E { ZERO = 0; UNO = 1; }"),
        ("a: ONE",),
        ("a: UNO",),
        json=NOT,
    ),
    Case(
        "enum_value_number",
        one("enum-value-number", NOT, NOT),
        body("E a = 1;", "enum E { ZERO = 0; ONE = 1; }"),
        body("E a = 1;", "enum E { ZERO = 0; ONE = 3; }"),
        ("a: ONE",),
        ("a: ONE",),
    ),
    Case(
        "enum_value_reused",
        one("enum-value-reused", NOT, NOT),
        body("E a = 1;", "enum E { reserved 1; ZERO = 0; }"),
        body("E a = 1;", "enum E { ZERO = 0; ONE = 1; }"),
        (),
        (),
    ),
    Case(
        "message_renamed",
        one("message-renamed", SAFE, SAFE),
        body("S a = 1;", "message S { int32 x = 1; string y = 2; }"),
        body("T a = 1;", "message T { int32 x = 1; string y = 2; }"),
        ('a { x: 5 y: "x" }',),
        ('a { x: 5 y: "x" }',),
    ),
    Case(
        "another_message",
        {"field-type": (NOT, NOT), "field-number": (NOT, NOT)},
        body("S a = 1; T b = 2;", "message S { int32 x = 1; } message T { int32 x = 2; }"),
        body("T a = 1; T b = 2;", "message S { int32 x = 1; } message T { int32 x = 2; }"),
        ("a { x: 5 } b { x: 6 }",),
        ("a { x: 5 }",),
    ),
    Case(
        "another_enum",
        {"field-type": (SAFE, SAFE), "enum-value-renamed": (SAFE, SAFE)},
        body("E a = 1; F b = 2;", "enum E { ZERO = 0; ONE = 1; } enum F { NONE = 0; SOME = 1; }"),
        body("F a = 1; F b = 2;", "enum E { ZERO = 0; ONE = 1; } enum F { NONE = 0; SOME = 1; }"),
        ("a: ONE b: SOME",),
        ("a: SOME b: SOME",),
        json=NOT,
    ),
    Case(
        "message_added",
        {"field-added": (SAFE, SAFE), "message-added": (SAFE, SAFE)},
        body("int32 a = 1;"),
        body("int32 a = 1; S b = 2;", "message S { int32 x = 1; }"),
        ("a: 5",),
        ("a: 5 b { x: 6 }",),
    ),
    Case(
        "reserve_dropped",
        one("reserve-dropped", SOME, SOME),
        body('int32 a = 1; reserved 4 to 6, 9; reserved "gone";'),
        body("int32 a = 1; reserved 4, 5;"),
        (),
        (),
    ),
    Case("nothing", {}, body("int32 a = 1;"), body("int32 a = 1;"), ("a: 5",), ("a: 5",)),
)

CASES = (*TYPES, *FIELDS, *ONEOFS, *MAPS, *LAYOUTS, *TYPES_OF_FIELDS)
