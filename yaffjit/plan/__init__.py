"""Where each field lies: a schema laid out under YaFF."""

from yaffjit.plan.build import Plan
from yaffjit.plan.model import FieldPlan, MessagePlan, OneofPlan

__all__ = ["FieldPlan", "MessagePlan", "OneofPlan", "Plan"]
