#!/usr/bin/env python3
"""How long a training step takes in `placet run` and in PyTorch, one thread a rank.

    benchmarks/run_beside_pytorch.py build/release/placet [ROUNDS]

GPT-2 of 20.6 million parameters, fp32, AdamW, gradients limited, two ranks with two samples of 256 tokens
each: DDP and FSDP2 on gloo beside ddp and zero3 in two processes. Both take turns for ROUNDS (3) rounds of
five steps, the first of which is left out; the medians and their ratio are printed. Needs PyTorch.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

LAYERS, WIDTH, HEADS, WORDS, TOKENS, SAMPLES, STEPS = 8, 384, 6, 16384, 256, 2, 5
CONFIG = {
    "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": LAYERS, "n_embd": WIDTH,
    "n_head": HEADS, "n_positions": TOKENS, "n_ctx": TOKENS, "vocab_size": WORDS, "resid_pdrop": 0,
    "embd_pdrop": 0, "attn_pdrop": 0, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
    "tie_word_embeddings": True}


def torch_rank(rank, kind, port, file):
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x):
            b, t, _ = x.shape
            heads = [y.view(b, t, HEADS, WIDTH // HEADS).transpose(1, 2)
                     for y in self.qkv(self.norm1(x)).split(WIDTH, -1)]
            a = F.scaled_dot_product_attention(*heads, is_causal=True)
            x = x + self.out(a.transpose(1, 2).reshape(b, t, WIDTH))
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(TOKENS, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
            self.norm = nn.LayerNorm(WIDTH)

        def forward(self, ids, labels):
            x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
            for block in self.blocks:
                x = block(x)
            logits = self.norm(x) @ self.words.weight.T
            return F.cross_entropy(logits.view(-1, WORDS), labels.view(-1))

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = Model()
    for parameter in model.parameters():  # no logits so far apart that their exponentials underflow
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.02)
    if kind == "ddp":
        model = nn.parallel.DistributedDataParallel(model)
    else:
        from torch.distributed.fsdp import fully_shard
        for block in model.blocks:
            fully_shard(block)
        fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    seconds = []
    for _ in range(STEPS):
        ids, labels = (torch.randint(WORDS, (SAMPLES, TOKENS)) for _ in range(2))
        dist.barrier()
        begin = time.perf_counter()
        model(ids, labels).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        dist.barrier()
        seconds.append(time.perf_counter() - begin)
    if rank == 0:
        with open(file, "w") as out:
            json.dump(seconds[1:], out)
    dist.destroy_process_group()


def of_torch(kind, port):
    import torch.multiprocessing as mp
    with tempfile.NamedTemporaryFile() as file:
        mp.spawn(torch_rank, (kind, port, file.name), 2)
        with open(file.name) as text:
            return json.load(text)


def of_placet(program, config, placement):
    run = subprocess.run(
        [program, "run", config, "--placement", placement, "--global-batch", str(2 * SAMPLES),
         "--micro-batch", str(SAMPLES), "--seq", str(TOKENS), "--steps", str(STEPS), "--mode", "f32",
         "--ranks", "process", "--times", "--json"], capture_output=True, check=True, text=True)
    return [step["seconds"] for step in json.loads(run.stdout)["steps"]][1:]


def main():
    os.environ.pop("OPENBLAS_CORETYPE", None)  # a machine's setting for older processors
    program = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "config.json")
        with open(config, "w") as out:
            json.dump(CONFIG, out)
        for number, (kind, placement) in enumerate((("ddp", "dp=2:ddp"), ("fsdp2", "dp=2:zero3"))):
            theirs, ours = [], []
            for r in range(rounds):
                theirs += of_torch(kind, 29600 + 10 * number + r)
                ours += of_placet(program, config, placement)
            a, b = statistics.median(theirs), statistics.median(ours)
            print(f"{kind}: PyTorch {a:.3f} s, {placement} {b:.3f} s, ratio {b / a:.2f}")


if __name__ == "__main__":
    main()
