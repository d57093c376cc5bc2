"""A small decoder and its data, for the scripts beside this file."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, DistributedSampler

VOCABULARY, WIDTH, HEADS, LENGTH = 24, 16, 4, 8


class Sentences(Dataset):
    """64 sentences of random words; every third one ends early."""

    def __len__(self):
        return 64

    def __getitem__(self, at):
        generator = torch.Generator().manual_seed(at)
        words = torch.randint(0, VOCABULARY, (LENGTH + 1,), generator=generator)
        labels = words[1:].clone()
        if at % 3 == 0:
            labels[LENGTH // 2 + at % 2 :] = -100
        return words[:-1], labels


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(WIDTH, WIDTH, bias=False)
        self.k = nn.Linear(WIDTH, WIDTH, bias=False)
        self.v = nn.Linear(WIDTH, WIDTH, bias=False)
        self.o = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        q, k, v = (
            one(x).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)
            for one in (self.q, self.k, self.v)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention = nn.RMSNorm(WIDTH), Attention()
        self.norm2, self.mlp = nn.RMSNorm(WIDTH), Mlp()

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, blocks=2):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(blocks))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, words):
        x = self.embedding(words)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class FullSentences(Sentences):
    def __getitem__(self, at):
        words, labels = super().__getitem__(at)
        return words, torch.where(labels < 0, words, labels)


def loader(batch=4, rank=None, ranks=None, dataset=None):
    dataset = dataset or FullSentences()
    return DataLoader(dataset, batch, sampler=DistributedSampler(dataset, ranks, rank, False))


def loss_of(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())
