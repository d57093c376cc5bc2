"""Pipelines of torch.distributed.pipelining: what one rank holds, and a step of it."""

import torch
from decoder import Decoder, loss_of
from torch.distributed import pipelining
from torch.distributed.pipelining import PipelineStage


def _blocks(case, stages):
    """Where each stage begins and ends: as equal as can be, the first ones larger."""
    from table import model_of

    count = model_of(case)["num_hidden_layers"]
    each, more = divmod(count, stages)
    ends = [0]
    for at in range(stages):
        ends.append(ends[-1] + each + (at < more))
    return [range(first, last) for first, last in zip(ends, ends[1:], strict=False)]


def _stages_of(rank, ranks, chunks, shape):
    """Virtual stages of a rank: in turn ("loop"), or from both ends ("v")."""
    if shape == "v":
        return [rank, 2 * ranks - 1 - rank]
    return [rank + ranks * chunk for chunk in range(chunks)]


class _All(torch.nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(parts)


def note_waiting(stage, waiting):
    """What gradients take just before the stage reduces them."""
    from engines import gradient_bytes

    if not hasattr(stage, "perform_reduce_grad"):
        return

    def run(scale):
        waiting.append(gradient_bytes())
        return type(stage).perform_reduce_grad(stage, scale)

    stage.perform_reduce_grad = run


def prepared(case, mesh, waiting):
    """The rank's modules, its optimizer, and a step that runs the schedule once. `waiting` gets
    the bytes of gradients that wait for the end of the schedule."""
    from engines import optimizer_of, samples, wrapped
    from table import model_of

    said = case["pipeline"]
    pipe = mesh["pp"]
    rank, ranks = pipe.get_local_rank(), pipe.size()
    chunks = said.get("chunks", 1)
    blocks = _blocks(case, ranks * chunks)
    parts, made = [], []
    for at in _stages_of(rank, ranks, chunks, said.get("shape", "loop")):
        model = Decoder(model_of(case), blocks[at].start, blocks[at].stop)
        model.length = 16
        parts.append(wrapped(model, case, mesh))
        made.append(
            PipelineStage(
                parts[-1], at, ranks * chunks, torch.device("cpu"), group=pipe.get_group()
            )
        )
    kind = getattr(pipelining, said["schedule"])
    micro = case.get("micro_batches", 1)
    plan = kind(made if chunks > 1 else made[0], micro, loss_fn=loss_of)
    for one in made:
        note_waiting(one, waiting)
    first = any(one.is_first for one in made)
    last = any(one.is_last for one in made)

    def step():
        words = torch.cat([samples(case, mesh) for _ in range(micro)])
        given = [words[:, :-1].contiguous()] if first else []
        plan.step(*given, **({"target": words[:, 1:].contiguous()} if last else {}))

    return _All(parts), optimizer_of(_All(parts), case), step
