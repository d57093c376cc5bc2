// The mesh and its five modes: where a tensor lives on every device, and which collective moves it.
import { signal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { kStates, type Axis, type Derivation, type Message, type Mode, type ModelSheet, type State } from '../answers.ts';
import { kPartColours } from '../charts/colours.ts';
import { Findings, Section, Table } from '../parts/common.tsx';
import { SaveButtons } from '../parts/picture.tsx';
import { useWidth } from '../parts/width.ts';
import { derived, modelled } from '../work.ts';
import { bytes, plural, whole } from '../words.ts';
import { linkOf } from './memory.tsx';

const kMostDevices = 64;
const kModes: Record<Mode, string> = {
  R: 'whole on every device',
  S: 'divided: each device has its own part',
  'S*': 'divided at rest, gathered whole for use, freed after',
  M: 'nothing at rest: rebuilt when needed',
  O: 'in host memory, copied in for use',
};

const state = signal<State>('parameters');
const tensor = signal(-1); // none chosen: a matrix of a block
const stage = signal(0);
const device = signal(0);
const message = signal(-1);

interface Own { cut: string; mode: Mode }

/** How a state of a tensor of this class lives along an axis: classes may differ from the rest. */
function ownOf(axis: Axis, of: State, kind: string): Own {
  const special = axis.classes[kind];
  return { cut: special?.cut ?? axis.cut, mode: special?.modes[of] ?? axis.modes[of] };
}

interface Place { part: number; parts: number; held: boolean; gathered: boolean; rebuilt: boolean; host: boolean }

/** The degrees that a picture shows: whole ones while they fit, then halves of the largest. */
export function shownDegrees(axes: Axis[]): number[] {
  const degrees = axes.map((axis) => axis.degree);
  while (degrees.reduce((a, b) => a * b, 1) > kMostDevices) {
    const largest = degrees.indexOf(Math.max(...degrees));
    degrees[largest] = Math.max(1, Math.ceil((degrees[largest] ?? 1) / 2));
  }
  return degrees;
}

export function coordinatesOf(rank: number, degrees: number[]): number[] {
  const out: number[] = [];
  let rest = rank;
  for (let i = degrees.length - 1; i >= 0; i -= 1) {
    out[i] = rest % (degrees[i] ?? 1);
    rest = Math.floor(rest / (degrees[i] ?? 1));
  }
  return out;
}

function placeOf(axes: Axis[], owns: Own[], coordinates: number[], chosen: number): Place {
  const place: Place = { part: 0, parts: 1, held: true, gathered: false, rebuilt: false, host: false };
  axes.forEach((axis, index) => {
    const own = owns[index] ?? { cut: axis.cut, mode: 'R' as Mode };
    const at = coordinates[index] ?? 0;
    if (own.cut === 'layer') {
      if (at !== chosen) place.held = false;
      return;
    }
    if (own.mode === 'M') place.rebuilt = true;
    if (own.mode === 'S*') place.gathered = true;
    if (own.mode === 'O') place.host = true;
    if (own.mode === 'S' || own.mode === 'S*' || own.mode === 'O') {
      place.part = place.part * axis.degree + at;
      place.parts *= axis.degree;
    }
  });
  return place;
}

function textOf(place: Place, of: State): string {
  if (!place.held) return 'nothing: another stage has it';
  if (place.rebuilt) return 'nothing at rest: rebuilt when needed';
  const part = place.parts === 1 ? 'the whole' : `part ${place.part + 1} of ${place.parts}`;
  return `${part} of its ${of}${place.host ? ', in host memory' : ''}${place.gathered ? ', gathered whole for use' : ''}`;
}

function Cell({ place, rank, x, y, size, chosen, peer, of }: {
  place: Place; rank: number; x: number; y: number; size: number; chosen: boolean; peer: boolean; of: State;
}) {
  const inner = size - 8;
  const tall = size - 21; // below it stands which part this is
  const slots = Math.min(place.parts, 8);
  const share = Math.max(0.24, 1 / slots);
  const slot = slots === 1 ? 0 : ((place.part % slots) / (slots - 1)) * (1 - share);
  const colour = kPartColours[place.part % kPartColours.length] ?? 'var(--blue)';
  const empty = !place.held || place.rebuilt;
  return (
    <g
      class="device" opacity={place.held ? 1 : 0.5} role="button" tabindex={chosen ? 0 : -1} aria-pressed={chosen} data-rank={rank}
      aria-label={`device ${rank}: ${textOf(place, of)}`}
      onClick={() => { device.value = rank; }}
      onKeyDown={(event) => {
        const moves: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1 };
        const by = moves[event.key];
        if (by === undefined) return;
        event.preventDefault();
        const next = event.currentTarget.parentElement?.querySelector<SVGGElement>(`[data-rank="${rank + by}"]`);
        if (next) { device.value = rank + by; next.focus(); }
      }}
    >
      <title>{`device ${rank}: ${textOf(place, of)}`}</title>
      <rect class="frame" x={x} y={y} width={size} height={size} rx={4} fill="var(--card)"
        stroke={chosen ? 'var(--text)' : peer ? 'var(--accent)' : 'var(--line)'} stroke-width={chosen || peer ? 2.5 : 1} />
      {place.held && place.rebuilt && <rect x={x + 4} y={y + 4} width={inner} height={tall} rx={2} fill="url(#rebuilt)" />}
      {!empty && place.gathered && <rect x={x + 4.5} y={y + 4.5} width={inner - 1} height={tall - 1} rx={2} fill="none" stroke={colour} stroke-dasharray="3 3" />}
      {!empty && !place.gathered && place.parts > 1 && <rect x={x + 4} y={y + 4} width={inner} height={tall} rx={2} fill="var(--faint)" />}
      {!empty && <rect x={x + 4} y={y + 4 + tall * slot} width={inner} height={tall * share} rx={1.5} fill={colour} opacity={place.host ? 0.4 : 1} />}
      <text x={x + size / 2} y={y + size - 5} text-anchor="middle" font-size="11" font-weight="600">
        {empty ? (place.held ? 'M' : '–') : place.parts === 1 ? 'all' : size > 38 ? `${place.part + 1}/${place.parts}` : place.part + 1}
      </text>
    </g>
  );
}

interface Grid { columns: number; size: number; gap: number }

function gridOf(degrees: number[], width: number): Grid {
  let columns = 1;
  for (let i = degrees.length - 1; i >= 0 && columns * (degrees[i] ?? 1) <= (width < 520 ? 8 : 16); i -= 1) columns *= degrees[i] ?? 1;
  const gap = 6;
  return { columns, size: Math.max(34, Math.min(58, Math.floor((width - 70) / columns) - gap)), gap };
}

function Devices({ axes, owns, width }: { axes: Axis[]; owns: Own[]; width: number }) {
  const degrees = shownDegrees(axes);
  const total = degrees.reduce((a, b) => a * b, 1);
  const { columns, size, gap } = gridOf(degrees, width);
  const rows = Math.ceil(total / columns);
  const inner = degrees.at(-1) ?? 1;
  const chosen = Math.min(device.value, total - 1);
  const own = coordinatesOf(chosen, degrees);
  const meeting = messagesOf(derived.value.document, state.value)[message.value];
  const isPeer = (coordinates: number[]) => meeting !== undefined &&
    axes.every((axis, index) => meeting.axes.includes(axis.axis) || coordinates[index] === own[index]);
  const spread = columns / inner;
  const wide = 70 + columns * (size + gap) + (spread - 1) * 8;
  const names = axes.map((axis) => axis.axis);
  const inRow = axes.map((_, index) => degrees.slice(index).reduce((a, b) => a * b, 1) <= columns);
  const height = rows * (size + gap) + 20;
  const said = (rank: number, which: (index: number) => boolean) => {
    const coordinates = coordinatesOf(rank, degrees);
    return names.map((name, index) => (which(index) ? `${name} ${coordinates[index] ?? 0}` : '')).filter((text) => text !== '').join(' ');
  };
  return (
    <svg width={wide} height={height} viewBox={`0 0 ${wide} ${height}`} role="group" aria-label={`${plural(total, 'device')} of the mesh; arrow keys move between them`}>
      <defs>
        <pattern id="rebuilt" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <rect width="2" height="6" fill="var(--soft)" />
        </pattern>
      </defs>
      {Array.from({ length: spread }, (_, group) => {
        const own = said(group * inner, (index) => inRow[index] === true && index < names.length - 1);
        return (
          <text class="soft" key={group} x={70 + group * (inner * (size + gap) + 8)} y={11} font-size="11">
            {inner === 1 ? own : `${own}${own === '' ? '' : ', '}${names.at(-1) ?? ''} →`}
          </text>
        );
      })}
      {Array.from({ length: rows }, (_, row) => {
        const label = said(row * columns, (index) => inRow[index] !== true);
        return <text class="soft" key={row} x={0} y={20 + row * (size + gap) + size / 2 + 4} font-size="11">{label.slice(0, 13)}</text>;
      })}
      {Array.from({ length: total }, (_, rank) => {
        const coordinates = coordinatesOf(rank, degrees);
        const column = rank % columns;
        return (
          <Cell key={rank} rank={rank} of={state.value} place={placeOf(axes, owns, coordinates, Math.min(stage.value, 1e6))}
            x={70 + column * (size + gap) + Math.floor(column / inner) * 8} y={20 + Math.floor(rank / columns) * (size + gap)} size={size}
            chosen={rank === chosen} peer={isPeer(coordinates)} />
        );
      })}
    </svg>
  );
}

/** Messages that move this state, the largest first. */
function messagesOf(document: Derivation | null, of: State): Message[] {
  const classes = document?.communication?.classes ?? [];
  const busiest = classes.reduce<(typeof classes)[number] | undefined>(
    (a, b) => (a === undefined || b.sent_bytes > a.sent_bytes ? b : a), undefined);
  return (busiest?.terms ?? []).filter((term) => term.state === of).sort((a, b) => b.sent_bytes - a.sent_bytes).slice(0, 30);
}

function Moves({ messages }: { messages: Message[] }) {
  if (messages.length === 0) return <p class="soft">No collective moves it: every device has what it needs of its {state.value}.</p>;
  return (
    <Table
      caption={`Collectives that move ${state.value}; choose one to see who meets`} rows={messages}
      chosen={(term) => messages[message.value] === term}
      columns={[
        { name: 'collective', of: (term) => (
          <button type="button" class="plain" aria-pressed={messages[message.value] === term}
            onClick={() => { message.value = messages[message.value] === term ? -1 : messages.indexOf(term); }}>
            {term.collective.replaceAll('_', ' ')} over {term.axes.join(' × ')}
          </button>
        ) },
        { name: 'of', of: (term) => (term.unit && !term.what.startsWith(term.unit) ? `${term.what} of ${term.unit}` : term.what) },
        { name: 'when', of: (term) => term.phase },
        { name: 'group', number: true, of: (term) => term.group },
        { name: 'calls', number: true, of: (term) => term.count },
        { name: 'sent', number: true, of: (term) => bytes(term.sent_bytes) },
        { name: 'link', of: (term) => linkOf(term) },
      ]}
    />
  );
}

function Modes({ axes }: { axes: Axis[] }) {
  const special = axes.flatMap((axis) => Object.entries(axis.classes)
    .map(([kind, own]) => ({ ...axis, axis: `${axis.axis}, ${kind}`, ...own })));
  return (
    <Table
      caption="The placement: how each state lives along each axis" rows={[...axes, ...special]}
      columns={[
        { name: 'axis', of: (axis) => <span class="mono">{axis.axis}</span> },
        { name: 'degree', number: true, of: (axis) => axis.degree },
        { name: 'divides', of: (axis) => axis.cut },
        ...kStates.map((own) => ({
          name: own, of: (axis: Axis) => <abbr title={kModes[axis.modes[own]]} style={{ textDecoration: 'none', fontWeight: own === state.value ? 700 : 400 }}>{axis.modes[own]}</abbr>,
        })),
        { name: 'link', of: (axis) => axis.link },
      ]}
    />
  );
}

export function MeshView() {
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const document = derived.value.document;
  const sheet: ModelSheet | null = modelled.value.document;
  const axes = document?.mesh ?? [];
  if (document === null) return null;
  if (axes.length === 0) {
    return <Section title="No mesh"><Findings findings={document.findings} /></Section>;
  }
  const tensors = (sheet?.tensors ?? []).slice(0, 400);
  const usual = Math.max(0, tensors.findIndex((one) => one.count > 1 && one.shape.length > 1));
  const index = tensors[tensor.value] === undefined ? usual : tensor.value;
  const own = tensors[index];
  const owns = axes.map((axis) => ownOf(axis, state.value, own?.class ?? ''));
  const layers = axes.filter((_, index) => owns[index]?.cut === 'layer');
  const stages = layers.reduce((n, axis) => n * axis.degree, 1);
  const degrees = shownDegrees(axes);
  const total = degrees.reduce((a, b) => a * b, 1);
  const rank = Math.min(device.value, total - 1);
  const here = placeOf(axes, owns, coordinatesOf(rank, degrees), stage.value);
  return (
    <Section title="Where the training state lives" aside={<SaveButtons place={place} name="mesh" />}>
      <div class="row" style={{ gap: '10px 18px' }}>
        <fieldset class="choice" style={{ margin: 0, padding: 0 }}>
          <legend class="unseen">State</legend>
          {kStates.map((name) => (
            <label key={name}>
              <input type="radio" name="state" checked={state.value === name} onChange={() => { state.value = name; message.value = -1; }} />{name}
            </label>
          ))}
        </fieldset>
        {tensors.length > 0 && (
          <label class="row" style={{ minWidth: 0, maxWidth: '100%' }}>
            <span class="label">of tensor</span>
            <select value={index} style={{ maxWidth: '100%', minWidth: 0 }} onChange={(event) => { tensor.value = Number(event.currentTarget.value); }}>
              {tensors.map((one, index) => <option value={index} key={index}>{one.name.replace('{}', 'n')} ({one.shape.join(' × ')})</option>)}
            </select>
          </label>
        )}
        {stages > 1 && (
          <label class="row">
            <span class="label">in a layer of stage</span>
            <select value={Math.min(stage.value, stages - 1)} onChange={(event) => { stage.value = Number(event.currentTarget.value); }}>
              {Array.from({ length: Math.min(stages, 512) }, (_, index) => <option value={index} key={index}>{index}</option>)}
            </select>
          </label>
        )}
      </div>
      <p aria-live="polite">
        Device {rank} has {textOf(here, state.value)}
        {own !== undefined && here.held && !here.rebuilt && state.value === 'parameters' && here.parts > 1
          ? `: ${whole(Math.ceil(own.shape.reduce((a, b) => a * b, 1) / here.parts))} of ${whole(own.shape.reduce((a, b) => a * b, 1))} elements` : ''}.
      </p>
      <div ref={place}>
        <div class="scroll"><Devices axes={axes} owns={owns} width={width} /></div>
      </div>
      {total < document.devices && <p class="small soft">{total} of {whole(document.devices)} devices are drawn: long axes are cut short, the pattern goes on.</p>}
      <Moves messages={messagesOf(document, state.value)} />
      <Modes axes={axes} />
      <p class="small soft legend">
        {Object.entries(kModes).map(([mode, meaning]) => <span key={mode}><strong>{mode}</strong> {meaning}</span>)}
      </p>
    </Section>
  );
}
