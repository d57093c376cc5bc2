// Memory of each class of devices by state beside the capacity, over the step, and the messages.
import { scaleLinear } from 'd3-scale';
import { useRef } from 'preact/hooks';
import { kShares, type Derivation, type MemoryClass, type Message } from '../answers.ts';
import { kShareColour } from '../charts/colours.ts';
import { Findings, Grade, Section, Swatch, Table } from '../parts/common.tsx';
import { SaveButtons } from '../parts/picture.tsx';
import { useWidth } from '../parts/width.ts';
import { derived } from '../work.ts';
import { bytes, percent, plural } from '../words.ts';

const kMostClasses = 16;

/** All classes, or as many at even distances, the first, the last and the fullest among them. */
function shownOf(classes: MemoryClass[]): MemoryClass[] {
  if (classes.length <= kMostClasses) return classes;
  const fullest = classes.reduce((a, b) => (b.reserved_bytes > a.reserved_bytes ? b : a));
  const step = (classes.length - 1) / (kMostClasses - 1);
  const chosen = new Set(Array.from({ length: kMostClasses }, (_, i) => classes[Math.round(i * step)]));
  chosen.add(fullest);
  return classes.filter((one) => chosen.has(one));
}

function segmentsOf(one: MemoryClass): { share: (typeof kShares)[number] | 'cached'; bytes: number }[] {
  const known = kShares.map((share) => ({ share, bytes: one.bytes[share] }));
  const held = one.reserved_bytes + one.outside_bytes - one.bytes.total;
  return [...known, { share: 'cached' as const, bytes: Math.max(0, held) }].filter((part) => part.bytes > 0);
}
const colourOf = (share: string) => kShareColour[share as keyof typeof kShareColour] ?? 'var(--yellow)';

function Bars({ classes, width }: { classes: MemoryClass[]; width: number }) {
  const left = Math.min(130, width * 0.3);
  const right = 14;
  const row = 30;
  const height = classes.length * row + 38;
  const most = Math.max(...classes.map((one) => Math.max(one.capacity_bytes, one.reserved_bytes + one.outside_bytes)));
  const x = scaleLinear([0, most], [left, width - right]);
  const ticks = x.ticks(Math.max(2, Math.floor(width / 130)));
  return (
    <svg class="chart" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img"
      aria-label="Memory of each class of devices by state, beside the capacity; the table below has the figures">
      {ticks.map((tick) => (
        <g key={tick}>
          <line class="axis-line" x1={x(tick)} x2={x(tick)} y1={4} y2={height - 30} />
          <text class="soft" x={x(tick)} y={height - 14} text-anchor="middle">{bytes(tick)}</text>
        </g>
      ))}
      {classes.map((one, index) => {
        let at = 0;
        const y = 6 + index * row;
        return (
          <g key={one.class}>
            <text x={0} y={y + 15}>{one.class.length > 18 ? `${one.class.slice(0, 17)}…` : one.class}</text>
            {segmentsOf(one).map((part) => {
              const begin = x(at);
              at += part.bytes;
              return (
                <rect key={part.share} x={begin} y={y} width={Math.max(0.5, x(at) - begin - 0.5)} height={20} fill={colourOf(part.share)}>
                  <title>{`${one.class}: ${part.share} ${bytes(part.bytes)}`}</title>
                </rect>
              );
            })}
            <line x1={x(one.capacity_bytes)} x2={x(one.capacity_bytes)} y1={y - 4} y2={y + 24} stroke="var(--text)" stroke-width={2} />
            <title>{`capacity ${bytes(one.capacity_bytes)}`}</title>
          </g>
        );
      })}
    </svg>
  );
}

function Instants({ one, width }: { one: MemoryClass; width: number }) {
  const height = 150;
  const top = 18;
  const bottom = 26;
  const most = Math.max(one.capacity_bytes, ...one.instants.map((instant) => instant.bytes));
  const y = scaleLinear([0, most], [height - bottom, top]);
  const step = width / Math.max(1, one.instants.length);
  return (
    <svg class="chart" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img"
      aria-label={`Memory of ${one.class} over the step: ${one.instants.map((instant) => `${instant.at} ${bytes(instant.bytes)}`).join(', ')}; capacity ${bytes(one.capacity_bytes)}`}>
      {one.instants.map((instant, index) => (
        <g key={instant.at}>
          <rect x={index * step + 3} width={step - 6} y={y(instant.bytes)} height={y(0) - y(instant.bytes)} fill="var(--sky)" rx={2} />
          <text x={(index + 0.5) * step} y={y(instant.bytes) - 4} text-anchor="middle">{bytes(instant.bytes)}</text>
          <text class="soft" x={(index + 0.5) * step} y={height - 9} text-anchor="middle">{instant.at}</text>
        </g>
      ))}
      <line x1={0} x2={width} y1={y(one.capacity_bytes)} y2={y(one.capacity_bytes)} stroke="var(--text)" stroke-width={1.5} stroke-dasharray="5 3" />
    </svg>
  );
}

interface Group { axes: string; collective: string; state: string; link: string; group: number; calls: number; sent: number }

/** Messages of the class that sends most, by axis, collective and state. */
export function groupsOf(document: Derivation): Group[] {
  const classes = document.communication?.classes ?? [];
  const busiest = classes.reduce<(typeof classes)[number] | undefined>(
    (a, b) => (a === undefined || b.sent_bytes > a.sent_bytes ? b : a), undefined);
  const groups = new Map<string, Group>();
  for (const term of busiest?.terms ?? []) {
    const axes = term.axes.join(' × ');
    const key = [axes, term.collective, term.state].join('|');
    const known = groups.get(key);
    if (known === undefined) {
      groups.set(key, {
        axes, collective: term.collective.replaceAll('_', ' '), state: term.state, group: term.group,
        link: linkOf(term), calls: term.count, sent: term.sent_bytes,
      });
    } else {
      known.calls += term.count;
      known.sent += term.sent_bytes;
    }
  }
  return [...groups.values()].sort((a, b) => b.sent - a.sent);
}
export const linkOf = (term: Message) => term.levels.map((level) => level.link).join(', ');

function Messages({ groups }: { groups: Group[] }) {
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const shown = groups.slice(0, 12);
  const left = Math.min(236, width * 0.6);
  const x = scaleLinear([0, Math.max(1, ...shown.map((group) => group.sent))], [0, Math.max(60, width - left - 80)]);
  const height = shown.length * 26 + 4;
  return (
    <div ref={place}>
      <svg class="chart" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img"
        aria-label="Bytes sent per device and step by axis and collective; the table below has the figures">
        {shown.map((group, index) => (
          <g key={index}>
            <text x={0} y={index * 26 + 17}><tspan font-weight="650">{group.axes}</tspan>{` ${group.collective} · ${group.state}`.slice(0, Math.floor(left / 6.4))}</text>
            <rect x={left} y={index * 26 + 4} width={Math.max(1, x(group.sent))} height={18} rx={2} fill={colourOf(group.state)} />
            <text x={left + Math.max(1, x(group.sent)) + 6} y={index * 26 + 17}>{bytes(group.sent)}</text>
          </g>
        ))}
      </svg>
    </div>
  );
}

export function MemoryView() {
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const document = derived.value.document;
  const memory = document?.memory;
  if (document === null || memory === undefined) {
    return document === null ? null : (
      <Section title="No figures: the placement has no meaning as written"><Findings findings={document.findings} /></Section>
    );
  }
  const classes = shownOf(memory.classes);
  const fullest = memory.classes.reduce((a, b) => (b.reserved_bytes > a.reserved_bytes ? b : a));
  const groups = groupsOf(document);
  const total = document.communication?.sent_bytes ?? 0;
  const hasCached = classes.some((one) => segmentsOf(one).some((part) => part.share === 'cached'));
  return (
    <>
      <Section title="Memory at the peak, per device" aside={<SaveButtons place={place} name="memory" />}>
        <div class="legend">
          {kShares.filter((share) => classes.some((one) => one.bytes[share] > 0)).map((share) => (
            <span key={share}><Swatch colour={kShareColour[share]} />{share}</span>
          ))}
          {hasCached && <span><Swatch colour="var(--yellow)" />held by the allocator and outside it</span>}
          <span><strong aria-hidden="true">|</strong> capacity</span>
        </div>
        <div ref={place}><Bars classes={classes} width={width} /></div>
        <details>
          <summary>Table</summary>
          <Table
            caption={`Memory per device of ${plural(memory.classes.length, 'class', 'classes')}`} rows={classes}
            columns={[
              { name: 'class', of: (one) => one.class },
              { name: 'devices', number: true, of: (one) => one.devices },
              ...kShares.map((share) => ({ name: share, number: true, of: (one: MemoryClass) => bytes(one.bytes[share]) })),
              { name: 'reserved', number: true, of: (one) => bytes(one.reserved_bytes) },
              { name: 'capacity', number: true, of: (one) => bytes(one.capacity_bytes) },
              { name: 'used', number: true, of: (one) => percent((one.reserved_bytes + one.outside_bytes) / one.capacity_bytes) },
              { name: 'verdict', of: (one) => <Grade fit={one.fit} /> },
            ]}
          />
        </details>
      </Section>
      <div class="two">
        <Over one={fullest} />
        <Section title={`Messages: ${bytes(total)} sent per device and step`}>
          {groups.length === 0 ? <p class="soft">Nothing is sent.</p> : (
            <>
              <Messages groups={groups} />
              <details>
                <summary>Table</summary>
                <Table
                  caption="Sent per device and step" rows={groups}
                  columns={[
                    { name: 'axes', of: (group) => group.axes },
                    { name: 'collective', of: (group) => group.collective },
                    { name: 'of', of: (group) => group.state },
                    { name: 'group', number: true, of: (group) => group.group },
                    { name: 'calls', number: true, of: (group) => group.calls },
                    { name: 'sent', number: true, of: (group) => bytes(group.sent) },
                    { name: 'share', number: true, of: (group) => percent(total === 0 ? 0 : group.sent / total) },
                    { name: 'link', of: (group) => group.link },
                  ]}
                />
              </details>
            </>
          )}
        </Section>
      </div>
    </>
  );
}

function Over({ one }: { one: MemoryClass }) {
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  return (
    <Section title="Over the step" aside={<SaveButtons place={place} name="memory over the step" />}>
      <p class="small soft">The fullest: {one.class}; at its peak in {one.at}. Dashed: capacity.</p>
      <div ref={place}><Instants one={one} width={width} /></div>
      <details>
        <summary>Largest terms</summary>
        <Table
          caption={`What ${one.class} holds`} rows={[...one.terms].sort((a, b) => b.bytes - a.bytes).slice(0, 20)}
          columns={[
            { name: 'state', of: (term) => term.state },
            { name: 'what', of: (term) => term.what },
            { name: 'unit', of: (term) => term.unit },
            { name: 'divided', of: (term) => term.axis_factors.map((own) => `${own.factor} ${own.axis}`).join(', ') },
            { name: 'bytes', number: true, of: (term) => bytes(term.bytes) },
          ]}
        />
      </details>
    </Section>
  );
}
