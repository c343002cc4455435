"""A builder of LLVM's IR in which all values are 64-bit integers, and addresses are among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
PAIR = ir.LiteralStructType([I64, I64])
_INTEGERS = {8: I8, 16: I16, 32: I32, 64: I64}
_BYTES = I8.as_pointer()
_ALL = (1 << 64) - 1

Value = Any  # of llvmlite, or a Python int that stands for a constant


def as_value(value: Value) -> Any:
    return I64(value & _ALL) if isinstance(value, int) else value


class Variable:
    """A number that changes: LLVM makes a register of it."""

    def __init__(self, code: Code, first: Value) -> None:
        self._code = code
        with code.b.goto_entry_block():
            self._slot = code.b.alloca(I64)
        self.set(first)

    def get(self) -> Any:
        return self._code.b.load(self._slot)

    def set(self, value: Value) -> None:
        self._code.b.store(as_value(value), self._slot)

    def add(self, value: Value) -> None:
        self.set(self._code.add(self.get(), value))


class Code:
    """The body of a function that is being made; its results below 0 are failures."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.b = ir.IRBuilder(function.append_basic_block("entry"))
        self._fails: dict[int, Any] = {}

    # Arithmetic.

    def add(self, a: Value, b: Value) -> Any:
        if isinstance(b, int) and not b:
            return as_value(a)
        return self.b.add(as_value(a), as_value(b))

    def sub(self, a: Value, b: Value) -> Any:
        return self.b.sub(as_value(a), as_value(b))

    def mul(self, a: Value, b: Value) -> Any:
        return self.b.mul(as_value(a), as_value(b))

    def and_(self, a: Value, b: Value) -> Any:
        return self.b.and_(as_value(a), as_value(b))

    def or_(self, a: Value, b: Value) -> Any:
        return self.b.or_(as_value(a), as_value(b))

    def xor(self, a: Value, b: Value) -> Any:
        return self.b.xor(as_value(a), as_value(b))

    def shl(self, a: Value, b: Value) -> Any:
        return self.b.shl(as_value(a), as_value(b))

    def shr(self, a: Value, b: Value) -> Any:
        """Shift right, zeros come in."""
        return self.b.lshr(as_value(a), as_value(b))

    def sar(self, a: Value, b: Value) -> Any:
        """Shift right, copies of the sign come in."""
        return self.b.ashr(as_value(a), as_value(b))

    def mix(self, a: Value, b: Value) -> Any:
        """High and low half of the product of two unsigned numbers, XORed."""
        wide = ir.IntType(128)
        product = self.b.mul(self.b.zext(as_value(a), wide), self.b.zext(as_value(b), wide))
        high = self.b.trunc(self.b.lshr(product, wide(64)), I64)
        return self.b.xor(high, self.b.trunc(product, I64))

    # Conditions.

    def is_(self, a: Value, op: str, b: Value) -> Any:
        """A signed comparison."""
        return self.b.icmp_signed(op, as_value(a), as_value(b))

    def below(self, a: Value, b: Value) -> Any:
        """Unsigned a < b."""
        return self.b.icmp_unsigned("<", as_value(a), as_value(b))

    def both(self, a: Any, b: Any) -> Any:
        return self.b.and_(a, b)

    def any(self, a: Any, b: Any) -> Any:
        return self.b.or_(a, b)

    def select(self, condition: Any, a: Value, b: Value) -> Any:
        return self.b.select(condition, as_value(a), as_value(b))

    def number(self, condition: Any) -> Any:
        """1 where it holds."""
        return self.b.zext(condition, I64)

    # Memory.

    def load(self, address: Value, bits: int = 64) -> Any:
        pointer = self.b.inttoptr(as_value(address), _INTEGERS[bits].as_pointer())
        value = self.b.load(pointer, align=1)
        return value if bits == 64 else self.b.zext(value, I64)

    def store(self, address: Value, value: Value, bits: int = 64) -> None:
        value = as_value(value)
        if bits < 64:
            value = self.b.trunc(value, _INTEGERS[bits])
        self.b.store(value, self.b.inttoptr(as_value(address), _INTEGERS[bits].as_pointer()), align=1)

    def zero(self, address: Value, nbytes: Value) -> None:
        function = self.declare("llvm.memset.p0.i64", ir.VoidType(), [_BYTES, I8, I64, I1])
        self.b.call(function, [self._pointer(address), I8(0), as_value(nbytes), I1(0)])

    def copy(self, to: Value, source: Value, nbytes: Value) -> None:
        function = self.declare("llvm.memcpy.p0.p0.i64", ir.VoidType(), [_BYTES, _BYTES, I64, I1])
        self.b.call(function, [self._pointer(to), self._pointer(source), as_value(nbytes), I1(0)])

    def compare(self, a: Value, b: Value, nbytes: Value) -> Any:
        """As C's memcmp."""
        function = self.declare("memcmp", I32, [_BYTES, _BYTES, I64])
        return self.b.sext(self.b.call(function, [self._pointer(a), self._pointer(b), as_value(nbytes)]), I64)

    def _pointer(self, address: Value) -> Any:
        return self.b.inttoptr(as_value(address), _BYTES)

    def constant(self, words: list[int]) -> Any:
        """The address of constant words."""
        module = self.function.module
        array = ir.ArrayType(I64, len(words))
        made = ir.GlobalVariable(module, array, module.get_unique_name("words"))
        made.global_constant = True
        made.linkage = "internal"
        made.initializer = array([I64(word & _ALL) for word in words])
        return self.b.ptrtoint(made, I64)

    def stack(self, words: int) -> Any:
        """The address of uninitialised words, valid until the function returns."""
        with self.b.goto_entry_block():
            area = self.b.alloca(I64, words)
        return self.b.ptrtoint(area, I64)

    # Functions.

    def declare(self, name: str, result: Any, arguments: list[Any]) -> Any:
        known = self.function.module.globals.get(name)
        return known or ir.Function(self.function.module, ir.FunctionType(result, arguments), name)

    def call(self, function: Any, *arguments: Value) -> Any:
        return self.b.call(function, [as_value(argument) for argument in arguments])

    def intrinsic(self, name: str, *arguments: Value) -> Any:
        """Of LLVM, of a word and by a word."""
        return self.call(self.declare(f"{name}.i64", I64, [I64] * len(arguments)), *arguments)

    def count_trailing_zeros(self, value: Value) -> Any:
        """Requires: not 0."""
        function = self.declare("llvm.cttz.i64", I64, [I64, I1])
        return self.b.call(function, [as_value(value), I1(1)])

    def give(self, value: Value) -> None:
        self.b.ret(as_value(value))

    def give_pair(self, first: Value, second: Value) -> None:
        pair = self.b.insert_value(ir.Constant(PAIR, ir.Undefined), as_value(first), 0)
        self.b.ret(self.b.insert_value(pair, as_value(second), 1))

    # Ways.

    def block(self, name: str = "") -> Any:
        return self.b.append_basic_block(name)

    def at(self, block: Any) -> None:
        """Go on there."""
        self.b.position_at_end(block)

    def go(self, block: Any) -> None:
        self.b.branch(block)

    def branch(self, condition: Any, then: Any, otherwise: Any) -> None:
        self.b.cbranch(condition, then, otherwise)

    def when(self, condition: Any) -> Any:
        """``with code.when(condition):``"""
        return self.b.if_then(condition)

    def either(self, condition: Any) -> Any:
        """``with code.either(condition) as (then, otherwise):``"""
        return self.b.if_else(condition)

    @contextmanager
    def loop(self, condition: Callable[[], Any]) -> Iterator[None]:
        """``with code.loop(lambda: condition):`` while it holds."""
        head, body, end = (self.block(name) for name in ("head", "body", "end"))
        self.go(head)
        self.at(head)
        self.branch(condition(), body, end)
        self.at(body)
        yield
        self.go(head)
        self.at(end)

    @contextmanager
    def times(self, count: Value) -> Iterator[Any]:
        """``with code.times(count) as index:``"""
        index = Variable(self, 0)
        with self.loop(lambda: self.is_(index.get(), "<", count)):
            yield index.get()
            index.add(1)

    def fail_if(self, condition: Any, failure: int) -> None:
        """Return the failure if the condition holds."""
        going = self.block()
        self.branch(condition, self.failing(failure), going)
        self.at(going)

    def failing(self, failure: int) -> Any:
        """The block that returns a failure."""
        if failure not in self._fails:
            self._fails[failure] = self.block("failing")
            with self.b.goto_block(self._fails[failure]):
                if isinstance(self.function.function_type.return_type, ir.LiteralStructType):
                    self.give_pair(0, failure)
                else:
                    self.give(failure)
        return self._fails[failure]

    def passed(self, result: Any) -> Any:
        """The result of a call, which is returned if it's a failure."""
        with self.when(self.is_(result, "<", 0)):
            self.give(result)
        return result


def new_function(module: Any, name: str, arguments: int, result: Any = I64, inline: bool = False) -> Any:
    """A function of words that no other module sees."""
    made = ir.Function(module, ir.FunctionType(result, [I64] * arguments), name)
    made.linkage = "internal"
    made.attributes.add("nounwind")
    made.attributes.add("alwaysinline" if inline else "noinline")
    return made
