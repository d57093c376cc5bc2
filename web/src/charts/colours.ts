// Colours that people with any colour vision tell apart (after Okabe and Ito, 2008), as names of the
// style sheet's variables, which are darker on light ground and lighter on dark. Charts never speak by
// colour alone: every part has its name beside it or in a table.
import type { Share } from '../answers.ts';

export const kShareColour: Record<Share, string> = {
  parameters: 'var(--blue)',
  optimizer: 'var(--orange)',
  gradients: 'var(--green)',
  activations: 'var(--pink)',
  transient: 'var(--sky)',
  overhead: 'var(--grey)',
};

/** Of a step's time. */
const kMessageColours = ['var(--orange)', 'var(--yellow)', 'var(--red)', 'var(--sky)'];
export function colourOfTime(kind: string, which = 0): string {
  switch (kind) {
    case 'compute':
      return 'var(--blue)';
    case 'bubble':
      return 'var(--grey)';
    case 'update':
      return 'var(--green)';
    case 'launch':
    case 'host':
      return 'var(--pink)';
    default:
      return kMessageColours[which % kMessageColours.length] ?? 'var(--orange)';
  }
}

/** Of what a device does, for pictures that are drawn pixel by pixel: red, green, blue. */
export const kDoingColours: Record<string, readonly [number, number, number]> = {
  forward: [70, 140, 205],
  recomputation: [140, 195, 235],
  backward: [0, 140, 105],
  weights: [105, 185, 160],
  collective: [225, 150, 20],
  gather: [240, 190, 90],
  launch: [190, 105, 155],
  send: [205, 110, 30],
  reduction: [225, 150, 20],
  wait: [165, 165, 160],
  update: [120, 90, 165],
  after_update: [240, 190, 90],
  host: [190, 105, 155],
};
export const kOtherDoing = [130, 130, 130] as const;

/** Of parts of a tensor: as many as are told apart; beyond, they come again and the number tells. */
export const kPartColours = [
  'var(--blue)', 'var(--orange)', 'var(--green)', 'var(--pink)', 'var(--sky)', 'var(--yellow)',
  'var(--red)', 'var(--grey)',
];
