// Configurations of engines: handed over, read into the form, and marked where something is wrong; and
// the job of the form written for an engine.
import { signal } from '@preact/signals';
import { Fragment } from 'preact';
import type { Exported, LintFinding } from '../answers.ts';
import { job, requestOf } from '../job.ts';
import { FaultText, Section, Table } from '../parts/common.tsx';
import { save } from '../parts/picture.tsx';
import { forget, handOver, mend, sources, textsOf, write, written, type SourceText } from '../sources.ts';
import { plural } from '../words.ts';

const pasted = signal('');
const wrong = signal('');
const whole = signal(false); // whole texts, or only what lies around findings

export async function takeFiles(files: File[]): Promise<void> {
  wrong.value = '';
  try {
    if (files.length > 0) handOver(await textsOf(files));
  } catch (error) {
    wrong.value = error instanceof Error ? error.message : String(error);
  }
}

const kAround = 2;
const kMostLines = 1500;

/** Positions of the lines that are shown: all, or those near a finding. */
function shownLines(count: number, findings: LintFinding[]): number[] {
  const near = (line: number) => findings.some((finding) => Math.abs(Math.max(finding.line, 1) - line) <= kAround);
  const all = Array.from({ length: count }, (_, index) => index + 1);
  return all.filter((line) => whole.value || near(line)).slice(0, kMostLines);
}

function Mark({ finding }: { finding: LintFinding }) {
  return (
    <div class="mark-in-text">
      <span class={`tag ${finding.severity}`}>{finding.severity} {finding.code}</span>{' '}
      <span>{finding.message}</span>
      {finding.fix !== '' && <div><strong>Fix: {finding.fix}</strong></div>}
    </div>
  );
}

function Text({ source, findings }: { source: SourceText; findings: LintFinding[] }) {
  const lines = source.text.split('\n');
  const shown = shownLines(lines.length, findings);
  if (shown.length === 0) return null;
  return (
    <section aria-label={source.file} class="stack" style={{ gap: '4px' }}>
      <h3 class="mono" style={{ overflowWrap: 'anywhere' }}>{source.file}</h3>
      <div class="scroll source" tabIndex={0} role="region" aria-label={`text of ${source.file}`}>
        {shown.map((line, index) => {
          const own = findings.filter((finding) => Math.max(finding.line, 1) === line);
          const worst = own.some((one) => one.severity === 'error') ? ' error' : own.length > 0 ? ' other' : '';
          return (
            <Fragment key={line}>
              {index > 0 && shown[index - 1] !== line - 1 && <div class="gap soft">…</div>}
              <div class={`line${worst}`}><span class="soft" aria-hidden="true">{line}</span><code>{(lines[line - 1] ?? '').slice(0, 2000)}</code></div>
              {own.map((finding, at) => <Mark finding={finding} key={at} />)}
            </Fragment>
          );
        })}
      </div>
    </section>
  );
}

function Found() {
  const { files, lint, imported } = sources.value;
  if (lint === null || imported === null) return null;
  const of = (severity: string) => lint.findings.filter((finding) => finding.severity === severity).length;
  const counts = [['error', 'errors'], ['warning', 'warnings'], ['advice', 'advice']] as const;
  const said = counts.map(([one, more]) => [of(one), plural(of(one), one, more)] as const).filter(([n]) => n > 0).map(([, text]) => text);
  const dialects = [...new Set(imported.dialects)].map((name) => (name === '' ? 'not known' : name)).join(', ');
  const job_words = Object.entries(imported.job);
  const lost = imported.ledger.filter((line) => ['unknown', 'not modelled', 'unresolved'].includes(line.fate));
  return (
    <>
      <p aria-live="polite">
        Read as <strong>{dialects}</strong>; {job_words.length === 0 ? 'nothing of it is in the form' : `the form has ${plural(job_words.length, 'word')} of it`}.{' '}
        {lint.findings.length === 0 ? 'Nothing is wrong in it that rules know of.' : <strong>{said.join(', ')}.</strong>}
        {sources.value.taken.length > 0 && <span class="soft"> It does not say everything: {sources.value.taken.join(', ')} {sources.value.taken.length === 1 ? 'is' : 'are'} the form's.</span>}
      </p>
      {imported.missing.length > 0 && (
        <ul class="findings">
          {imported.missing.map((fact) => (
            <li key={fact.what}><span class="tag warning">missing</span><span>{fact.what}</span></li>
          ))}
        </ul>
      )}
      <div class="row">
        {lint.findings.some((finding) => finding.fixable) &&
          <button type="button" class="main" onClick={mend}>Mend what can be mended</button>}
        <label class="small"><input type="checkbox" checked={whole.value} onChange={(event) => { whole.value = event.currentTarget.checked; }} /> whole text</label>
      </div>
      {files.map((source) => (
        <Text source={source} key={source.file} findings={lint.findings.filter((finding) => finding.file === source.file)} />
      ))}
      <div class="row">
        {files.map((source) => (
          <button type="button" key={source.file} onClick={() => save(new Blob([source.text]), source.file)}>Save {source.file}</button>
        ))}
        <button type="button" onClick={forget}>Forget</button>
      </div>
      <details>
        <summary>What became of each key ({imported.ledger.length}{lost.length > 0 ? `, ${lost.length} not understood` : ''})</summary>
        <Table
          caption="Keys of the configuration" rows={[...lost, ...imported.ledger.filter((line) => !lost.includes(line))].slice(0, 400)}
          columns={[
            { name: 'line', number: true, of: (line) => line.line },
            { name: 'key', of: (line) => <code>{line.key}</code> },
            { name: 'value', of: (line) => <code>{line.value.slice(0, 80)}</code> },
            { name: 'what became of it', of: (line) => line.fate + (line.what === '' ? '' : `: ${line.what}`) },
          ]}
        />
      </details>
    </>
  );
}

const kWritable = [
  'accelerate', 'axolotl', 'deepspeed', 'gpt-neox', 'llamafactory', 'llm-foundry', 'maxtext', 'megatron-bridge',
  'megatron', 'nanotron', 'nemo', 'torchtitan',
];
const to = signal('torchtitan');

function Files({ exported }: { exported: Exported }) {
  if (exported.unsaid.length > 0) {
    return (
      <Table
        caption={`${exported.dialect} cannot say this job`} rows={exported.unsaid}
        columns={[
          { name: 'word', of: (one) => one.word },
          { name: 'the job', of: (one) => <code>{one.job}</code> },
          { name: 'the nearest that it says', of: (one) => <code>{one.nearest}</code> },
        ]}
      />
    );
  }
  return (
    <>
      {Object.keys(exported.beside).length > 0 && (
        <p class="small soft">Said elsewhere: {Object.entries(exported.beside).map(([word, value]) => `${word} = ${value}`).join(', ')}</p>
      )}
      {exported.files.map((file) => (
        <section key={file.name} class="stack" style={{ gap: '4px' }} aria-label={file.name}>
          <div class="row between"><h3 class="mono">{file.name}</h3>
            <button type="button" onClick={() => save(new Blob([file.text]), file.name)}>Save {file.name}</button></div>
          <pre class="scroll source" tabIndex={0} role="region" aria-label={`text of ${file.name}`}>{file.text}</pre>
        </section>
      ))}
    </>
  );
}

function Write() {
  const request = { ...requestOf('export', job.value), to: to.value };
  const current = written.value.key === JSON.stringify(request);
  return (
    <Section title="Write this job for an engine">
      <div class="row">
        <label>Engine{' '}
          <select value={to.value} onChange={(event) => { to.value = event.currentTarget.value; }}>
            {kWritable.map((name) => <option key={name}>{name}</option>)}
          </select>
        </label>
        <button type="button" onClick={() => void write(request)}>Write</button>
      </div>
      {current && written.value.busy && <p class="soft busy">Writing …</p>}
      {current && <FaultText fault={written.value.fault} />}
      {current && written.value.document !== null && <Files exported={written.value.document} />}
    </Section>
  );
}

export function ConfigView() {
  const { busy, fault, files } = sources.value;
  return (
    <>
      <Section title="Read a configuration into the form">
        <p class="soft">
          Of torchtitan, DeepSpeed, accelerate, Megatron, NeMo, MaxText and others: TOML, YAML, JSON or a launch script. Files that belong
          together are read together. They stay in this tab.
        </p>
        <div class="row">
          <button type="button" onClick={() => document.getElementById('sources')?.click()}>Choose files</button>
          <span class="soft">or drop them on the form, or paste a text:</span>
          <input id="sources" type="file" multiple class="unseen" aria-label="configurations of engines" tabIndex={-1}
            onChange={(event) => { void takeFiles([...(event.currentTarget.files ?? [])]); event.currentTarget.value = ''; }} />
        </div>
        <textarea
          class="paste mono" rows={5} value={pasted.value} aria-label="Text of a configuration or a launch script" spellcheck={false}
          placeholder={'[parallelism]\ntensor_parallel_degree = 8'} onInput={(event) => { pasted.value = event.currentTarget.value; }}
        />
        <div class="row">
          <button type="button" class="main" disabled={pasted.value.trim() === ''}
            onClick={() => handOver([{ file: 'pasted', text: pasted.value }])}>Read the text</button>
        </div>
        {wrong.value !== '' && <p class="wrong" role="alert">{wrong.value}</p>}
        {busy && <p class="soft busy">Reading {files.map((source) => source.file).join(', ').slice(0, 200)} …</p>}
        <FaultText fault={fault} />
        <Found />
      </Section>
      <Write />
    </>
  );
}
