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
    """"mul" of mul_.Tensor, mul.out and _foreach_mul_."""
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


def _centred(x: Tensor, dims: Any) -> tuple[Tensor, Tensor, int]:
    mean = x.sum(dims, True) % P
    count = x.numel() // mean.numel()
    mean = mean * pow(count, P - 2, P) % P
    return (x - mean) % P, mean, count


@formula("var", "std", "var_mean")
def _var(a: Applied) -> Any:
    x = a("self")
    dims = a["dim"] if a["dim"] else list(range(x.dim()))
    centred, mean, count = _centred(x, dims)
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


@formula("_to_copy", "clone", "lift_fresh", "wait_tensor", "_wrap_tensor_autograd")
def _to_copy(a: Applied) -> Any:
    return a.numbers_of(next(v for v in a.given.values() if isinstance(v, Tensor)))


@formula("_softmax", "softmax")
def _softmax(a: Applied) -> Tensor:
    values, x, dim = a["self"], a("self"), a["dim"]
    powers = exponential(values, (x - selected_max(values, x, dim)) % P)
    return powers * field.inverse(powers.sum(dim, True) % P) % P


@formula("_log_softmax", "log_softmax")
def _log_softmax(a: Applied) -> Tensor:
    values, x, dim = a["self"], a("self"), a["dim"]
    shifted = (x - selected_max(values, x, dim)) % P
    total = exponential(values, shifted).sum(dim, True) % P
    return (shifted - logarithm(total)) % P


@formula("_softmax_backward_data")
def _softmax_backward(a: Applied) -> Tensor:
    g, y, dim = a("grad_output"), a("output"), a["dim"]
    product = g * y % P
    return (product - y * (product.sum(dim, True) % P)) % P  # type: ignore[no-any-return]


@formula("_log_softmax_backward_data")
def _log_softmax_backward(a: Applied) -> Tensor:
    g, dim = a("grad_output"), a["dim"]
    total = g.sum(dim, True) % P
    return (g - exponential(a["output"], a("output")) * total) % P  # type: ignore[no-any-return]


def _losses(a: Applied) -> tuple[Tensor, Tensor, Tensor]:
    """Targets and weights of the entries of a classification, with the class in dim 1."""
    target = a["target"]
    valid = target != a["ignore_index"]
    safe = torch.where(valid, target, torch.zeros_like(target))
    weights = valid.long()
    if a["weight"] is not None:
        weights = a("weight")[safe] * weights
    return safe, weights, valid


@formula("nll_loss_forward", "nll_loss2d_forward")
def _nll(a: Applied) -> Any:
    x = a("self")
    safe, weights, _ = _losses(a)
    dim = 0 if x.dim() == 1 else 1
    picked = x.gather(dim, safe.unsqueeze(dim)).squeeze(dim)
    losses = -picked * weights % P
    total = weights.sum() % P
    if a["reduction"] == 0:
        return losses, torch.zeros((), dtype=torch.int64)
    out = losses.sum() % P
    return (out * field.inverse(total) % P if a["reduction"] == 1 else out), total


@formula("nll_loss_backward", "nll_loss2d_backward")
def _nll_backward(a: Applied) -> Any:
    x = a["self"]
    safe, weights, _ = _losses(a)
    dim = 0 if x.dim() == 1 else 1
    g = a("grad_output")
    if a["reduction"] == 1:
        g = g * field.inverse(weights.sum() % P) % P
    out = torch.zeros(x.shape, dtype=torch.int64)
    return out.scatter(dim, safe.unsqueeze(dim), (-g * weights % P).unsqueeze(dim)) % P


@formula("mse_loss", "mse_loss_backward")
def _mse(a: Applied) -> Any:
    apart = (a("self") - a("target")) % P
    mean = pow(apart.numel(), P - 2, P) if a["reduction"] == 1 else 1
    if "grad_output" in a.given:
        return a("grad_output") * (2 * apart % P) % P * mean % P
    squares = apart * apart % P
    return squares if a["reduction"] == 0 else squares.sum() % P * mean % P


@formula("native_layer_norm")
def _layer_norm(a: Applied) -> Any:
    x = a("input")
    dims = list(range(x.dim() - len(a["normalized_shape"]), x.dim()))
    centred, mean, count = _centred(x, dims)
    var = (centred * centred % P).sum(dims, True) % P * pow(count, P - 2, P) % P
    rstd = field.inverse(root((var + field.number(a["eps"])) % P))
    out = centred * rstd % P
    if a["weight"] is not None:
        out = out * a("weight") % P
    if a["bias"] is not None:
        out = (out + a("bias")) % P
    return out, mean, rstd


@formula("native_layer_norm_backward")
def _layer_norm_backward(a: Applied) -> Any:
    x, g = a("input"), a("grad_out")
    dims = list(range(x.dim() - len(a["normalized_shape"]), x.dim()))
    rows = list(range(x.dim() - len(a["normalized_shape"])))
    rstd = a("rstd")
    hat = (x - a("mean")) % P * rstd % P
    scaled = g * a("weight") % P if a["weight"] is not None else g
    count = hat.numel() // rstd.numel()
    over = pow(count, P - 2, P)
    m1 = scaled.sum(dims, True) % P * over % P
    m2 = (scaled * hat % P).sum(dims, True) % P * over % P
    dx = (scaled - m1 - hat * m2 % P) % P * rstd % P
    dw, db = (g * hat % P), g
    if rows:
        dw, db = dw.sum(rows) % P, db.sum(rows) % P
    return dx, dw, db


@formula("_fused_rms_norm")
def _rms_norm(a: Applied) -> Any:
    x = a("input")
    dims = list(range(x.dim() - len(a["normalized_shape"]), x.dim()))
    total = (x * x % P).sum(dims, True) % P
    mean = total * pow(x.numel() // max(total.numel(), 1), P - 2, P) % P
    eps = a["eps"] if a["eps"] is not None else torch.finfo(a["input"].dtype).eps
    rstd = field.inverse(root((mean + field.number(eps)) % P))
    out = x * rstd % P
    return (out * a("weight") % P if a["weight"] is not None else out), rstd


@formula("_fused_rms_norm_backward")
def _rms_norm_backward(a: Applied) -> Any:
    x, g, rstd = a("input"), a("grad_out"), a("rstd")
    dims = list(range(x.dim() - len(a["normalized_shape"]), x.dim()))
    rows = list(range(x.dim() - len(a["normalized_shape"])))
    hat = x * rstd % P
    scaled = g * a("weight") % P if a["weight"] is not None else g
    over = pow(hat.numel() // max(rstd.numel(), 1), P - 2, P)
    m2 = (scaled * hat % P).sum(dims, True) % P * over % P
    dw = g * hat % P
    return (scaled - hat * m2 % P) % P * rstd % P, (dw.sum(rows) % P if rows else dw)


def _attention(a: Applied) -> tuple[Tensor, Tensor, Tensor, Tensor, int]:
    """Queries, keys and values in the field, the probabilities and the scale."""
    q, k, v = a("query"), a("key"), a("value")
    scale = a["scale"] if a["scale"] is not None else a["query"].shape[-1] ** -0.5
    by = field.number(scale)
    values = a["query"].double() @ a["key"].double().transpose(-1, -2) * scale
    scores = field.matmul(q, k.transpose(-1, -2)) * by % P
    mask = a["attn_mask"]
    if mask is not None:
        values = values + mask.double()
        scores = (scores + a.numbers_of(mask)) % P
    if a["is_causal"]:
        seen = torch.ones(values.shape[-2:], dtype=torch.bool).tril()
        values = values.masked_fill(~seen, float("-inf"))
    powers = exponential(values, (scores - selected_max(values, scores, -1)) % P)
    return q, k, v, powers * field.inverse(powers.sum(-1, True) % P) % P, by


@formula("_scaled_dot_product_flash_attention_for_cpu")
def _flash(a: Applied) -> Any:
    if a["dropout_p"]:
        return None
    q, _, v, p, _ = _attention(a)
    return field.matmul(p, v), field.function(field.salt_of("lse"), q.sum(-1))


@formula("_scaled_dot_product_flash_attention_for_cpu_backward")
def _flash_backward(a: Applied) -> Any:
    q, k, v, p, by = _attention(a)
    g = a("grad_out")
    dv = field.matmul(p.transpose(-1, -2), g)
    dp = field.matmul(g, v.transpose(-1, -2))
    product = dp * p % P
    ds = (product - p * (product.sum(-1, True) % P)) % P * by % P
    return field.matmul(ds, k), field.matmul(ds.transpose(-1, -2), q), dv


@formula("embedding_dense_backward")
def _embedding_backward(a: Applied) -> Any:
    g, at = a("grad_output"), a["indices"].reshape(-1)
    if a["scale_grad_by_freq"]:
        return None
    rows = g.reshape(at.numel(), -1)
    if a["padding_idx"] >= 0:
        rows = rows * (at != a["padding_idx"]).long().unsqueeze(-1)
    out = torch.zeros((a["num_weights"], rows.shape[1]), dtype=torch.int64)
    return out.index_add(0, at, rows) % P


@formula("native_dropout")
def _dropout(a: Applied) -> Any:
    if not a["train"]:
        return a("input"), None
    scale = pow(field.number(1 - a["p"]), P - 2, P)
    return a("input") * a.results[1].long() % P * scale % P, None


@formula("_amp_foreach_non_finite_check_and_unscale", "_amp_update_scale")
def _unscale(a: Applied) -> Any:
    for tensor in a["self"] if isinstance(a["self"], (list, tuple)) else []:
        numbers = a.numbers_of(tensor)
        numbers.copy_(numbers * a("inv_scale") % P)
    return ()


@formula("_fused_adam", "_fused_adamw")
def _fused_adam(a: Applied) -> Any:
    beta1, beta2 = field.number(a["beta1"]), field.number(a["beta2"])
    lr, decay, eps = a("lr"), field.number(a["weight_decay"]), field.number(a["eps"])
    if a["amsgrad"]:
        return None
    lists = zip(a["self"], a["grads"], a["exp_avgs"], a["exp_avg_sqs"], a["state_steps"],
                strict=True)
    for p_, g_, m_, v_, step in lists:
        p, g, m, v = (a.numbers_of(one) for one in (p_, g_, m_, v_))
        grad = -g if a["maximize"] else g
        if name_of(a.op) == "_fused_adamw":
            p.copy_(p * (1 - lr * decay) % P)
        else:
            grad = (grad + decay * p) % P
        m.copy_((m * beta1 + (1 - beta1) * (grad % P)) % P)
        v.copy_((v * beta2 + (1 - beta2) * (grad * grad % P)) % P)
        count = float(step)
        c1, c2 = field.number(1 - a["beta1"] ** count), field.number(1 - a["beta2"] ** count)
        below = (root(v) * field.inverse(root(torch.tensor(c2))) + eps) % P
        p.copy_((p - lr * m % P * pow(c1, P - 2, P) % P * field.inverse(below)) % P)
    return ()


@formula("convolution")
def _convolution(a: Applied) -> Any:
    if a["input"].dim() < 3:
        return None
    rest = [a[name] for name in ("stride", "padding", "dilation", "transposed", "output_padding",
                                 "groups")]
    run = torch.ops.aten.convolution.default
    out = field.bilinear(lambda x, w: run(x, w, None, *rest), a("input"), a("weight"))
    if a["bias"] is None:
        return out
    return (out + a("bias").reshape(1, -1, *[1] * (out.dim() - 2))) % P


@formula("convolution_backward")
def _convolution_backward(a: Applied) -> Any:
    rest = [a[name] for name in ("stride", "padding", "dilation", "transposed", "output_padding",
                                 "groups")]
    run = torch.ops.aten.convolution_backward.default
    g, x, w = a("grad_output"), a("input"), a("weight")
    like_x, like_w = a["input"].double(), a["weight"].double()

    def one(at: int) -> Any:
        mask = [at == 0, at == 1, False]
        if not a["output_mask"][at]:
            return None
        if at == 0:
            return field.bilinear(lambda u, v: run(u, like_x, v, None, *rest, mask)[0], g, w)
        return field.bilinear(lambda u, v: run(u, v, like_w, None, *rest, mask)[1], g, x)

    bias = g.sum([0, *range(2, g.dim())]) % P if a["output_mask"][2] else None
    return one(0), one(1), bias




@formula("all_gather_copy_in")
def _copy_in(a: Applied) -> Any:
    count = a["all_gather_input_numel"]
    whole = a("all_gather_output").narrow(0, count * a["rank"], count)
    parts = whole.split(list(a["inp_split_sizes"]))
    for part, one in zip(parts, a["all_gather_inputs"], strict=True):
        part.copy_(a.numbers_of(one).reshape(-1))
    return ()


@formula("split_with_sizes_copy")
def _split_copy(a: Applied) -> Any:
    whole = a("all_gather_output") if "all_gather_output" in a.given else a("self")
    sizes = a["all_gather_input_split_sizes"] or a["split_sizes"]
    parts = whole.split(list(sizes), a["dim"])
    if a["out"] is None:
        return list(parts)
    for part, one in zip(parts, a["out"], strict=True):
        a.numbers_of(one).copy_(part)
    return ()


@formula("chunk_cat", "_chunk_cat")
def _chunk_cat(a: Applied) -> Any:
    out = torch._chunk_cat(a("tensors"), a["dim"], a["num_chunks"])
    if a["out"] is None:
        return out
    a.numbers_of(a["out"]).copy_(out.reshape(a["out"].shape))
    return ()


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
