// Very many slices of a few lanes, drawn as one row of pixels per lane that is then stretched: 10^5 boxes
// cost some milliseconds, whatever their number on a pixel. What is asked of them is found by halving.
import type { Slices } from '../answers.ts';
import { kDoingColours, kOtherDoing } from './colours.ts';

export interface GanttLane {
  stage: number;
  lane: number;
  name: string;
  slices: Int32Array; // positions, by their beginning
}

export interface Gantt {
  lanes: GanttLane[];
  begin: Float64Array;
  end: Float64Array;
  doing: Uint8Array;
  microBatch: Int32Array;
  colours: Uint32Array; // by doing and whether the micro-batch is odd
  doings: string[];
  total: number;
}

const rgba = (red: number, green: number, blue: number) =>
  (255 << 24) | (blue << 16) | (green << 8) | red;

export function ganttOf(document: Slices): Gantt {
  const { slices } = document;
  const lanes = new Map<number, number[]>();
  for (let i = 0; i < slices.begin.length; i += 1) {
    const key = (slices.stage[i] ?? 0) * 16 + (slices.lane[i] ?? 0);
    const own = lanes.get(key);
    if (own === undefined) lanes.set(key, [i]);
    else own.push(i);
  }
  const begin = Float64Array.from(slices.begin);
  const keys = [...lanes.keys()].sort((a, b) => a - b);
  const colours = new Uint32Array(document.doings.length * 2);
  document.doings.forEach((name, index) => {
    const [red, green, blue] = kDoingColours[name] ?? kOtherDoing;
    colours[2 * index] = rgba(red, green, blue);
    // Micro-batches of odd number are a little darker, so that neighbours are told apart.
    colours[2 * index + 1] = rgba(Math.round(red * 0.8), Math.round(green * 0.8), Math.round(blue * 0.8));
  });
  return {
    lanes: keys.map((key) => {
      const stage = Math.floor(key / 16);
      const lane = key % 16;
      const own = Int32Array.from(lanes.get(key) ?? []).sort((a, b) => (begin[a] ?? 0) - (begin[b] ?? 0));
      return { stage, lane, name: `stage ${stage}, ${document.lanes[lane] ?? ''}`, slices: own };
    }),
    begin,
    end: Float64Array.from(slices.end),
    doing: Uint8Array.from(slices.doing),
    microBatch: Int32Array.from(slices.micro_batch),
    colours,
    doings: document.doings,
    total: document.step_nanoseconds,
  };
}

/** The first slice of a lane that ends after a moment. */
function firstAfter(gantt: Gantt, lane: GanttLane, moment: number): number {
  let low = 0;
  let high = lane.slices.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((gantt.end[lane.slices[middle] ?? 0] ?? 0) > moment) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** One row of pixels of a lane between two moments; 0 where nothing is done. */
function paintRow(gantt: Gantt, lane: GanttLane, from: number, to: number, row: Uint32Array): void {
  const scale = row.length / (to - from);
  for (let i = firstAfter(gantt, lane, from); i < lane.slices.length; i += 1) {
    const slice = lane.slices[i] ?? 0;
    const begin = gantt.begin[slice] ?? 0;
    if (begin >= to) break;
    const first = Math.max(0, Math.floor((begin - from) * scale));
    const last = Math.min(row.length, Math.max(first + 1, Math.floor(((gantt.end[slice] ?? 0) - from) * scale)));
    const odd = (gantt.microBatch[slice] ?? 0) & 1;
    row.fill(gantt.colours[2 * (gantt.doing[slice] ?? 0) + odd] ?? 0, first, last);
  }
}

/** All lanes; `heights`: pixels of each lane, of which the last is left free. */
export function paint(gantt: Gantt, context: CanvasRenderingContext2D, from: number, to: number, height: number): void {
  const { width } = context.canvas;
  const image = context.createImageData(width, gantt.lanes.length * height);
  const pixels = new Uint32Array(image.data.buffer);
  const row = new Uint32Array(width);
  gantt.lanes.forEach((lane, index) => {
    row.fill(0);
    paintRow(gantt, lane, from, to, row);
    for (let y = 0; y < height - 1; y += 1) pixels.set(row, (index * height + y) * width);
  });
  context.putImageData(image, 0, 0);
}

export interface Label { lane: number; text: string; at: number; width: number }

/** Numbers of micro-batches where what is done for one, box after box, is wide enough to hold them. */
export function labelsOf(gantt: Gantt, from: number, to: number, width: number, least: number): Label[] {
  const scale = width / (to - from);
  const labels: Label[] = [];
  gantt.lanes.forEach((lane, index) => {
    for (let i = firstAfter(gantt, lane, from); i < lane.slices.length && labels.length < 3000; i += 1) {
      const slice = lane.slices[i] ?? 0;
      const begin = gantt.begin[slice] ?? 0;
      if (begin >= to) break;
      const micro = gantt.microBatch[slice] ?? -1;
      let last = slice;
      for (let next = lane.slices[i + 1]; next !== undefined && gantt.microBatch[next] === micro; next = lane.slices[i + 1]) {
        if ((gantt.begin[next] ?? 0) >= to) break;
        last = next;
        i += 1;
      }
      const wide = ((gantt.end[last] ?? 0) - begin) * scale;
      if (wide < least || micro < 0) continue;
      labels.push({ lane: index, text: String(micro), at: (begin - from) * scale, width: wide });
    }
  });
  return labels;
}

/** The slice of a lane at a moment; -1: none. */
export function sliceAt(gantt: Gantt, laneIndex: number, moment: number): number {
  const lane = gantt.lanes[laneIndex];
  if (lane === undefined) return -1;
  const slice = lane.slices[firstAfter(gantt, lane, moment)];
  return slice !== undefined && (gantt.begin[slice] ?? 0) <= moment ? slice : -1;
}
