// One engine in a thread of its own, so that the page stays alive.
import { Engine } from './module.ts';

export type ToWorker =
  | { kind: 'start'; module: WebAssembly.Module; catalogue: Record<string, string> }
  | { kind: 'more'; catalogue: Record<string, string> }
  | { kind: 'call'; id: number; request: string };
export type FromWorker =
  | { kind: 'ready' }
  | { kind: 'progress'; id: number; text: string }
  | { kind: 'answer'; id: number; status: number; document: string; warnings: string[]; milliseconds: number }
  | { kind: 'fault'; id: number; message: string };

const post = (message: FromWorker) => self.postMessage(message);
let engine: Engine | undefined;

self.onmessage = async (event: MessageEvent<ToWorker>) => {
  const message = event.data;
  if (message.kind === 'start') {
    try {
      engine = await Engine.start(message.module, message.catalogue);
      post({ kind: 'ready' });
    } catch (error) {
      post({ kind: 'fault', id: -1, message: String(error) });
    }
    return;
  }
  if (message.kind === 'more') {
    engine?.add(message.catalogue);
    return;
  }
  const { id, request } = message;
  try {
    if (engine === undefined) throw new Error('the engine has not started');
    const began = performance.now();
    const answer = engine.call(request, (text) => post({ kind: 'progress', id, text }));
    post({ kind: 'answer', id, ...answer, milliseconds: performance.now() - began });
  } catch (error) {
    // A trap leaves a module in a state that nobody knows: the page starts another one.
    post({ kind: 'fault', id, message: String(error) });
  }
};
