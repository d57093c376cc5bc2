// The job that the page is about: one value, its history, and the link that holds it whole.
import { computed, signal } from '@preact/signals';

/** Words that few jobs say. */
export const kFurther = ['lengths', 'lora', 'loss', 'clip', 'routing', 'balance-loss'] as const;
export const kWords = [
  'model', 'cluster', 'placement', 'seq', 'global-batch', 'micro-batch', 'recompute', 'precision',
  'optimizer', 'engine', ...kFurther,
] as const;
export type Word = (typeof kWords)[number];

/** Words as on the command line; empty: not given. `sheet`: a config.json in the place of a name. */
export type Job = Record<Word, string> & { sheet: object | null; other: string };

export const kFirst: Job = {
  model: 'llama-3.1-70b',
  cluster: 'h100-sxm:8',
  placement: 'pp=4:1f1b dp=2:zero1 tp=8:tp+sp',
  seq: '8192',
  'global-batch': '512',
  'micro-batch': '',
  recompute: '',
  precision: '',
  optimizer: '',
  engine: '',
  lengths: '',
  lora: '',
  loss: '',
  clip: '',
  routing: '',
  'balance-loss': '',
  sheet: null,
  other: '',
};

export const job = signal<Job>(fromLink(location.hash) ?? kFirst);
const past = signal<Job[]>([]);
const future = signal<Job[]>([]);
export const canUndo = computed(() => past.value.length > 0);
export const canRedo = computed(() => future.value.length > 0);

const kRemembered = 200;
let lastKey = '';
let lastTime = 0;

/** Changes the job. Keystrokes in one field shortly after each other are one step of the history. */
export function change(parts: Partial<Job>, from = Object.keys(parts).join()): void {
  const next = { ...job.peek(), ...parts };
  if (JSON.stringify(next) === JSON.stringify(job.peek())) return;
  const now = performance.now();
  if (from !== lastKey || now - lastTime > 800) {
    past.value = [...past.peek(), job.peek()].slice(-kRemembered);
  }
  lastKey = from;
  lastTime = now;
  future.value = [];
  job.value = next;
}

function step(from: typeof past, to: typeof past): void {
  const other = from.peek().at(-1);
  if (other === undefined) return;
  from.value = from.peek().slice(0, -1);
  to.value = [...to.peek(), job.peek()];
  lastKey = '';
  job.value = other;
}
export const undo = () => step(past, future);
export const redo = () => step(future, past);

/** The words of a request document that are given. */
export function requestOf(subcommand: string, own: Job): Record<string, unknown> {
  const request: Record<string, unknown> = { subcommand };
  for (const word of kWords) {
    const text = own[word].trim();
    if (text !== '') request[word] = text;
  }
  if (own.sheet !== null) request['model'] = own.sheet;
  return request;
}

/** The call of the program that asks the same. */
export function commandOf(subcommand: string, own: Job): string {
  const quoted = (text: string) => (/^[\w@.:,/+=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);
  const model = own.sheet === null ? quoted(own.model) : 'config.json';
  const flags = kWords
    .filter((word) => word !== 'model' && own[word].trim() !== '')
    .filter((word) => !(subcommand === 'plan' && (word === 'placement' || word === 'micro-batch' || word === 'recompute')))
    .map((word) => `--${word} ${quoted(own[word].trim())}`);
  return ['placet', subcommand, model, ...flags].join(' ');
}

// --- links -----------------------------------------------------------------------------------

const kLongestLink = 300_000;
const kLongestWord = 4000;

export function linkOf(own: Job): string {
  const given: Record<string, unknown> = {};
  for (const word of kWords) if (own[word] !== '') given[word] = own[word];
  if (own.sheet !== null) given['sheet'] = own.sheet;
  if (own.other !== '') given['other'] = own.other;
  const text = new TextEncoder().encode(JSON.stringify(given));
  let binary = '';
  for (const byte of text) binary += String.fromCharCode(byte);
  return `#job=${btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')}`;
}

/** The job of a link, whoever made it: texts of bounded length under known keys, else none. */
export function fromLink(hash: string): Job | null {
  const match = /^#job=([\w-]+)$/.exec(hash.slice(0, kLongestLink));
  if (match === null) return null;
  try {
    const binary = atob((match[1] ?? '').replaceAll('-', '+').replaceAll('_', '/'));
    const text = new TextDecoder('utf-8', { fatal: true }).decode(
      Uint8Array.from(binary, (letter) => letter.charCodeAt(0)),
    );
    const given: unknown = JSON.parse(text);
    if (typeof given !== 'object' || given === null || Array.isArray(given)) return null;
    const found = new Map(Object.entries(given));
    const own: Job = { ...kFirst };
    for (const word of [...kWords, 'other'] as const) {
      const value = found.get(word);
      own[word] = typeof value === 'string' ? value.slice(0, kLongestWord) : '';
    }
    const sheet: unknown = found.get('sheet');
    own.sheet = typeof sheet === 'object' && sheet !== null && !Array.isArray(sheet) ? sheet : null;
    return own;
  } catch {
    return null;
  }
}
