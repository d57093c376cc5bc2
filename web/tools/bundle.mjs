// Puts engine and catalogue beside the page: as files for hosts, and as a script for pages opened from a disk.
//   node tools/bundle.mjs ENGINE.wasm [test]      test: it is a fault to be larger than we want
import { copyFileSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { fileURLToPath } from 'node:url';
import { createHash } from 'node:crypto';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const data = here('../../data/');
const out = here('../dist/');
// What only the program reads: tables of measured runs (but not how far they were from predictions), known
// bugs, words that nothing but `placet explain` asks for.
const kLeftOut = /^(validation\/(?!errors\.json)|bugs\/|words\/(columns|flags|figures)\.json)/;
// How configurations of engines are read: in a file of its own, which is asked for when one is handed over.
const kDialects = /^(dialects|lint)\//;

/** JSON without the blanks between its parts; its numbers stay as they are written. */
const withoutBlanks = (text) => text.replace(/"(?:[^"\\]|\\.)*"|\s+/g, (part) => (part.startsWith('"') ? part : ''));

/** Paths below the data folder and their texts: all that a module can be asked about. */
export function catalogueTexts() {
  const texts = {};
  for (const entry of readdirSync(data, { recursive: true, withFileTypes: true })) {
    const path = `${entry.parentPath ?? entry.path}/${entry.name}`.replaceAll('//', '/').slice(data.length);
    if (entry.isFile() && entry.name.endsWith('.json') && !kLeftOut.test(path)) texts[path] = withoutBlanks(readFileSync(data + path, 'utf8'));
  }
  return Object.fromEntries(Object.entries(texts).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Those that every page needs, and those that wait until a configuration is there. */
function parted(texts) {
  const of = (wanted) => Object.fromEntries(Object.entries(texts).filter(([path]) => kDialects.test(path) === wanted));
  return [of(false), of(true)].map((part) => Buffer.from(JSON.stringify(part)));
}

const brotli = (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24 } }).length;

function bundle(wasm, tested) {
  const code = readFileSync(wasm);
  const [catalogue, dialects] = parted(catalogueTexts());
  writeFileSync(`${out}engine.wasm`, code);
  writeFileSync(`${out}catalogue.json`, catalogue);
  writeFileSync(`${out}dialects.json`, dialects);
  const packed = (bytes) => gzipSync(bytes, { level: 9 }).toString('base64');
  writeFileSync(`${out}engine.js`, `globalThis.placetBundle={engine:"${packed(code)}",catalogue:"${packed(catalogue)}"};\n`);
  writeFileSync(`${out}dialects.js`, `globalThis.placetDialects="${packed(dialects)}";\n`);
  const page = readFileSync(`${out}index.html`);
  const version = createHash('sha256').update(page).update(code).update(catalogue).update(dialects).digest('hex').slice(0, 16);
  writeFileSync(`${out}offline.js`, readFileSync(here('offline.js'), 'utf8').replace('VERSION', version));
  copyFileSync(here('placet.webmanifest'), `${out}placet.webmanifest`);
  const sizes = { engine: brotli(code), catalogue: brotli(catalogue), dialects: brotli(dialects), page: brotli(page) };
  console.log(`bytes with brotli: ${Object.entries(sizes).map(([name, size]) => `${name} ${size}`).join(', ')}`);
  const large = [];
  if (sizes.engine + sizes.catalogue > 1_000_000) large.push('engine and catalogue pass 1,000,000 bytes with brotli');
  if (sizes.page > 200_000) large.push('the page passes 200,000 bytes with brotli');
  for (const text of large) console.log(`larger than we want: ${text}`);
  if (large.length > 0 && tested) process.exitCode = 1;
}

if (realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) bundle(process.argv[2], process.argv[3] === 'test');
