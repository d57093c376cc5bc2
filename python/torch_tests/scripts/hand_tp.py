"""A perceptron cut by hand: columns of the first matrix, rows of the second, norm on all tokens
of the rank's part of the sequence."""

import torch
import torch.distributed as dist
from tiny import VOCABULARY, WIDTH, loader, loss_of
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()


class Enter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.clone()
        dist.all_reduce(g)
        return g


class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g


class Part(torch.autograd.Function):
    """The rank's part of the sequence; gathered in backward."""

    @staticmethod
    def forward(ctx, x):
        return x.chunk(world, 1)[rank].contiguous()

    @staticmethod
    def backward(ctx, g):
        parts = [torch.empty_like(g) for _ in range(world)]
        dist.all_gather(parts, g.contiguous())
        return torch.cat(parts, 1)


class Whole(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        parts = [torch.empty_like(x) for _ in range(world)]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts, 1)

    @staticmethod
    def backward(ctx, g):
        return g.chunk(world, 1)[rank].contiguous()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        up, down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)
        self.up = nn.Parameter(up.weight.detach().chunk(world, 0)[rank].clone())
        self.up_bias = nn.Parameter(up.bias.detach().chunk(world, 0)[rank].clone())
        self.down = nn.Parameter(down.weight.detach().chunk(world, 1)[rank].clone())
        self.down_bias = nn.Parameter(down.bias.detach().clone())

    def forward(self, words):
        x = self.embedding(words)
        y = Whole.apply(self.norm(Part.apply(x)))
        y = Enter.apply(y)
        y = torch.tanh(y @ self.up.t() + self.up_bias)
        y = Leave.apply(y @ self.down.t())
        return self.head(x + y + self.down_bias)


model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for words, labels in loader(4, 0, 1):
    loss_of(model(words), labels).backward()
    for one in model.norm.parameters():
        dist.all_reduce(one.grad)
    optimizer.step()
    optimizer.zero_grad()
