// The text of a placement and its parts, so that form and text stay in step. The engine reads it; this
// only finds where the axes stand.

export interface AxisText {
  name: string;
  degree: number;
  terms: string; // after the colon; empty: none
  begin: number;
  end: number;
}

/** The parts of a text between blanks that lie in no bracket. */
export function partsOf(text: string): { text: string; begin: number; end: number }[] {
  const parts: { text: string; begin: number; end: number }[] = [];
  let depth = 0;
  let begin = -1;
  for (let i = 0; i <= text.length; i += 1) {
    const letter = text[i] ?? ' ';
    if ('([{'.includes(letter)) depth += 1;
    if (')]}'.includes(letter)) depth -= 1;
    const blank = i === text.length || (depth <= 0 && /\s/.test(letter));
    if (!blank && begin < 0) begin = i;
    if (blank && begin >= 0) {
      parts.push({ text: text.slice(begin, i), begin, end: i });
      begin = -1;
    }
  }
  return parts;
}

export function axesOf(text: string): AxisText[] {
  const axes: AxisText[] = [];
  for (const part of partsOf(text)) {
    const match = /^([A-Za-z]\w*)=(\d{1,9})(\[[^\]]*\])?(?::(.*))?$/s.exec(part.text);
    if (match === null) continue;
    axes.push({
      name: match[1] ?? '',
      degree: Number(match[2]),
      terms: match[4] ?? '',
      begin: part.begin,
      end: part.end,
    });
  }
  return axes;
}

export const devicesOf = (text: string) => axesOf(text).reduce((n, axis) => n * axis.degree, 1);

/** The text with one axis changed; what stands around it stays. Shares go with the degree they are of. */
export function withAxis(text: string, axis: AxisText, degree: number, terms: string): string {
  const old = text.slice(axis.begin, axis.end);
  const shares = degree === axis.degree ? (/\[[^\]]*\]/.exec(old.split(':')[0] ?? '')?.[0] ?? '') : '';
  const own = `${axis.name}=${degree}${shares}${terms === '' ? '' : `:${terms}`}`;
  return text.slice(0, axis.begin) + own + text.slice(axis.end);
}

export function withoutAxis(text: string, axis: AxisText): string {
  return (text.slice(0, axis.begin).trimEnd() + ' ' + text.slice(axis.end).trimStart()).trim();
}

export const withNewAxis = (text: string, name: string, degree: number, terms: string) =>
  `${text.trim()} ${name}=${degree}${terms === '' ? '' : `:${terms}`}`.trim();
