// One engine in a thread of its own, so that the page stays alive.
import { Engine } from './module.ts';

export type ToWorker =
  | { kind: 'start'; module: WebAssembly.Module; catalogue: Record<string, string> }
  | { kind: 'more'; catalogue: Record<string, string> }
  | { kind: 'call'; id: number; request: string; going: string; longest: number };
export type FromWorker =
  | { kind: 'ready' }
  | { kind: 'blind'; id: number } // it will not see that its work is no longer wanted
  | { kind: 'progress'; id: number; text: string }
  | { kind: 'answer'; id: number; status: number; document: string; warnings: string[]; milliseconds: number }
  | { kind: 'fault'; id: number; message: string };

const post = (message: FromWorker) => self.postMessage(message);
let engine: Engine | undefined;

const kBetweenLooks = 100; // milliseconds

/** Shall a search end with the best so far? After `longest` milliseconds it shall. A thread that works hears no
 * messages, but can look whether an address that the page made is there still: not so in a page from a disk. */
function lookout(id: number, going: string, longest: number): () => boolean {
  const isThere = () => {
    try {
      const asked = new XMLHttpRequest();
      asked.open('GET', going, false);
      asked.send();
      return true;
    } catch {
      return false;
    }
  };
  const looks = going !== '' && isThere();
  if (going !== '' && !looks) post({ kind: 'blind', id });
  const began = performance.now();
  let last = began;
  let ended = false;
  return () => {
    const now = performance.now();
    if (ended || now - last < kBetweenLooks) return ended;
    last = now;
    ended = now - began >= longest || (looks && !isThere());
    return ended;
  };
}

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
  const { id, request, going, longest } = message;
  try {
    if (engine === undefined) throw new Error('the engine has not started');
    const began = performance.now();
    const answer = engine.call(request, { progress: (text) => post({ kind: 'progress', id, text }), stopped: lookout(id, going, longest) });
    post({ kind: 'answer', id, ...answer, milliseconds: performance.now() - began });
  } catch (error) {
    // A trap leaves a module in a state that nobody knows: the page starts another one.
    post({ kind: 'fault', id, message: String(error) });
  }
};
