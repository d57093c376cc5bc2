"""The sequence divided: each rank has a part of the tokens, keys and values of all are gathered."""

import torch
import torch.distributed as dist
from tiny import LENGTH, WIDTH, Decoder, loader
from torch.nn import functional as F

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
part = LENGTH // world


class Gather(torch.autograd.Function):
    """Parts of a sequence to the whole; gradients of the whole are summed to parts."""

    @staticmethod
    def forward(ctx, x):
        parts = [torch.empty_like(x) for _ in range(world)]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts, 1)

    @staticmethod
    def backward(ctx, g):
        out = torch.empty_like(g[:, :part].contiguous())
        dist.reduce_scatter(out, [one.contiguous() for one in g.chunk(world, 1)])
        return out


def attend(self, x):
    q, k, v = self.q(x), Gather.apply(self.k(x)), Gather.apply(self.v(x))
    q, k, v = (one.unflatten(-1, (-1, 4)).transpose(1, 2) for one in (q, k, v))
    place = torch.arange(rank * part, (rank + 1) * part)
    later = torch.arange(LENGTH) > place[:, None]
    scores = (q @ k.transpose(-1, -2) / 2).masked_fill(later, float("-inf"))
    return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


torch.manual_seed(0)
model = Decoder()
assert model.blocks[0].attention.q.in_features == WIDTH
type(model.blocks[0].attention).forward = attend
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for words, labels in loader(4, 0, 1):
    words, labels = (one[:, rank * part : (rank + 1) * part] for one in (words, labels))
    logits = model(words).flatten(0, 1)
    loss = F.cross_entropy(logits, labels.flatten()) / world
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
    optimizer.zero_grad()
