"""Cases of Megatron-Core on gloo ranks: its model, its gradient buffers, its optimizers and its
schedules, driven as pretrain_gpt.py of Megatron-LM does. What asks for a GPU is led to the host."""

import contextlib
import os

import torch
import torch.distributed as dist
from table import BATCH, SEQUENCE, model_of
from torch.overrides import TorchFunctionMode

from placet.torch import Recorder


class _OnHost(TorchFunctionMode):
    """Tensors that are asked for on a GPU are made on the host, and say that they are on one."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.Tensor.type and len(args) == 1:
            return func(*args).replace("torch.", "torch.cuda.")
        kwargs = {key: _host(one) for key, one in (kwargs or {}).items()}
        return func(*(_host(one) for one in args), **kwargs)


def _host(value):
    if isinstance(value, str) and value.startswith("cuda"):
        return "cpu"
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    return value


class _Stream(contextlib.nullcontext):
    def wait_stream(self, other):
        pass

    def synchronize(self):
        pass


def lead_to_host():
    torch.cuda.current_device = lambda: torch.device("cpu")
    torch.cuda.synchronize = lambda *_: None
    torch.cuda.get_rng_state = lambda *_: torch.get_rng_state()
    torch.cuda.set_rng_state = torch.cuda.manual_seed = lambda *_: None
    torch.cuda.Stream = torch.cuda.current_stream = torch.cuda.stream = lambda *_, **__: _Stream()
    import megatron.core.tensor_parallel.random as numbers

    numbers._get_cuda_rng_state = lambda *_, **__: torch.get_rng_state()
    numbers._set_cuda_rng_state = lambda *_, **__: None
    _OnHost().__enter__()


class Norm(torch.nn.Module):
    """That of TransformerEngine, in plain operators: its weight says whether tokens are divided."""

    def __init__(self, config, hidden_size, eps=1e-5, **_):
        super().__init__()
        self.eps = eps
        self.weight = torch.nn.Parameter(torch.ones(hidden_size, dtype=config.params_dtype))
        self.weight.sequence_parallel = config.sequence_parallel

    def forward(self, x):
        return torch.nn.functional.rms_norm(x, self.weight.shape, self.weight, self.eps)


def configuration(case):
    from megatron.core.distributed import finalize_model_grads
    from megatron.core.transformer.transformer_config import TransformerConfig

    model, said = model_of(case), case["megatron"]
    low = said.get("bf16", True)
    return TransformerConfig(
        num_layers=model["num_hidden_layers"],
        hidden_size=model["hidden_size"],
        num_attention_heads=model["num_attention_heads"],
        num_query_groups=model["num_key_value_heads"],
        ffn_hidden_size=model["intermediate_size"],
        add_bias_linear=False,
        gated_linear_unit=True,
        activation_func=torch.nn.functional.silu,
        normalization="RMSNorm",
        bf16=low,
        params_dtype=torch.bfloat16 if low else torch.float32,
        pipeline_dtype=torch.bfloat16 if low else torch.float32,
        tensor_model_parallel_size=said.get("tp", 1),
        pipeline_model_parallel_size=said.get("pp", 1),
        sequence_parallel=said.get("sequence", False),
        hidden_dropout=0.0,
        attention_dropout=0.0,
        use_cpu_initialization=True,
        gradient_accumulation_fusion=False,
        bias_activation_fusion=False,
        masked_softmax_fusion=False,
        persist_layer_norm=False,
        deallocate_pipeline_outputs=False,
        finalize_model_grads_func=finalize_model_grads,
    )


def made(case, config):
    from megatron.core import parallel_state as state
    from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
    from megatron.core.transformer import transformer_block

    model, said = model_of(case), case["megatron"]
    spec = get_gpt_layer_local_spec(normalization="RMSNorm")
    spec.submodules.input_layernorm = spec.submodules.pre_mlp_layernorm = Norm
    transformer_block.LayerNormImpl = Norm
    multiple = 128 * said.get("tp", 1)  # make-vocab-size-divisible-by
    model = GPTModel(
        config,
        spec,
        vocab_size=-(-model["vocab_size"] // multiple) * multiple,
        max_sequence_length=model["max_position_embeddings"],
        share_embeddings_and_output_weights=model["tie_word_embeddings"],
        position_embedding_type="rope",
        pre_process=state.is_pipeline_first_stage(),
        post_process=state.is_pipeline_last_stage(),
    )
    distributed = said.get("distributed", False)
    buffers = DistributedDataParallelConfig(
        use_distributed_optimizer=distributed,
        grad_reduce_in_fp32=True,
        overlap_grad_reduce=said.get("overlap", False),
    )
    model = DistributedDataParallel(config, buffers, model)
    how = OptimizerConfig(
        optimizer="adam",
        lr=1e-3,
        bf16=config.bf16,
        params_dtype=config.params_dtype,
        use_distributed_optimizer=distributed,
        clip_grad=case["job"].get("clip", 1.0),
    )
    return model, get_megatron_optimizer(how, [model])


def batch(words):
    """Of one micro-batch what a stage uses. Tensor ranks get it from the first of them, tensor by
    tensor (get_batch_on_this_tp_rank)."""
    from megatron.core import parallel_state as state

    tensors = {
        "words": words[:, :-1].contiguous(),
        "labels": words[:, 1:].contiguous(),
        "mask": torch.ones(BATCH, SEQUENCE),
        "places": torch.arange(SEQUENCE).repeat(BATCH, 1),
    }
    sent = {"words", "places"} if state.is_pipeline_first_stage() else set()
    sent |= {"labels", "mask"} if state.is_pipeline_last_stage() else set()
    if state.get_tensor_model_parallel_world_size() > 1:
        source = state.get_tensor_model_parallel_src_rank()
        for name in tensors:
            if name in sent:
                group = state.get_tensor_model_parallel_group()
                dist.broadcast(tensors[name], source, group=group)
    return tensors


def forward(data, model):
    one = batch(next(data))
    causal = torch.ones(1, 1, SEQUENCE, SEQUENCE, dtype=torch.bool).triu(1)
    out = model(one["words"], one["places"], causal, labels=one["labels"])

    def loss(losses):
        mean = (losses.float() * one["mask"]).sum() / one["mask"].sum()
        return mean, {"loss": torch.stack([mean.detach(), torch.ones(())])}

    return out, loss


def report(done, norm, losses):
    """What train_step and training_log reduce behind the update: whether it was done on all ranks
    of a replica, the largest norm and learning rate, and the last stage's loss."""
    from megatron.core import parallel_state as state

    group = state.get_model_parallel_group()
    dist.all_reduce(torch.tensor([int(done)], dtype=torch.int), dist.ReduceOp.MIN, group)
    for value in [1e-3] if norm is None else [norm, 1e-3]:
        dist.all_reduce(torch.tensor([float(value)]), dist.ReduceOp.MAX, group)
    if state.is_pipeline_last_stage():
        total = torch.stack([one["loss"] for one in losses]).sum(0)
        dist.all_reduce(total, group=state.get_data_parallel_group(with_context_parallel=True))


def train(case, folder, steps):
    lead_to_host()
    from megatron.core import parallel_state as state
    from megatron.core.pipeline_parallel import get_forward_backward_func
    from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed

    said = case["megatron"]
    state.initialize_model_parallel(said.get("tp", 1), said.get("pp", 1))
    model_parallel_cuda_manual_seed(1)
    model, optimizer = made(case, configuration(case))
    micro = case.get("micro_batches", 1)
    generator = torch.Generator().manual_seed(state.get_data_parallel_rank())
    vocabulary = model_of(case)["vocab_size"]
    with Recorder() as recorder:
        for _ in range(steps):
            model.zero_grad_buffer()
            optimizer.zero_grad()
            words = [
                torch.randint(0, vocabulary, (BATCH, SEQUENCE + 1), generator=generator)
                for _ in range(micro)
            ]
            losses = get_forward_backward_func()(
                forward_step_func=forward,
                data_iterator=iter(words),
                model=[model],
                num_microbatches=micro,
                seq_length=SEQUENCE,
                micro_batch_size=BATCH,
                forward_only=False,
            )
            with recorder.update():
                done, norm, _ = optimizer.step()
                report(done, norm, losses)
    recorder.save(os.path.join(folder, "record.json"))
