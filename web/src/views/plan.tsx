// The best placements for the model on these devices: time over memory, and a table.
import { signal } from '@preact/signals';
import { scaleLinear, scaleLog } from 'd3-scale';
import { useRef } from 'preact/hooks';
import type { PlanFigures } from '../answers.ts';
import { change, job } from '../job.ts';
import { FaultText, Grade, Section, Table } from '../parts/common.tsx';
import { SaveButtons } from '../parts/picture.tsx';
import { useWidth } from '../parts/width.ts';
import { derived, fronted, plan, planned, proven, stopPlan } from '../work.ts';
import { bytes, count, percent, seconds } from '../words.ts';

const pointed = signal('');
const keyOf = (one: PlanFigures) => `${one.placement}|${one.micro_batch}|${one.recompute}`;

function use(one: PlanFigures): void {
  change({
    placement: one.placement, 'micro-batch': String(one.micro_batch),
    recompute: one.recompute === 'none' ? '' : one.recompute,
  }, 'plan');
}

function Scatter({ plans, best, width }: { plans: PlanFigures[]; best: Set<string>; width: number }) {
  const height = Math.min(380, Math.max(240, width * 0.42));
  const left = 62;
  const bottom = 40;
  const times = plans.map((one) => one.step_seconds);
  const sizes = plans.map((one) => one.needed_bytes);
  const x = scaleLinear([Math.min(...sizes), Math.max(...sizes)], [left + 12, width - 34]).nice();
  const wide = Math.max(...times) / Math.min(...times) > 6;
  const y = (wide ? scaleLog() : scaleLinear()).domain([Math.min(...times), Math.max(...times)]).nice().range([height - bottom - 8, 14]);
  const capacity = derived.value.document?.memory?.capacity_bytes;
  return (
    <svg class="chart" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="group"
      aria-label="Plans by memory and time of a step; the table below has the same">
      {y.ticks(5).map((tick) => (
        <g key={tick}>
          <line class="axis-line" x1={left} x2={width} y1={y(tick)} y2={y(tick)} />
          <text class="soft" x={left - 6} y={y(tick) + 4} text-anchor="end">{seconds(tick)}</text>
        </g>
      ))}
      {x.ticks(Math.max(2, Math.floor(width / 120))).map((tick) => (
        <text class="soft" key={tick} x={x(tick)} y={height - 22} text-anchor="middle">{bytes(tick)}</text>
      ))}
      <text class="soft" x={(left + width) / 2} y={height - 5} text-anchor="middle">memory per device</text>
      <text class="soft" x={0} y={10}>step</text>
      {capacity !== undefined && capacity >= x.domain()[0]! && capacity <= x.domain()[1]! && (
        <line x1={x(capacity)} x2={x(capacity)} y1={10} y2={height - bottom} stroke="var(--text)" stroke-dasharray="5 3" />
      )}
      {plans.map((one) => {
        const key = keyOf(one);
        const top = best.has(key);
        return (
          <g key={key} role="button" tabindex={0} class="device" aria-label={`${one.placement}: ${seconds(one.step_seconds)}, ${bytes(one.needed_bytes)}; use it`}
            onClick={() => use(one)} onMouseEnter={() => { pointed.value = key; }}
            onFocus={() => { pointed.value = key; }}
            onKeyDown={(event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); use(one); } }}>
            {top
              ? <rect class="frame" x={x(one.needed_bytes) - 6} y={y(one.step_seconds) - 6} width={12} height={12} rx={2} fill="var(--orange)" stroke={pointed.value === key ? 'var(--text)' : 'var(--card)'} stroke-width={2} />
              : <circle cx={x(one.needed_bytes)} cy={y(one.step_seconds)} r={5.5} fill="var(--blue)" stroke={pointed.value === key ? 'var(--text)' : 'var(--card)'} stroke-width={2} />}
            <title>{`${one.placement}\n${seconds(one.step_seconds)}, ${bytes(one.needed_bytes)}`}</title>
          </g>
        );
      })}
    </svg>
  );
}

/** Plans come before their proofs. */
function proofOf(one: PlanFigures): string {
  if (proven.value.busy) return 'being proven …';
  return proven.value.document?.plans.find((other) => keyOf(other) === keyOf(one))?.proof ?? one.proof ?? '';
}

function PlanTable({ plans, caption }: { plans: PlanFigures[]; caption: string }) {
  return (
    <Table
      caption={caption} rows={plans} chosen={(one) => one.placement === job.value.placement || keyOf(one) === pointed.value}
      columns={[
        { name: 'placement', of: (one) => <button type="button" class="plain mono" onClick={() => use(one)}>{one.placement}</button> },
        { name: 'step', number: true, of: (one) => seconds(one.step_seconds) },
        { name: 'MFU', number: true, of: (one) => (one.mfu === undefined ? '' : percent(one.mfu)) },
        { name: 'memory', number: true, of: (one) => bytes(one.needed_bytes) },
        { name: 'verdict', of: (one) => <Grade fit={one.fit} /> },
        { name: 'micro-batch', number: true, of: (one) => one.micro_batch },
        { name: 'recomputation', of: (one) => one.recompute },
        { name: 'sent', number: true, of: (one) => bytes(one.sent_bytes) },
        { name: 'equivalence', of: (one) => proofOf(one) },
      ]}
    />
  );
}

export function PlanView() {
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const { document, fault, busy, progress } = planned.value;
  const front = fronted.value.document?.front?.plans ?? [];
  const best = new Set((document?.plans ?? []).map(keyOf));
  const all = [...(document?.plans ?? []), ...front.filter((one) => !best.has(keyOf(one)))];
  return (
    <>
      <Section
        title="The best placements for this model on these devices"
        aside={busy || proven.value.busy || fronted.value.busy
          ? <button type="button" onClick={stopPlan}>Stop</button>
          : <button type="button" class="main" onClick={() => void plan()}>Search</button>}
      >
        <p class="soft" aria-live="polite">
          {busy ? <span class="busy">Searching … {progress}</span>
            : document !== null
              ? `${document.exact ? 'Search complete' : 'Search ended early'}: ${count(document.space)} candidate plans in ${seconds(document.seconds.total)}; ${count(document.visited)} evaluated, the rest pruned by lower bounds.`
              : 'Every way of dividing the work over the devices is looked at or ruled out by a bound. The form gives model, devices, batch and engine; placement, micro-batch and recomputation are what is searched.'}
        </p>
        {proven.value.busy && <p class="small soft busy">Proving that the plans are the training of one device …</p>}
        {fronted.value.busy && <p class="small soft busy">Looking for plans that need less memory … {fronted.value.progress}</p>}
        <FaultText fault={fault} />
        {document !== null && document.plans.length === 0 && <p>No plan fits on these devices.{document.shortage?.message ? ` ${document.shortage.message}` : ''}</p>}
        {all.length > 1 && (
          <>
            <div class="row between">
              <div class="legend">
                <span><span class="swatch" aria-hidden="true" style={{ background: 'var(--orange)' }} />fastest plans (squares)</span>
                <span><span class="swatch" aria-hidden="true" style={{ background: 'var(--blue)', borderRadius: '50%' }} />less memory, more time (circles)</span>
              </div>
              <SaveButtons place={place} name="plans" />
            </div>
            <div ref={place}><Scatter plans={all} best={best} width={width} /></div>
          </>
        )}
        {document !== null && document.plans.length > 0 && <PlanTable plans={document.plans} caption="Fastest first; choose one to see it above" />}
        {front.length > 0 && (
          <details><summary>Less memory, more time: {front.length} plans</summary><PlanTable plans={front} caption="Each the fastest of those that need no more memory" /></details>
        )}
      </Section>
    </>
  );
}
