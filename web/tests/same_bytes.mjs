// The module answers what the program prints, byte for byte.
//   node tests/same_bytes.mjs PROGRAM ENGINE.wasm
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { catalogueTexts } from '../tools/bundle.mjs';
import { startEngine } from './engine.mjs';
import { jobs } from './jobs.mjs';

const [program, wasm] = process.argv.slice(2);

function wordsOf({ subcommand, model, ...flags }) {
  const words = [subcommand, ...(model === undefined ? [] : [model]), '--json'];
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
for (const job of all) {
  const printed = spawnSync(program, wordsOf(job), { encoding: 'utf8', maxBuffer: 1 << 28 });
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
console.log(`${all.length} jobs, ${different} different`);
process.exit(different === 0 ? 0 : 1);
