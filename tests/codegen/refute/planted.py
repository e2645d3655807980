"""Forty pure functions with claims: twenty that some input breaks, twenty that none does.

`WRONG` and `RIGHT` map a function's name to its source, annotations unexpanded. What breaks a wrong one was decided
when it was written; the test runs the function with the input that the search reports.
"""

from __future__ import annotations

HEAD = '''"""Planted."""

from __future__ import annotations

from dataclasses import dataclass


'''

WRONG = {
    "half": """
def half(n: int) -> int:
    # AST: AST_ENSURES(result * 2 == n)
    return n // 2
""",
    "grow": """
def grow(n: int) -> int:
    grown = n * n
    # AST: AST_POSTCONDITION(grown > n)
    return grown
""",
    "clamp": """
def clamp(n: int, low: int, high: int) -> int:
    # AST: AST_ENSURES(low <= result <= high)
    return max(low, min(n, high))
""",
    "first": """
def first(xs: list[int]) -> int:
    best = xs[0] if xs else 0
    # AST: AST_POSTCONDITION(best >= 0)
    return best
""",
    "unique": """
def unique(xs: list[int]) -> list[int]:
    # AST: AST_ENSURES(len(set(result)) == len(result))
    return sorted(xs)
""",
    "bucket": """
def bucket(key: int, size: int) -> int:
    # VAL: VAL_POSITIVE(size)
    index = key % size
    # AST: AST_POSTCONDITION(index < size - 1)
    return index
""",
    "average": """
def average(a: int, b: int) -> int:
    middle = a + (b - a) // 2
    # AST: AST_INVARIANT(a <= middle)
    return middle
""",
    "trim": """
def trim(text: str) -> str:
    # AST: AST_ENSURES(len(result) < len(text))
    return text.strip()
""",
    "join": """
def join(a: str, b: str) -> str:
    # AST: AST_ENSURES(result.startswith(b))
    return a + b
""",
    "countdown": """
def countdown(n: int) -> int:
    # AST: AST_REQUIRES(0 <= n <= 5)
    steps = 0
    while n > 0:
        n -= 1
        steps += 1
    # AST: AST_POSTCONDITION(steps < 5)
    return steps
""",
    "split": """
def split(total: int, parts: int) -> int:
    # AST: AST_REQUIRES(parts > 0)
    share = total // parts
    # AST: AST_POSTCONDITION(share * parts == total)
    return share
""",
    "overlap": """
def overlap(a: int, b: int, c: int, d: int) -> bool:
    # AST: AST_REQUIRES(a < b)
    # AST: AST_REQUIRES(c < d)
    touching = a <= d and c <= b
    # AST: AST_POSTCONDITION(not touching or (a < d and c < b))
    return touching
""",
    "sign": """
def sign(n: int) -> int:
    # AST: AST_ENSURES(result != 0)
    if n > 0:
        return 1
    if n < 0:
        return -1
    return 0
""",
    "needle": """
def needle(n: int) -> int:
    # AST: AST_ENSURES(result != 77)
    return n * 3 + 2
""",
    "parity": """
def parity(a: int, b: int) -> bool:
    even = (a + b) % 2 == 0
    # AST: AST_INVARIANT(even == (a % 2 == 0 and b % 2 == 0))
    return even
""",
    "append": """
def append(xs: list[int], x: int) -> list[int]:
    # AST: AST_ENSURES(len(result) == len(xs) + 2)
    return [*xs, x]
""",
    "lookup": """
def lookup(table: dict[int, int], key: int) -> int:
    value = table.get(key, -1)
    # AST: AST_POSTCONDITION(value == -1 or value > 0)
    return value
""",
    "shift": """
def shift(n: int, by: int = 1) -> int:
    moved = n + by
    # AST: AST_MONOTONIC(moved, n)
    return moved
""",
    "Meter.spend": """
@dataclass
class Meter:
    left: int

    def spend(self, n: int) -> int:
        # VAL: VAL_NON_NEGATIVE(n)
        rest = self.left - n
        # AST: AST_POSTCONDITION(rest >= 0)
        return rest
""",
    "choose": """
def choose(flag: bool, a: int, b: int) -> int:
    # AST: AST_ENSURES(result == a)
    return a if flag else b
""",
}

RIGHT = {
    "double": """
def double(n: int) -> int:
    # AST: AST_ENSURES(result - n == n)
    return n * 2
""",
    "square": """
def square(n: int) -> int:
    grown = n * n
    # AST: AST_POSTCONDITION(grown >= 0)
    return grown
""",
    "clip": """
def clip(n: int, low: int, high: int) -> int:
    # AST: AST_REQUIRES(low <= high)
    # AST: AST_ENSURES(low <= result <= high)
    return max(low, min(n, high))
""",
    "head": """
def head(xs: list[int]) -> int:
    # VAL: VAL_NON_EMPTY(xs)
    best = max(xs)
    # AST: AST_POSTCONDITION(best >= xs[0])
    return best
""",
    "distinct": """
def distinct(xs: list[int]) -> list[int]:
    # AST: AST_ENSURES(len(set(result)) == len(result))
    return sorted(set(xs))
""",
    "slot": """
def slot(key: int, size: int) -> int:
    # VAL: VAL_POSITIVE(size)
    index = key % size
    # AST: AST_POSTCONDITION(0 <= index < size)
    return index
""",
    "middle": """
def middle(a: int, b: int) -> int:
    # AST: AST_REQUIRES(a <= b)
    at = a + (b - a) // 2
    # AST: AST_INVARIANT(a <= at <= b)
    return at
""",
    "strip": """
def strip(text: str) -> str:
    # AST: AST_ENSURES(len(result) <= len(text))
    return text.strip()
""",
    "concat": """
def concat(a: str, b: str) -> str:
    # AST: AST_ENSURES(result.startswith(a))
    return a + b
""",
    "steps": """
def steps(n: int) -> int:
    # AST: AST_REQUIRES(0 <= n <= 5)
    count = 0
    while n > 0:
        n -= 1
        count += 1
    # AST: AST_POSTCONDITION(count <= 5)
    return count
""",
    "share": """
def share(total: int, parts: int) -> int:
    # AST: AST_REQUIRES(parts > 0)
    each = total // parts
    # AST: AST_POSTCONDITION(each * parts <= total)
    return each
""",
    "between": """
def between(a: int, b: int, c: int) -> bool:
    inside = a <= b <= c
    # AST: AST_POSTCONDITION(not inside or a <= c)
    return inside
""",
    "direction": """
def direction(n: int) -> int:
    # AST: AST_ENSURES(-1 <= result <= 1)
    if n > 0:
        return 1
    return -1 if n < 0 else 0
""",
    "odd": """
def odd(n: int) -> int:
    # AST: AST_ENSURES(result != 78)
    return n * 3 + 2
""",
    "same": """
def same(a: int, b: int) -> bool:
    even = (a + b) % 2 == 0
    # AST: AST_INVARIANT(even == (a % 2 == b % 2))
    return even
""",
    "longer": """
def longer(xs: list[int], x: int) -> list[int]:
    # AST: AST_ENSURES(len(result) == len(xs) + 1)
    return [*xs, x]
""",
    "find": """
def find(table: dict[int, int], key: int) -> int:
    value = table.get(key, -1)
    # AST: AST_POSTCONDITION(key in table or value == -1)
    return value
""",
    "advance": """
def advance(n: int, by: int) -> int:
    # VAL: VAL_NON_NEGATIVE(by)
    moved = n + by
    # AST: AST_MONOTONIC(moved, n)
    return moved
""",
    "Tank.drain": """
@dataclass
class Tank:
    left: int

    def drain(self, n: int) -> int:
        # VAL: VAL_NON_NEGATIVE(n)
        rest = max(self.left - n, 0)
        # AST: AST_POSTCONDITION(rest >= 0)
        return rest
""",
    "pick": """
def pick(flag: bool, a: int, b: int) -> int:
    # AST: AST_ENSURES(result in (a, b))
    return a if flag else b
""",
}
