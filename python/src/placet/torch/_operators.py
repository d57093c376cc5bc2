"""What each operator does to numbers of the field: the classes of operators.json, and formulas."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from . import _field as field
from ._shadow import Shadows

P = field.P


@functools.cache
def table() -> dict[str, Any]:
    path = os.path.join(os.path.dirname(__file__), "operators.json")
    with open(path, encoding="utf-8") as file:
        words: dict[str, Any] = json.load(file)
    for name in ("function", "same", "values"):
        words[name] = frozenset(words[name])
    return words


@functools.cache
def name_of(op: torch._ops.OpOverload) -> str:
    """ "mul" of mul_.Tensor, mul.out and _foreach_mul_."""
    name = op._schema.name.split("::")[1]
    if name.startswith("_foreach_"):
        name = name[len("_foreach_") :]
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


class Applied:
    """One application of an operator: arguments by name, and their numbers."""

    def __init__(self, op: Any, args: Any, kwargs: Any, shadows: Shadows) -> None:
        self.op = op
        self.shadows = shadows
        self.given: dict[str, Any] = {}
        for at, argument in enumerate(op._schema.arguments):
            if at < len(args):
                self.given[argument.name] = args[at]
            elif argument.name in kwargs:
                self.given[argument.name] = kwargs[argument.name]
            elif argument.has_default_value():
                self.given[argument.name] = argument.default_value
        self.results: Any = None  # of the floating-point run
        self._numbers: dict[int, Tensor] = {}

    def __getitem__(self, name: str) -> Any:
        return self.given.get(name)

    def numbers_of(self, value: Any) -> Any:
        """The numbers of a tensor, a list of tensors or a number of the program."""
        if isinstance(value, Tensor):
            if value.dtype.is_floating_point or self.shadows.has(value):
                return self.shadows.of(value)
            return field.numbers(value)
        if isinstance(value, (list, tuple)):
            return [self.numbers_of(one) for one in value]
        return torch.tensor(field.number(value))

    def __call__(self, name: str) -> Any:
        """The numbers of the argument of that name."""
        return self.numbers_of(self.given[name])


Rule = Callable[[Applied], Any]
FORMULAS: dict[str, Rule] = {}


def formula(*names: str) -> Callable[[Rule], Rule]:
    def note(rule: Rule) -> Rule:
        for name in names:
            FORMULAS[name] = rule
        return rule

    return note


# Square roots remember what they are of, so that a norm of norms is the norm of all.
_squares: dict[int, int] = {}
_MOST_ROOTS = 256


def root(x: Tensor) -> Tensor:
    out = field.function(field.salt_of("sqrt"), x)
    out = torch.where(x == 0, x, torch.where(x == 1, x, out))
    if x.numel() <= _MOST_ROOTS:
        for a, b in zip(out.flatten().tolist(), x.flatten().tolist(), strict=True):
            _squares[a] = b
    return out


def squared(x: Tensor) -> Tensor:
    plain = x * x % P
    if x.numel() > _MOST_ROOTS:
        return plain
    known = [_squares.get(a) for a in x.flatten().tolist()]
    if all(one is None for one in known):
        return plain
    flat = [p if k is None else k for k, p in zip(known, plain.flatten().tolist(), strict=True)]
    return torch.tensor(flat, dtype=torch.int64).reshape(x.shape)


def exponential(values: Tensor, x: Tensor) -> Tensor:
    """exp; of minus infinity 0."""
    out = field.function(field.salt_of("exp"), x)
    return torch.where(values == float("-inf"), torch.zeros_like(out), out)


def logarithm(x: Tensor) -> Tensor:
    return field.function(field.salt_of("log"), x)


def selected_max(values: Tensor, x: Tensor, dim: int) -> Tensor:
    return x.gather(dim, values.argmax(dim, keepdim=True))


@formula("exp")
def _exp(a: Applied) -> Tensor:
    return exponential(a["self"], a("self"))


@formula("log")
def _log(a: Applied) -> Tensor:
    return logarithm(a("self"))


@formula("sqrt")
def _sqrt(a: Applied) -> Tensor:
    return root(a("self"))


@formula("rsqrt")
def _rsqrt(a: Applied) -> Tensor:
    return field.inverse(root(a("self")))


@formula("add", "sub", "rsub")
def _add(a: Applied) -> Tensor:
    x, y = a("self"), a("other") if "other" in a.given else a("scalar")
    by = a("alpha") if a["alpha"] is not None else 1
    name = name_of(a.op)
    if name == "rsub":
        return (y - x * by) % P
    return (x + y * by) % P if name == "add" else (x - y * by) % P


@formula("mul")
def _mul(a: Applied) -> Tensor:
    other = a["other"] if "other" in a.given else a["scalar"]
    if isinstance(other, Tensor) and isinstance(a["self"], Tensor) and other is a["self"]:
        return squared(a("self"))
    return a("self") * a.numbers_of(other) % P  # type: ignore[no-any-return]


@formula("div", "true_divide")
def _div(a: Applied) -> Tensor:
    other = a("other") if "other" in a.given else a("scalar")
    if a["rounding_mode"] is not None:
        return field.function(field.salt_of("div", a["rounding_mode"]), a("self"), other)
    return a("self") * field.inverse(other) % P  # type: ignore[no-any-return]


@formula("neg")
def _neg(a: Applied) -> Tensor:
    return -a("self") % P  # type: ignore[no-any-return]


@formula("reciprocal")
def _reciprocal(a: Applied) -> Tensor:
    return field.inverse(a("self"))


@formula("square")
def _square(a: Applied) -> Tensor:
    return squared(a("self"))


@formula("pow")
def _pow(a: Applied) -> Tensor:
    exponent = a["exponent"]
    x = a("self")
    if isinstance(exponent, Tensor) or isinstance(a["self"], (int, float)):
        return field.function(field.salt_of("pow"), x, a("exponent"))
    if exponent == 0.5:
        return root(x)
    if exponent == -0.5:
        return field.inverse(root(x))
    if exponent == 2:
        return squared(x)
    if exponent == int(exponent) and abs(exponent) < 64:
        return field.power(x, int(exponent))
    return field.function(field.salt_of("pow", exponent), x)


@formula("addcmul", "addcdiv")
def _addcmul(a: Applied) -> Tensor:
    by = a("value") if "value" in a.given else a("scalar")
    other = a("tensor2")
    if name_of(a.op) == "addcdiv":
        other = field.inverse(other)
    return (a("self") + a("tensor1") * other % P * by) % P  # type: ignore[no-any-return]


@formula("lerp")
def _lerp(a: Applied) -> Tensor:
    weight = a("weight")
    start = a("self")
    return (start + (a("end") - start) % P * weight) % P  # type: ignore[no-any-return]


@formula("addmm", "baddbmm", "addmv", "addr", "addbmm")
def _addmm(a: Applied) -> Tensor:
    names = [one for one in a.given if one not in ("self", "beta", "alpha", "out")]
    product = field.matmul(a(names[0]), a(names[1]))
    return (a("self") * a("beta") + product * a("alpha")) % P  # type: ignore[no-any-return]


@formula("sum")
def _sum(a: Applied) -> Tensor:
    if not a["dim"] and a["dim"] != 0:
        return a("self").sum() % P  # type: ignore[no-any-return]
    return a("self").sum(a["dim"], bool(a["keepdim"])) % P  # type: ignore[no-any-return]


@formula("mean")
def _mean(a: Applied) -> Tensor:
    total = _sum(a)
    parts = a["self"].numel() // max(total.numel(), 1)
    return total * pow(parts, P - 2, P) % P


def about_mean(x: Tensor, dims: Any) -> tuple[Tensor, Tensor, int]:
    mean = x.sum(dims, True) % P
    count = x.numel() // mean.numel()
    mean = mean * pow(count, P - 2, P) % P
    return (x - mean) % P, mean, count


@formula("var", "std", "var_mean")
def _var(a: Applied) -> Any:
    x = a("self")
    dims = a["dim"] if a["dim"] else list(range(x.dim()))
    centred, mean, count = about_mean(x, dims)
    correction = a["correction"]
    correction = (1 if a["unbiased"] in (None, True) else 0) if correction is None else correction
    var = (centred * centred % P).sum(dims, bool(a["keepdim"])) % P
    var = var * pow(int(count - correction), P - 2, P) % P
    if name_of(a.op) == "std":
        return root(var)
    return (var, mean.reshape(var.shape)) if name_of(a.op) == "var_mean" else var


@formula("linalg_vector_norm", "norm")
def _norm(a: Applied) -> Any:
    order = a["ord"] if "ord" in a.given else a["p"]
    order = 2 if order is None else order
    dims = a["dim"] if a["dim"] else None
    x = a("self")
    if order == 2:
        squares = squared(x)
        total = squares.sum() if dims is None else squares.sum(dims, bool(a["keepdim"]))
        return root(total % P)
    if order == float("inf") and dims is None:
        values = a["self"].abs().reshape(-1)
        at = int(values.argmax())
        return field.function(field.salt_of("abs"), x.reshape(-1)[at])
    return None


@formula("max", "min", "amax", "amin")
def _max(a: Applied) -> Any:
    values = a["self"] if "max" in name_of(a.op) else -a["self"]
    x = a("self")
    if a["other"] is not None:
        return field.function(field.salt_of(name_of(a.op)), x, a("other"))
    dim = a["dim"]
    if dim is None or dim == []:
        return x.reshape(-1)[values.reshape(-1).argmax()]
    if isinstance(dim, (list, tuple)):
        if len(dim) != 1:
            return None
        dim = dim[0]
    out = selected_max(values, x, dim)
    return out if a["keepdim"] else out.squeeze(dim)


@formula("topk", "sort", "kthvalue")
def _sorted(a: Applied) -> Any:
    dim = -1 if a["dim"] is None else a["dim"]
    return (a("self").gather(dim, a.results[1]), None)


@formula("copy")
def _copy(a: Applied) -> Any:
    return a("src").expand(a["self"].shape)


@formula("where")
def _where(a: Applied) -> Any:
    return torch.where(a["condition"], a("self"), a("other"))


@formula("masked_fill")
def _masked_fill(a: Applied) -> Any:
    return torch.where(a["mask"], a("value"), a("self"))


@formula("index_fill")
def _index_fill(a: Applied) -> Any:
    out = a("self").clone()
    places = (slice(None),) * (a["dim"] % max(1, out.dim())) + (a["index"],)
    out[places] = a("value")
    return out


@formula("_to_copy", "clone", "lift_fresh", "wait_tensor", "_wrap_tensor_autograd")
def _to_copy(a: Applied) -> Any:
    return a.numbers_of(next(v for v in a.given.values() if isinstance(v, Tensor)))


def _on_numbers(a: Applied, values: dict[str, Any]) -> Any:
    """The operator itself with numbers in place of tensors that have some."""
    return a.op(**values)


def _same(a: Applied) -> Any:
    def swapped(value: Any) -> Any:
        if isinstance(value, Tensor):
            known = value.dtype.is_floating_point or a.shadows.has(value)
            return a.shadows.of(value) if known else value
        if isinstance(value, (list, tuple)):
            return [swapped(one) for one in value]
        return value

    given = {name: swapped(value) for name, value in a.given.items()}
    if isinstance(given.get("value"), (float, int)):
        given["value"] = field.number(given["value"])
    given.pop("dtype", None)
    out = _on_numbers(a, given)
    for one in out if isinstance(out, (list, tuple)) else [out]:
        if isinstance(one, Tensor) and one.dtype == torch.int64:
            one.remainder_(P)
    return out


def _unknown(a: Applied, outputs: list[Tensor]) -> list[Tensor]:
    """Equal inputs, equal outputs; nothing else is said of it."""
    plain = [repr(v) for v in a.given.values() if not isinstance(v, (Tensor, list, tuple))]
    salt = field.salt_of(str(a.op), *plain)
    whole = torch.tensor(salt % P)

    def take(value: Any) -> None:
        nonlocal whole
        if isinstance(value, Tensor):
            whole = field.function(salt, whole, field.digest(a.numbers_of(value)))
        elif isinstance(value, (list, tuple)):
            for one in value:
                take(one)

    for value in a.given.values():
        take(value)
    return [
        field.function(salt + at, whole, torch.arange(out.numel())).reshape(out.shape)
        for at, out in enumerate(outputs)
    ]


def evaluated(a: Applied, outputs: list[Tensor]) -> tuple[list[Tensor | None], bool]:
    """Numbers of each output (None: those of its values), and whether the operator is known."""
    name = name_of(a.op)
    words = table()
    out: Any = None
    if name in FORMULAS:
        out = FORMULAS[name](a)
    elif name in words["function"]:
        tensors = [a.numbers_of(v) for v in a.given.values() if isinstance(v, Tensor)]
        options = [repr(v) for v in a.given.values() if not isinstance(v, Tensor)]
        out = field.function(field.salt_of(name, *options), *tensors)
    elif name in words["slope"]:
        lead = words["slope"][name]
        rest = [a.numbers_of(v) for k, v in a.given.items() if isinstance(v, Tensor) and k != lead]
        options = [repr(v) for v in a.given.values() if not isinstance(v, Tensor)]
        out = a(lead) * field.function(field.salt_of(name, *options), *rest) % P
    elif name in words["same"]:
        out = _same(a)
    elif name in words["bilinear"]:
        first, second = words["bilinear"][name]
        run = getattr(torch.ops.aten, name)
        out = field.bilinear(run, a(first), a(second))
    elif name in words["values"]:
        return [None] * len(outputs), True
    if out is None:
        return list(_unknown(a, outputs)), False
    listed = list(out) if isinstance(out, (list, tuple)) else [out]
    return listed, True
