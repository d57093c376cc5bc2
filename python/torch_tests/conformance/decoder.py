"""A decoder of the Llama family in plain modules, named as in checkpoints, or a stage of it."""

import torch
from torch import nn
from torch.nn import functional as F


def rotated(x, angles):
    """Halves of each head turned by the positions' angles: x (samples, heads, tokens, size)."""
    one, two = x.chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((one * cos - two * sin, two * cos + one * sin), -1)


class Attention(nn.Module):
    def __init__(self, said):
        super().__init__()
        width, heads = said["hidden_size"], said["num_attention_heads"]
        self.size = width // heads
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, said["num_key_value_heads"] * self.size, bias=False)
        self.v_proj = nn.Linear(width, said["num_key_value_heads"] * self.size, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x, angles):
        q, k, v = (
            one(x).unflatten(-1, (-1, self.size)).transpose(1, 2)
            for one in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = rotated(q, angles).to(v.dtype), rotated(k, angles).to(v.dtype)
        repeats = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(repeats, 1), v.repeat_interleave(repeats, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, said):
        super().__init__()
        width, inner = said["hidden_size"], said["intermediate_size"]
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, said):
        super().__init__()
        self.input_layernorm = nn.RMSNorm(said["hidden_size"], said["rms_norm_eps"])
        self.self_attn = Attention(said)
        self.post_attention_layernorm = nn.RMSNorm(said["hidden_size"], said["rms_norm_eps"])
        self.mlp = Mlp(said)

    def forward(self, x, angles):
        x = x + self.self_attn(self.input_layernorm(x), angles)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    """Blocks first to last of the model; with the embedding before the first of all, with last norm
    and output behind the last. `angles` (tokens, half a head) is no buffer: a part of the sequence
    takes its own part of it."""

    def __init__(self, said, first=0, last=None):
        super().__init__()
        blocks = said["num_hidden_layers"]
        last = blocks if last is None else last
        width = said["hidden_size"]
        size = width // said["num_attention_heads"]
        self.embed_tokens = nn.Embedding(said["vocab_size"], width) if first == 0 else None
        self.layers = nn.ModuleList(Block(said) for _ in range(first, last))
        self.norm = nn.RMSNorm(width, said["rms_norm_eps"]) if last == blocks else None
        self.lm_head = nn.Linear(width, said["vocab_size"], bias=False) if last == blocks else None
        if said["tie_word_embeddings"] and self.embed_tokens and self.lm_head:
            self.lm_head.weight = self.embed_tokens.weight
        rates = said["rope_theta"] ** (-torch.arange(0, size, 2) / size)
        self.angles = torch.arange(said["max_position_embeddings"])[:, None] * rates

    def forward(self, x, length=None):
        if self.embed_tokens is not None:
            length = x.shape[1]
            x = self.embed_tokens(x)
        angles = self.angles[: length or self.length]
        for block in self.layers:
            x = block(x, angles)
        return x if self.norm is None else self.lm_head(self.norm(x))


def loss_of(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())
