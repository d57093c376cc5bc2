// The answer in a sentence, and the figures that people ask for first.
import type { Derivation, Timeline } from '../answers.ts';
import { FaultText, Grade, gradeClass } from '../parts/common.tsx';
import { derived, started, timed } from '../work.ts';
import { bytes, count, percent, seconds } from '../words.ts';

function sentenceOf(document: Derivation, time: Timeline | null): string {
  const memory = document.memory;
  if (memory === undefined) return 'The placement has no meaning as written: no figures.';
  const used = memory.reserved_bytes + memory.outside_bytes;
  const broken = document.findings.filter((finding) => finding.severity === 'error').length;
  const fits = memory.fit === 'does not fit'
    ? `needs ${bytes(used)} of the ${bytes(memory.capacity_bytes)} that a device has`
    : `takes ${bytes(used)} of ${bytes(memory.capacity_bytes)} per device (${percent(used / memory.capacity_bytes)})`;
  const step = time?.step_seconds === undefined ? '' :
    `, ${seconds(time.simulated.step_seconds)} per step: ${count(time.tokens_per_second)} tokens/s` +
    `${time.mfu === null ? '' : ` at ${percent(time.mfu)} of peak`}. Most of the step is ${time.binds}`;
  const rules = broken === 0 ? '' : ` ${broken === 1 ? 'One rule is' : `${broken} rules are`} broken.`;
  return `${document.model.name} on ${document.devices} devices ${fits}${step}.${rules}`;
}

export function Headline() {
  const { document, fault, busy } = derived.value;
  const time = timed.value.document;
  if (started.value !== 'loading' && started.value !== 'ready') {
    return (
      <section class="card answer bad" aria-label="Answer">
        <p class="sentence" role="alert">The engine did not start: {started.value}</p>
      </section>
    );
  }
  if (fault !== null) {
    return (
      <section class="card answer bad" aria-label="Answer" aria-live="polite">
        <p class="row"><span class="grade bad"><span aria-hidden="true">✕</span>Not understood</span></p>
        <FaultText fault={fault} />
      </section>
    );
  }
  if (document === null) {
    return (
      <section class="card answer" aria-label="Answer" aria-live="polite">
        <p class="sentence soft busy">{started.value === 'loading' ? 'Starting the engine …' : 'Working it out …'}</p>
      </section>
    );
  }
  const fit = document.memory?.fit ?? 'does not fit';
  const broken = document.findings.some((finding) => finding.severity === 'error');
  const kind = broken ? 'bad' : gradeClass(fit);
  return (
    <section class={`card answer ${kind}${busy ? ' stale' : ''}`} aria-label="Answer" aria-live="polite">
      <p class="row">
        {document.memory !== undefined && <Grade fit={fit} />}
        {broken && <span class="grade bad"><span aria-hidden="true">✕</span>Rules broken</span>}
        <code class="soft">{document.placement}</code>
      </p>
      <p class="sentence">{sentenceOf(document, time)}</p>
      <dl class="figures" style={{ margin: 0 }}>
        <Figure name="step" text={time?.step_seconds === undefined ? '–' : seconds(time.simulated.step_seconds)} />
        <Figure name="tokens/s per device" text={time?.step_seconds === undefined ? '–' : count(time.tokens_per_second_per_device)} />
        <Figure name="MFU" text={time?.step_seconds === undefined || time.mfu === null ? '–' : percent(time.mfu)} />
        <Figure name="memory per device" text={document.memory === undefined ? '–' : bytes(document.memory.reserved_bytes + document.memory.outside_bytes)} />
        <Figure name="sent per device" text={document.communication === undefined ? '–' : bytes(document.communication.sent_bytes)} />
      </dl>
    </section>
  );
}

function Figure({ name, text }: { name: string; text: string }) {
  return <div><dt>{name}</dt><dd>{text}</dd></div>;
}
