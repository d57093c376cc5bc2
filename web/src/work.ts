// What the engine is asked as the job changes, and what it answered last.
import { effect, signal, type Signal } from '@preact/signals';
import type { Derivation, Fault, ModelSheet, Plans, Slices, Timeline, Verdict } from './answers.ts';
import { Client, StoppedError } from './engine/client.ts';
import { job, linkOf, requestOf, type Job } from './job.ts';

export interface Result<Document> {
  document: Document | null;
  fault: Fault | null; // wrong input, or what went wrong with the engine
  busy: boolean;
  progress: string;
  milliseconds: number;
  key: string; // of the job that it answers
}
function none<Document>(): Signal<Result<Document>> {
  return signal({ document: null, fault: null, busy: false, progress: '', milliseconds: 0, key: '' });
}

export const derived = none<Derivation>();
export const timed = none<Timeline>();
export const sliced = none<Slices>();
export const planned = none<Plans>();
export const proven = none<Plans>();
export const fronted = none<Plans>();
export const checked = none<Verdict>();
export const modelled = none<ModelSheet>();
export const otherDerived = none<Derivation>();
export const otherTimed = none<Timeline>();

export type Tab = 'memory' | 'mesh' | 'time' | 'plan' | 'compare' | 'check' | 'config';
export const tab = signal<Tab>('memory');
export const started = signal<'loading' | 'ready' | string>('loading');

export const quick = new Client(30_000);
const slow = new Client(300_000);

export function faultOf(error: unknown): Fault {
  const message = error instanceof Error ? error.message : String(error);
  return { message, where: '', value: '', problem: '', allowed: '', nearest: '' };
}

/** Asks and puts the answer into `result`; an answer that came too late is dropped. */
async function ask<Document>(
  client: Client, result: Signal<Result<Document>>, request: Record<string, unknown>,
): Promise<void> {
  const key = JSON.stringify(request);
  if (result.peek().key === key && (result.peek().document !== null || result.peek().busy)) return;
  result.value = { ...result.peek(), busy: true, key, progress: '' };
  const current = () => result.peek().key === key;
  try {
    const answer = await client.call(request, (progress) => {
      if (current()) result.value = { ...result.peek(), progress };
    });
    if (!current()) return;
    const document: unknown = answer.status === 3 ? null : JSON.parse(answer.document);
    const done = { busy: false, progress: '', milliseconds: answer.milliseconds, key };
    if (answer.status === 2) {
      // What was answered last stays, faint, while somebody is typing.
      const last = client === quick ? result.peek().document : null;
      result.value = { ...done, document: last, fault: (document as { error: Fault }).error };
    } else if (answer.status === 3) {
      result.value = { ...done, document: null, fault: faultOf(answer.document) };
    } else {
      result.value = { ...done, document: document as Document, fault: null };
    }
  } catch (error) {
    if (!current()) return;
    const stopped = error instanceof StoppedError && error.message === 'stopped';
    const said = result.peek().progress;
    const fault = stopped
      ? { ...faultOf(error), message: `Stopped.${said === '' ? '' : ` So far: ${said}.`}` }
      : faultOf(error);
    result.value = { document: null, fault, busy: false, progress: '', milliseconds: 0, key: '' };
  }
}

export const kLongestPlacement = 4000;

function update(own: Job, shown: Tab): void {
  if (own.placement.length > kLongestPlacement) {
    const fault = faultOf(`the placement has ${own.placement.length} characters; a page takes ${kLongestPlacement}`);
    derived.value = { ...derived.peek(), document: null, fault, busy: false, key: '' };
    return;
  }
  void ask(quick, derived, requestOf('derive', own));
  void ask(quick, timed, requestOf('simulate', own));
  if (shown === 'time') void ask(quick, sliced, { ...requestOf('simulate', own), slices: true });
  if (shown === 'mesh') {
    const { model } = requestOf('model', own);
    void ask(quick, modelled, { subcommand: 'model', model });
  }
  if (shown === 'compare' && own.other.trim() !== '') {
    const other = { ...own, placement: own.other };
    void ask(quick, otherDerived, requestOf('derive', other));
    void ask(quick, otherTimed, requestOf('simulate', other));
  }
}

/** Plans first; then their proofs, which are most of the work; then the curve of those that need less memory, a search
 * for each of its points. */
export async function plan(): Promise<void> {
  const { placement: _, 'micro-batch': __, recompute: ___, ...request } = requestOf('plan', job.peek());
  fronted.value = none<Plans>().peek();
  proven.value = none<Plans>().peek();
  await ask(slow, planned, { ...request, top: 8, proofs: false });
  if (planned.peek().document?.exact !== true) return;
  await ask(slow, proven, { ...request, top: 8 });
  if (proven.peek().document?.exact !== true) return;
  if ((planned.peek().document?.plans.length ?? 0) > 0) await ask(slow, fronted, { ...request, top: 1, front: 16 });
}
export const stopPlan = () => void slow.finish();

export function check(): void {
  void ask(slow, checked, requestOf('check', job.peek()));
}

/** Is an answer of the job as it stands? */
export const isOfNow = (result: Result<unknown>, subcommand: string) =>
  result.key === JSON.stringify(requestOf(subcommand, job.value));

export function begin(): void {
  quick.ready().then(
    () => (started.value = 'ready'),
    (error: unknown) => (started.value = error instanceof Error ? error.message : String(error)),
  );
  let timer: ReturnType<typeof setTimeout> | undefined;
  let first = true;
  effect(() => {
    const own = job.value;
    const shown = tab.value;
    clearTimeout(timer);
    timer = setTimeout(() => {
      update(own, shown);
      if (!first || location.hash !== '') history.replaceState(null, '', linkOf(own));
      first = false;
    }, first ? 0 : 80);
  });
}
