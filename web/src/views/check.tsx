// Does the distributed step compute the update of a single device? The verdict, and where not, the
// counterexample on two devices.
import type { VerdictFinding } from '../answers.ts';
import { job } from '../job.ts';
import { FaultText, Findings, Section } from '../parts/common.tsx';
import { check, checked, isOfNow } from '../work.ts';
import { plural } from '../words.ts';

const kConditions: Record<string, string> = {
  gradient_integrity: 'every gradient is reduced exactly once',
  state_consistency: 'copies of a state agree',
  update_integrity: 'every parameter is updated once, from the right gradient',
  input_integrity: 'every sample is used once',
  order: 'messages meet in one order everywhere',
};

/** Words in lines that fit a box. */
function lines(text: string, width: number, most: number): string[] {
  const out: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/)) {
    if (line !== '' && line.length + word.length + 1 > width) {
      out.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  out.push(line);
  return out.length > most ? [...out.slice(0, most - 1), `${out[most - 1] ?? ''} …`] : out;
}

function Box({ x, title, text, good }: { x: number; title: string; text: string; good: boolean }) {
  return (
    <g>
      <rect x={x} y={4} width={300} height={104} rx={8} fill="none" stroke={good ? 'var(--green)' : 'var(--red)'} stroke-width={2} stroke-dasharray={good ? '0' : '6 3'} />
      <text x={x + 14} y={30} font-weight="650">{title}</text>
      {lines(text, 42, 3).map((line, index) => <text key={index} x={x + 14} y={54 + index * 17}>{line.slice(0, 46)}</text>)}
    </g>
  );
}

function Counterexample({ finding }: { finding: VerdictFinding }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Counterexample">
      <svg width={720} height={114} viewBox="0 0 720 114" role="img"
        aria-label={`A single device has ${finding.expected}; on ${finding.ranks === 'all' ? 'every rank' : `rank ${finding.ranks}`} there is ${finding.found}`}>
        <Box x={4} title="one device" text={finding.expected} good />
        <text x={358} y={64} text-anchor="middle" style={{ fontSize: '24px' }}>≠</text>
        <Box x={412} title={finding.ranks === 'all' ? 'every device of this job' : `device ${finding.ranks}`.slice(0, 40)} text={finding.found} good={false} />
      </svg>
    </div>
  );
}

export function CheckView() {
  const { document, fault, busy } = checked.value;
  const current = isOfNow(checked.value, 'check');
  const findings = document?.findings ?? [];
  const first = findings[0];
  return (
    <Section
      title="Is it still the training of a single device?"
      aside={<button type="button" class="main" disabled={busy} onClick={check}>Check</button>}
    >
      {busy && <p class="soft busy" aria-live="polite">Proving …</p>}
      {!busy && document === null && fault === null && (
        <p class="soft">The step of every device is written out and compared, over symbols that stand for all inputs, with two consecutive steps of one device.</p>
      )}
      <FaultText fault={fault} />
      {document !== null && !busy && !current && <p class="small soft">This verdict is of an earlier form of the job. <code>{job.value.placement}</code> is not checked yet.</p>}
      {document !== null && document.equivalent === undefined && <Findings findings={document.rules ?? []} />}
      {document?.equivalent !== undefined && (
        <>
          <p>
            <span class={`grade ${document.equivalent ? 'fits' : 'bad'}`}>
              <span aria-hidden="true">{document.equivalent ? '✓' : '✕'}</span>
              {document.equivalent ? 'Equivalent to single-device training' : 'Not equivalent to single-device training'}
            </span>{' '}
            <span class="soft">{plural(document.steps_checked ?? 0, 'step')} on {plural(document.devices ?? 0, 'device')}</span>
          </p>
          <ul class="conditions">
            {Object.entries(document.conditions ?? {}).map(([name, verdict]) => (
              <li key={name}>
                <span class={`mark ${verdict === 'holds' ? 'yes' : 'no'}`} aria-hidden="true">{verdict === 'holds' ? '✓' : '✕'}</span>
                <span>{kConditions[name] ?? name} <span class="soft">({name.replaceAll('_', ' ')}: {verdict})</span></span>
              </li>
            ))}
          </ul>
          {(document.methods ?? []).map((method) => (
            <p key={method.name + method.axis}><strong>{method.name}</strong> on {method.axis} changes the training on purpose: {method.because}; {method.keeps}.</p>
          ))}
          {first !== undefined && (
            <>
              <h3>{first.tensor}</h3>
              <Counterexample finding={first} />
              <p>{first.difference}{first.fix !== '' && <>. <strong>{first.fix}</strong></>}</p>
              <p class="small soft mono" style={{ overflowWrap: 'anywhere' }}>{first.at}</p>
              {document.cure?.found && <p>One change mends it: <code>{document.cure.change}</code></p>}
              {findings.length > 1 && (
                <details>
                  <summary>{plural(findings.length, 'finding')}</summary>
                  <ul>{findings.slice(0, 60).map((finding, index) => <li key={index}><code>{finding.tensor}</code>: {finding.difference}</li>)}</ul>
                </details>
              )}
            </>
          )}
          <Findings findings={document.rules ?? []} />
        </>
      )}
    </Section>
  );
}
