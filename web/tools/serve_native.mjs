// Development aid: the built page, with the program's answers in the place of the module's.
//   node tools/serve_native.mjs ../build/dev/placet
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const program = process.argv[2];
const page = () => readFileSync(new URL('../dist/index.html', import.meta.url), 'utf8')
  .replace('<meta charset="utf-8" />', '<meta charset="utf-8" /><meta name="placet-token" content="native" />');

/** The command line of a request document. */
function wordsOf({ subcommand, model, ...flags }) {
  const words = [subcommand, ...(model === undefined ? [] : [String(model)]), '--json'];
  for (const [name, value] of Object.entries(flags)) words.push(`--${name}`, String(value));
  return words;
}

createServer((request, response) => {
  if (request.method !== 'POST') {
    response.setHeader('Content-Type', 'text/html; charset=utf-8');
    response.end(page());
    return;
  }
  let body = '';
  request.on('data', (piece) => { body += piece; });
  request.on('end', () => {
    execFile(program, wordsOf(JSON.parse(body)), { maxBuffer: 1 << 28 }, (error, out, said) => {
      const status = error?.code ?? 0;
      response.setHeader('X-Placet-Status', status);
      response.end(status === 2 ? JSON.stringify({ error: { message: said.slice(8).split('\n')[0], where: said.slice(8).split(':')[0], value: '', problem: '', allowed: '', nearest: '' } }) : out);
    });
  });
}).listen(8123, '127.0.0.1');
