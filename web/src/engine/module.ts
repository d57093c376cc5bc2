// The engine as a module: request documents in, answers out (docs/formats.md, section 17).
import { addTo, systemCalls, treeOf, type Folder } from './files.ts';

/** What a call came to: 0 judged good, 1 judged bad, 2 wrong input, 3 a fault of the engine's own. */
export interface Answer {
  status: number;
  document: string;
  warnings: string[];
}

/** Told how a search goes on, and asked whether it shall end with the best so far. */
export interface Watch {
  progress(text: string): void;
  stopped(): boolean;
}
const kUnwatched: Watch = { progress: () => {}, stopped: () => false };

interface Exports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  placet_take(size: number): number;
  placet_call(): number;
  placet_answer(): number;
  placet_answer_size(): number;
  placet_warnings(): number;
  placet_warning(which: number): number;
  placet_warning_size(which: number): number;
}

export class Engine {
  private constructor(
    private readonly exports: Exports,
    private readonly watched: { by: Watch },
    private readonly files: Folder,
  ) {}

  /** `catalogue`: paths below the data folder and their texts. */
  static async start(module: WebAssembly.Module, catalogue: Record<string, string>): Promise<Engine> {
    let exports: Exports | undefined;
    const watched: { by: Watch } = { by: kUnwatched };
    const memory = () => {
      if (exports === undefined) throw new Error('the engine has not started');
      return exports.memory;
    };
    const text = (at: number, size: number) =>
      new TextDecoder().decode(new Uint8Array(memory().buffer, at, size));
    const files = treeOf(catalogue);
    const instance = await WebAssembly.instantiate(module, {
      wasi_snapshot_preview1: systemCalls(files, memory),
      placet: {
        progress: (at: number, size: number) => watched.by.progress(text(at, size)),
        stopped: () => (watched.by.stopped() ? 1 : 0),
      },
    });
    exports = instance.exports as unknown as Exports;
    exports._initialize();
    return new Engine(exports, watched, files);
  }

  /** More of the catalogue, that came later. */
  add(catalogue: Record<string, string>): void {
    addTo(this.files, catalogue);
  }

  call(request: string, watch: Watch = kUnwatched): Answer {
    const { exports } = this;
    const bytes = new TextEncoder().encode(request);
    const at = exports.placet_take(bytes.length);
    new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
    this.watched.by = watch;
    const status = exports.placet_call();
    const warnings: string[] = [];
    for (let i = 0; i < exports.placet_warnings(); i += 1) {
      warnings.push(this.text(exports.placet_warning(i), exports.placet_warning_size(i)));
    }
    const document = this.text(exports.placet_answer(), exports.placet_answer_size());
    return { status, document, warnings };
  }

  private text(at: number, size: number): string {
    return new TextDecoder().decode(new Uint8Array(this.exports.memory.buffer, at, size));
  }
}
