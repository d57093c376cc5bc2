// The job as a form; its placement as text and as one line per axis, which stay in step.
import { signal } from '@preact/signals';
import names from 'virtual:names';
import type { Fault, Finding } from '../answers.ts';
import { change, job, kFurther, type Word } from '../job.ts';
import { axesOf, devicesOf, withAxis, withNewAxis, withoutAxis, type AxisText } from '../placement.ts';
import { takeFiles } from '../views/config.tsx';
import { derived, tab } from '../work.ts';
import { firstLine, whole } from '../words.ts';
import { PlacementEditor, saysOfPlacement } from './editor.tsx';

const kLargestSheet = 2_000_000;
const dropped = signal(''); // what was wrong with a file
const over = signal(false);
const kNoFindings: Finding[] = [];

/** Which field a fault is about. */
function wordOf(fault: Fault | null): Word | null {
  if (fault === null) return null;
  const where = (fault.where || fault.message).toLowerCase();
  if (saysOfPlacement(fault)) return 'placement';
  const words: Word[] = ['cluster', 'seq', 'global-batch', 'micro-batch', 'recompute', 'precision', 'optimizer', 'engine', ...kFurther, 'model'];
  return words.find((word) => where.includes(word)) ?? null;
}

/** A config.json of a model is the model; all else is a configuration of an engine. */
async function takeAll(files: File[]): Promise<void> {
  const [first] = files;
  const alone = files.length === 1 && first !== undefined;
  if (alone && first.name.endsWith('.json') && (first.size > kLargestSheet || /"model_type"|"architectures"/.test(await first.text()))) {
    await take(first);
  } else {
    dropped.value = '';
    await takeFiles(files);
    if (files.length > 0) tab.value = 'config';
  }
}

async function take(file: File | undefined): Promise<void> {
  dropped.value = '';
  if (file === undefined) return;
  if (file.size > kLargestSheet) {
    dropped.value = `${file.name} has ${whole(file.size)} bytes; a config.json has at most ${whole(kLargestSheet)}`;
    return;
  }
  try {
    const sheet: unknown = JSON.parse(await file.text());
    if (typeof sheet !== 'object' || sheet === null || Array.isArray(sheet)) throw new Error('it holds no object');
    change({ sheet, model: file.name.slice(0, 80) });
  } catch (error) {
    dropped.value = `${file.name} is no config.json: ${error instanceof Error ? error.message.slice(0, 200) : ''}`;
  }
}

/** What is wrong in few words, and the nearest that is right; the answer has the whole message. */
function Short({ fault, use }: { fault: Fault; use?: (() => void) | undefined }) {
  if (fault.value === '') return <>{firstLine(fault.message)}</>;
  const value = fault.value.length > 60 ? `${fault.value.slice(0, 60)}…` : fault.value;
  const mends = fault.nearest !== '' && use !== undefined;
  return (
    <>
      ‘{value}’ {fault.problem || 'is not known'}
      {mends && <> <button type="button" class="plain" style={{ padding: 0, minHeight: 'auto' }} onClick={use}>Write {fault.nearest}</button></>}
    </>
  );
}

function Field({ word, label, hint, list, wide }: {
  word: Word; label: string; hint?: string; list?: string; wide?: boolean;
}) {
  const fault = derived.value.fault;
  const wrong = wordOf(fault) === word ? (fault?.message ?? '') : '';
  return (
    <div class={wide ? 'field wide' : 'field'}>
      <label for={word}>{label}</label>
      <input
        id={word} value={job.value[word]} list={list} placeholder={hint} autocomplete="off" spellcheck={false}
        aria-invalid={wrong !== ''} aria-describedby={wrong === '' ? undefined : `${word}-wrong`}
        onInput={(event) => change(word === 'model'
          ? { model: event.currentTarget.value, sheet: null }
          : { [word]: event.currentTarget.value })}
      />
      {wrong !== '' && fault !== null && (
        <span class="wrong" id={`${word}-wrong`}>
          <Short fault={fault} use={word === 'model' && job.value.sheet !== null ? undefined : () => change({ [word]: job.value[word].replace(fault.value, fault.nearest) })} />
        </span>
      )}
    </div>
  );
}

function Choice({ word, label, first, options }: { word: Word; label: string; first: string; options: string[] }) {
  const value = job.value[word];
  return (
    <div class="field">
      <label for={word}>{label}</label>
      <select id={word} value={value} onChange={(event) => change({ [word]: event.currentTarget.value })}>
        <option value="">{first}</option>
        {(options.includes(value) || value === '' ? options : [value, ...options]).map((name) => (
          <option value={name} key={name}>{name}</option>
        ))}
      </select>
    </div>
  );
}

/** What people choose most, by what the axis does; the text has everything else. */
function usualTerms(name: string): string[] {
  if (name.startsWith('pp')) return names.schedules;
  if (name.startsWith('tp')) return ['tp', 'tp+sp'];
  if (name.startsWith('cp')) return ['ring', 'gather', 'ulysses'];
  if (name.startsWith('ep')) return ['ep'];
  return ['ddp', 'zero1', 'zero2', 'zero3', 'zero-offload'];
}

function AxisRow({ axis }: { axis: AxisText }) {
  const set = (degree: number, terms: string) =>
    change({ placement: withAxis(job.value.placement, axis, degree, terms) }, `axis-${axis.name}`);
  const usual = usualTerms(axis.name);
  const terms = usual.includes(axis.terms) || axis.terms === '' ? usual : [axis.terms, ...usual];
  const times = (factor: number) => Math.min(1_000_000, Math.max(1, Math.round(axis.degree * factor)));
  return (
    <div class="axis" role="group" aria-label={`axis ${axis.name}`}>
      <span class="name" title={axis.name}>{axis.name}</span>
      <span class="stepper">
        <button type="button" aria-label={`halve ${axis.name}`} disabled={axis.degree <= 1} onClick={() => set(times(0.5), axis.terms)}>−</button>
        <input
          aria-label={`devices along ${axis.name}`} inputMode="numeric" value={axis.degree}
          onChange={(event) => {
            const degree = Number(event.currentTarget.value);
            if (Number.isInteger(degree) && degree >= 1 && degree <= 1_000_000) set(degree, axis.terms);
            else event.currentTarget.value = String(axis.degree);
          }}
        />
        <button type="button" aria-label={`double ${axis.name}`} onClick={() => set(times(2), axis.terms)}>+</button>
      </span>
      <select aria-label={`how ${axis.name} is used`} value={axis.terms} onChange={(event) => set(axis.degree, event.currentTarget.value)}>
        {axis.terms === '' && <option value="">(usual)</option>}
        {terms.map((term) => <option value={term} key={term}>{term}</option>)}
      </select>
      <button type="button" class="icon" aria-label={`remove ${axis.name}`} title={`Remove ${axis.name}`}
        onClick={() => change({ placement: withoutAxis(job.value.placement, axis) })}>×</button>
    </div>
  );
}

function Placement() {
  const text = job.value.placement;
  const axes = axesOf(text).slice(0, 12);
  const { fault, document } = derived.value;
  const free = (['dp', 'tp', 'pp', 'cp', 'ep'] as const).filter((name) => !axes.some((axis) => axis.name === name));
  const fresh = { dp: 'zero1', tp: 'tp+sp', pp: '1f1b', cp: 'ring', ep: 'ep' };
  const devices = devicesOf(text);
  return (
    <div class="field wide">
      <div class="row between">
        <span class="label" id="placement-label">Placement, outermost axis first</span>
        <span class="small soft">{whole(devices)} devices</span>
      </div>
      <PlacementEditor
        text={text} read={() => job.peek().placement} label="Placement" fault={fault} findings={document?.findings ?? kNoFindings}
        onChange={(placement) => change({ placement })}
      />
      {saysOfPlacement(fault) && fault !== null && (
        <span class="wrong"><Short fault={fault} use={() => change({ placement: text.replace(fault.value, fault.nearest) })} /></span>
      )}
      <div class="axes">
        {axes.map((axis, index) => <AxisRow axis={axis} key={`${axis.name}${index}`} />)}
      </div>
      <div class="row">
        {free.map((name) => (
          <button type="button" key={name} aria-label={`add axis ${name}`}
            onClick={() => change({ placement: withNewAxis(text, name, 2, fresh[name]) })}>+ {name}</button>
        ))}
      </div>
    </div>
  );
}

export function Form() {
  const training = derived.value.document?.training;
  const model = derived.value.document?.model;
  return (
    <form
      class={`card drop stack${over.value ? ' over' : ''}`} aria-label="Job"
      onSubmit={(event) => event.preventDefault()}
      onDragOver={(event) => { event.preventDefault(); over.value = true; }}
      onDragLeave={() => { over.value = false; }}
      onDrop={(event) => { event.preventDefault(); over.value = false; void takeAll([...(event.dataTransfer?.files ?? [])]); }}
    >
      <div class="fields">
        <div class="field wide">
          <Field word="model" label="Model" list="models" hint="a name, or a size such as 70B" wide />
          <span class="hint">
            {job.value.sheet !== null ? 'from the dropped file. ' : ''}
            {model !== undefined ? `${whole(model.parameters)} parameters. ` : ''}
            Or drop a config.json here,{' '}
            <button type="button" class="plain" style={{ padding: 0, minHeight: 'auto' }}
              onClick={() => document.getElementById('file')?.click()}>choose one</button>,
            or the{' '}
            <button type="button" class="plain" style={{ padding: 0, minHeight: 'auto' }}
              onClick={() => { tab.value = 'config'; }}>configuration of an engine</button>.
          </span>
          <input id="file" type="file" accept=".json,application/json" class="unseen" aria-label="config.json of a model" tabIndex={-1}
            onChange={(event) => { void take(event.currentTarget.files?.[0]); event.currentTarget.value = ''; }} />
          {dropped.value !== '' && <span class="wrong" role="alert">{dropped.value}</span>}
        </div>
        <Field word="cluster" label="Devices" list="clusters" hint="h100-sxm:8 (nodes), 64xh100-sxm" wide />
        <Field word="seq" label="Sequence (tokens)" hint={training ? String(training.sequence) : '4096'} />
        <Field word="global-batch" label="Global batch (samples)" hint={training ? String(training.global_batch) : ''} />
        <Field word="micro-batch" label="Micro-batch (samples)" hint={training ? String(training.micro_batch) : '1'} />
        <Field word="recompute" label="Recomputation" list="recomputations" hint="none" />
        <Choice word="precision" label="Precision" first="mixed" options={names.precisions.filter((name) => name !== 'mixed')} />
        <Choice word="optimizer" label="Optimizer" first="adamw" options={names.optimizers.filter((name) => name !== 'adamw')} />
        <Field word="engine" label="Engine" list="engines" hint="placet" wide />
        <Placement />
        <details class="wide" open={kFurther.some((word) => job.value[word] !== '')}>
          <summary>Further words</summary>
          <div class="fields">
            <Field word="clip" label="Clipping (norm)" hint="none" />
            <Field word="lora" label="LoRA rank" hint="none" />
            <Field word="loss" label="Loss" hint="as the engine" />
            <Field word="lengths" label="Lengths of samples" hint="all full" />
            <Field word="routing" label="Routing" hint="as the model" />
            <Field word="balance-loss" label="Balance loss" hint="as the model" />
          </div>
        </details>
      </div>
      <datalist id="models">{names.models.map((name) => <option value={name} key={name} />)}</datalist>
      <datalist id="clusters">
        {names.devices.map((name) => <option value={`${name}:8`} key={name} />)}
        {names.clusters.map((name) => <option value={name} key={name} />)}
      </datalist>
      <datalist id="engines">
        {[...new Set(names.engines.map((name) => name.split('@')[0] ?? ''))].map((name) => <option value={name} key={name} />)}
        {names.engines.map((name) => <option value={name} key={name} />)}
      </datalist>
      <datalist id="recomputations">
        {['none', 'selective', 'full'].map((name) => <option value={name} key={name} />)}
      </datalist>
    </form>
  );
}

