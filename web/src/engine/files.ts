// The system calls of WebAssembly modules (WASI preview 1), as far as a reader of files needs them: a
// tree of read-only texts in memory. Nothing else is there: no network, no clock but the page's.

const kSuccess = 0;
const kBadFile = 8;
const kInvalid = 28;
const kNoEntry = 44;
const kNotSupported = 52;

const kDirectory = 3;
const kRegular = 4;
const kRoot = 3; // the first number that is not a standard stream

export type Folder = Map<string, Entry>;
type Entry = { folder: Folder } | { text: Uint8Array };
type Open = { entry: Entry; at: number };

/** Paths such as "models/gpt2.json" as a tree below the folder /data. */
export function treeOf(texts: Record<string, string>): Folder {
  const root: Folder = new Map([['data', { folder: new Map() }]]);
  addTo(root, texts);
  return root;
}

/** Puts more of them into a tree. */
export function addTo(root: Folder, texts: Record<string, string>): void {
  const encoder = new TextEncoder();
  for (const [path, text] of Object.entries(texts)) {
    let folder = root;
    const parts = ['data', ...path.split('/')];
    const name = parts.pop() ?? '';
    for (const part of parts) {
      let next = folder.get(part);
      if (next === undefined || !('folder' in next)) {
        next = { folder: new Map() };
        folder.set(part, next);
      }
      folder = next.folder;
    }
    folder.set(name, { text: encoder.encode(text) });
  }
}

export class ExitError extends Error {}

/** The functions that a module imports as wasi_snapshot_preview1. */
export function systemCalls(root: Folder, memory: () => WebAssembly.Memory): WebAssembly.ModuleImports {
  const open = new Map<number, Open>([[kRoot, { entry: { folder: root }, at: 0 }]]);
  let next = kRoot + 1;
  const view = () => new DataView(memory().buffer);
  const bytes = (at: number, size: number) => new Uint8Array(memory().buffer, at, size);
  const decoder = new TextDecoder();

  function found(start: Entry, path: string): Entry | undefined {
    let entry: Entry | undefined = start;
    for (const part of path.split('/')) {
      if (part === '' || part === '.') continue;
      if (entry === undefined || !('folder' in entry) || part === '..') return undefined;
      entry = entry.folder.get(part);
    }
    return entry;
  }

  function writeStat(at: number, entry: Entry): void {
    bytes(at, 64).fill(0);
    view().setUint8(at + 16, 'folder' in entry ? kDirectory : kRegular);
    view().setBigUint64(at + 24, 1n, true);
    view().setBigUint64(at + 32, BigInt('text' in entry ? entry.text.length : 0), true);
  }

  const calls = {
    fd_prestat_get(fd: number, at: number): number {
      if (fd !== kRoot) return kBadFile;
      view().setUint32(at, 0, true);
      view().setUint32(at + 4, 1, true);
      return kSuccess;
    },
    fd_prestat_dir_name(fd: number, at: number, size: number): number {
      if (fd !== kRoot || size < 1) return kBadFile;
      view().setUint8(at, '/'.charCodeAt(0));
      return kSuccess;
    },
    fd_fdstat_get(fd: number, at: number): number {
      bytes(at, 24).fill(0);
      if (fd < kRoot) {
        view().setUint8(at, 2);
        return kSuccess;
      }
      const file = open.get(fd);
      if (file === undefined) return kBadFile;
      view().setUint8(at, 'folder' in file.entry ? kDirectory : kRegular);
      view().setBigUint64(at + 8, 0x1fffffffn, true);
      view().setBigUint64(at + 16, 0x1fffffffn, true);
      return kSuccess;
    },
    fd_fdstat_set_flags: () => kSuccess,
    fd_filestat_get(fd: number, at: number): number {
      const file = open.get(fd);
      if (file === undefined) return kBadFile;
      writeStat(at, file.entry);
      return kSuccess;
    },
    path_filestat_get(fd: number, _flags: number, path: number, size: number, at: number): number {
      const folder = open.get(fd);
      if (folder === undefined) return kBadFile;
      const entry = found(folder.entry, decoder.decode(bytes(path, size)));
      if (entry === undefined) return kNoEntry;
      writeStat(at, entry);
      return kSuccess;
    },
    path_open(
      fd: number, _look: number, path: number, size: number, _how: number, _rights: bigint,
      _inherited: bigint, _flags: number, at: number,
    ): number {
      const folder = open.get(fd);
      if (folder === undefined) return kBadFile;
      const entry = found(folder.entry, decoder.decode(bytes(path, size)));
      if (entry === undefined) return kNoEntry;
      open.set(next, { entry, at: 0 });
      view().setUint32(at, next, true);
      next += 1;
      return kSuccess;
    },
    path_readlink: () => kInvalid,
    fd_close(fd: number): number {
      return open.delete(fd) ? kSuccess : kBadFile;
    },
    fd_read(fd: number, parts: number, count: number, at: number): number {
      const file = open.get(fd);
      if (file === undefined || !('text' in file.entry)) return kBadFile;
      let total = 0;
      for (let i = 0; i < count; i += 1) {
        const to = view().getUint32(parts + 8 * i, true);
        const most = view().getUint32(parts + 8 * i + 4, true);
        const piece = file.entry.text.subarray(file.at, file.at + most);
        bytes(to, piece.length).set(piece);
        file.at += piece.length;
        total += piece.length;
      }
      view().setUint32(at, total, true);
      return kSuccess;
    },
    fd_seek(fd: number, offset: bigint, whence: number, at: number): number {
      const file = open.get(fd);
      if (file === undefined || !('text' in file.entry)) return kBadFile;
      const start = whence === 0 ? 0 : whence === 1 ? file.at : file.entry.text.length;
      file.at = start + Number(offset);
      view().setBigUint64(at, BigInt(file.at), true);
      return kSuccess;
    },
    fd_readdir(fd: number, to: number, size: number, cookie: bigint, at: number): number {
      const file = open.get(fd);
      if (file === undefined || !('folder' in file.entry)) return kBadFile;
      const entries = [...file.entry.folder];
      let used = 0;
      for (let i = Number(cookie); i < entries.length && used < size; i += 1) {
        const [name, entry] = entries[i] ?? ['', { folder: new Map() as Folder }];
        const text = new TextEncoder().encode(name);
        const record = new Uint8Array(24 + text.length);
        const fields = new DataView(record.buffer);
        fields.setBigUint64(0, BigInt(i + 1), true);
        fields.setBigUint64(8, BigInt(i + 1), true);
        fields.setUint32(16, text.length, true);
        fields.setUint8(20, 'folder' in entry ? kDirectory : kRegular);
        record.set(text, 24);
        const piece = record.subarray(0, size - used);
        bytes(to + used, piece.length).set(piece);
        used += piece.length;
      }
      view().setUint32(at, used, true);
      return kSuccess;
    },
    fd_write(_fd: number, parts: number, count: number, at: number): number {
      let total = 0;
      for (let i = 0; i < count; i += 1) total += view().getUint32(parts + 8 * i + 4, true);
      view().setUint32(at, total, true);
      return kSuccess;
    },
    environ_get: () => kSuccess,
    environ_sizes_get(count: number, size: number): number {
      view().setUint32(count, 0, true);
      view().setUint32(size, 0, true);
      return kSuccess;
    },
    args_get: () => kSuccess,
    args_sizes_get(count: number, size: number): number {
      return calls.environ_sizes_get(count, size);
    },
    clock_time_get(_which: number, _precision: bigint, at: number): number {
      view().setBigUint64(at, BigInt(Math.round(performance.now() * 1e6)), true);
      return kSuccess;
    },
    clock_res_get(_which: number, at: number): number {
      view().setBigUint64(at, 1000n, true);
      return kSuccess;
    },
    sched_yield: () => kSuccess,
    proc_exit(status: number): never {
      throw new ExitError(`the engine ended with ${status}`);
    },
  };
  return new Proxy(calls, {
    get: (known, name) => Reflect.get(known, name) ?? (() => kNotSupported),
  }) as unknown as WebAssembly.ModuleImports;
}
