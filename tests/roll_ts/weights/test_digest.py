import pytest

torch = pytest.importorskip("torch")

from roll_ts.weights.digest import Digester, digest  # noqa: E402


def weights():
    torch.manual_seed(0)
    named = {"a": torch.randn(3, 4), "b": torch.randn(2), "c": torch.ones(5, dtype=torch.bfloat16)}
    return named | {"d": torch.tensor(1.5)}


def test_the_order_of_the_tensors_does_not_matter():
    named = list(weights().items())
    assert digest(named) == digest(reversed(named))


def test_layout_in_memory_does_not_matter():
    named = weights()
    strided = named | {"a": named["a"].t().contiguous().t(), "b": torch.stack([named["b"], named["b"]], 1)[:, 0]}
    assert not strided["a"].is_contiguous()
    assert digest(strided.items()) == digest(named.items())


@pytest.mark.parametrize(
    "change",
    [
        lambda w: w | {"a": w["a"] + torch.finfo(torch.float32).eps},
        lambda w: w | {"a": w["a"].reshape(4, 3)},
        lambda w: w | {"c": w["c"].to(torch.float16)},
        lambda w: w | {"a2": w.pop("a")},
        lambda w: w | {"e": torch.zeros(0)},
        lambda w: {name: t for name, t in w.items() if name != "d"},
        lambda w: w | {"a": w["b"], "b": w["a"]},
    ],
    ids=["a value", "a shape", "a dtype", "a name", "one more", "one less", "two swapped"],
)
def test_any_change_gives_another_digest(change):
    assert digest(change(weights()).items()) != digest(weights().items())


def test_tensors_pass_through_a_digester_unchanged():
    named = weights()
    digester = Digester()
    assert all(tensor is named[name] for name, tensor in digester.passing(named.items()))
    assert digester.hexdigest() == digest(named.items())


def test_a_name_that_comes_twice_is_refused():
    with pytest.raises(ValueError, match="got 'a' - a tensor comes once"):
        digest([("a", torch.ones(1)), ("a", torch.ones(1))])


def test_parameters_that_require_gradients_are_hashed_like_plain_tensors():
    named = weights()
    assert digest([("a", torch.nn.Parameter(named["a"]))]) == digest([("a", named["a"])])
