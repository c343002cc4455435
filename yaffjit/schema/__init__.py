"""What a `.proto` says: loading a schema into frozen values."""

from yaffjit.schema.load import load
from yaffjit.schema.model import EnumDef, FieldDef, MessageDef, OneofDef, SchemaDef

__all__ = ["EnumDef", "FieldDef", "MessageDef", "OneofDef", "SchemaDef", "load"]
