// The page's side of the engine: loads it once, asks workers, and ends those that take too long.
import EngineWorker from './worker.ts?worker&inline';
import type { Answer } from './module.ts';
import type { FromWorker, ToWorker } from './worker.ts';

interface Parts {
  module: WebAssembly.Module;
  catalogue: Record<string, string>;
}

/** What engine.js holds where files cannot be fetched: both compressed, as text. */
interface Bundled {
  engine: string;
  catalogue: string;
}
declare global {
  var placetBundle: Bundled | undefined;
  var placetDialects: string | undefined; // what dialects.js holds
}

async function unpacked(text: string): Promise<ArrayBuffer> {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).arrayBuffer();
}

/** What a script beside the page leaves behind. */
function left<Value>(file: string, read: () => Value | undefined): Promise<Value> {
  return new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = file;
    script.onload = () => {
      const value = read();
      if (value === undefined) reject(new Error(`${file} is not ours`));
      else resolve(value);
    };
    script.onerror = () => reject(new Error(`${file} is not beside the page`));
    document.head.append(script);
  });
}

async function fetched(): Promise<Parts> {
  const [code, catalogue] = await Promise.all([fetch('engine.wasm'), fetch('catalogue.json')]);
  if (!code.ok || !catalogue.ok) throw new Error('the engine is not beside the page');
  const [bytes, texts] = await Promise.all([code.arrayBuffer(), catalogue.json()]);
  return { module: await WebAssembly.compile(bytes), catalogue: texts as Record<string, string> };
}

async function opened(): Promise<Parts> {
  const { engine, catalogue } = await left('engine.js', () => globalThis.placetBundle);
  const [code, texts] = await Promise.all([unpacked(engine), unpacked(catalogue)]);
  return {
    module: await WebAssembly.compile(code),
    catalogue: JSON.parse(new TextDecoder().decode(texts)) as Record<string, string>,
  };
}

let parts: Promise<Parts> | undefined;
function loaded(): Promise<Parts> {
  parts ??= location.protocol === 'file:' ? opened() : fetched().catch(opened);
  return parts;
}

type Texts = Record<string, string>;

/** How configurations of engines are read: a part of the catalogue that most jobs never need. */
let known: Promise<Texts> | undefined;
function dialects(): Promise<Texts> {
  const here = async (): Promise<Texts> => {
    const texts = await unpacked(await left('dialects.js', () => globalThis.placetDialects));
    return JSON.parse(new TextDecoder().decode(texts)) as Texts;
  };
  const there = async (): Promise<Texts> => {
    const response = await fetch('dialects.json');
    if (!response.ok) throw new Error('dialects.json is not beside the page');
    return (await response.json()) as Texts;
  };
  known ??= location.protocol === 'file:' ? here() : there().catch(here);
  known.catch(() => { known = undefined; });
  return known;
}
const kOfDialects = ['import', 'lint', 'export'];

/** The answer never came: stopped by the reader, or out of time. */
export class StoppedError extends Error {}

export interface Timed extends Answer {
  milliseconds: number;
}

interface Waiting {
  resolve(answer: Timed): void;
  reject(error: Error): void;
  progress(text: string): void;
  timer: ReturnType<typeof setTimeout>;
  going: string; // an address that is there for as long as the work is wanted; empty: none
  request: string;
  began: number;
  blind: boolean; // its worker cannot see that
}

const kPatienceOfStop = 1500; // milliseconds
const kLongestRepeat = 10_000;

/** Where the program serves the page, it answers in the place of the module: the token that it asks for. */
const token = document.querySelector<HTMLMetaElement>('meta[name="placet-token"]')?.content;

/** One worker and what it was asked. A call that passes its time ends the worker; the next starts anew. */
export class Client {
  private worker: Promise<Worker> | undefined;
  private aborted: AbortController | undefined;
  private knows: Worker | undefined; // the dialects
  private next = 0;
  private readonly waiting = new Map<number, Waiting>();

  constructor(private readonly patience: number) {}

  /** Starts the worker, so that the first call need not wait for it. */
  async ready(): Promise<void> {
    if (token === undefined) await this.workerOf();
  }

  private workerOf(): Promise<Worker> {
    this.worker ??= this.started();
    return this.worker;
  }

  private async served(request: object): Promise<Timed> {
    const began = performance.now();
    this.aborted = new AbortController();
    const limit = AbortSignal.timeout(this.patience);
    try {
      const response = await fetch('call', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'X-Placet-Token': token ?? '' },
        body: JSON.stringify(request),
        signal: AbortSignal.any([limit, this.aborted.signal]),
      });
      const document = await response.text();
      const said = response.headers.get('X-Placet-Status');
      if (said === null) throw new Error(`the program answered ${response.status}: ${document.slice(0, 300)}`);
      return { status: Number(said), document, warnings: [], milliseconds: performance.now() - began };
    } catch (error) {
      if (error instanceof DOMException && error.name === 'AbortError') throw new StoppedError('stopped');
      throw error;
    }
  }

  async call(request: object, progress: (text: string) => void = () => {}): Promise<Timed> {
    if (token !== undefined) return this.served(request);
    const worker = await this.workerOf();
    if (kOfDialects.includes(String((request as { subcommand?: unknown }).subcommand)) && this.knows !== worker) {
      worker.postMessage({ kind: 'more', catalogue: await dialects() } satisfies ToWorker);
      this.knows = worker;
    }
    const id = this.next++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => this.stop(`no answer within ${this.patience / 1000} s: this job is too large for a page`),
        this.patience,
      );
      const searches = (request as { subcommand?: unknown }).subcommand === 'plan';
      const going = searches ? URL.createObjectURL(new Blob([''])) : '';
      const one = { resolve, reject, progress, timer, going, request: JSON.stringify(request), began: performance.now(), blind: false };
      this.waiting.set(id, one);
      worker.postMessage({ kind: 'call', id, request: one.request, going, longest: Infinity } satisfies ToWorker);
    });
  }

  /** Asks searches to end with the best so far; what does not within a short time is ended. Where a worker cannot
   * see it, another goes as far as it went: the same search takes the same steps. */
  async finish(): Promise<void> {
    this.aborted?.abort();
    const [[id, one] = []] = this.waiting;
    if (id === undefined || one === undefined) return;
    if (this.waiting.size === 1 && one.blind) {
      const spent = Math.min(performance.now() - one.began, kLongestRepeat);
      void this.worker?.then((worker) => worker.terminate());
      this.worker = undefined;
      const worker = await this.workerOf();
      one.blind = false;
      if (this.waiting.has(id)) worker.postMessage({ kind: 'call', id, request: one.request, going: '', longest: spent } satisfies ToWorker);
      return;
    }
    URL.revokeObjectURL(one.going);
    setTimeout(() => { if (this.waiting.has(id)) this.stop(); }, kPatienceOfStop);
  }

  /** Ends whatever is being worked on. */
  stop(reason = 'stopped'): void {
    this.aborted?.abort();
    const ended = this.worker;
    this.worker = undefined;
    void ended?.then((worker) => worker.terminate()).catch(() => {});
    for (const waiting of this.waiting.values()) {
      clearTimeout(waiting.timer);
      URL.revokeObjectURL(waiting.going);
      waiting.reject(new StoppedError(reason));
    }
    this.waiting.clear();
  }

  private async started(): Promise<Worker> {
    const known = await loaded();
    const worker = new EngineWorker();
    await new Promise<void>((resolve, reject) => {
      worker.onmessage = (event: MessageEvent<FromWorker>) => {
        if (event.data.kind === 'ready') resolve();
        else if (event.data.kind === 'fault') reject(new Error(event.data.message));
      };
      worker.onerror = (event) => reject(new Error(event.message));
      worker.postMessage({ kind: 'start', ...known } satisfies ToWorker);
    });
    worker.onmessage = (event: MessageEvent<FromWorker>) => this.take(event.data);
    worker.onerror = (event) => this.stop(event.message);
    return worker;
  }

  private take(message: FromWorker): void {
    if (message.kind === 'ready') return;
    const waiting = this.waiting.get(message.id);
    if (waiting === undefined) return;
    if (message.kind === 'blind') {
      waiting.blind = true;
      return;
    }
    if (message.kind === 'progress') {
      waiting.progress(message.text);
      return;
    }
    clearTimeout(waiting.timer);
    URL.revokeObjectURL(waiting.going);
    this.waiting.delete(message.id);
    if (message.kind === 'answer') {
      waiting.resolve(message);
    } else {
      waiting.reject(new Error(`the engine ended: ${message.message}`));
      this.stop('the engine started anew');
    }
  }
}
