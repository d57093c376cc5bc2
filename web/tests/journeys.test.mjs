// Ten journeys through the built page, opened from the disk as a person would, in a real browser.
//   PLACET_BROWSER=/usr/bin/chromium node --test web/tests/   (PLACET_SCREENSHOTS: a folder for pictures)
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test as always } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const page_url = pathToFileURL(fileURLToPath(new URL('../dist/index.html', import.meta.url))).href;
const axe = readFileSync(fileURLToPath(import.meta.resolve('axe-core')), 'utf8');
const pictures = process.env.PLACET_SCREENSHOTS;
const folder = mkdtempSync(join(tmpdir(), 'placet-'));
const kPatience = 60_000;

// Empty: there is no browser.
const skip = process.env.PLACET_BROWSER === '' ? 'there is no chromium' : false;
const test = (name, body) => always(name, { skip }, body);

let browser;
before(async () => {
  if (skip) return;
  browser = await chromium.launch({ executablePath: process.env.PLACET_BROWSER ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
  if (pictures) mkdirSync(pictures, { recursive: true });
});
after(() => browser?.close());

/** A page that fails the test at the first error of a script, and at whatever it asks a network for. */
async function opened(options = {}, hash = '') {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 }, bypassCSP: options.bypassCSP ?? false, ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(kPatience);
  page.faults = [];
  page.on('pageerror', (error) => page.faults.push(error.message));
  page.on('console', (message) => { if (message.type() === 'error') page.faults.push(message.text()); });
  page.on('request', (request) => { if (/^https?:/.test(request.url())) page.faults.push(`asked for ${request.url()}`); });
  await page.goto(page_url + hash);
  await page.waitForSelector('.answer .figures, .answer .wrong', { timeout: kPatience });
  return page;
}

async function closed(page, name) {
  if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
  assert.deepEqual(page.faults, []);
  await page.context().close();
}

const sentence = (page) => page.locator('.answer .sentence').innerText();
async function setField(page, id, text) {
  await page.fill(`#${id}`, text);
}
async function write(page, text, label = 'Placement') {
  const editor = page.locator(`.cm-content[aria-label="${label}"]`);
  await editor.click();
  await page.keyboard.press('Control+A');
  await page.keyboard.type(text);
  await page.keyboard.press('Escape');
}
const answers = (page, pattern) => page.waitForFunction(
  (source) => new RegExp(source).test(document.querySelector('.answer')?.textContent ?? ''), pattern.source);

test('1. the first answer: what a 70B model needs on 64 devices', async () => {
  const page = await opened();
  await answers(page, /per step/);
  const text = await sentence(page);
  assert.match(text, /^llama-3\.1-70b on 64 devices takes [\d.]+ GB of 84\.9 GB/);
  assert.match(text, /tokens\/s at \d+ % of peak/);
  await closed(page, '1-first');
});

test('2. a job of one\'s own, form and text in step', async () => {
  const page = await opened();
  await setField(page, 'model', 'gpt2');
  await setField(page, 'cluster', 'h100-sxm:1');
  await setField(page, 'seq', '1024');
  await setField(page, 'global-batch', '64');
  await write(page, 'dp=8:zero1');
  await answers(page, /^.*gpt2 on 8 devices/s);
  await page.selectOption('select[aria-label="how dp is used"]', 'zero3');
  await answers(page, /dp=8:zero3/);
  assert.match(await page.locator('.cm-content').first().innerText(), /dp=8:zero3/);
  await page.click('button[aria-label="halve dp"]');
  await page.click('button[aria-label="add axis tp"]');
  await answers(page, /dp=4:zero3 tp=2:tp\+sp/);
  await page.click('text=Undo');
  await answers(page, /dp=4:zero3(?! tp)/);
  await closed(page, '2-own');
});

test('3. a word that is none: its place, the nearest one, and back', async () => {
  const page = await opened();
  await write(page, 'pp=4:1f1b dp=2:zer1 tp=8:tp+sp');
  await page.waitForSelector('.cm-lintRange-error');
  assert.equal(await page.locator('.cm-lintRange-error').innerText(), 'zer1');
  assert.match(await page.locator('.answer').innerText(), /did you mean 'zero1'/);
  if (pictures) await page.screenshot({ path: join(pictures, '3-wrong.png'), fullPage: true });
  await page.locator('.cm-content').first().click();
  await page.keyboard.press('Control+z');
  await write(page, 'pp=4:1f1b dp=2:zero1 tp=8:tp+sp');
  await answers(page, /takes/);
  await setField(page, 'model', 'lama-3.1-70b');
  await page.waitForSelector('#model-wrong');
  assert.match(await page.locator('#model-wrong').innerText(), /is not a known model.*llama-3\.1-70b/s);
  await closed(page, '3-mended');
});

test('4. a config.json of one\'s own', async () => {
  const page = await opened();
  const file = join(folder, 'config.json');
  writeFileSync(file, JSON.stringify({
    model_type: 'llama', hidden_size: 1024, intermediate_size: 4096, num_hidden_layers: 16, num_attention_heads: 16,
    vocab_size: 32000,
  }));
  await page.setInputFiles('#file', file);
  await page.waitForSelector('text=from the dropped file');
  await write(page, 'dp=8:zero1 tp=8:tp+sp');
  await answers(page, /on 64 devices/);
  const large = join(folder, 'large.json');
  writeFileSync(large, Buffer.alloc(100 << 20, '['));
  await page.setInputFiles('#file', large);
  await page.waitForSelector('text=a config.json has at most');
  const markup = join(folder, 'markup.json');
  writeFileSync(markup, '{"model_type": "<img src=x onerror=alert(1)>", "hidden_size": "<script>alert(1)</script>"}');
  await page.setInputFiles('#file', markup);
  await page.waitForSelector('.answer .wrong');
  assert.match(await page.locator('.answer').innerText(), /<img src=x/);
  assert.equal(await page.locator('.answer img, .answer script').count(), 0);
  await closed(page, '4-config');
});

test('5. the pipeline, whole and close by', async () => {
  const page = await opened();
  await page.click('#tab-time');
  const chart = page.locator('.gantt');
  await chart.waitFor();
  await page.waitForTimeout(300);
  assert.ok(Number(await chart.getAttribute('data-slices')) > 1000);
  await chart.focus();
  for (let i = 0; i < 12; i += 1) await page.keyboard.press('+');
  await page.waitForTimeout(200);
  const box = await chart.boundingBox();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 30);
  await page.waitForSelector('text=/of micro-batch \\d+/');
  await closed(page, '5-time');
});

test('6. the best plans, and one of them chosen', async () => {
  const page = await opened();
  await page.click('#tab-plan');
  await page.click('button.main');
  await page.waitForSelector('text=Search complete');
  const first = page.locator('tbody button').first();
  const placement = await first.innerText();
  await first.click();
  await page.waitForFunction((text) => document.querySelector('.answer code')?.textContent === text, placement);
  if (pictures) {
    await page.waitForSelector('svg.chart g[role=button]', { timeout: kPatience });
  }
  await closed(page, '6-plan');
});

test('7. two placements beside each other', async () => {
  const page = await opened();
  await page.click('#tab-compare');
  await page.click('text=Begin with the first');
  await write(page, 'dp=8:zero3 tp=8:tp+sp', 'Second placement');
  await page.waitForSelector('td.differs');
  assert.ok(await page.locator('tr:has(td.differs)').count() > 4);
  await closed(page, '7-compare');
});

test('8. the verdict, and a counterexample', async () => {
  const page = await opened();
  await setField(page, 'model', 'gpt2');
  await setField(page, 'cluster', 'h100-sxm:1');
  await setField(page, 'seq', '1024');
  await setField(page, 'global-batch', '64');
  await write(page, 'dp=8:zero1');
  await answers(page, /gpt2 on 8/);
  await page.click('#tab-check');
  await page.click('button.main');
  await page.waitForSelector('text=Equivalent to single-device training');
  await write(page, 'dp=8:local-sgd');
  await answers(page, /local-sgd/);
  await page.click('button.main');
  await page.waitForSelector('text=Not equivalent to single-device training');
  await page.waitForSelector('svg[aria-label^="A single device has"]');
  await closed(page, '8-check');
});

test('9. where a tensor lives, and what moves it', async () => {
  const page = await opened();
  await write(page, 'dp=8:zero3 tp=8:tp+sp');
  await answers(page, /dp=8:zero3/);
  await page.click('#tab-mesh');
  await page.waitForSelector('g.device');
  assert.equal(await page.locator('g.device').count(), 64);
  assert.match(await page.locator('[data-rank="0"]').getAttribute('aria-label'), /part 1 of 64 .*gathered whole for use/);
  await page.locator('td button', { hasText: 'all gather over dp' }).first().click();
  await page.locator('[data-rank="0"]').focus();
  await page.keyboard.press('ArrowRight');
  await page.waitForSelector('text=/Device 1 has part/');
  await closed(page, '9-mesh');
});

test('10. a link holds the whole job, and links of others do no harm', async () => {
  const page = await opened();
  await setField(page, 'seq', '4096');
  await page.selectOption('#optimizer', 'lion');
  await answers(page, /per step/);
  await page.waitForTimeout(400);
  const hash = new URL(page.url()).hash;
  await closed(page, '10-link');
  const other = await opened({}, hash);
  assert.equal(await other.inputValue('#seq'), '4096');
  assert.equal(await other.inputValue('#optimizer'), 'lion');
  await closed(other, '10-other');
  const link = (value) => `#job=${Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')}`;
  const hostile = [
    link('not json'), link('[1,2]'), link({ model: 7, placement: { a: 1 } }), '#job=%00', `#job=${'A'.repeat(1_000_000)}`,
    link({ model: '<img src=x onerror=alert(1)>', placement: '"><script>alert(1)</script>', __proto__: { x: 1 } }),
    link({ placement: 'dp=2 '.repeat(100_000) }), link({ sheet: { a: { b: '<b>' } }, placement: 'dp=999999999' }),
    link({ placement: '('.repeat(4000) }), link({ seq: '9'.repeat(4000) }),
  ];
  for (const one of hostile) {
    const page = await opened({}, one);
    page.on('dialog', () => page.faults.push('a script ran'));
    await page.waitForTimeout(150);
    assert.equal(await page.locator('#app img:not(.cm-widgetBuffer), #app script').count(), 0);
    await setField(page, 'model', 'gpt2');
    await write(page, 'dp=8:ddp');
    await answers(page, /gpt2|understood/);
    await closed(page, '10-hostile');
  }
});

test('11. the configuration of an engine, pasted: into the form, and marked where it is wrong', async () => {
  const page = await opened();
  await page.click('#tab-config');
  await page.fill('textarea', [
    '[model]', 'name = "llama3"', 'flavor = "8B"', '[training]', 'seq_len = 4096', 'local_batch_size = 2',
    '[parallelism]', 'data_parallel_shard_degree = 8', 'tensor_parallel_degree = 8', 'pipeline_parallel_degre = 1',
  ].join('\n'));
  await page.click('text=Read the text');
  await page.waitForSelector('text=Read as torchtitan@2026.02');
  assert.equal(await page.inputValue('#model'), 'llama-3.1-8b');
  assert.equal(await page.inputValue('#seq'), '4096');
  assert.equal(await page.inputValue('#micro-batch'), '2');
  assert.equal(await page.inputValue('#engine'), 'torchtitan@2026.02');
  await answers(page, /llama-3\.1-8b on 64 devices/);
  const mark = page.locator('.line + .mark-in-text', { hasText: 'PL001' });
  assert.match(await mark.innerText(), /pipeline_parallel_degree/);
  assert.match(await page.locator('.line:has(+ .mark-in-text)', { hasText: '10' }).innerText(), /pipeline_parallel_degre = 1/);
  if (pictures) await page.screenshot({ path: join(pictures, '11-wrong.png'), fullPage: true });
  await page.click('text=Mend what can be mended');
  await page.waitForFunction(() => !/PL001/.test(document.querySelector('#panel')?.textContent ?? 'PL001'));
  await page.click('text=whole text');
  await page.waitForSelector('code >> text="pipeline_parallel_degree = 1"');
  await closed(page, '11-mended');
});

test('12. files of a launch, dropped: what they leave open is of the form; and back again', async () => {
  const page = await opened();
  await page.click('#tab-config');
  const kept = (name, text) => { writeFileSync(join(folder, name), text); return join(folder, name); };
  await page.setInputFiles('#sources', [
    kept('ds_config.json', '{ // HJSON\n "train_batch_size": 65, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4,\n "zero_optimization": {"stage": 3}}'),
    kept('run.sh', '#!/bin/bash\ntorchrun --nproc_per_node 8 --nnodes 1 train.py --deepspeed ds_config.json\n'),
  ]);
  await page.waitForSelector('text=/Read as .*deepspeed@0\\.19/');
  await page.waitForSelector('text=/the batch is 65, but .* is 64/');
  assert.match(await page.locator('#panel').innerText(), /It does not say everything: .*model/);
  assert.equal(await page.inputValue('#cluster'), 'h100-sxm:1');
  if (pictures) await page.screenshot({ path: join(pictures, '12-dropped.png'), fullPage: true });
  for (const [name, text, said] of [
    ['bad.toml', '[training\n', /bad\.toml/], ['markup.yaml', 'a: <img src=x onerror=alert(1)>\n', /not of any dialect|<img|dialect/],
    ['large.json', 'x'.repeat(5_000_000), /has 5000000 bytes/],
  ]) {
    await page.setInputFiles('#sources', [kept(name, text)]);
    await page.waitForFunction(([source]) => new RegExp(source).test(document.querySelector('#panel')?.innerText ?? ''), [said.source]);
    assert.equal(await page.locator('#app img:not(.cm-widgetBuffer)').count(), 0);
  }
  await setField(page, 'model', 'llama-3.1-8b');
  await setField(page, 'global-batch', '64');
  await setField(page, 'engine', '');
  await write(page, 'dp=4:fsdp tp=2:tp');
  await answers(page, /dp=4:zero3 tp=2:tp/); // as fsdp is called there
  await page.click('text="Write"');
  await page.waitForSelector('text=torchtitan@2026.02 cannot say this job'); // its tp always has sp
  await write(page, 'dp=4:fsdp tp=2:tp+sp');
  await answers(page, /tp=2:tp\+sp/);
  await page.click('text="Write"');
  await page.waitForSelector('pre.source');
  assert.match(await page.locator('pre.source').first().innerText(), /tensor_parallel_degree = 2/);
  await closed(page, '12-written');
});
async function findingsOf(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  return violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(' ')).slice(0, 3).join('; ')}`);
}

test('13. a search that is stopped gives the best so far', async () => {
  const page = await opened();
  await setField(page, 'model', 'llama-3.1-405b');
  await setField(page, 'cluster', 'h100-sxm:512');
  await answers(page, /405b/);
  await page.click('#tab-plan');
  await page.click('button.main');
  await page.waitForSelector('text=/Searching … .*best/');
  await page.click('text="Stop"');
  await page.waitForSelector('text=Search ended early', { timeout: 10_000 });
  assert.ok(await page.locator('tbody tr').count() > 0);
  await closed(page, '13-stopped');
});

async function readOne(page) {
  await page.fill('textarea', `torchrun --nnodes 4 --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 8 --num-layers 32 \\
  --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 \\
  --micro-batch-size 1 --global-batch-size 63 --bf16 --vocab-size 50304 --tensorboard-dir /a/very/long/path/${'x'.repeat(120)}`);
  await page.click('text=Read the text');
  await page.waitForSelector('.mark-in-text');
}

for (const colorScheme of ['light', 'dark']) {
  test(`axe-core finds nothing in any view, ${colorScheme}`, async () => {
    const page = await opened({ colorScheme, bypassCSP: true });
    for (const tab of ['memory', 'mesh', 'time', 'plan', 'compare', 'check', 'config']) {
      await page.click(`#tab-${tab}`);
      if (tab === 'plan' || tab === 'check') await page.click('button.main');
      if (tab === 'plan') await page.waitForSelector('text=Search complete');
      if (tab === 'check') await page.waitForSelector('.conditions');
      if (tab === 'config') await readOne(page);
      await page.waitForTimeout(300);
      assert.deepEqual(await findingsOf(page), [], tab);
      if (pictures) await page.screenshot({ path: join(pictures, `axe-${colorScheme}-${tab}.png`), fullPage: true });
    }
    await closed(page, `axe-${colorScheme}`);
  });
}

for (const width of [360, 768, 2560]) {
  test(`nothing is cut off at ${width} pixels`, async () => {
    const page = await opened({ viewport: { width, height: 900 } });
    for (const tab of ['memory', 'mesh', 'time', 'plan', 'compare', 'check', 'config']) {
      await page.click(`#tab-${tab}`);
      if (tab === 'config') await readOne(page);
      await page.waitForTimeout(400);
      const beyond = await page.evaluate(() => [...document.querySelectorAll('#app *')]
        .filter((one) => one.closest('.scroll, .unseen, .gantt, .cm-editor, svg') === null)
        .filter((one) => one.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
        .map((one) => `${one.tagName}.${one.className}`));
      assert.deepEqual(beyond, [], tab);
      if (pictures) await page.screenshot({ path: join(pictures, `${width}-${tab}.png`), fullPage: true });
    }
    await closed(page, `${width}`);
  });
}

test('how long it takes', async (t) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  await page.addInitScript(() => {
    globalThis.frames_ = [];
    const next = globalThis.requestAnimationFrame.bind(globalThis);
    globalThis.requestAnimationFrame = (work) => next((time) => {
      const began = performance.now();
      work(time);
      globalThis.frames_.push(performance.now() - began);
    });
  });
  await page.goto(page_url);
  await page.waitForSelector('.figures');
  t.diagnostic(`first answer after ${await page.evaluate(() => Math.round(performance.now()))} ms`);
  await page.waitForTimeout(500);
  for (const seq of ['4096', '8192', '4096']) {
    await setField(page, 'seq', seq);
    await page.waitForTimeout(600);
  }
  t.diagnostic(`derive, warm: ${await page.locator('.foot').innerText()}`);
  await page.click('#tab-time');
  const chart = page.locator('.gantt');
  await chart.waitFor();
  await page.waitForTimeout(500);
  const slices = Number(await chart.getAttribute('data-slices'));
  assert.ok(slices > 100_000, `${slices}`);
  await chart.focus();
  await page.keyboard.press('+');
  await page.evaluate(() => { globalThis.frames_.length = 0; });
  for (let i = 0; i < 60; i += 1) await page.keyboard.press(i % 20 < 10 ? 'ArrowRight' : 'ArrowLeft');
  const frames = (await page.evaluate(() => globalThis.frames_)).sort((a, b) => a - b);
  const median = frames[frames.length >> 1];
  t.diagnostic(`${slices} boxes, moved: ${median.toFixed(1)} ms a frame (median of ${frames.length})`);
  assert.ok(median < 16, `${median} ms a frame`);
  await page.click('#tab-plan');
  const began = Date.now();
  await page.click('button.main');
  await page.waitForSelector('text=Search complete');
  t.diagnostic(`plan of 70B on 64 devices: ${Date.now() - began} ms; ${await page.locator('text=/^Search complete/').first().innerText()}`);
  await context.close();
});
