"""One case of cases.json on real ranks: engines.py NAME FOLDER. Writes a record for each rank."""

import json
import os
import pathlib
import socket
import sys

import torch
import torch.distributed as dist
import torch.distributed.fsdp
from transformers import LlamaConfig, LlamaForCausalLM

from placet.torch import Recorder

CASES = json.loads((pathlib.Path(__file__).parent / "cases.json").read_text())
SEQUENCE, BATCH = 16, 2


def wrapped(model, words, world):
    """The model as the engine has it, and the optimizer."""
    from torch.distributed.device_mesh import init_device_mesh

    if words[0] in ("ddp", "zero1"):
        model = torch.nn.parallel.DistributedDataParallel(model)
    if words[0] == "zero1":
        from torch.distributed.optim import ZeroRedundancyOptimizer

        made = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3)
        return model, made
    if words[0] == "fsdp2":
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        shape = (2, world // 2) if "hsdp" in words else (world,)
        said = {
            "mesh": init_device_mesh("cpu", shape, mesh_dim_names=("rep", "shard")[-len(shape) :]),
            "reshard_after_forward": "keep" not in words,
        }
        if "mixed" in words:
            said["mp_policy"] = MixedPrecisionPolicy(torch.bfloat16, torch.float32)
        if "whole" not in words:
            for block in model.model.layers:
                fully_shard(block, **said)
        if "root" not in words and "whole" not in words and "tied" not in words:
            fully_shard(model.model.embed_tokens, **said)
            fully_shard([model.model.norm, model.lm_head], **said)
        fully_shard(model, **said)
    if words[0] == "fsdp1":
        from torch.distributed.fsdp import FullyShardedDataParallel
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy
        from transformers.models.llama.modeling_llama import LlamaDecoderLayer

        model = FullyShardedDataParallel(
            model,
            auto_wrap_policy=ModuleWrapPolicy({LlamaDecoderLayer}),
            device_id=torch.device("cpu"),
        )
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def train(case, folder):
    words, world = case["run"], case["world"]
    torch.manual_seed(0)
    config = LlamaConfig(**{**CASES["model"], "tie_word_embeddings": "tied" in words})
    config._attn_implementation = "sdpa"
    config.use_cache = False
    model, optimizer = wrapped(LlamaForCausalLM(config), words, world)
    micro = case.get("micro_batches", 1)
    with Recorder() as recorder:
        for _ in range(3):
            for at in range(micro):
                ids = torch.randint(0, 96, (BATCH, SEQUENCE))
                last = at == micro - 1
                if words[0] == "ddp" and not last:
                    with model.no_sync():
                        model(input_ids=ids, labels=ids).loss.backward()
                else:
                    model(input_ids=ids, labels=ids).loss.backward()
            if "clip" in words and words[0] == "fsdp1":
                model.clip_grad_norm_(1.0)
            elif "clip" in words:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    recorder.save(os.path.join(folder, "record.json"))


def main(name, folder):
    case = next(one for one in CASES["cases"] if one["name"] == name)
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    children = []
    for rank in range(case["world"]):
        child = os.fork()
        if not child:
            os.environ.update(
                RANK=str(rank),
                WORLD_SIZE=str(case["world"]),
                LOCAL_RANK=str(rank),
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=str(port),
            )
            torch.set_num_threads(1)
            status = 1
            try:
                dist.init_process_group("gloo")
                train(case, folder)
                status = 0
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        children.append(child)
    return max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
