// Small parts that several views share.
import type { ComponentChildren } from 'preact';
import type { Fault, Finding, Fit } from '../answers.ts';
import { firstLine } from '../words.ts';

export const gradeClass = (fit: Fit) => (fit === 'fits' ? 'fits' : fit === 'tight' ? 'tight' : 'bad');

export function Grade({ fit }: { fit: Fit }) {
  const kind = gradeClass(fit);
  const mark = kind === 'fits' ? '✓' : kind === 'tight' ? '▲' : '✕';
  const text = kind === 'fits' ? 'Fits' : kind === 'tight' ? 'Tight' : 'Does not fit';
  return <span class={`grade ${kind}`}><span aria-hidden="true">{mark}</span>{text}</span>;
}

export function Findings({ findings }: { findings: Finding[] }) {
  if (findings.length === 0) return null;
  return (
    <ul class="findings">
      {findings.slice(0, 40).map((finding, index) => (
        <li key={index}>
          <span class={`tag ${finding.severity}`}>{finding.severity}</span>
          <span>
            {finding.message}
            <span class="soft"> ({finding.rule}{finding.where === '' ? '' : `, ${finding.where}`})</span>
            {finding.cure !== '' && <> <strong>{finding.cure}</strong></>}
          </span>
        </li>
      ))}
    </ul>
  );
}

export function FaultText({ fault }: { fault: Fault | null }) {
  if (fault === null) return null;
  return <p class="wrong" role="alert">{firstLine(fault.message)}</p>;
}

export function Swatch({ colour }: { colour: string }) {
  return <span class="swatch" aria-hidden="true" style={{ background: colour }} />;
}

export function Section({ title, aside, children }: {
  title: string; aside?: ComponentChildren; children: ComponentChildren;
}) {
  return (
    <section class="card stack">
      <div class="row between"><h2>{title}</h2>{aside}</div>
      {children}
    </section>
  );
}

export interface Column<Row> {
  name: string;
  number?: boolean;
  of(row: Row): ComponentChildren;
}

/** A table that scrolls by itself where it is wider than the page. */
export function Table<Row>({ caption, columns, rows, chosen }: {
  caption: string; columns: Column<Row>[]; rows: Row[]; chosen?: (row: Row) => boolean;
}) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>{columns.map((column) => <th scope="col" class={column.number ? 'number' : ''} key={column.name}>{column.name}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index} class={chosen?.(row) ? 'chosen' : ''}>
              {columns.map((column) => <td class={column.number ? 'number' : ''} key={column.name}>{column.of(row)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
