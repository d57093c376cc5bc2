// The module answers what the program prints, byte for byte.
//   node tests/same_bytes.mjs PROGRAM ENGINE.wasm
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { catalogueTexts } from '../tools/bundle.mjs';
import { startEngine } from './engine.mjs';
import { jobs } from './jobs.mjs';

const [program, wasm] = process.argv.slice(2).map((path) => resolve(path));

/** A model stands where it is, but beside sources, which stand there themselves. */
function wordsOf({ subcommand, model, sources, ...flags }) {
  const first = sources === undefined ? [model] : sources.map(({ file }) => file);
  const words = [subcommand, ...first.filter((word) => word !== undefined), '--json'];
  if (sources !== undefined && model !== undefined) words.push('--model', model);
  for (const [name, value] of Object.entries(flags)) words.push(`--${name}`, String(value));
  return words;
}

/** A document without what a clock says. */
const timeless = (text) => text.replace(/"seconds": \{[^}]*\}/, '"seconds": {}');
/** What a fault says, without the program's name and the lines that show the place. */
const faultOf = (text) => text.replace(/^placet: /, '').split('\n')[0];

const engine = await startEngine(readFileSync(wasm), catalogueTexts());
let different = 0;
const all = jobs();
const folder = mkdtempSync(join(tmpdir(), 'placet-same-'));
for (const job of all) {
  for (const { file, text } of job.sources ?? []) writeFileSync(join(folder, file), text);
  const printed = spawnSync(program, wordsOf(job), { encoding: 'utf8', maxBuffer: 1 << 28, cwd: folder });
  const answer = engine.call(JSON.stringify(job));
  let same = printed.status === answer.status;
  if (same && answer.status === 2) {
    same = faultOf(printed.stderr) === JSON.parse(answer.document).error.message.split('\n')[0];
  } else if (same) {
    same = timeless(printed.stdout) === timeless(answer.document);
  }
  if (!same) {
    different += 1;
    console.log(`differs: ${JSON.stringify(job)}\n  program ${printed.status} ${printed.stderr.slice(0, 300)}\n  module ${answer.status} ${answer.document.slice(0, 300)}`);
  }
}
rmSync(folder, { recursive: true });
console.log(`${all.length} jobs, ${different} different`);
process.exit(different === 0 ? 0 : 1);
