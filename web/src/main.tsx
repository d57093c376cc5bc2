// The page: the job on the left, the answer in a sentence, and what stands behind it.
import { signal } from '@preact/signals';
import { render } from 'preact';
import { useErrorBoundary } from 'preact/hooks';
import { change, canRedo, canUndo, commandOf, fromLink, job, linkOf, redo, undo } from './job.ts';
import { Findings } from './parts/common.tsx';
import { Form } from './parts/form.tsx';
import { save } from './parts/picture.tsx';
import { handOver, kLargestSource } from './sources.ts';
import './style.css';
import { CheckView } from './views/check.tsx';
import { CompareView } from './views/compare.tsx';
import { ConfigView } from './views/config.tsx';
import { Headline } from './views/headline.tsx';
import { MemoryView } from './views/memory.tsx';
import { MeshView } from './views/mesh.tsx';
import { PlanView } from './views/plan.tsx';
import { TimeView } from './views/time.tsx';
import { begin, derived, tab, type Tab } from './work.ts';

const kTabs: { name: Tab; title: string; view: () => preact.JSX.Element | null }[] = [
  { name: 'memory', title: 'Memory and messages', view: MemoryView },
  { name: 'mesh', title: 'Mesh', view: MeshView },
  { name: 'time', title: 'Time', view: TimeView },
  { name: 'plan', title: 'Plan', view: PlanView },
  { name: 'compare', title: 'Compare', view: CompareView },
  { name: 'check', title: 'Check', view: CheckView },
  { name: 'config', title: 'Configurations', view: ConfigView },
];

const told = signal('');
let toldTimer: ReturnType<typeof setTimeout> | undefined;
function tell(text: string): void {
  told.value = text;
  clearTimeout(toldTimer);
  toldTimer = setTimeout(() => { told.value = ''; }, 4000);
}

async function copy(text: string, done: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    tell(done);
  } catch {
    tell('The browser does not let this page write to the clipboard.');
  }
}

function setTheme(theme: string): void {
  document.documentElement.dataset['theme'] = theme;
  try {
    localStorage.setItem('placet-theme', theme);
  } catch {
    // A page without storage forgets.
  }
}
function toggleTheme(): void {
  const now = document.documentElement.dataset['theme'] ??
    (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  setTheme(now === 'dark' ? 'light' : 'dark');
}

function subcommandOf(shown: Tab): string {
  return shown === 'time' ? 'simulate' : shown === 'plan' ? 'plan' : shown === 'check' ? 'check' : 'derive';
}

function Top() {
  return (
    <header class="top">
      <h1>Placet</h1>
      <p class="claim">What distributed training needs and costs, worked out in this tab. Nothing is sent anywhere.</p>
      <div class="buttons">
        <button type="button" onClick={undo} disabled={!canUndo.value} title="Undo the last change of the job">Undo</button>
        <button type="button" onClick={redo} disabled={!canRedo.value}>Redo</button>
        <button type="button" onClick={() => void copy(location.href.split('#')[0] + linkOf(job.value), 'Link copied: it holds the whole job.')}>Copy link</button>
        <button type="button" onClick={() => void copy(commandOf(subcommandOf(tab.value), job.value), 'Command copied.')}>Copy command</button>
        <button type="button" disabled={derived.value.document === null}
          onClick={() => save(new Blob([JSON.stringify(derived.value.document, null, 2)], { type: 'application/json' }), 'derivation.json')}>JSON</button>
        <button type="button" onClick={toggleTheme} aria-label="Switch between light and dark">◐</button>
      </div>
      <span class="small" role="status" aria-live="polite">{told.value}</span>
    </header>
  );
}

function Tabs() {
  const select = (event: KeyboardEvent, index: number) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    const next = kTabs[(index + step + kTabs.length) % kTabs.length];
    if (step === 0 || next === undefined) return;
    event.preventDefault();
    tab.value = next.name;
    document.getElementById(`tab-${next.name}`)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label="Views">
      {kTabs.map(({ name, title }, index) => (
        <button
          type="button" role="tab" id={`tab-${name}`} key={name} aria-controls="panel" aria-selected={tab.value === name}
          tabIndex={tab.value === name ? 0 : -1} onClick={() => { tab.value = name; }} onKeyDown={(event) => select(event, index)}
        >{title}</button>
      ))}
    </div>
  );
}

function Notes() {
  const document = derived.value.document;
  if (document === null) return null;
  return (
    <>
      {document.findings.length > 0 && tab.value !== 'time' && (
        <section class="card stack" aria-label="Findings"><h2>Findings</h2><Findings findings={document.findings} /></section>
      )}
      {document.training.notes.length > 0 && (
        <details class="small soft"><summary>What was assumed ({document.training.notes.length})</summary>
          <ul>{document.training.notes.map((note) => <li key={note}>{note}</li>)}</ul>
        </details>
      )}
    </>
  );
}

function View() {
  const [error, reset] = useErrorBoundary();
  const shown = kTabs.find(({ name }) => name === tab.value);
  if (error !== undefined) {
    return (
      <section class="card stack" role="alert">
        <p class="wrong">This view met a fault of ours: {String(error).slice(0, 300)}</p>
        <div><button type="button" onClick={reset}>Try again</button></div>
      </section>
    );
  }
  return (
    <div id="panel" role="tabpanel" aria-labelledby={`tab-${tab.value}`} class={`stack${derived.value.fault === null ? '' : ' faint'}`} tabIndex={-1} key={tab.value}>
      {shown !== undefined && <shown.view />}
    </div>
  );
}

function App() {
  const { milliseconds } = derived.value;
  return (
    <>
      <Top />
      <main class="page">
        <div class="side"><Form /></div>
        <div class="first"><Headline /></div>
        <div class="stack rest">
          <Tabs />
          <View />
          <Notes />
        </div>
      </main>
      <footer class="foot">
        {milliseconds > 0 ? `Worked out in ${milliseconds.toFixed(0)} ms by the same engine as the program placet. ` : ''}
        Figures follow from the placement by rules with sources; times are estimates.
      </footer>
    </>
  );
}

try {
  const theme = localStorage.getItem('placet-theme');
  if (theme === 'light' || theme === 'dark') setTheme(theme);
} catch {
  // as above
}
window.addEventListener('hashchange', () => {
  const own = fromLink(location.hash);
  if (own !== null) change(own, 'link');
});
window.addEventListener('keydown', (event) => {
  const typing = event.target instanceof Element && event.target.closest('.cm-editor, input, textarea') !== null;
  if (typing || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== 'z') return;
  event.preventDefault();
  if (event.shiftKey) redo();
  else undo();
});
// What is pasted where nobody types is a configuration.
window.addEventListener('paste', (event) => {
  const typing = event.target instanceof Element && event.target.closest('.cm-editor, input, textarea') !== null;
  const text = event.clipboardData?.getData('text/plain') ?? '';
  if (typing || text.trim() === '') return;
  event.preventDefault();
  handOver([{ file: 'pasted', text: text.slice(0, kLargestSource) }]);
});
// A file that misses the form must not take the place of the page.
for (const kind of ['dragover', 'drop'] as const) window.addEventListener(kind, (event) => event.preventDefault());

// Where the page is served, it is kept for times without a network, and may be installed.
if (location.protocol === 'https:' && 'serviceWorker' in navigator) {
  const link = document.createElement('link');
  link.rel = 'manifest';
  link.href = 'placet.webmanifest';
  document.head.append(link);
  void navigator.serviceWorker.register('offline.js').catch(() => {});
}

begin();
const root = document.getElementById('app');
if (root !== null) render(<App />, root);
