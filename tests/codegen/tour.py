"""The tour's shop: what an author writes into the template of a new document, and the tests of its steps."""

from __future__ import annotations

FILLED_IN = {
    "<who has which problem, and what it costs>": "The corner shop adds its bills by hand and is wrong once a day.",
    "<what will be true when this is done>": "every bill adds up, or is refused with a reason",
    "<what a reader might expect and will not get>": "currencies, taxes, a web page",
    "<a number, where it is now, where it must be>": "wrong bills: one a day now, none a year then",
    "- **<term>**: <meaning>": "- **Basket**: the items of one customer, in the order they were put in",
    "<the modules it touches, with their paths in backticks; the invariants that no change may break>": (
        "Stands alone. A bill never changes after it was paid."
    ),
    "### D-1: <title>": "### D-1: Amounts are whole cents",
    "- drivers: <what makes a choice necessary>": "- drivers: sums of floats are not what a customer expects",
    "- options: <at least two, with what speaks for and against each>": (
        "- options: float (easy, wrong); int cents (right, needs care when shown); Decimal (right, slow)"
    ),
    "- outcome: <which one, and why>": "- outcome: int cents, at most 1,000,000 a bill",
    "- consequences: <what becomes easier, what becomes harder>": "- consequences: division happens in `receipt` only",
    "- affects: 5.1": "- affects: 5.1, 5.2, 5.3, 5.4",
    "- confirmation: <how anybody can see that it is kept>": "- confirmation: every amount is annotated `int`",
    "<the main flow step by step; the states and who may change them; what fails, and what then>": (
        "Items go into a basket, the till takes the money, the receipt is printed. A refused payment changes nothing."
    ),
}

SECTION_5 = """\
### 5.1 `shop.money`

#### 5.1.1 `Limits`

What the shop accepts.

- deps: -
- decisions: D-1
- tests: tests/shop/test_money.py

```python
@dataclass(frozen=True)
class Limits:
    largest_bill: int = 1_000_000
```

#### 5.1.2 `checked`

The amount itself, when it may be on a bill.

- deps: `Limits`
- decisions: D-1
- tests: tests/shop/test_money.py

```python
def checked(amount: int, limits: Limits) -> int:
    # VAL: VAL_INT_RANGE(amount, min=1, max=limits.largest_bill)
    return amount
```

#### 5.1.3 `NotEnough`

The money does not cover the bill.

- deps: -
- decisions: D-1
- tests: tests/shop/test_money.py

```python
class NotEnough(Exception):
    ...
```

### 5.2 `shop.basket`

#### 5.2.1 `Basket`

The items of one customer.

- deps: `shop.money.Limits`
- decisions: D-1
- tests: tests/shop/test_basket.py

```python
class Basket:
    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.items: list[tuple[str, int]] = []
```

#### 5.2.2 `Basket.add`

Put an item into the basket and return how many there are.

- deps: `Basket`, `shop.money.checked`
- decisions: D-1
- tests: tests/shop/test_basket.py

```python
def add(self, name: str, price: int) -> int:
    # VAL: VAL_NON_EMPTY(name)
    self.items.append((name, checked(price, self.limits)))
    count = len(self.items)
    # AST: AST_POSTCONDITION(count > 0)
    return count
```

#### 5.2.3 `Basket.total`

What all items cost.

- deps: `Basket`
- decisions: D-1
- tests: tests/shop/test_basket.py

```python
def total(self) -> int:
    return sum(price for _, price in self.items)
```

### 5.3 `shop.till`

#### 5.3.1 `pay`

Take money for a basket and return the change.

- deps: `shop.money.NotEnough`, `shop.basket.Basket`, `Basket.total`
- decisions: D-1
- errors: NotEnough when the money is less than the total
- tests: tests/shop/test_till.py

```python
def pay(basket: Basket, money: int) -> int:
    change = money - basket.total()
    if change < 0:
        raise NotEnough(f"{-change} cents are missing")
    # AST: AST_POSTCONDITION(change >= 0)
    return change
```

#### 5.3.2 `refund`

Take an item out of a basket and return its price.

- deps: `shop.basket.Basket`
- decisions: D-1
- errors: KeyError when the basket does not hold it
- tests: tests/shop/test_till.py

```python
def refund(basket: Basket, name: str) -> int:
    for at, (known, price) in enumerate(basket.items):
        if known == name:
            del basket.items[at]
            return price
    raise KeyError(name)
```

### 5.4 `shop.receipt`

#### 5.4.1 `line`

One item as a customer reads it.

- deps: -
- decisions: D-1
- tests: tests/shop/test_receipt.py

```python
def line(name: str, cents: int) -> str:
    # VAL: VAL_NON_EMPTY(name)
    return f"{name} {cents / 100:.2f}"
```

#### 5.4.2 `receipt`

One line for each item, and the total.

- deps: `shop.basket.Basket`, `Basket.total`, `line`
- decisions: D-1
- tests: tests/shop/test_receipt.py

```python
def receipt(basket: Basket) -> str:
    ...
```
"""

RECEIPT = """\
    lines = [line(name, price) for name, price in basket.items]
    return "\\n".join([*lines, line("total", basket.total())])
"""

TESTS = {
    1: """\
import pytest

from shop.money import Limits, checked


def test_an_amount_within_the_limits_is_itself():
    assert checked(5, Limits()) == 5


def test_an_amount_of_nothing_is_refused():
    with pytest.raises(ValueError, match="amount"):
        checked(0, Limits())
""",
    2: """\
from shop.basket import Basket
from shop.money import Limits


def test_a_basket_adds_up():
    basket = Basket(Limits())
    assert [basket.add("tea", 250), basket.add("milk", 120)] == [1, 2]
    assert basket.total() == 370
""",
    3: """\
import pytest

from shop.basket import Basket
from shop.money import Limits, NotEnough
from shop.till import pay, refund


def test_the_change_is_what_is_left():
    basket = Basket(Limits())
    basket.add("tea", 250)
    assert pay(basket, 500) == 250
    with pytest.raises(NotEnough, match="50 cents are missing"):
        pay(basket, 200)


def test_a_refund_takes_the_item_out():
    basket = Basket(Limits())
    basket.add("tea", 250)
    assert refund(basket, "tea") == 250
    assert basket.total() == 0
    with pytest.raises(KeyError):
        refund(basket, "milk")
""",
    4: """\
from shop.basket import Basket
from shop.money import Limits
from shop.receipt import line, receipt


def test_a_line_shows_whole_units_and_cents():
    assert line("tea", 250) == "tea 2.50"


def test_a_receipt_shows_items_and_total():
    basket = Basket(Limits())
    basket.add("tea", 250)
    assert receipt(basket) == "tea 2.50\\ntotal 2.50"
""",
}


LINE_TEST = """\
from shop.receipt import line


def test_a_line_shows_whole_units_and_cents():
    assert line("tea", 250) == "tea 2.50"
"""


def brought_files(step: int) -> dict[str, str]:
    """The tests that a step brings, by path."""
    name = {1: "money", 2: "basket", 3: "till", 4: "receipt"}[step]
    files = {f"tests/shop/test_{name}.py": TESTS[step]}
    if step == 3:
        files["tests/shop/test_receipt.py"] = LINE_TEST
    return files


def filled_in(template: str) -> str:
    """The document of the shop, written into the template that `codegen new` made."""
    for placeholder, text in FILLED_IN.items():
        assert placeholder in template, placeholder
        template = template.replace(placeholder, text)
    start, end = template.index("<!-- An entry; copy"), template.index("## 6. Plan")
    return template[:start] + SECTION_5 + "\n" + template[end:]
