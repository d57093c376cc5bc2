// Where the time of a step goes, and what each stage does when.
import { scaleLinear } from 'd3-scale';
import { useRef } from 'preact/hooks';
import type { Timeline } from '../answers.ts';
import { colourOfTime } from '../charts/colours.ts';
import { FaultText, Findings, Section, Swatch, Table } from '../parts/common.tsx';
import { SaveButtons } from '../parts/picture.tsx';
import { useWidth } from '../parts/width.ts';
import { derived, sliced, timed } from '../work.ts';
import { percent, seconds, whole } from '../words.ts';
import { GanttChart } from './gantt.tsx';

interface Part { kind: string; name: string; seconds: number; which?: number }

export function partsOf(time: Timeline): Part[] {
  const { breakdown } = time;
  const exposed = Object.entries(breakdown.exposed_communication).map(([axis, value], which) => ({
    which, kind: 'messages', name: `messages over ${axis}, not hidden`, seconds: value,
  }));
  return [
    { kind: 'compute', name: 'compute', seconds: breakdown.compute },
    ...exposed,
    { kind: 'bubble', name: 'waiting for stages', seconds: breakdown.bubble },
    { kind: 'launch', name: 'kernel launches', seconds: breakdown.launch },
    { kind: 'host', name: 'host', seconds: breakdown.host },
    { kind: 'update', name: 'update', seconds: breakdown.update },
  ].filter((part) => part.seconds > 0);
}

function Breakdown({ parts, width }: { parts: Part[]; width: number }) {
  const total = parts.reduce((sum, part) => sum + part.seconds, 0);
  const x = scaleLinear([0, total], [0, width]);
  let at = 0;
  return (
    <svg class="chart" width={width} height={58} viewBox={`0 0 ${width} 58`} role="img"
      aria-label={`Where the step goes: ${parts.map((part) => `${part.name} ${percent(part.seconds / total)}`).join(', ')}`}>
      {parts.map((part) => {
        const begin = x(at);
        at += part.seconds;
        const wide = x(at) - begin;
        return (
          <g key={part.name}>
            <rect x={begin} y={2} width={Math.max(0.5, wide - 1)} height={28} fill={colourOfTime(part.kind, part.which)}>
              <title>{`${part.name}: ${seconds(part.seconds)}`}</title>
            </rect>
            {wide > 48 && <text x={begin + 4} y={46}>{percent(part.seconds / total)}</text>}
          </g>
        );
      })}
    </svg>
  );
}

export function TimeView() {
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const time = timed.value.document;
  const slices = sliced.value.document;
  if (time === null) return derived.value.fault !== null ? null : <FaultText fault={timed.value.fault} />;
  if (time.step_seconds === undefined) {
    return <Section title="No figures: the placement has no meaning as written"><Findings findings={time.findings} /></Section>;
  }
  const parts = partsOf(time);
  const total = parts.reduce((sum, part) => sum + part.seconds, 0);
  return (
    <>
      <Section title={`A step takes ${seconds(time.simulated.step_seconds)}`} aside={<SaveButtons place={place} name="breakdown of the step" />}>
        <div ref={place}><Breakdown parts={parts} width={width} /></div>
        <Table
          caption="Time of the stage that takes longest" rows={parts}
          columns={[
            { name: 'part', of: (part) => <><Swatch colour={colourOfTime(part.kind, part.which)} />{part.name}</> },
            { name: 'time', number: true, of: (part) => seconds(part.seconds) },
            { name: 'of the step', number: true, of: (part) => percent(part.seconds / total) },
          ]}
        />
        <details>
          <summary>All terms</summary>
          <Table
            caption="Terms of the time, largest first" rows={[...time.terms].sort((a, b) => b.seconds - a.seconds)}
            columns={[
              { name: 'kind', of: (term) => term.kind },
              { name: 'what', of: (term) => term.what },
              { name: 'unit', of: (term) => term.unit },
              { name: 'phase', of: (term) => term.phase },
              { name: 'axes', of: (term) => term.axes.join(', ') },
              { name: 'time', number: true, of: (term) => seconds(term.seconds) },
            ]}
          />
        </details>
        <Findings findings={time.findings.filter((finding) => finding.severity === 'advice')} />
      </Section>
      <Section title="What each stage does" aside={sliced.value.busy ? <span class="soft small busy">simulating …</span> : null}>
        {slices === null ? <div style={{ minHeight: '160px' }}><FaultText fault={sliced.value.fault} /></div> : (
          <>
            {slices.slices_left_out > 0 && <p class="small soft">{whole(slices.slices_left_out)} further slices are left out.</p>}
            <GanttChart document={slices} />
          </>
        )}
        <details>
          <summary>Table</summary>
          <Table
            caption="Seconds of each stage" rows={time.simulated.stages}
            columns={[
              { name: 'stage', number: true, of: (stage) => stage.stage },
              ...[...new Set(time.simulated.stages.flatMap((stage) => Object.keys(stage.spent_seconds)))].map((name) => ({
                name, number: true, of: (stage: Timeline['simulated']['stages'][number]) => seconds(stage.spent_seconds[name] ?? 0),
              })),
              { name: 'waits for stages', number: true, of: (stage) => seconds(stage.idle_seconds) },
            ]}
          />
        </details>
      </Section>
    </>
  );
}
