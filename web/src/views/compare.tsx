// Two placements of the same job side by side, and what differs.
import type { Derivation, Finding, Timeline } from '../answers.ts';
import { change, job } from '../job.ts';
import { FaultText, Findings, Grade, Section } from '../parts/common.tsx';
import { PlacementEditor, saysOfPlacement } from '../parts/editor.tsx';
import { derived, otherDerived, otherTimed, timed } from '../work.ts';
import { bytes, count, percent, seconds } from '../words.ts';
import { partsOf } from './time.tsx';

interface Line { name: string; of(document: Derivation, time: Timeline | null): string; less?: (document: Derivation, time: Timeline | null) => number }

const kNoFindings: Finding[] = [];
const kLines: Line[] = [
  { name: 'devices', of: (own) => String(own.devices) },
  { name: 'step', of: (_, time) => (time?.step_seconds === undefined ? '–' : seconds(time.simulated.step_seconds)), less: (_, time) => time?.simulated?.step_seconds ?? NaN },
  { name: 'tokens/s', of: (_, time) => (time?.step_seconds === undefined ? '–' : count(time.tokens_per_second)) },
  { name: 'MFU', of: (_, time) => (time?.step_seconds === undefined || time.mfu === null ? '–' : percent(time.mfu)) },
  { name: 'memory per device', of: (own) => (own.memory === undefined ? '–' : bytes(own.memory.reserved_bytes + own.memory.outside_bytes)), less: (own) => own.memory?.reserved_bytes ?? NaN },
  ...(['parameters', 'optimizer', 'gradients', 'activations', 'transient'] as const).map((share) => ({
    name: `· ${share}`,
    of: (own: Derivation) => (own.memory === undefined ? '–' : bytes(own.memory.classes[0]?.bytes[share] ?? 0)),
    less: (own: Derivation) => own.memory?.classes[0]?.bytes[share] ?? NaN,
  })),
  { name: 'sent per device', of: (own) => (own.communication === undefined ? '–' : bytes(own.communication.sent_bytes)), less: (own) => own.communication?.sent_bytes ?? NaN },
  { name: 'compute', of: (_, time) => partOf(time, 'compute') },
  { name: 'messages, not hidden', of: (_, time) => partOf(time, 'messages') },
  { name: 'waiting for stages', of: (_, time) => partOf(time, 'bubble') },
  { name: 'micro-batches', of: (own) => String(own.training.micro_batches) },
];

function partOf(time: Timeline | null, kind: string): string {
  if (time?.step_seconds === undefined) return '–';
  return seconds(partsOf(time).filter((part) => part.kind === kind).reduce((sum, part) => sum + part.seconds, 0));
}

function ratio(a: number, b: number): string {
  if (!Number.isFinite(a) || !Number.isFinite(b) || a === b || a === 0) return '';
  const factor = b / a;
  return factor > 1 ? `${factor.toFixed(2)}×` : `1/${(1 / factor).toFixed(2)}`;
}


export function CompareView() {
  const first = derived.value.document;
  const firstTime = timed.value.document;
  const second = otherDerived.value.document;
  const secondTime = otherTimed.value.document;
  const asked = job.value.other.trim() !== '';
  const { fault } = otherDerived.value;
  return (
    <Section title="Two placements of this job">
      <div class="two">
        <div class="stack" style={{ gap: '4px' }}>
          <span class="label">First, of the form</span>
          <code style={{ overflowWrap: 'anywhere' }}>{job.value.placement}</code>
        </div>
        <div class="stack" style={{ gap: '4px' }}>
          <span class="label">Second</span>
          <PlacementEditor text={job.value.other} read={() => job.peek().other} label="Second placement" fault={asked ? fault : null} findings={second?.findings ?? kNoFindings}
            onChange={(other) => change({ other })} />
          {asked && <FaultText fault={saysOfPlacement(fault) || fault !== null ? fault : null} />}
          <div class="row">
            {!asked && <button type="button" onClick={() => change({ other: job.value.placement })}>Begin with the first</button>}
            {asked && <button type="button" onClick={() => change({ placement: job.value.other, other: job.value.placement }, 'swap')}>Swap</button>}
          </div>
        </div>
      </div>
      {asked && first !== null && second !== null && (
        <>
          <div class="scroll" tabIndex={0} role="region" aria-label="Comparison">
            <table>
              <caption>What differs is bold; the last column is second over first</caption>
              <thead><tr><th scope="col">figure</th><th scope="col" class="number">first</th><th scope="col" class="number">second</th><th scope="col" class="number">second / first</th></tr></thead>
              <tbody>
                <tr>
                  <td>verdict</td>
                  <td class="number">{first.memory && <Grade fit={first.memory.fit} />}</td>
                  <td class="number">{second.memory && <Grade fit={second.memory.fit} />}</td>
                  <td />
                </tr>
                {kLines.map((line) => {
                  const a = line.of(first, firstTime);
                  const b = line.of(second, secondTime);
                  const kind = a === b ? 'number' : 'number differs';
                  return (
                    <tr key={line.name}>
                      <td>{line.name}</td><td class={kind}>{a}</td><td class={kind}>{b}</td>
                      <td class="number soft">{line.less ? ratio(line.less(first, firstTime), line.less(second, secondTime)) : ''}</td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
          </div>
          <Findings findings={second.findings} />
        </>
      )}
    </Section>
  );
}
