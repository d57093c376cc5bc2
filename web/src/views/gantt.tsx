// The pipeline as boxes: drag or arrow keys move, wheel or + and - zoom.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { scaleLinear } from 'd3-scale';
import type { Slices } from '../answers.ts';
import { kDoingColours } from '../charts/colours.ts';
import { ganttOf, labelsOf, paint, sliceAt, type Gantt } from '../charts/gantt.ts';
import { save } from '../parts/picture.tsx';
import { useWidth } from '../parts/width.ts';
import { seconds, whole } from '../words.ts';

const kLeft = 118;
const kTop = 22;
const kMostHeight = 640;
const kLeast = 18; // pixels that a number needs

interface Span { from: number; to: number }

function heightOf(gantt: Gantt): number {
  return Math.max(3, Math.min(22, Math.floor(kMostHeight / Math.max(1, gantt.lanes.length))));
}

function draw(gantt: Gantt, canvas: HTMLCanvasElement, over: HTMLCanvasElement, shown: Span, width: number): void {
  const height = heightOf(gantt);
  const inner = Math.max(10, width - kLeft);
  const tall = gantt.lanes.length * height;
  if (canvas.width !== inner) canvas.width = inner;
  if (canvas.height !== tall) canvas.height = tall;
  const context = canvas.getContext('2d');
  if (context !== null) paint(gantt, context, shown.from, shown.to, height);

  const ratio = Math.min(2, devicePixelRatio);
  over.width = width * ratio;
  over.height = (tall + kTop) * ratio;
  const text = over.getContext('2d');
  if (text === null) return;
  text.scale(ratio, ratio);
  text.clearRect(0, 0, width, tall + kTop);
  const style = getComputedStyle(over);
  text.font = `11px ${style.fontFamily}`;
  text.textBaseline = 'middle';
  const ink = style.color;
  const x = scaleLinear([shown.from, shown.to], [kLeft, width]);
  text.fillStyle = ink;
  text.globalAlpha = 0.75;
  for (const tick of x.ticks(Math.max(2, Math.floor(inner / 110)))) {
    const at = Math.min(x(tick), width - 34);
    text.textAlign = 'center';
    text.fillText(seconds(tick / 1e9), Math.max(kLeft + 24, at), kTop / 2);
    text.fillRect(x(tick), kTop - 4, 1, 4);
  }
  const every = Math.max(1, Math.ceil(13 / height));
  text.textAlign = 'left';
  gantt.lanes.forEach((lane, index) => {
    if (index % every === 0) text.fillText(lane.name.replace('stage ', '').slice(0, 20), 6, kTop + (index + 0.5) * height, kLeft - 10);
  });
  text.globalAlpha = 1;
  if (height < 12) return;
  text.textAlign = 'center';
  text.fillStyle = '#111';
  text.strokeStyle = 'rgba(255, 255, 255, 0.85)';
  text.lineWidth = 3;
  text.save();
  text.beginPath();
  text.rect(kLeft, kTop, inner, tall);
  text.clip();
  for (const label of labelsOf(gantt, shown.from, shown.to, inner, kLeast)) {
    const begin = Math.max(0, label.at);
    const end = Math.min(inner, label.at + label.width);
    if (end - begin < kLeast) continue;
    const at = [kLeft + (begin + end) / 2, kTop + (label.lane + 0.5) * height] as const;
    text.strokeText(label.text, ...at);
    text.fillText(label.text, ...at);
  }
  text.restore();
}

export function GanttChart({ document }: { document: Slices }) {
  const gantt = useMemo(() => ganttOf(document), [document]);
  const place = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const width = useWidth(place);
  const view = useRef<Span>({ from: 0, to: gantt.total });
  const frame = useRef(0);
  const [said, setSaid] = useState('');
  const height = heightOf(gantt) * gantt.lanes.length;

  const redraw = () => {
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(() => {
      if (canvas.current !== null && over.current !== null) draw(gantt, canvas.current, over.current, view.current, width);
    });
  };
  useEffect(() => {
    view.current = { from: 0, to: gantt.total };
  }, [gantt]);
  useEffect(redraw, [gantt, width]);

  const show = (from: number, size: number) => {
    const span = Math.min(gantt.total, Math.max(gantt.total * 1e-6, size));
    const begin = Math.min(Math.max(0, from), gantt.total - span);
    view.current = { from: begin, to: begin + span };
    redraw();
  };
  const zoom = (factor: number, part: number) => {
    const { from, to } = view.current;
    const moment = from + (to - from) * part;
    show(moment - (to - from) * factor * part, (to - from) * factor);
  };
  const inner = Math.max(10, width - kLeft);
  const partOf = (event: MouseEvent) => {
    const box = place.current?.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - (box?.left ?? 0) - kLeft) / inner));
  };

  useEffect(() => {
    // A listener that may keep the page from scrolling has to be made by hand.
    const own = place.current;
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY) && !event.shiftKey) {
        if (hasFocus(own)) event.preventDefault();
        else return;
      }
      event.preventDefault();
      const { from, to } = view.current;
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) show(from + ((to - from) * event.deltaX) / inner, to - from);
      else zoom(Math.exp(event.deltaY * 0.002), partOf(event));
    };
    own?.addEventListener('wheel', wheel, { passive: false });
    return () => own?.removeEventListener('wheel', wheel);
  });

  const drag = useRef<{ x: number; from: number } | null>(null);
  const point = (event: PointerEvent) => {
    if (drag.current !== null) {
      const { from, to } = view.current;
      const size = to - from;
      show(drag.current.from - ((event.clientX - drag.current.x) / inner) * size, size);
      return;
    }
    const box = place.current?.getBoundingClientRect();
    const lane = Math.floor((event.clientY - (box?.top ?? 0) - kTop) / heightOf(gantt));
    const { from, to } = view.current;
    const slice = sliceAt(gantt, lane, from + (to - from) * partOf(event));
    setSaid(slice < 0 ? '' : describe(gantt, lane, slice));
  };
  const keys = (event: KeyboardEvent) => {
    const { from, to } = view.current;
    const size = to - from;
    const moves: Record<string, () => void> = {
      ArrowLeft: () => show(from - size * 0.15, size),
      ArrowRight: () => show(from + size * 0.15, size),
      '+': () => zoom(0.7, 0.5),
      '=': () => zoom(0.7, 0.5),
      '-': () => zoom(1 / 0.7, 0.5),
      Home: () => show(0, gantt.total),
    };
    const move = moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    move();
  };
  const savePicture = () => {
    const own = window.document.createElement('canvas');
    own.width = width * 2;
    own.height = (height + kTop) * 2;
    const context = own.getContext('2d');
    if (context === null || canvas.current === null || over.current === null) return;
    context.fillStyle = getComputedStyle(window.document.body).backgroundColor;
    context.fillRect(0, 0, own.width, own.height);
    context.imageSmoothingEnabled = false;
    context.drawImage(canvas.current, kLeft * 2, kTop * 2, inner * 2, height * 2);
    context.drawImage(over.current, 0, 0, own.width, own.height);
    own.toBlob((blob) => blob && save(blob, 'pipeline.png'));
  };
  const used = gantt.doings.filter((_, index) => gantt.doing.includes(index));
  return (
    <>
      <div class="row between">
        <div class="legend">
          {used.map((name) => (
            <span key={name}><span class="swatch" aria-hidden="true" style={{ background: `rgb(${(kDoingColours[name] ?? []).join()})` }} />{name}</span>
          ))}
        </div>
        <span class="row">
          <button type="button" class="icon" aria-label="zoom in" onClick={() => zoom(0.5, 0.5)}>+</button>
          <button type="button" class="icon" aria-label="zoom out" onClick={() => zoom(2, 0.5)}>−</button>
          <button type="button" onClick={() => show(0, gantt.total)}>whole step</button>
          <button type="button" class="plain" onClick={savePicture}>PNG</button>
        </span>
      </div>
      <div
        class="gantt" ref={place} tabIndex={0} role="group" onKeyDown={keys} data-slices={gantt.begin.length}
        aria-label={`What each stage does over the step: ${whole(gantt.begin.length)} slices on ${gantt.lanes.length} lanes. Arrow keys move, plus and minus zoom, Home shows all. The table below has the sums.`}
        onPointerDown={(event) => { drag.current = { x: event.clientX, from: view.current.from }; event.currentTarget.setPointerCapture(event.pointerId); }}
        onPointerUp={() => { drag.current = null; }}
        onPointerMove={point}
        onPointerLeave={() => setSaid('')}
      >
        <canvas ref={canvas} style={{ marginLeft: `${kLeft}px`, marginTop: `${kTop}px`, width: `${inner}px`, height: `${height}px`, imageRendering: 'pixelated' }} />
        <canvas ref={over} class="over" style={{ width: `${width}px`, height: `${height + kTop}px` }} />
      </div>
      <p class="small soft" style={{ minHeight: '1.5em' }}>{said || 'Point at a box to read it. Drag to move; click it and turn the wheel to zoom.'}</p>
    </>
  );
}

const hasFocus = (place: HTMLElement | null) => place !== null && document.activeElement === place;

function describe(gantt: Gantt, lane: number, slice: number): string {
  const begin = gantt.begin[slice] ?? 0;
  const end = gantt.end[slice] ?? 0;
  const micro = gantt.microBatch[slice] ?? -1;
  const name = gantt.doings[gantt.doing[slice] ?? 0] ?? '';
  return `${gantt.lanes[lane]?.name ?? ''}: ${name}${micro < 0 ? '' : ` of micro-batch ${micro}`}, ` +
    `${seconds((end - begin) / 1e9)} from ${seconds(begin / 1e9)} to ${seconds(end / 1e9)}`;
}
