#!/usr/bin/env python3
"""Losses of four small models trained by PyTorch in binary64, from the initial values and samples
that src/execute/fill.cc draws: ten steps of AdamW on four samples of eight tokens each.

Prints the figures that tests/execute/pytorch_test.cc holds. Needs torch (CPU):
    python3 tests/execute/pytorch_losses.py
"""

import math
import struct

import torch

torch.set_default_dtype(torch.float64)

MASK = (1 << 64) - 1
SEED, STEPS, SAMPLES, TOKENS, VOCAB = 1, 10, 4, 8, 24
HIDDEN, HEADS, KV_HEADS, SIZE, FFN, BLOCKS = 16, 2, 1, 8, 64, 2
EXPERTS, CHOSEN = 4, 2


def mixed(x):
    x &= MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def number_of(name):
    h = (0x9E3779B97F4A7C15 + len(name)) & MASK
    for c in name.encode():
        h = (mixed(h ^ c) + 0x632BE59BD9B4E019) & MASK
    return h


def single(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def normal(h):
    total = -6.0
    for i in range(12):
        total += math.ldexp(mixed(h + i * 0x632BE59BD9B4E019) >> 11, -53)
    return total


def drawn(name, shape, factor=False):
    vector = len(shape) < 2
    centre = 1.0 if vector and factor else 0.0
    width = 0.1 if vector else 0.5 / math.sqrt(shape[-1])
    key = mixed(number_of(name) + SEED)
    numbers = [single(centre + width * normal(key ^ mixed(e))) for e in range(math.prod(shape))]
    return torch.nn.Parameter(torch.tensor(numbers).reshape(shape))


def samples(step):
    """Ids, labels and weights of a step."""
    key = mixed((SEED * 0x100000001B3 + step) & MASK)
    rows = []
    for sample in range(SAMPLES):
        own, ids = mixed(key ^ (sample + 77)), []
        for t in range(TOKENS + 1):
            h = mixed(own + t * 0x9E3779B97F4A7C15)
            new = t == 0 or h % 8 == 0
            ids.append((h >> 8) % VOCAB if new else (3 * ids[-1] + 7) % VOCAB)
        rows.append(ids)
    weights = [0.0 if mixed(key ^ mixed(e + 1)) % 8 == 0 else 1.0 for e in range(SAMPLES * TOKENS)]
    rows = torch.tensor(rows)
    return rows[:, :-1], rows[:, 1:], torch.tensor(weights).reshape(SAMPLES, TOKENS)


def attention(q, k, v):
    """[sample token head size]; keys and values of fewer heads are shared by neighbours."""
    k = k.repeat_interleave(q.shape[2] // k.shape[2], dim=2)
    v = v.repeat_interleave(q.shape[2] // v.shape[2], dim=2)
    scores = torch.einsum("sthe,suhe->shtu", q, k) / math.sqrt(q.shape[-1])
    unseen = torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1)
    return torch.einsum("shtu,suhe->sthe", scores.masked_fill(unseen, -math.inf).softmax(-1), v)


class Gpt2:
    def __init__(self):
        self.p = p = {}

        def add(name, *shape, factor=False):
            p[name] = drawn(name, shape, factor)

        add("transformer.wte.weight", VOCAB, HIDDEN)
        add("transformer.wpe.weight", TOKENS, HIDDEN)
        for b in range(BLOCKS):
            h = f"transformer.h.{b}."
            for norm in ("ln_1", "ln_2"):
                add(h + norm + ".weight", HIDDEN, factor=True)
                add(h + norm + ".bias", HIDDEN)
            for piece in ("", ".1", ".2"):
                add(h + "attn.c_attn.weight" + piece, HEADS, SIZE, HIDDEN)
                add(h + "attn.c_attn.bias" + piece, HEADS, SIZE)
            add(h + "attn.c_proj.weight", HIDDEN, HEADS, SIZE)
            add(h + "attn.c_proj.bias", HIDDEN)
            add(h + "mlp.c_fc.weight", FFN, HIDDEN)
            add(h + "mlp.c_fc.bias", FFN)
            add(h + "mlp.c_proj.weight", HIDDEN, FFN)
            add(h + "mlp.c_proj.bias", HIDDEN)
        add("transformer.ln_f.weight", HIDDEN, factor=True)
        add("transformer.ln_f.bias", HIDDEN)

    def norm(self, x, name):
        p = self.p
        return torch.nn.functional.layer_norm(
            x, (HIDDEN,), p[name + ".weight"], p[name + ".bias"], 1e-5
        )

    def logits(self, ids):
        p = self.p
        x = p["transformer.wte.weight"][ids] + p["transformer.wpe.weight"]
        for b in range(BLOCKS):
            h = f"transformer.h.{b}."
            y = self.norm(x, h + "ln_1")
            qkv = [
                torch.einsum("std,hed->sthe", y, p[h + "attn.c_attn.weight" + n])
                + p[h + "attn.c_attn.bias" + n]
                for n in ("", ".1", ".2")
            ]
            context = attention(*qkv)
            x = x + torch.einsum("sthe,dhe->std", context, p[h + "attn.c_proj.weight"])
            x = x + p[h + "attn.c_proj.bias"]
            y = self.norm(x, h + "ln_2") @ p[h + "mlp.c_fc.weight"].T + p[h + "mlp.c_fc.bias"]
            y = torch.nn.functional.gelu(y, approximate="tanh")
            x = x + y @ p[h + "mlp.c_proj.weight"].T + p[h + "mlp.c_proj.bias"]
        return self.norm(x, "transformer.ln_f") @ p["transformer.wte.weight"].T


class Llama:
    MLP = {
        "mlp.gate_proj": (FFN, HIDDEN),
        "mlp.up_proj": (FFN, HIDDEN),
        "mlp.down_proj": (HIDDEN, FFN),
    }

    def __init__(self):
        self.p = p = {}

        def add(name, *shape, factor=False):
            p[name] = drawn(name, shape, factor)

        add("model.embed_tokens.weight", VOCAB, HIDDEN)
        for b in range(BLOCKS):
            h = f"model.layers.{b}."
            add(h + "input_layernorm.weight", HIDDEN, factor=True)
            add(h + "post_attention_layernorm.weight", HIDDEN, factor=True)
            for name, shape in LLAMA_ATTENTION.items():
                add(h + "self_attn." + name + ".weight", *shape)
            for name, shape in self.MLP.items():
                add(h + name + ".weight", *shape)
        add("model.norm.weight", HIDDEN, factor=True)
        add("lm_head.weight", VOCAB, HIDDEN)

    def norm(self, x, name):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.p[name + ".weight"]

    @staticmethod
    def turned(x):
        half = SIZE // 2
        plane = torch.arange(half, dtype=torch.float64)
        angle = torch.arange(TOKENS, dtype=torch.float64)[:, None] * 10000 ** (-2 * plane / SIZE)
        cos, sin = angle.cos()[:, None, :], angle.sin()[:, None, :]
        a, b = x[..., :half], x[..., half:]
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def logits(self, ids):
        p = self.p
        x = p["model.embed_tokens.weight"][ids]
        for b in range(BLOCKS):
            h = f"model.layers.{b}."
            y = self.norm(x, h + "input_layernorm")
            w = [p[h + f"self_attn.{n}_proj.weight"] for n in "qkvo"]
            q = torch.einsum("std,ghed->stghe", y, w[0]).flatten(2, 3)
            k = torch.einsum("std,hed->sthe", y, w[1])
            v = torch.einsum("std,hed->sthe", y, w[2])
            context = attention(self.turned(q), self.turned(k), v)
            x = x + torch.einsum("sthe,dhe->std", context, w[3].flatten(1, 2))
            x = x + self.mlp(self.norm(x, h + "post_attention_layernorm"), h)
        return self.norm(x, "model.norm") @ p["lm_head.weight"].T

    def mlp(self, y, h):
        gate, up, down = (self.p[h + f"mlp.{n}_proj.weight"] for n in ("gate", "up", "down"))
        return gated(y, gate, up, down)


def gated(y, gate, up, down):
    return (torch.nn.functional.silu(y @ gate.T) * (y @ up.T)) @ down.T


class Mixtral(Llama):
    """Experts as in Hugging Face's MixtralSparseMoeBlock: the softmax over all experts, the largest
    of it, these divided by their sum. No balance loss."""

    MLP = {
        "block_sparse_moe.gate": (EXPERTS, HIDDEN),
        "block_sparse_moe.experts.{expert}.w1": (EXPERTS, FFN, HIDDEN),
        "block_sparse_moe.experts.{expert}.w3": (EXPERTS, FFN, HIDDEN),
        "block_sparse_moe.experts.{expert}.w2": (EXPERTS, HIDDEN, FFN),
    }

    def mlp(self, y, h):
        gate, w1, w3, w2 = (self.p[h + name + ".weight"] for name in self.MLP)
        tokens = y.flatten(0, 1)
        weights, experts = (tokens @ gate.T).softmax(-1).topk(CHOSEN, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(tokens)
        for e in range(EXPERTS):
            token, place = (experts == e).nonzero(as_tuple=True)
            made = gated(tokens[token], w1[e], w3[e], w2[e])
            out = out.index_add(0, token, made * weights[token, place, None])
        return out.view_as(y)


# Query heads in groups, one for each head of keys.
LLAMA_ATTENTION = {
    "q_proj": (KV_HEADS, HEADS // KV_HEADS, SIZE, HIDDEN),
    "k_proj": (KV_HEADS, SIZE, HIDDEN),
    "v_proj": (KV_HEADS, SIZE, HIDDEN),
    "o_proj": (HIDDEN, KV_HEADS, HEADS // KV_HEADS, SIZE),
}


class Mamba2:
    """Channels by group: a group's values, keys and queries stand side by side."""

    GROUPS, HEADS, SIZE, STATE, TAPS = 2, 2, 8, 4, 4  # heads of a group
    CHANNELS = HEADS * SIZE

    def __init__(self):
        self.p = p = {}
        groups, mixed = self.GROUPS, self.CHANNELS + 2 * self.STATE

        def add(name, *shape, factor=False):
            p[name] = drawn(name, shape, factor)

        add("backbone.embeddings.weight", VOCAB, HIDDEN)
        for b in range(BLOCKS):
            h = f"backbone.layers.{b}."
            add(h + "norm.weight", HIDDEN, factor=True)
            add(h + "mixer.in_proj.weight", groups, self.CHANNELS, HIDDEN)
            add(h + "mixer.in_proj.weight.1", groups, mixed, HIDDEN)
            add(h + "mixer.in_proj.weight.2", groups, self.HEADS, HIDDEN)
            add(h + "mixer.conv1d.weight", groups, mixed, self.TAPS)
            add(h + "mixer.conv1d.bias", groups, mixed)
            for constant in ("dt_bias", "A_log", "D"):
                add(h + "mixer." + constant, groups, self.HEADS)
            add(h + "mixer.norm.weight", groups, self.CHANNELS)
            add(h + "mixer.out_proj.weight", HIDDEN, groups, self.CHANNELS)
        add("backbone.norm_f.weight", HIDDEN, factor=True)
        add("lm_head.weight", VOCAB, HIDDEN)

    def norm(self, x, name):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.p[name + ".weight"]

    def convolved(self, x, h):
        """[sample token group channel]"""
        w, b = self.p[h + "conv1d.weight"].flatten(0, 1), self.p[h + "conv1d.bias"].flatten()
        flat = torch.nn.functional.pad(x.flatten(2).transpose(1, 2), (self.TAPS - 1, 0))
        y = torch.nn.functional.conv1d(flat, w[:, None], b, groups=w.shape[0])
        return torch.nn.functional.silu(y).transpose(1, 2).reshape(x.shape)

    def scanned(self, mixed, d, h):
        x, keys, queries = mixed.split([self.CHANNELS, self.STATE, self.STATE], dim=-1)
        x = x.unflatten(-1, (self.HEADS, self.SIZE))
        time = torch.nn.functional.softplus(d + self.p[h + "dt_bias"])
        decay = torch.exp(-self.p[h + "A_log"].exp() * time)
        state, out = 0, []
        for t in range(TOKENS):
            new = torch.einsum("sgh,sghp,sgn->sghpn", time[:, t], x[:, t], keys[:, t])
            state = decay[:, t, :, :, None, None] * state + new
            out.append(torch.einsum("sghpn,sgn->sghp", state, queries[:, t]))
        y = torch.stack(out, 1) + self.p[h + "D"][:, :, None] * x
        return y.flatten(3)

    def logits(self, ids):
        p = self.p
        x = p["backbone.embeddings.weight"][ids]
        for b in range(BLOCKS):
            y = self.norm(x, f"backbone.layers.{b}.norm")
            h = f"backbone.layers.{b}.mixer."
            z, mixed, d = (
                torch.einsum("std,gcd->stgc", y, p[h + "in_proj.weight" + n])
                for n in ("", ".1", ".2")
            )
            y = self.scanned(self.convolved(mixed, h), d, h) * torch.nn.functional.silu(z)
            y = y * torch.rsqrt((y * y).mean((-2, -1), keepdim=True) + 1e-5)
            y = y * p[h + "norm.weight"]
            x = x + torch.einsum("stgc,dgc->std", y, p[h + "out_proj.weight"])
        return self.norm(x, "backbone.norm_f") @ p["lm_head.weight"].T


def train(model):
    optimizer = torch.optim.AdamW(
        model.p.values(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01
    )
    for step in range(STEPS):
        ids, labels, weights = samples(step)
        each = torch.nn.functional.cross_entropy(
            model.logits(ids).flatten(0, 1), labels.flatten(), reduction="none"
        )
        loss = (each * weights.flatten()).sum() / weights.sum()
        yield loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


for kind in (Gpt2, Llama, Mixtral, Mamba2):
    print(kind.__name__)
    for loss in train(kind()):
        print(f"    {loss!r},")
