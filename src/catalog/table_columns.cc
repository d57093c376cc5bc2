// The columns of every kind of table (data/validation/tables/SCHEMA.md).
#include <array>

#include "catalog/table.h"
#include "units/error.h"

namespace placet {
namespace {

using Type = TableColumn::Type;

constexpr auto kRunColumns = std::to_array<TableColumn>({
    {"row_id"},
    {"source_id"},
    {"source_locator"},
    {"model"},
    {"params_stated"},
    {"n_layers", Type::whole},
    {"hidden", Type::whole},
    {"n_heads", Type::whole},
    {"n_kv_heads", Type::whole},
    {"head_dim", Type::whole},
    {"ffn", Type::whole},
    {"mlp_type"},
    {"vocab", Type::whole},
    {"tied_embeddings", Type::flag},
    {"pos_embedding"},
    {"seq_len", Type::whole},
    {"moe_experts", Type::whole},
    {"moe_topk", Type::whole},
    {"moe_ffn", Type::whole},
    {"moe_shared_experts", Type::whole},
    {"moe_first_dense_layers"},
    {"gpu"},
    {"gpu_mem_gb", Type::number},
    {"n_gpus", Type::whole},
    {"gpus_per_node", Type::whole},
    {"intra_node"},
    {"inter_node"},
    {"dp", Type::whole},
    {"tp", Type::whole},
    {"pp", Type::whole},
    {"vpp", Type::whole},
    {"cp", Type::whole},
    {"ep", Type::whole},
    {"etp", Type::whole},
    {"sp", Type::flag},
    {"zero_stage", Type::whole},
    {"sharding"},
    {"pp_schedule"},
    {"micro_batch", Type::whole},
    {"global_batch", Type::whole},
    {"grad_accum", Type::whole},
    {"n_microbatches", Type::whole},
    {"act_ckpt"},
    {"act_offload", Type::flag},
    {"precision"},
    {"optimizer"},
    {"flash_attn", Type::flag},
    {"compile", Type::flag},
    {"framework"},
    {"framework_version"},
    {"task"},
    {"status"},
    {"tflops_per_gpu", Type::number},
    {"tflops_kind"},
    {"mfu_pct", Type::number},
    {"hfu_pct", Type::number},
    {"tokens_per_s_per_gpu", Type::number},
    {"tokens_per_s_total", Type::number},
    {"samples_per_s", Type::number},
    {"step_time_s", Type::number},
    {"peak_mem_gb", Type::number},
    {"mem_unit"},
    {"mem_kind"},
    {"n_gpus_derived", Type::whole},
    {"gpus_per_node_derived", Type::whole},
    {"dp_derived", Type::whole},
    {"vpp_derived", Type::whole},
    {"micro_batch_derived", Type::whole},
    {"global_batch_derived", Type::whole},
    {"n_microbatches_derived", Type::whole},
    {"tokens_per_s_per_gpu_derived", Type::number},
    {"step_time_s_derived", Type::number},
    {"notes"},
    {"max_allocated_gib", Type::number},
    {"max_reserved_gib", Type::number},
    {"nvidia_smi_gib", Type::number},
    {"network"},
    {"intra_gb_s", Type::number},
    {"network_gb_s", Type::number},
    {"catalogue_model"},
    {"cluster"},
    {"lora_rank", Type::whole},
    {"lora_targets"},
});

constexpr auto kStateColumns = std::to_array<TableColumn>({
    {"row_id"},
    {"source_id"},
    {"source_locator"},
    {"params_billion", Type::number},
    {"largest_layer_params_million", Type::number},
    {"dp"},  // a number, or "any" where the formula does not depend on it
    {"zero_stage", Type::whole},
    {"stage_name"},
    {"offload"},
    {"gpu_gb_derived", Type::number},
    {"gpu_gb_estimated", Type::number},
    {"cpu_gb_estimated", Type::number},
    {"notes"},
});

constexpr auto kActivationColumns = std::to_array<TableColumn>({
    {"row_id"},
    {"source_id"},
    {"source_locator"},
    {"model"},
    {"n_layers", Type::whole},
    {"hidden", Type::whole},
    {"n_heads", Type::whole},
    {"ffn", Type::whole},
    {"vocab", Type::whole},
    {"seq_len", Type::whole},
    {"gpu"},
    {"n_gpus", Type::whole},
    {"dp", Type::whole},
    {"tp", Type::whole},
    {"pp", Type::whole},
    {"vpp", Type::whole},
    {"micro_batch", Type::whole},
    {"global_batch", Type::whole},
    {"act_ckpt"},
    {"sp", Type::flag},
    {"param_opt_gib", Type::number},
    {"activation_gib", Type::number},
    {"activation_pct_of_no_sp_no_ckpt", Type::number},
    {"notes"},
});

}  // namespace

std::span<const TableColumn> columns_of(TableKind kind) {
  switch (kind) {
    case TableKind::runs:
      return kRunColumns;
    case TableKind::states:
      return kStateColumns;
    case TableKind::activations:
      return kActivationColumns;
  }
  fail_internally("every kind of table has columns");
}

}  // namespace placet
