"""Writes families.json: small models of every family that the transformers library holds, with the
configuration as the library saves it and the elements of every tensor as the library builds it.

    pip install transformers==4.57.1 torch einops
    python make_families.py > families.json

The library's models are made on the "meta" device, so no memory is taken. hf_families_test.cc compares
our own models with the file; nothing else reads it.
"""

import collections
import json
import math
import re
import sys
import warnings

import torch
import transformers

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()

S = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, vocab_size=96)
L = dict(S, intermediate_size=160, num_key_value_heads=2, max_position_embeddings=128)
cases = []


def case(family, variant="", **settings):
    cases.append((family, variant, settings))


case("llama", **L)
case(
    "llama",
    "bias",
    **dict(L, attention_bias=True, mlp_bias=True, tie_word_embeddings=True, head_dim=24),
)
case("mistral", **L)
case("mistral", "window", **dict(L, sliding_window=None, head_dim=32))
case("qwen2", **L)
case(
    "qwen2",
    "window",
    **dict(L, use_sliding_window=True, sliding_window=16, max_window_layers=1, num_hidden_layers=3),
)
case("qwen3", **L)
case("qwen3", "bias", **dict(L, attention_bias=True, head_dim=8))
case("gemma", **L)
case("gemma2", **dict(L, num_hidden_layers=4))
case("gemma3_text", **dict(L, num_hidden_layers=7, sliding_window=16))
case("cohere", **L)
case("cohere", "qk", **dict(L, use_qk_norm=True, attention_bias=True))
case("cohere2", **dict(L, num_hidden_layers=4))
case("olmo", **L)
case("olmo2", **L)
case("olmo3", **dict(L, num_hidden_layers=4))
case("glm", **L, pad_token_id=0)
case("glm4", **L, pad_token_id=0)
case("granite", **L)
case("seed_oss", **L)
case("smollm3", **dict(L, num_hidden_layers=4, pad_token_id=0))
case("ernie4_5", **L)
case("ernie4_5", "bias", **dict(L, use_bias=True, tie_word_embeddings=False))
case("hunyuan_v1_dense", **L, head_dim=16)
case("exaone4", **dict(L, num_hidden_layers=4))
case("nemotron", **L, head_dim=16)
case("nemotron", "bias", **L, head_dim=16, attention_bias=True, mlp_bias=True)
case("starcoder2", **L)
case("starcoder2", "nobias", **L, use_bias=False)
case("phi3", **L, pad_token_id=0)
case(
    "phi3", "tied", **dict(L, pad_token_id=0, tie_word_embeddings=True, partial_rotary_factor=0.75)
)
case("phi", **L)
case("phi", "qk", **L, qk_layernorm=True)
case(
    "arcee",
    **L,
)
case("helium", **L, head_dim=16)
case("stablelm", **L)
case("stablelm", "parallel", **L, use_parallel_residual=True)
case("persimmon", **{k: v for k, v in L.items() if k != "num_key_value_heads"})
N = {k: v for k, v in L.items() if k != "num_key_value_heads"}
case("gpt_neox", **N)
case("gpt_neox", "sequential", **N, use_parallel_residual=False, attention_bias=False)
G = dict(n_embd=64, n_layer=2, n_head=4, vocab_size=96, n_positions=32)
case("gpt2", **G)
case("gpt2", "inner", **G, n_inner=100)
case("gpt_bigcode", **G)
case("gpt_bigcode", "multihead", **G, multi_query=False)
case("gptj", **G, rotary_dim=8)
case("codegen", **G, rotary_dim=8)
case(
    "gpt_neo",
    hidden_size=64,
    num_layers=4,
    num_heads=4,
    vocab_size=96,
    max_position_embeddings=32,
    attention_types=[[["global", "local"], 2]],
)
case("bloom", hidden_size=64, n_layer=2, n_head=4, vocab_size=96)
O = dict(
    hidden_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    ffn_dim=160,
    vocab_size=96,
    max_position_embeddings=32,
)
case("opt", **O)
case("opt", "narrow", **O, do_layer_norm_before=False, word_embed_proj_dim=32)
F = dict(S)
case("falcon", **F)
case("falcon", "new", **F, new_decoder_architecture=True, num_kv_heads=2)
case(
    "falcon", "oneln", **F, new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1
)
case("falcon", "sequential", **F, parallel_attn=False, multi_query=False, bias=True, alibi=True)
case("mpt", d_model=64, n_heads=4, n_layers=2, vocab_size=96, max_seq_len=32, expansion_ratio=4)
M = dict(L, num_experts_per_tok=2)
case("mixtral", **M, num_local_experts=4)
case("qwen2_moe", **M, num_experts=4, moe_intermediate_size=48, shared_expert_intermediate_size=80)
case(
    "qwen2_moe",
    "stepped",
    **dict(M, num_hidden_layers=4),
    num_experts=4,
    moe_intermediate_size=48,
    shared_expert_intermediate_size=80,
    decoder_sparse_step=2,
    mlp_only_layers=[3],
)
case("qwen3_moe", **M, num_experts=4, moe_intermediate_size=48, head_dim=16)
case(
    "qwen3_moe",
    "dense",
    **dict(M, num_hidden_layers=3),
    num_experts=4,
    moe_intermediate_size=48,
    head_dim=16,
    mlp_only_layers=[0],
)
case("olmoe", **M, num_experts=4)
case("phimoe", **M, num_local_experts=4)
case("phimoe", "bias", **M, num_local_experts=4, attention_bias=True, lm_head_bias=True)
case("gpt_oss", **M, num_local_experts=4, head_dim=16)
case("granitemoe", **M, num_local_experts=4)
case("granitemoeshared", **M, num_local_experts=4, shared_intermediate_size=80)
case(
    "glm4_moe",
    **dict(M, num_hidden_layers=3),
    n_routed_experts=4,
    moe_intermediate_size=48,
    head_dim=16,
    use_qk_norm=True,
    attention_bias=True,
)
case(
    "dots1",
    **dict(M, num_hidden_layers=3),
    n_routed_experts=4,
    n_shared_experts=2,
    moe_intermediate_size=48,
    head_dim=16,
    first_k_dense_replace=1,
)
case(
    "ernie4_5_moe",
    **{k: v for k, v in L.items()},
    moe_num_experts=4,
    moe_k=2,
    moe_intermediate_size=48,
)
case(
    "ernie4_5_moe",
    "range",
    **dict(L, num_hidden_layers=6),
    moe_num_experts=4,
    moe_k=2,
    moe_intermediate_size=48,
    moe_layer_start_index=1,
    moe_layer_end_index=4,
    moe_layer_interval=2,
    use_bias=True,
)
D = dict(
    M,
    moe_intermediate_size=48,
    n_routed_experts=8,
    n_shared_experts=2,
    kv_lora_rank=24,
    q_lora_rank=40,
    qk_nope_head_dim=16,
    qk_rope_head_dim=8,
    v_head_dim=12,
    first_k_dense_replace=1,
    num_hidden_layers=3,
    num_key_value_heads=4,
)
case("deepseek_v2", **dict(D, topk_method="greedy"))
case("deepseek_v2", "lite", **dict(D, q_lora_rank=None))
case("deepseek_v3", **dict(D, n_group=2, topk_group=1))
case("deepseek_v3", "bias", **dict(D, n_group=2, topk_group=1, attention_bias=True))
case("hunyuan_v1_moe", **L, num_experts=4, moe_topk=2, head_dim=16)
case(
    "llama4_text",
    **dict(L, num_hidden_layers=4, num_experts_per_tok=1),
    intermediate_size_mlp=200,
    num_local_experts=4,
    interleave_moe_layer_step=2,
    head_dim=16,
    attention_chunk_size=16,
)
case(
    "qwen3_next",
    **dict(M, num_hidden_layers=4),
    num_experts=4,
    moe_intermediate_size=48,
    shared_expert_intermediate_size=80,
    head_dim=16,
    linear_key_head_dim=8,
    linear_value_head_dim=12,
    linear_num_key_heads=2,
    linear_num_value_heads=4,
)
case("minimax", **dict(M, num_hidden_layers=4), num_local_experts=4)
case(
    "jamba",
    **dict(M, num_hidden_layers=8),
    num_experts=4,
    attn_layer_period=4,
    attn_layer_offset=2,
    mamba_d_state=6,
)
case(
    "bamba",
    **dict(L, num_hidden_layers=3),
    attn_layer_indices=[1],
    mamba_n_heads=8,
    mamba_d_state=16,
    mamba_d_head=16,
)
case(
    "falcon_h1",
    **L,
    mamba_d_ssm=48,
    mamba_n_heads=8,
    mamba_d_head=6,
    mamba_n_groups=2,
    mamba_d_state=16,
)
case(
    "falcon_h1",
    "norm",
    **L,
    mamba_d_ssm=48,
    mamba_n_heads=8,
    mamba_d_head=6,
    mamba_n_groups=1,
    mamba_d_state=16,
    mamba_rms_norm=True,
    attention_bias=True,
    mlp_bias=True,
)
case(
    "granitemoehybrid",
    **dict(M, num_hidden_layers=3),
    num_local_experts=4,
    shared_intermediate_size=80,
    layer_types=["mamba", "attention", "mamba"],
    mamba_n_heads=8,
    mamba_d_state=16,
    mamba_d_head=16,
)
case(
    "granitemoehybrid",
    "dense",
    **dict(M, num_hidden_layers=3),
    num_local_experts=0,
    shared_intermediate_size=80,
    layer_types=["mamba", "attention", "mamba"],
    mamba_n_heads=8,
    mamba_d_state=16,
    mamba_d_head=16,
    position_embedding_type="rope",
)
case("mamba", hidden_size=64, num_hidden_layers=2, vocab_size=96)
case(
    "mamba",
    "bias",
    hidden_size=72,
    num_hidden_layers=2,
    vocab_size=96,
    use_bias=True,
    use_conv_bias=False,
    state_size=8,
)
case("falcon_mamba", hidden_size=64, num_hidden_layers=2, vocab_size=96)
case(
    "mamba2",
    hidden_size=64,
    num_hidden_layers=2,
    vocab_size=96,
    num_heads=8,
    head_dim=16,
    n_groups=2,
    state_size=16,
)
case(
    "dbrx",
    d_model=64,
    n_heads=4,
    n_layers=2,
    vocab_size=96,
    max_seq_len=32,
    attn_config=dict(kv_n_heads=2),
    ffn_config=dict(moe_num_experts=4, moe_top_k=2, ffn_hidden_size=48),
)


def template(name):
    """The name with placeholders for the numbers of blocks, experts and heads."""
    name = re.sub(r"experts\.\d+\.", "experts.{expert}.", name)
    name = re.sub(r"norms\.\d+\.", "norms.{head}.", name)
    return re.sub(r"\.(layers|h|blocks)\.\d+\.", r".\1.{}.", name)


def describe(family, variant, settings):
    config = transformers.AutoConfig.for_model(family, **settings)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    tensors = [(n, p.shape) for n, p in model.named_parameters()]
    # Offsets of the experts' choice are stored, but are no parameters in the library's sense.
    tensors += [(n, b.shape) for n, b in model.named_buffers() if n.endswith("correction_bias")]
    elements = collections.Counter()
    for name, shape in tensors:
        elements[template(name)] += math.prod(shape)
    return {
        "family": family,
        "variant": variant,
        "settings": dict(settings, model_type=family),
        # The library writes infinities, which JSON does not have.
        "saved": json.loads(config.to_json_string(use_diff=True), parse_constant=lambda _: None),
        "elements": dict(elements),
    }


print("[")
print(",\n".join(json.dumps(describe(*c)) for c in cases))
print("]")
