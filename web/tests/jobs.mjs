// Some two hundred requests over models, devices, placements, configurations of engines and subcommands, the
// same at every run.
import { sources } from './sources.mjs';

const models = ['gpt2', 'llama-3.1-8b', 'llama-3.1-70b', 'mixtral-8x7b', 'qwen3-8b', 'deepseek-v3', '7B'];
const small = [
  ['h100-sxm:1', 'dp=8:ddp'], ['h100-sxm:1', 'dp=8:zero1'], ['h100-sxm:1', 'dp=8:zero2'],
  ['h100-sxm:1', 'dp=8:zero3'], ['h100-sxm:1', 'tp=8:tp+sp'], ['h100-sxm:1', 'dp=2:zero1 tp=4:tp'],
  ['a100-80gb-sxm:2', 'pp=2:1f1b dp=2:zero1 tp=4:tp+sp'], ['a100-80gb-sxm:2', 'pp=4:gpipe dp=4:ddp'],
  ['h200-sxm:2', 'dp=4:zero3 cp=4:ring'], ['h100-sxm:8', 'pp=4:1f1b dp=2:zero1 tp=8:tp+sp'],
  ['h100-sxm:2', 'pp=4:zb-h1 dp=4:zero1'], ['h100-sxm:1', 'dp=8:zero-offload'],
];
const options = [
  {}, { 'global-batch': '64' }, { seq: '2048', 'micro-batch': '2' }, { recompute: 'full' },
  { recompute: 'selective' }, { precision: 'bf16' }, { optimizer: 'lion' }, { engine: 'pytorch' },
  { engine: 'megatron' }, { precision: 'fp8' }, { 'global-batch': '128', seq: '4k' },
];
const wrong = [
  { subcommand: 'derive', model: 'gtp2', placement: 'dp=8:zero3' },
  { subcommand: 'derive', model: 'gpt2', placement: 'dp=8:zer3', cluster: 'h100-sxm:1' },
  { subcommand: 'simulate', model: 'gpt2', placement: 'dp=8:ddp', cluster: 'h1000:1' },
  { subcommand: 'derive', model: 'gpt2', placement: 'dp=3:ddp', cluster: 'h100-sxm:1' },
  { subcommand: 'plan', model: 'gpt2', cluster: 'h100-sxm:1', fix: 'tp=16 dp=16' },
  { subcommand: 'derive', model: 'gpt2', placement: 'dp=8:ddp', cluster: 'h100-sxm:1', seq: '-4' },
];

export function jobs() {
  const out = [...wrong];
  let turn = 0;
  for (const model of models) {
    for (const [cluster, placement] of small) {
      const own = { model, cluster, placement, ...options[turn % options.length] };
      out.push({ subcommand: 'derive', ...own });
      out.push({ subcommand: turn % 2 === 0 ? 'simulate' : 'derive', ...own, ...options[(turn + 5) % options.length] });
      turn += 1;
    }
  }
  for (const [cluster, placement] of small.slice(0, 7)) {
    out.push({ subcommand: 'check', model: 'gpt2', cluster, placement });
    out.push({ subcommand: 'simulate', model: 'llama-3.1-8b', cluster, placement, 'global-batch': '64' });
  }
  out.push({ subcommand: 'check', model: 'gpt2', cluster: 'h100-sxm:1', placement: 'dp=8:local-sgd' });
  out.push({ subcommand: 'check', model: 'llama-3.1-8b', cluster: 'h100-sxm:1', placement: 'pp=2:1f1b dp=4:zero1', 'global-batch': '8' });
  for (const model of ['gpt2', 'llama-3.1-8b']) out.push({ subcommand: 'plan', model, cluster: 'h100-sxm:1', top: 3 });
  out.push({ subcommand: 'plan', model: 'llama-3.1-70b', cluster: 'h100-sxm:8', seq: '8192', 'global-batch': '512' });
  for (const [file, text, flags] of sources) {
    out.push({ subcommand: 'lint', sources: [{ file, text }], ...flags });
    out.push({ subcommand: 'import', sources: [{ file, text }], ...flags });
  }
  for (const to of ['torchtitan', 'deepspeed', 'megatron', 'accelerate', 'maxtext']) {
    out.push({ subcommand: 'export', model: 'llama-3.1-8b', cluster: 'h100-sxm:1', placement: 'dp=8:zero3', seq: '4096', 'global-batch': '64', to });
  }
  for (const model of models) out.push({ subcommand: 'model', model });
  for (const list of ['models', 'devices', 'clusters', 'engines', 'strategies', 'schedules']) out.push({ subcommand: list });
  return out;
}
