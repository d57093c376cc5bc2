"""Writes family_totals.json: small models of families that the transformers library holds in
a later version than that of families.json, or under spellings that only the later version writes, with
the number of parameters as the library builds them.

    pip install transformers==5.23.0 torch einops
    python make_family_totals.py > family_totals.json

The later library keeps the experts of a block in one tensor where published files keep them apart,
so only the totals are compared (hf_families_test.cc). Models are made on the "meta" device.
"""

import json
import math
import warnings

import torch
import transformers

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()

S = dict(hidden_size=64, num_hidden_layers=4, num_attention_heads=4, vocab_size=96, pad_token_id=0)
L = dict(S, intermediate_size=160, num_key_value_heads=2, max_position_embeddings=128)
MLA = dict(
    L,
    num_key_value_heads=4,
    q_lora_rank=24,
    kv_lora_rank=20,
    qk_nope_head_dim=12,
    qk_rope_head_dim=4,
    v_head_dim=10,
)
MOE = dict(n_routed_experts=8, num_experts_per_tok=2, n_shared_experts=1, moe_intermediate_size=40)
EXPERTS = dict(num_experts=8, num_experts_per_tok=2, num_shared_experts=1, moe_intermediate_size=40)
DELTA = dict(
    linear_num_key_heads=2,
    linear_num_value_heads=4,
    linear_key_head_dim=8,
    linear_value_head_dim=12,
)
cases = []


def case(family, **settings):
    cases.append((family, settings))


case("ministral3", **L, head_dim=24)
case("vaultgemma", **L)
case("jais2", **L, head_dim=16)
case("jais2", **L, head_dim=16, attention_bias=False, mlp_bias=False)
case("youtu", **MLA)
case("glm4_moe_lite", **MLA, **MOE)
case("glm4_moe_lite", **MLA, **MOE, mlp_layer_types=["dense", "dense", "sparse", "sparse"])
case("glm_moe_dsa", **MLA, **MOE, index_n_heads=2, index_head_dim=8)
case("glm_moe_dsa", **MLA, **MOE)
case("deepseek_v32", **MLA, **MOE, index_n_heads=2, index_head_dim=8)
case("solar_open", **L, **MOE, head_dim=16)
case("exaone_moe", **L, **EXPERTS)
case("hy_v3", **L, **EXPERTS, head_dim=16)
case("afmoe", **L, **EXPERTS, head_dim=16, num_dense_layers=2)
case("flex_olmo", **L, num_experts=6, num_experts_per_tok=2)
case("aria_text", **L, head_dim=16, moe_num_experts=4, moe_topk=2, moe_num_shared_experts=3)
case("minimax_m2", **L, num_local_experts=6, num_experts_per_tok=2, head_dim=24)
case("qwen3_5_text", **L, **DELTA, head_dim=16)
case("qwen3_5_text", **L, **DELTA, head_dim=16, tie_word_embeddings=True)
case(
    "qwen3_5_moe_text",
    **S,
    **DELTA,
    num_key_value_heads=2,
    head_dim=16,
    num_experts=6,
    num_experts_per_tok=2,
    moe_intermediate_size=40,
    shared_expert_intermediate_size=56,
)
case("lfm2", **L, full_attn_idxs=[1, 3])
case("lfm2", **L, full_attn_idxs=[2], conv_bias=True, block_auto_adjust_ff_dim=False)
case(
    "lfm2_moe",
    **L,
    layer_types=["conv", "full_attention", "conv", "conv"],
    num_experts=6,
    num_experts_per_tok=2,
    moe_intermediate_size=40,
    num_dense_layers=1,
)
case(
    "nemotron_h",
    **dict(L, num_hidden_layers=3),
    layers_block_type=["linear_attention", "full_attention", "mlp"],
    head_dim=16,
    mamba_num_heads=8,
    mamba_head_dim=16,
    ssm_state_size=8,
    n_groups=2,
)
case(
    "granitemoehybrid",
    **dict(L, num_hidden_layers=2),
    layer_types=["linear_attention", "full_attention"],
    num_local_experts=0,
    shared_intermediate_size=80,
    mamba_n_heads=8,
    mamba_d_state=16,
    mamba_d_head=16,
)
case(
    "dbrx",
    d_model=64,
    n_heads=4,
    n_layers=2,
    vocab_size=96,
    max_seq_len=32,
    attn_config=dict(kv_n_heads=2, rope_theta=10000),
    ffn_config=dict(moe_num_experts=4, moe_top_k=2, ffn_hidden_size=48, hidden_size=64),
)

case(
    "deepseek_v4",
    **S,
    num_key_value_heads=1,
    head_dim=24,
    moe_intermediate_size=40,
    n_routed_experts=8,
    num_experts_per_tok=2,
    q_lora_rank=20,
    o_groups=2,
    o_lora_rank=10,
    index_n_heads=3,
    index_head_dim=16,
    layer_types=[
        "sliding_attention",
        "heavily_compressed_attention",
        "compressed_sparse_attention",
        "heavily_compressed_attention",
    ],
    num_hash_layers=1,
)
case("deepseek_v4", **dict(S, num_hidden_layers=5), head_dim=16, moe_intermediate_size=24,
     n_routed_experts=4, num_experts_per_tok=2, q_lora_rank=12, o_groups=4, o_lora_rank=6, hc_mult=3,
     compress_ratios=[0, 4, 128, 4, 0, 0])
case("gemma4_text", **dict(L, num_hidden_layers=6), head_dim=16, global_head_dim=24,
     hidden_size_per_layer_input=8, vocab_size_per_layer_input=48, num_kv_shared_layers=0)
case("gemma4_text", **dict(L, num_hidden_layers=12), head_dim=16, global_head_dim=24,
     hidden_size_per_layer_input=8, vocab_size_per_layer_input=48, num_kv_shared_layers=4,
     use_double_wide_mlp=True)
case("gemma4_text", **dict(L, num_hidden_layers=6), head_dim=16, global_head_dim=32,
     hidden_size_per_layer_input=0, attention_k_eq_v=True, num_global_key_value_heads=1,
     enable_moe_block=True, num_experts=6, top_k_experts=2, moe_intermediate_size=40)
case("gemma3n_text", **dict(L, num_hidden_layers=10), head_dim=16, laurel_rank=6,
     hidden_size_per_layer_input=8, vocab_size_per_layer_input=48, num_kv_shared_layers=4)
case("kimi_linear", **dict(MLA, q_lora_rank=None), num_experts=8, num_experts_per_token=2,
     num_shared_experts=1, moe_intermediate_size=40,
     linear_attn_config=dict(num_heads=4, head_dim=12, short_conv_kernel_size=4,
                             kda_layers=[1, 2, 4], full_attn_layers=[3]))
case("mimo_v2_flash", **L, head_dim=24, v_head_dim=16, n_routed_experts=8,
     num_experts_per_tok=2, moe_intermediate_size=40)
case("nemotron_h", **dict(L, num_hidden_layers=4),
     layers_block_type=["linear_attention", "moe", "full_attention", "moe"], head_dim=16,
     mamba_num_heads=8, mamba_head_dim=16, ssm_state_size=8, n_groups=2, n_routed_experts=8,
     n_shared_experts=1, num_experts_per_tok=2, moe_intermediate_size=40, moe_latent_size=24,
     moe_shared_expert_intermediate_size=56)
case("glm_moe_dsa", **MLA, **MOE, index_n_heads=2, index_head_dim=8, index_topk=16,
     indexer_types=["full", "shared", "full", "shared"], first_k_dense_replace=1)
# Of version 5.16.1:
case("cohere2_moe", **L, head_dim=16, num_experts=8, num_experts_per_tok=2)
case("cohere2_moe", **L, head_dim=24, num_experts=8, num_experts_per_tok=2, num_shared_experts=2,
     mlp_layer_types=["dense", "sparse", "sparse", "sparse"], prefix_dense_intermediate_size=200)


def describe(family, settings):
    config = transformers.AutoConfig.for_model(family, **settings)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    tensors = [p.shape for p in model.parameters()]
    # Offsets of the experts' choice are stored, but are no parameters in the library's sense.
    offsets = ("correction_bias", "expert_bias")
    tensors += [b.shape for n, b in model.named_buffers() if n.endswith(offsets)]
    return {
        "family": family,
        "settings": dict(settings, model_type=family),
        "saved": json.loads(config.to_json_string(use_diff=True), parse_constant=lambda _: None),
        "total": sum(math.prod(shape) for shape in tensors),
    }


if __name__ == "__main__":
    print("[")
    print(",\n".join(json.dumps(describe(*c)) for c in cases))
    print("]")
