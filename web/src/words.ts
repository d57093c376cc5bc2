// Figures for people.

function rounded(value: number): string {
  if (value === 0) return '0';
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function scaled(value: number, units: readonly string[]): string {
  let index = 0;
  let rest = Math.abs(value);
  while (rest >= 999.5 && index < units.length - 1) {
    rest /= 1000;
    index += 1;
  }
  const digits = index === 0 && Number.isInteger(rest) ? String(rest) : rounded(rest);
  return `${value < 0 ? '-' : ''}${digits} ${units[index] ?? ''}`.trim();
}

export const bytes = (value: number) => scaled(value, ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB']);
export const count = (value: number) => scaled(value, ['', 'k', 'M', 'B', 'T', 'P']).replace(' ', ' ');
export const whole = (value: number) => value.toLocaleString('en-US');
export const percent = (part: number) => {
  const value = part * 100;
  if (value > 0 && value < 0.05) return '< 0.1 %';
  return `${value >= 10 || value === 0 ? value.toFixed(0) : value.toFixed(1)} %`;
};

export function seconds(value: number): string {
  if (value === 0) return '0 s';
  if (value >= 1) return `${rounded(value)} s`;
  if (value >= 1e-3) return `${rounded(value * 1e3)} ms`;
  if (value >= 1e-6) return `${rounded(value * 1e6)} µs`;
  return `${rounded(value * 1e9)} ns`;
}

export const plural = (n: number, one: string, more = `${one}s`) => `${whole(n)} ${n === 1 ? one : more}`;

/** A message without the lines that show the place: the page marks it where it stands. */
export const firstLine = (text: string) => text.split('\n')[0] ?? '';
