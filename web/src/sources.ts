// Configurations of engines that were handed over: their texts, what they say, and what is wrong in them.
import { signal } from '@preact/signals';
import type { Exported, Fault, Imported, Lint } from './answers.ts';
import { change, job, kWords, type Job } from './job.ts';
import { devicesOf } from './placement.ts';
import { faultOf, quick, tab } from './work.ts';

export interface SourceText { file: string; text: string }
export interface Sources {
  files: SourceText[];
  imported: Imported | null;
  lint: Lint | null;
  taken: string[]; // words of the form that the sources leave open
  fault: Fault | null;
  busy: boolean;
}
const kNone: Sources = { files: [], imported: null, lint: null, taken: [], fault: null, busy: false };
export const sources = signal<Sources>(kNone);

export const kLargestSource = 4_000_000;
export const kMostSources = 20;

type Answered = { document: unknown; fault: Fault | null };

async function asked(request: object): Promise<Answered> {
  const answer = await quick.call(request);
  if (answer.status === 3) return { document: null, fault: faultOf(answer.document) };
  const document: unknown = JSON.parse(answer.document);
  return answer.status === 2 ? { document: null, fault: (document as { error: Fault }).error } : { document, fault: null };
}

/** What the form says of what an import found missing: "--world-size" is that of its cluster. */
function fromForm(imported: Imported, own: Job, given: Record<string, unknown>): Record<string, unknown> {
  const more: Record<string, unknown> = {};
  for (const { flag } of imported.missing) {
    const word = /^--(model|seq|global-batch|micro-batch|world-size|cluster)\b/.exec(flag)?.[1];
    if (word === undefined) continue;
    const key = word === 'world-size' ? 'cluster' : (word as 'model');
    const value = key === 'model' && own.sheet !== null ? own.sheet : own[key].trim();
    if (value !== '' && !(key in given)) more[key] = value;
  }
  return more;
}

/** As many of the form's devices as the placement has, where that is another number. */
function clusterFor(cluster: string, placement: string): string {
  const match = /^(?:(\d+)x)?([\w.-]+?)(?::(\d+))?$/.exec(cluster.trim());
  const device = match?.[2];
  if (match === null || device === undefined || placement === '') return cluster;
  const wanted = devicesOf(placement);
  const now = match[1] !== undefined ? Number(match[1]) : Number(match[3] ?? 1) * 8;
  if (wanted === now) return cluster;
  return wanted % 8 === 0 ? `${device}:${wanted / 8}` : `${wanted}x${device}`;
}

/** Puts what was read into the form; what it does not say, the form keeps or forgets with the engine. */
function fill(imported: Imported): void {
  const said = imported.job;
  const parts: Partial<Job> = {};
  for (const word of kWords) {
    const kept = word === 'model' || word === 'cluster' || word === 'seq' || word === 'placement';
    const value = said[word];
    if (value !== undefined) parts[word] = value;
    else if (!kept) parts[word] = '';
  }
  if (said['model'] !== undefined) parts.sheet = null;
  if (said['model']?.startsWith('{')) {
    parts.sheet = JSON.parse(said['model']) as object;
    parts.model = imported.ledger[0]?.file.slice(0, 80) ?? 'configuration';
  }
  if (said['cluster'] === undefined && said['placement'] !== undefined) {
    parts.cluster = clusterFor(job.peek().cluster, said['placement']);
  }
  change(parts, 'sources');
}

let turn = 0;

async function read(files: SourceText[], mend: boolean): Promise<void> {
  turn += 1;
  const own = turn;
  sources.value = { ...kNone, files, busy: true };
  try {
    let given: Record<string, unknown> = {};
    let imported = await asked({ subcommand: 'import', sources: files });
    for (let round = 0; round < 3 && imported.document !== null; round += 1) {
      const more = fromForm(imported.document as Imported, job.peek(), given);
      if (Object.keys(more).length === 0) break;
      const next = await asked({ subcommand: 'import', sources: files, ...given, ...more });
      if (next.document === null) break; // what the form says is no help
      given = { ...given, ...more };
      imported = next;
    }
    const lint = await asked({ subcommand: 'lint', sources: files, ...given, ...(mend ? { fix: true } : {}) });
    if (own !== turn) return;
    const mended = (lint.document as Lint | null)?.mended ?? [];
    if (mended.length > 0) {
      const text = (file: SourceText) => mended.find((one) => one.file === file.file)?.text ?? file.text;
      await read(files.map((file) => ({ file: file.file, text: text(file) })), false);
      return;
    }
    const document = imported.document as Imported | null;
    sources.value = {
      files, imported: document, lint: lint.document as Lint | null, taken: Object.keys(given),
      fault: imported.fault ?? lint.fault, busy: false,
    };
    if (document !== null) fill(document);
  } catch (error) {
    if (own === turn) sources.value = { ...kNone, files, fault: faultOf(error) };
  }
}

/** Reads configurations in the place of those before, and shows them. */
export function handOver(files: SourceText[]): void {
  tab.value = 'config';
  void read(files, false);
}
export const mend = () => void read(sources.peek().files, true);
export const forget = () => { turn += 1; sources.value = kNone; };

/** Texts of files; what is too large is refused by its name. Throws Error. */
export async function textsOf(files: File[]): Promise<SourceText[]> {
  if (files.length > kMostSources) throw new Error(`${files.length} files; at most ${kMostSources} at once`);
  const large = files.find((file) => file.size > kLargestSource);
  if (large !== undefined) throw new Error(`${large.name} has ${large.size} bytes; a configuration has at most ${kLargestSource}`);
  return Promise.all(files.map(async (file) => ({ file: file.name, text: await file.text() })));
}

// --- the other way ---------------------------------------------------------------------------

export interface Written { document: Exported | null; fault: Fault | null; busy: boolean; key: string }
export const written = signal<Written>({ document: null, fault: null, busy: false, key: '' });

export async function write(request: Record<string, unknown>): Promise<void> {
  const key = JSON.stringify(request);
  written.value = { document: null, fault: null, busy: true, key };
  try {
    const { document, fault } = await asked(request);
    if (written.peek().key === key) written.value = { document: document as Exported | null, fault, busy: false, key };
  } catch (error) {
    if (written.peek().key === key) written.value = { document: null, fault: faultOf(error), busy: false, key };
  }
}
