"""Formulas of operators that are a layer or more: softmax, norms, attention, losses, optimizers,
convolutions, and the copies of FSDP2."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import _field as field
from ._operators import (
    Applied,
    about_mean,
    exponential,
    formula,
    logarithm,
    name_of,
    root,
    selected_max,
)

P = field.P


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
    centred, mean, count = about_mean(x, dims)
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
    lists = zip(
        a["self"], a["grads"], a["exp_avgs"], a["exp_avg_sqs"], a["state_steps"], strict=True
    )
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
    rest = [
        a[name]
        for name in ("stride", "padding", "dilation", "transposed", "output_padding", "groups")
    ]
    run = torch.ops.aten.convolution.default
    out = field.bilinear(lambda x, w: run(x, w, None, *rest), a("input"), a("weight"))
    if a["bias"] is None:
        return out
    return (out + a("bias").reshape(1, -1, *[1] * (out.dim() - 2))) % P


@formula("convolution_backward")
def _convolution_backward(a: Applied) -> Any:
    rest = [
        a[name]
        for name in ("stride", "padding", "dilation", "transposed", "output_padding", "groups")
    ]
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
