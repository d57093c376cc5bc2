"""Experts divided among ranks, everything else replicated: tokens go to the rank of their expert
and back (all-to-all), each expert's gradients are those of all ranks' tokens."""

import torch
import torch.distributed as dist
from tiny import VOCABULARY, WIDTH, loader, loss_of
from torch import nn

EXPERTS = 4
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
own = EXPERTS // world


class Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, sent, received):
        ctx.splits = sent, received
        out = x.new_empty(sum(received), x.shape[1])
        dist.all_to_all_single(out, x.contiguous(), received, sent)
        return out

    @staticmethod
    def backward(ctx, g):
        sent, received = ctx.splits
        out = g.new_empty(sum(sent), g.shape[1])
        dist.all_to_all_single(out, g.contiguous(), sent, received)
        return out, None, None


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        up = torch.randn(EXPERTS, WIDTH, 2 * WIDTH) / WIDTH**0.5
        down = torch.randn(EXPERTS, 2 * WIDTH, WIDTH) / WIDTH**0.5
        self.up = nn.Parameter(up[rank * own : (rank + 1) * own].clone())
        self.down = nn.Parameter(down[rank * own : (rank + 1) * own].clone())

    def forward(self, x):
        flat = x.flatten(0, 1)
        weight, chosen = self.router(flat).softmax(-1).max(-1)
        order = chosen.argsort(stable=True)
        counts = torch.bincount(chosen, minlength=EXPERTS)
        theirs = torch.empty_like(counts)
        dist.all_to_all_single(theirs, counts)
        sent = counts.view(world, own).sum(1).tolist()
        received = theirs.view(world, own).sum(1).tolist()
        mine = Exchange.apply(flat[order], sent, received)
        expert = torch.arange(own).repeat(world).repeat_interleave(theirs)
        out = torch.zeros_like(mine)
        for at in range(own):
            tokens = (expert == at).nonzero()[:, 0]
            y = torch.tanh(mine[tokens] @ self.up[at]) @ self.down[at]
            out = out.index_copy(0, tokens, y)
        back = Exchange.apply(out, received, sent)
        y = torch.zeros_like(flat).index_copy(0, order, back)
        return x + (y * weight.unsqueeze(-1)).view_as(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.Sequential(Experts(), Experts())
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, words):
        return self.head(self.blocks(self.embedding(words)))


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for words, labels in loader():
    loss_of(model(words), labels).backward()
    for name, parameter in model.named_parameters():
        if not name.endswith((".up", ".down")):
            dist.all_reduce(parameter.grad)
        parameter.grad /= world
    optimizer.step()
    optimizer.zero_grad()
