#!/usr/bin/env python3
"""Values and gradients of convolutions and recurrences by PyTorch in binary64, from their papers'
formulas in matrix form.

Prints the figures that tests/execute/recurrences_test.cc holds. Needs torch (CPU):
    python3 tests/execute/pytorch_recurrences.py
"""

import math

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)

TOKENS = 5


def operand(number, *shape):
    """Entry i of operand n: sin(1.3 i + n + 0.7)."""
    count = math.prod(shape)
    entries = [math.sin(1.3 * i + number + 0.7) for i in range(count)]
    return torch.tensor(entries).reshape(shape).requires_grad_()


def weights(count, number):
    return torch.tensor([math.cos(0.9 * i + number) for i in range(count)])


def convolution(x, w, b):
    padded = F.pad(x[None, None], (w.numel() - 1, 0))
    return F.conv1d(padded, w[None, None], b)[0, 0]


def selective_scan(x, d, keys, queries, log_rates, skip):
    state, out = torch.zeros(log_rates.numel()), []
    for t in range(TOKENS):
        time = F.softplus(d[t])
        state = torch.exp(-log_rates.exp() * time) * state + time * x[t] * keys[t]
        out.append(state @ queries[t] + skip * x[t])
    return torch.stack(out)


def head_scan(mixed, d, bias, log_rates, skip, heads=2, size=3, entries=2):
    x, keys, queries = mixed.split([heads * size, entries, entries], dim=1)
    x = x.reshape(TOKENS, heads, size)
    state, out = torch.zeros(heads, size, entries), []
    for t in range(TOKENS):
        time = F.softplus(d[t] + bias)
        decay = torch.exp(-log_rates.exp() * time)
        state = decay[:, None, None] * state
        state = state + torch.einsum("h,hp,n->hpn", time, x[t], keys[t])
        out.append(torch.einsum("hpn,n->hp", state, queries[t]) + skip[:, None] * x[t])
    return torch.stack(out).reshape(TOKENS, -1)


def unit(x):
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)


def delta_rule(mixed, steering, bias, log_rates, heads=2, size=2, entries=3):
    """S = S (a (I - b k k^T)) + b v k^T, with S of values by keys."""
    queries, keys, values = mixed.split([entries, entries, heads * size], dim=1)
    values = values.reshape(TOKENS, heads, size)
    strengths, times = steering.sigmoid()[:, :heads], steering[:, heads:]
    decays = torch.exp(-log_rates.exp() * F.softplus(times + bias))
    state, out = torch.zeros(heads, size, entries), []
    for t in range(TOKENS):
        q, k = unit(queries[t]) / math.sqrt(entries), unit(keys[t])
        heads_out = []
        new = []
        for h in range(heads):
            forget = decays[t, h] * (torch.eye(entries) - strengths[t, h] * torch.outer(k, k))
            new.append(state[h] @ forget + strengths[t, h] * torch.outer(values[t, h], k))
            heads_out.append(new[h] @ q)
        state = torch.stack(new)
        out.append(torch.cat(heads_out))
    return torch.stack(out)


def channel_delta_rule(queries, keys, values, times, strengths, bias, log_rate):
    """S = (I - b k k^T) diag(a) S + b k v^T, with S of keys by values."""
    size = keys.shape[1]
    state, out = torch.zeros(size, values.shape[1]), []
    for t in range(TOKENS):
        q, k = unit(queries[t]) / math.sqrt(size), unit(keys[t])
        strength = strengths[t].sigmoid()
        decay = torch.exp(-log_rate.exp() * F.softplus(times[t] + bias))
        state = torch.diag(decay) @ state
        state = (torch.eye(size) - strength * torch.outer(k, k)) @ state
        state = state + strength * torch.outer(k, values[t])
        out.append(q @ state)
    return torch.stack(out)


def linear_attention(mixed, head=2, heads=4, entries=3):
    """Every query with all keys up to its own, at decays by distance."""
    q, k, v = F.silu(mixed).split(entries, dim=1)
    rate = 2 ** (-8 * (head + 1) / heads)
    distance = torch.arange(TOKENS)[:, None] - torch.arange(TOKENS)[None, :]
    decay = torch.where(distance >= 0, torch.exp(-rate * distance), 0.0)
    return (q @ k.T * decay) @ v


def show(function, *operands):
    y = function(*operands)
    # What y is multiplied by; figures of gradients are sums with weights of their own.
    (y.flatten() * weights(y.numel(), 0)).sum().backward()
    print(function.__name__)
    print("  values", ", ".join(repr(e) for e in y.flatten().tolist()))
    sums = [(x.grad.flatten() * weights(x.numel(), n + 1)).sum() for n, x in enumerate(operands)]
    print("  slopes", ", ".join(repr(e.item()) for e in sums))


show(convolution, operand(0, TOKENS), operand(1, 3), operand(2, 1))
show(selective_scan, operand(0, TOKENS), operand(1, TOKENS), operand(2, TOKENS, 2),
     operand(3, TOKENS, 2), operand(4, 2), operand(5, 1))
show(head_scan, operand(0, TOKENS, 10), operand(1, TOKENS, 2), operand(2, 2), operand(3, 2),
     operand(4, 2))
show(delta_rule, operand(0, TOKENS, 10), operand(1, TOKENS, 4), operand(2, 2), operand(3, 2))
show(channel_delta_rule, operand(0, TOKENS, 3), operand(1, TOKENS, 3), operand(2, TOKENS, 2),
     operand(3, TOKENS, 3), operand(4, TOKENS), operand(5, 3), operand(6, 1))
show(linear_attention, operand(0, TOKENS, 9))
