"""Cases of torchtitan on gloo ranks: its trainer, with a small Llama of its own, as train.py of it
drives it. What asks for a GPU is led to the host."""

import os
import types

import stages
import torch
from table import BATCH, SEQUENCE, model_of

from placet.torch import Recorder


def lead_to_host():
    """Before torchtitan is imported: the host is the kind of device that it finds."""
    torch._utils._get_available_device_type = lambda: "cpu"
    torch.cpu.get_device_name = lambda *_: "H100 SXM"
    torch.cpu.get_device_properties = lambda *_: types.SimpleNamespace(total_memory=80 << 30)
    torch.cpu.memory_stats = lambda *_: {}
    torch.cpu.reset_peak_memory_stats = torch.cpu.empty_cache = lambda *_: None


def llama(model, joined):
    """The model as its registry builds those that have a name, with the attention that runs on
    the host. `joined`: query, key and value are one matrix."""
    from torchtitan.models import llama3 as parts
    from torchtitan.models.common.attention import ScaledDotProductAttention

    width, words = model["hidden_size"], model["vocab_size"]
    attention = parts.get_attention_config
    parts.get_attention_config = lambda _: ScaledDotProductAttention.Config()
    layers = parts._build_llama3_layers(
        n_layers=model["num_hidden_layers"],
        dim=width,
        n_heads=model["num_attention_heads"],
        n_kv_heads=model["num_key_value_heads"],
        hidden_dim=model["intermediate_size"],
        rope=parts.ComplexRoPE.Config(
            dim=width // model["num_attention_heads"],
            max_seq_len=model["max_position_embeddings"],
            theta=model["rope_theta"],
        ),
        fuse_qkv=joined,
        attn_backend="",
    )
    parts.get_attention_config = attention
    tied = model["tie_word_embeddings"]
    return parts.Llama3Model.Config(
        dim=width,
        vocab_size=words,
        enable_weight_tying=tied,
        tok_embeddings=parts.Embedding.Config(
            num_embeddings=words,
            embedding_dim=width,
            param_init=parts._EMBEDDING_SKIP_INIT if tied else parts._EMBEDDING_INIT,
        ),
        norm=parts.RMSNorm.Config(normalized_shape=width, param_init=parts._NORM_INIT),
        lm_head=parts.Linear.Config(
            in_features=width, out_features=words, param_init=parts._output_linear_init(width)
        ),
        layers=layers,
    )


def configuration(case, folder):
    from torchtitan.components.checkpoint import CheckpointManager
    from torchtitan.components.loss import CrossEntropyLoss
    from torchtitan.components.metrics import MetricsProcessor
    from torchtitan.components.optimizer import default_adamw
    from torchtitan.config import ParallelismConfig, TrainingConfig
    from torchtitan.models.llama3 import ModelSpec, parallelize_llama, pipeline_llm
    from torchtitan.trainer import Trainer

    mesh, said = case.get("mesh") or {"dp": case["world"]}, dict(case["titan"])
    model = model_of(case)
    ways, micro = mesh.get("pp", 1), case.get("micro_batches", 1)
    batch = BATCH * micro if ways > 1 else BATCH
    llama_of = llama(model, said.pop("fuse_qkv", False))
    return Trainer.Config(
        model_spec=ModelSpec(
            "llama3", "small", llama_of, parallelize_llama, pipeline_llm, None, None
        ),
        dump_folder=os.fspath(folder),
        loss=CrossEntropyLoss.Config(global_vocab_size=model["vocab_size"]),
        optimizer=default_adamw(lr=1e-3),
        training=TrainingConfig(
            local_batch_size=batch,
            global_batch_size=BATCH * micro * mesh.get("rep", 1) * mesh.get("dp", 1),
            seq_len=SEQUENCE,
            steps=1000,
            disable_cuda_graphs=True,
        ),
        parallelism=ParallelismConfig(
            data_parallel_replicate_degree=mesh.get("rep", 1),
            data_parallel_shard_degree=mesh.get("dp", 1),
            tensor_parallel_degree=mesh.get("tp", 1),
            pipeline_parallel_degree=ways,
            pipeline_parallel_microbatch_size=BATCH,
            **said,
        ),
        metrics=MetricsProcessor.Config(log_freq=1000),
        checkpoint=CheckpointManager.Config(enable=False),
        activation_checkpoint=None,
    )


def batches(trainer, model):
    dims = trainer.parallel_dims
    rank = dims.get_mesh("batch").get_local_rank() if dims.dp_enabled else 0
    generator = torch.Generator().manual_seed(rank)
    while True:
        words = torch.randint(0, model["vocab_size"], (BATCH, SEQUENCE + 1), generator=generator)
        yield {"input": words[:, :-1].contiguous()}, words[:, 1:].contiguous()


def train(case, folder, steps):
    lead_to_host()
    from torchtitan import trainer as parts

    class Nothing:
        """In place of a tokenizer and of a loader of texts: batches come from `batches`."""

        def build(self, **_):
            return None

    class Trainer(parts.Trainer):
        def init_distributed(self):  # ranks have met already
            return parts.ParallelDims.from_config(self.config.parallelism, case["world"])

    config = configuration(case, folder)
    config.tokenizer = config.dataloader = Nothing()
    trainer = Trainer(config)
    for module in (one for part in trainer.model_parts for one in part.modules()):
        if hasattr(module, "set_force_sum_reduction_for_comms"):
            module.set_force_sum_reduction_for_comms(True)  # gloo has no sum times a factor
    data = trainer.batch_generator(batches(trainer, model_of(case)))
    waiting = [0]
    if trainer.parallel_dims.pp_enabled:
        plan = trainer.pp_schedule
        for stage in getattr(plan, "_stages", None) or [plan._stage]:
            stages.note_waiting(stage, waiting)
    with Recorder() as recorder:
        for _ in range(steps):
            trainer.step += 1
            trainer.train_step(data)
    rest = recorder.steps[-1]["rest_bytes"]
    rest["gradients"] = max(rest["gradients"], *waiting)
    recorder.save(os.path.join(folder, "record.json"))
