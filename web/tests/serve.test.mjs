// placet serve, asked as friends and strangers ask. PLACET_PROGRAM names the program.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Agent, request as ask } from 'node:http';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';

const program = process.env.PLACET_PROGRAM;
const skip = program === undefined ? 'PLACET_PROGRAM names no program' : false;
const kDerive = JSON.stringify({ subcommand: 'derive', model: 'gpt2', placement: 'dp=8:zero3', cluster: 'h100-sxm:1' });

let server;
let address;
let cannot = false;
before(async () => {
  if (skip) return;
  server = spawn(program, ['serve'], { stdio: ['ignore', 'pipe', 'pipe'] });
  address = await new Promise((resolve, reject) => {
    let said = '';
    server.stdout.on('data', (piece) => {
      said += piece;
      const found = /http:\S+/.exec(said);
      if (found !== null) resolve(new URL(found[0]));
    });
    let fault = '';
    server.stderr.on('data', (piece) => { fault += piece; });
    server.on('exit', () => (fault.includes('cannot serve') ? resolve(null) : reject(new Error(fault))));
  });
  cannot = address === null;
});
after(() => server?.kill());

const agent = new Agent({ maxSockets: 200 });
function send({ method = 'POST', path = '/call', headers = {}, body = kDerive, token = address.searchParams.get('token') } = {}) {
  return new Promise((resolve, reject) => {
    const own = ask({
      agent, host: '127.0.0.1', port: address.port, method, path,
      headers: { 'Content-Type': 'application/json', 'X-Placet-Token': token, ...headers },
    }, (response) => {
      let text = '';
      response.on('data', (piece) => { text += piece; });
      response.on('end', () => resolve({ status: response.statusCode, verdict: response.headers['x-placet-status'], text }));
    });
    own.on('error', reject);
    // A server that has refused does not read on: the connection may break within its answer.
    own.on('close', () => reject(new Error('closed without an answer')));
    own.end(method === 'GET' ? undefined : body);
  });
}
const memory = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1]);

test('answers what the program prints', { skip }, async (t) => {
  if (cannot) return t.skip('this build has no HTTP library');
  const { status, verdict, text } = await send();
  assert.equal(status, 200);
  assert.equal(verdict, '0');
  assert.equal(JSON.parse(text).schema, 'placet.derivation/1');
  const wrong = await send({ body: '{"subcommand": "derive", "model": "gtp2", "placement": "dp=8"}' });
  assert.equal(wrong.status, 400);
  assert.equal(JSON.parse(wrong.text).error.nearest, 'gpt2');
  const page = await send({ method: 'GET', path: `/${address.search}` });
  assert.match(page.text, /<meta name="placet-token"/);
});

test('refuses other hosts, origins, tokens, paths, methods, types and sizes', { skip }, async (t) => {
  if (cannot) return t.skip('this build has no HTTP library');
  assert.equal((await send({ headers: { Host: 'evil.example' } })).status, 403);
  assert.equal((await send({ headers: { Host: `evil.example:${address.port}` } })).status, 403);
  assert.equal((await send({ headers: { Origin: 'http://evil.example' } })).status, 403);
  assert.equal((await send({ headers: { Origin: 'null' } })).status, 403);
  assert.equal((await send({ token: 'x'.repeat(32) })).status, 403);
  assert.equal((await send({ method: 'GET', path: '/' })).status, 403);
  for (const path of ['/../../etc/passwd', '/%2e%2e/%2e%2e/etc/passwd', '/call/..', '//etc/passwd', '/call%00']) {
    assert.equal((await send({ method: 'GET', path })).status, 404, path);
  }
  assert.equal((await send({ method: 'PUT' })).status, 405);
  assert.equal((await send({ headers: { 'Content-Type': 'text/plain' } })).status, 415);
  const large = await send({ body: ' '.repeat(5 << 20) }).catch((error) => ({ status: error.code }));
  assert.ok([413, 'ECONNRESET', 'EPIPE'].includes(large.status), String(large.status));
  assert.equal((await send()).status, 200);
});

test('200 clients at once, without an error', { skip }, async (t) => {
  if (cannot) return t.skip('this build has no HTTP library');
  const answers = await Promise.all(Array.from({ length: 200 }, () => send()));
  assert.ok(answers.every((one) => one.status === 200));
  assert.equal(new Set(answers.map((one) => one.text)).size, 1);
});

test('bad requests leave memory flat', { skip }, async (t) => {
  if (cannot) return t.skip('this build has no HTTP library');
  const most = Number(process.env.PLACET_BAD_REQUESTS ?? 5000);
  const bad = [
    { body: '{' }, { body: '[]' }, { body: '{"subcommand": "derive", "model": {"a": 1}}' }, { token: '' },
    { body: '['.repeat(10_000) }, { path: `/${'a'.repeat(2000)}` }, { headers: { Origin: 'http://evil.example' } },
  ];
  const some = async (count) => {
    for (let i = 0; i < count; i += 50) await Promise.all(Array.from({ length: 50 }, (_, k) => send(bad[(i + k) % bad.length]).catch(() => {})));
  };
  await some(500);
  const before_ = memory();
  await some(most);
  // Sockets that say nothing that is HTTP.
  await Promise.all(Array.from({ length: 20 }, () => new Promise((resolve) => {
    const socket = connect(address.port, '127.0.0.1', () => socket.end('\0\0\xff not http\r\n\r\n'));
    socket.on('close', resolve);
    socket.on('error', resolve);
    socket.resume();  // until what it was answered is read, it does not close
  })));
  t.diagnostic(`${most} bad requests: ${before_} kB before, ${memory()} kB after`);
  assert.ok(memory() < before_ * 1.5 + 20_000);
  assert.equal((await send()).status, 200);
});
