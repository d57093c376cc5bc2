// The answers' documents as far as the page reads them (docs/formats.md has all keys).

export const kStates = ['parameters', 'optimizer', 'gradients', 'activations'] as const;
export type State = (typeof kStates)[number];
export const kShares = [...kStates, 'transient', 'overhead'] as const;
export type Share = (typeof kShares)[number];
export type Mode = 'R' | 'S' | 'S*' | 'M' | 'O';
export type Fit = 'fits' | 'tight' | 'does not fit';

export interface Finding {
  rule: string;
  severity: 'error' | 'warning' | 'advice';
  where: string;
  message: string;
  cure: string;
}

export interface Axis {
  axis: string;
  degree: number;
  shares: number[];
  cut: string;
  modes: Record<State, Mode>;
  classes: Record<string, { cut: string; modes: Record<State, Mode> }>;
  link: string;
}

export interface MemoryTerm {
  state: string;
  what: string;
  axis_factors: { axis: string; factor: string }[];
  bytes: number;
  unit: string;
}

export interface MemoryClass {
  class: string;
  devices: number;
  capacity_bytes: number;
  fit: Fit;
  reserved_bytes: number;
  outside_bytes: number;
  at: string;
  bytes: Record<Share | 'total', number>;
  host_bytes: Record<State, number>;
  instants: { at: string; bytes: number }[];
  terms: MemoryTerm[];
}

export interface Message {
  axes: string[];
  collective: string;
  state: string;
  what: string;
  dtype: string;
  phase: string;
  payload_bytes: number;
  count: number;
  group: number;
  sent_bytes: number;
  levels: { link: string; bytes: number }[];
  unit: string;
}

export interface Derivation {
  schema: string;
  model: { name: string; parameters: number };
  devices: number;
  placement: string;
  engine: string;
  training: {
    sequence: number;
    micro_batch: number;
    micro_batches: number;
    global_batch: number;
    precision: string;
    optimizer: string;
    cluster: string;
    notes: string[];
  };
  mesh?: Axis[];
  memory?: {
    fits: boolean;
    fit: Fit;
    capacity_bytes: number;
    peak_bytes: number;
    reserved_bytes: number;
    outside_bytes: number;
    classes: MemoryClass[];
  };
  communication?: { sent_bytes: number; classes: { class: string; sent_bytes: number; terms: Message[] }[] };
  findings: Finding[];
  verdict: { good: boolean; text: string };
}

export interface Timeline {
  step_seconds?: number;
  tokens_per_second: number;
  tokens_per_second_per_device: number;
  mfu: number | null;
  breakdown: {
    compute: number;
    exposed_communication: Record<string, number>;
    bubble: number;
    launch: number;
    host: number;
    update: number;
  };
  terms: { kind: string; what: string; unit: string; phase: string; axes: string[]; seconds: number }[];
  binds: string;
  simulated: {
    step_seconds: number;
    stages: { stage: number; idle_seconds: number; spent_seconds: Record<string, number> }[];
    links: { link: string; busy: number }[];
  };
  findings: Finding[];
}

export interface Slices {
  stages: number;
  step_nanoseconds: number;
  units_apart: boolean;
  slices_left_out: number;
  lanes: string[];
  doings: string[];
  slices: Record<'stage' | 'lane' | 'doing' | 'chunk' | 'unit' | 'micro_batch' | 'begin' | 'end', number[]>;
}

export interface PlanFigures {
  placement: string;
  micro_batch: number;
  recompute: string;
  step_seconds: number;
  needed_bytes: number;
  fit: Fit;
  sent_bytes: number;
  mfu?: number;
  binds?: string;
  proof?: string;
  job?: Record<string, string | number>;
}
export interface Plans {
  seconds: { total: number };
  space: number;
  visited: number;
  exact: boolean;
  notes: string[];
  plans: PlanFigures[];
  front?: { plans: PlanFigures[] };
  shortage?: { message?: string };
}

export interface VerdictFinding {
  condition: string;
  tensor: string;
  ranks: string;
  at: string;
  expected: string;
  found: string;
  difference: string;
  fix: string;
  before?: string;
}
export interface Verdict {
  equivalent?: boolean;
  steps_checked?: number;
  devices?: number;
  conditions?: Record<string, string>;
  findings?: VerdictFinding[];
  cure?: { found: boolean; change: string };
  rules?: Finding[];
  methods?: { name: string; axis: string; because: string; keeps: string }[];
}

export interface ModelSheet {
  name: string;
  layers: number;
  hidden: number;
  vocabulary: number;
  parameters: { total: number; active: number };
  tensors: { name: string; shape: number[]; dtype: string; class: string; count: number }[];
}

export interface Fault {
  message: string;
  where: string;
  value: string;
  problem: string;
  allowed: string;
  nearest: string;
}

/** What import answers: the words of a job, what is missing, and what became of every key. */
export interface Imported {
  dialects: string[];
  job: Record<string, string>;
  missing: { what: string; flag: string }[];
  batches?: number[];
  ledger: { file: string; line: number; key: string; value: string; fate: string; what: string }[];
}

export interface LintFinding {
  code: string;
  name: string;
  severity: 'error' | 'warning' | 'advice';
  file: string;
  line: number;
  message: string;
  fix: string;
  fixable: boolean;
}
export interface Lint {
  findings: LintFinding[];
  mended?: { file: string; text: string }[];
}

export interface Exported {
  dialect: string;
  files: { name: string; text: string }[];
  beside: Record<string, string>;
  unsaid: { word: string; job: string; nearest: string }[];
}
