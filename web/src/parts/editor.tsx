// The text of a placement, with the engine's own words under the character that they are about.
import { autocompletion, completionKeymap, type CompletionContext } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { lintKeymap, setDiagnostics, type Diagnostic } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import { EditorView, keymap } from '@codemirror/view';
import { useEffect, useRef } from 'preact/hooks';
import names from 'virtual:names';
import type { Fault, Finding } from '../answers.ts';
import { axesOf } from '../placement.ts';
import { firstLine } from '../words.ts';

const kAxes = [
  ['dp', 'data parallelism: each coordinate has samples of its own'],
  ['tp', 'tensor parallelism: matrices are cut'],
  ['pp', 'pipeline parallelism: layers are divided into stages'],
  ['cp', 'context parallelism: sequences are cut'],
  ['ep', 'expert parallelism: experts are divided'],
] as const;
const kOptions = ['sp', 'keep', 'offload'];

function completions(context: CompletionContext) {
  const term = context.matchBefore(/[:+][\w-]*$/);
  if (term !== null) {
    return {
      from: term.from + 1,
      options: [
        ...names.strategies.map((label) => ({ label, type: 'keyword', detail: 'strategy' })),
        ...names.schedules.map((label) => ({ label, type: 'function', detail: 'schedule' })),
        ...names.attention.map((label) => ({ label, type: 'variable', detail: 'attention' })),
        ...kOptions.map((label) => ({ label, type: 'property', detail: 'option' })),
      ],
      validFor: /^[\w-]*$/,
    };
  }
  const word = context.matchBefore(/(^|\s)[a-z]*$/);
  if (word === null || (word.text.trim() === '' && !context.explicit)) return null;
  return {
    from: word.to - word.text.trimStart().length,
    options: kAxes.map(([name, detail]) => ({ label: `${name}=`, type: 'type', detail })),
    validFor: /^[a-z]*$/,
  };
}

/** Where a message says that it is: "placement, character 6". */
function placeOf(fault: Fault, text: string): { from: number; to: number } | null {
  const match = /placement.*character (\d+)/.exec(fault.where || fault.message);
  if (match === null) return null;
  const from = Math.min(Math.max(0, Number(match[1]) - 1), text.length);
  const size = fault.value === '' ? 1 : fault.value.length;
  return { from, to: Math.min(text.length, from + size) };
}

export function saysOfPlacement(fault: Fault | null): boolean {
  return fault !== null && /placement/.test(fault.where || fault.message);
}

function diagnosticsOf(text: string, fault: Fault | null, findings: Finding[]): Diagnostic[] {
  if (fault !== null) {
    const place = placeOf(fault, text);
    if (place === null) return [];
    const actions = fault.nearest === '' || fault.value === '' ? [] : [{
      name: `Write ${fault.nearest}`,
      apply: (view: EditorView, from: number, to: number) =>
        view.dispatch({ changes: { from, to, insert: fault.nearest } }),
    }];
    return [{ ...place, severity: 'error' as const, message: firstLine(fault.message), actions }];
  }
  const axes = axesOf(text);
  return findings.filter((finding) => finding.severity === 'error').flatMap((finding) => {
    const name = /axis (\w+)/.exec(finding.where)?.[1];
    const axis = axes.find((one) => one.name === name);
    if (axis === undefined) return [];
    return [{ from: axis.begin, to: axis.end, severity: 'warning' as const, message: finding.message }];
  });
}

export interface EditorProps {
  text: string;
  read(): string; // what `text` is by now: keys may have come since the page was drawn
  label: string;
  fault: Fault | null;
  findings: Finding[];
  onChange(text: string): void;
}

export function PlacementEditor({ text, read, label, fault, findings, onChange }: EditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const change = useRef(onChange);
  change.current = onChange;

  useEffect(() => {
    if (place.current === null) return undefined;
    const own = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: text,
        extensions: [
          history(),
          autocompletion({ override: [completions], icons: false }),
          keymap.of([...completionKeymap, ...historyKeymap, ...lintKeymap, ...defaultKeymap]),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false', autocapitalize: 'off' }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) change.current(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = own;
    return () => own.destroy();
  }, []);

  useEffect(() => {
    const own = view.current;
    const now = read();
    if (own === null || own.state.doc.toString() === now) return;
    own.dispatch({ changes: { from: 0, to: own.state.doc.length, insert: now } });
  }, [text]);

  useEffect(() => {
    const own = view.current;
    if (own === null) return;
    own.dispatch(setDiagnostics(own.state, diagnosticsOf(own.state.doc.toString(), fault, findings)));
  }, [text, fault, findings]);

  return <div class="editor" ref={place} />;
}
