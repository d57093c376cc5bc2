// Configurations as people write them, some wrong: [name, text, flags]. Each is read by the program from a
// file and by the module from its text.
const titan = (tensor, sequence, batch) => `[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = ${batch}
seq_len = ${sequence}
steps = 1000
[parallelism]
data_parallel_shard_degree = -1
tensor_parallel_degree = ${tensor}
pipeline_parallel_degre = 2
[activation_checkpoint]
mode = "full"
`;
const deepspeed = (stage, batch, half) => `{
  // comments are no JSON, and engines read them
  "train_batch_size": ${batch},
  "train_micro_batch_size_per_gpu": 2,
  "gradient_clipp1ng": 1.0,
  "bf16": {"enabled": true},
  "fp16": {"enabled": ${half}},
  "zero_optimization": {"stage": ${stage}, "overlap_comm": true}
}
`;
const accelerate = (version, processes) => `compute_environment: LOCAL_MACHINE
distributed_type: FSDP
downcast_bf16: 'no'
fsdp_config: &fsdp
  fsdp_version: ${version}
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_reshard_after_forward: true
  fsdp_state_dict_type: SHARDED_STATE_DICT
machine_rank: 0
mixed_precision: bf16
num_machines: 1
num_processes: ${processes} # of one machine
`;
const nanotron = (tensor, data) => `parallelism:
  dp: ${data}
  tp: ${tensor}
  pp: 1
  tp_mode: REDUCE_SCATTER
tokens: {micro_batch_size: 2, batch_accumulation_per_replica: 2, sequence_length: 1024}
optimizer:
  zero_stage: 1
model: >-
  folded text
  of two lines
`;
const megatron = (tensor, pipeline, batch) => `#!/bin/bash
#SBATCH --nodes=4
TP=${tensor}
ARGS="--num-layers 32 --hidden-size 4096 --num-attention-heads 32"
torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py $ARGS \\
  --tensor-model-parallel-size $TP --pipeline-model-parallel-size ${pipeline} \\
  --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 \\
  --global-batch-size ${batch} --bf16 --use-distributed-optimizer --vocab-size 50304
`;

export const sources = [
  ...[[2, 8192, 1], [3, 8192, 1], [8, 8190, 2], [16, 4096, 4]].map(([t, s, b]) => ['train.toml', titan(t, s, b), { 'world-size': '64' }]),
  ...[[3, 64, 'true'], [2, 65, 'false'], [1, 128, 'false'], [0, 16, 'true']].map(([z, b, h]) =>
    ['ds_config.json', deepspeed(z, b, h), { model: 'gpt2', seq: '1024', 'world-size': '8' }]),
  ...[[1, 8], [2, 8], [2, 6], [2, 0]].map(([v, n]) => ['fsdp.yaml', accelerate(v, n), { model: 'gpt2', seq: '1024', 'global-batch': '48' }]),
  ...[[2, 4], [3, 4], [8, 1]].map(([t, d]) => ['config.yaml', nanotron(t, d), { model: 'gpt2' }]),
  ...[[8, 2, 64], [8, 2, 63], [5, 1, 64], [4, 3, 64]].map(([t, p, b]) => ['launch.sh', megatron(t, p, b), {}]),
  ['broken.toml', '[training\nseq_len = 1\n', {}],
  ['broken.yaml', 'a: [1, 2\nb: *none\n', {}],
  ['broken.json', '{"train_batch_size": 8,, }', {}],
  ['nothing.yaml', 'hello: world\n', {}],
  ['empty.toml', '', {}],
];
