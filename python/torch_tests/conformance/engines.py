"""Cases of cases.json on real ranks, as users drive the engines.

    engines.py                 reads lines "NAME<tab>FOLDER", runs each, answers each with a status
    engines.py NAME FOLDER     runs one

A case leaves a record for each rank (placet.torch.Recorder) in the folder.
"""

import contextlib
import gc
import os
import pathlib
import signal
import socket
import sys
import traceback
import warnings

import torch
import torch.distributed as dist
import torch.distributed.fsdp
import torch.distributed.tensor.parallel as parallel
from decoder import Block, Decoder, loss_of
from table import BATCH, CASES, SEQUENCE, model_of
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard

from placet.torch import Recorder
from placet.torch._engines import clear_shared_memory

STEPS = 3  # the last is looked at: buckets and prefetch are settled then


def mesh_of(case):
    mesh = case.get("mesh") or {"dp": case["world"]}
    return init_device_mesh("cpu", tuple(mesh.values()), mesh_dim_names=tuple(mesh))


def has(mesh, name):
    return name in mesh.mesh_dim_names


def part(mesh, *names):
    there = tuple(name for name in names if has(mesh, name))
    if not there:
        return None
    return mesh if there == mesh.mesh_dim_names else mesh[there]


# --- tensor parallelism -----------------------------------------------------------------------


def cut_tensors(model, mesh, said):
    """parallelize_module as the tutorial of PyTorch has it, on all blocks, embedding and output."""
    rows = Shard(1) if said.get("sequence") else Replicate()
    column, row = parallel.ColwiseParallel, parallel.RowwiseParallel
    in_parts = said.get("loss", False)
    if said.get("ends", True):
        plan = {
            "embed_tokens": row(input_layouts=Replicate(), output_layouts=rows),
            "lm_head": column(
                input_layouts=rows,
                output_layouts=Shard(-1) if in_parts else Replicate(),
                use_local_output=not in_parts,
            ),
        }
        if said.get("sequence"):
            plan["norm"] = parallel.SequenceParallel()
        plan = {name: how for name, how in plan.items() if getattr(model, name) is not None}
        parallel.parallelize_module(model, mesh, plan)
    for block in model.layers:
        plan = {f"self_attn.{one}_proj": column() for one in "qkv"} | {
            "self_attn.o_proj": row(output_layouts=rows),
            "mlp.gate_proj": column(),
            "mlp.up_proj": column(),
            "mlp.down_proj": row(output_layouts=rows),
        }
        if said.get("sequence") or said.get("prepared"):
            two = {"input_layouts": (rows, None), "desired_input_layouts": (Replicate(), None)}
            one = {"input_layouts": (rows,), "desired_input_layouts": (Replicate(),)}
            plan |= {
                "self_attn": parallel.PrepareModuleInput(**two),
                "mlp": parallel.PrepareModuleInput(**one),
            }
        if said.get("sequence"):
            plan |= {
                "input_layernorm": parallel.SequenceParallel(),
                "post_attention_layernorm": parallel.SequenceParallel(),
            }
        parallel.parallelize_module(block, mesh, plan)


# --- data parallelism -------------------------------------------------------------------------


def ddp(model, mesh, said):
    options = {"find_unused_parameters", "static_graph", "gradient_as_bucket_view", "bucket_cap_mb"}
    group = None if mesh is None else mesh.get_group()
    made = torch.nn.parallel.DistributedDataParallel(
        model, process_group=group, **{k: v for k, v in said.items() if k in options}
    )
    if said.get("hook"):
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        made.register_comm_hook(group, getattr(default_hooks, said["hook"]))
    return made


def fsdp1(model, mesh, said):
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, ShardingStrategy
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy, size_based_auto_wrap_policy

    policy = None if said.get("wrap") == "root" else ModuleWrapPolicy({Block})
    if said.get("wrap") == "size":
        import functools

        policy = functools.partial(size_based_auto_wrap_policy, min_num_params=said["size"])
    mixed = None
    if said.get("mixed"):
        reduce = torch.float32 if said["mixed"] == "fp32 reduce" else torch.bfloat16
        mixed = MixedPrecision(torch.bfloat16, reduce, torch.bfloat16)
    return FullyShardedDataParallel(
        model,
        device_mesh=mesh,
        sharding_strategy=ShardingStrategy[said.get("strategy", "FULL_SHARD")],
        auto_wrap_policy=policy,
        mixed_precision=mixed,
        use_orig_params=said.get("use_orig_params", False),
        forward_prefetch=said.get("forward_prefetch", False),
        limit_all_gathers=said.get("limit_all_gathers", True),
        device_id=torch.device("cpu"),
    )


def fsdp2(model, mesh, said):
    """Blocks, embedding, and last norm with output apart (`ends`: "apart"), or the ends in the
    root's own group ("root"), or everything in it ("whole")."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    how = {"mesh": mesh}
    if "reshard" in said:
        how["reshard_after_forward"] = said["reshard"]
    if said.get("mixed"):
        reduce = torch.float32 if said["mixed"] == "fp32 reduce" else torch.bfloat16
        how["mp_policy"] = MixedPrecisionPolicy(torch.bfloat16, reduce)
    ends = said.get("ends", "apart")
    for block in model.layers if ends != "whole" else ():
        if said.get("inner"):
            fully_shard(block.self_attn, **how)
            fully_shard(block.mlp, **how)
        fully_shard(block, **how)
    if ends == "apart":
        if model.embed_tokens is not None:
            fully_shard(model.embed_tokens, **how)
        if model.norm is not None:
            last = {"reshard_after_forward": True} if "reshard" not in said else {}
            fully_shard([model.norm, model.lm_head], **how, **last)
    return fully_shard(model, **how)


WRAPS = {"ddp": ddp, "fsdp1": fsdp1, "fsdp2": fsdp2}


def optimizer_of(model, case):
    made = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[case.get("optimizer", "adamw")]
    if "zero" in case:
        from torch.distributed.optim import ZeroRedundancyOptimizer

        return ZeroRedundancyOptimizer(model.parameters(), made, lr=1e-3, **case["zero"])
    return made(model.parameters(), lr=1e-3)


# --- a step -----------------------------------------------------------------------------------


def samples(case, mesh):
    """Words of one micro-batch, the same on ranks that share samples."""
    ways = [at for at, name in enumerate(mesh.mesh_dim_names) if name in ("dp", "rep")]
    place = [mesh.get_coordinate()[at] for at in ways]
    generator = torch.Generator().manual_seed(sum(7**at * x for at, x in enumerate(place)))
    vocabulary = model_of(case)["vocab_size"]
    return torch.randint(0, vocabulary, (BATCH, SEQUENCE + 1), generator=generator)


@contextlib.contextmanager
def synchronised(model, case, last):
    """No synchronisation before the last micro-batch, where the case says so."""
    if last or not case.get("no_sync"):
        if hasattr(model, "set_requires_gradient_sync"):
            model.set_requires_gradient_sync(True)
        yield
    elif hasattr(model, "set_requires_gradient_sync"):
        model.set_requires_gradient_sync(False)
        yield
    else:
        with model.no_sync():
            yield


def pass_once(model, case, mesh):
    words = samples(case, mesh)
    inputs, labels = words[:, :-1].contiguous(), words[:, 1:].contiguous()
    tensor = case.get("tensor", {})
    around = [parallel.loss_parallel()] if tensor.get("loss") else []
    if has(mesh, "cp"):
        from torch.distributed.tensor.experimental import context_parallel

        angles = model.angles[:SEQUENCE].clone()
        model_angles, model.angles = model.angles, angles
        around.append(
            context_parallel(
                mesh["cp"], buffers=[inputs, labels, angles], buffer_seq_dims=[1, 1, 0]
            )
        )
    if case.get("autocast"):
        around.insert(0, torch.autocast("cpu", torch.bfloat16))
    with contextlib.ExitStack() as stack:
        for one in around:
            stack.enter_context(one)
        loss_of(model(inputs), labels).backward()
    if has(mesh, "cp"):
        model.angles = model_angles


def clip(model, case):
    if not case["job"].get("clip"):
        return
    if hasattr(model, "clip_grad_norm_"):
        model.clip_grad_norm_(1.0)
    else:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)


def train(case, folder):
    if case.get("megatron") is not None:
        import core

        return core.train(case, folder, STEPS)
    if case.get("titan") is not None:
        import titan

        return titan.train(case, folder, STEPS)
    mesh = mesh_of(case)
    torch.manual_seed(0)
    waiting = [0]
    if has(mesh, "pp"):
        import stages

        model, optimizer, step = stages.prepared(case, mesh, waiting)
    else:
        model = hugging_face(case) if case.get("hugging_face") else Decoder(model_of(case))
        if case.get("dtype"):
            model = model.to(getattr(torch, case["dtype"]))
        model = wrapped(model, case, mesh)
        optimizer = optimizer_of(model, case)
        if case.get("accelerate"):
            from accelerate import Accelerator

            model, optimizer = Accelerator(cpu=True).prepare(model, optimizer)
        micro = case.get("micro_batches", 1)
        if case.get("deepspeed") is not None:
            return train_deepspeed(model, optimizer, case, mesh, folder)

        def step():
            for at in range(micro):
                with synchronised(model, case, at == micro - 1):
                    pass_once(model, case, mesh)
                waiting.append(gradient_bytes() if at < micro - 1 and case.get("no_sync") else 0)

    with Recorder() as recorder:
        for _ in range(STEPS):
            step()
            clip(model, case)
            optimizer.step()
            optimizer.zero_grad()
    rest = recorder.steps[-1]["rest_bytes"]
    rest["gradients"] = max(rest["gradients"], *waiting)
    recorder.save(os.path.join(folder, "record.json"))


def train_deepspeed(model, optimizer, case, mesh, folder):
    """Its engine steps by itself: gradients are reduced and parameters updated in the call that
    ends a step."""
    import deepspeed

    deepspeed.init_distributed("gloo", verbose=False)
    micro = case.get("micro_batches", 1)
    config = {
        "train_micro_batch_size_per_gpu": BATCH,
        "gradient_accumulation_steps": micro,
        "zero_force_ds_cpu_optimizer": False,
        **case["deepspeed"],
    }
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    with Recorder() as recorder:
        for _ in range(STEPS * micro):
            words = samples(case, mesh)
            engine.backward(loss_of(engine(words[:, :-1].contiguous()), words[:, 1:].contiguous()))
            engine.step()
    recorder.save(os.path.join(folder, "record.json"))


def gradient_bytes():
    """Of all parameters that there are, also those that only the engine holds: gradients that
    wait for the last micro-batch to be reduced."""
    things = gc.get_objects()
    tensors = [one for one in things if torch.Tensor in type(one).__mro__]
    gradients = [one.grad for one in tensors if one.is_leaf and one.grad is not None]
    # fully_shard keeps them apart where they wait in another format than backward makes them in.
    shards = [one for one in things if type(one).__name__ == "FSDPParam"]
    kept = [one.unsharded_accumulated_grad for one in shards]
    gradients += [one for one in kept if one is not None]
    local = [getattr(one, "_local_tensor", one) for one in gradients]
    return sum({one.data_ptr(): one.nbytes for one in local}.values())


def wrapped(model, case, mesh):
    if case.get("tensor") is not None:
        cut_tensors(model, mesh["tp"], case["tensor"])
    if case.get("data"):
        shards = part(mesh, "rep", "dp", "cp") if case["data"] != "ddp" else part(mesh, "dp")
        if shards is not None and has(mesh, "cp"):
            shards = mesh[tuple(n for n in ("dp", "cp") if has(mesh, n))]._flatten("dp_cp")
        model = WRAPS[case["data"]](model, shards, case.get("with", {}))
    return model


def hugging_face(case):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(**model_of(case))
    config._attn_implementation = "sdpa"
    config.use_cache = False

    class Logits(LlamaForCausalLM):
        def forward(self, words):
            return super().forward(input_ids=words).logits

        embed_tokens = property(lambda self: self.model.embed_tokens)
        layers = property(lambda self: self.model.layers)
        norm = property(lambda self: self.model.norm)

    return Logits(config)


# --- ranks ------------------------------------------------------------------------------------


def rank_of(case, folder, rank, port):
    world = str(case["world"])
    os.environ.update(RANK=str(rank), WORLD_SIZE=world, LOCAL_RANK=str(rank))
    os.environ.update(LOCAL_WORLD_SIZE=world, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    os.environ.update(DS_ACCELERATOR="cpu", LOCAL_SIZE=world)
    os.dup2(2, 1)  # what engines print is no answer
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    status = 1
    try:
        dist.init_process_group("gloo")
        train(case, folder)
        dist.barrier()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def run(name, folder):
    """The worst status of a rank. Where one fails the others, which wait for it, are ended."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    children = []
    for rank in range(CASES[name]["world"]):
        child = os.fork()
        if not child:
            rank_of(CASES[name], folder, rank, port)
        children.append(child)
    worst = 0
    while children:
        child, status = os.wait()
        children.remove(child)
        if (status := abs(os.waitstatus_to_exitcode(status))) and not worst:
            worst = status
            for other in children:
                os.kill(other, signal.SIGKILL)
    clear_shared_memory(port)
    return worst


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    if len(sys.argv) > 1:
        sys.exit(run(*sys.argv[1:]))
    for line in sys.stdin:
        print(run(*line.rstrip("\n").split("\t")), flush=True)
