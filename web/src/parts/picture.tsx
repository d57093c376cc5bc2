// Pictures of charts as files: an SVG with its colours written out, or that as PNG.
import type { RefObject } from 'preact';

const kScale = 2;

function plain(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const from = [svg, ...svg.querySelectorAll('*')];
  const to = [copy, ...copy.querySelectorAll('*')];
  from.forEach((element, index) => {
    const style = getComputedStyle(element);
    const target = to[index] as SVGElement;
    for (const name of ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'font-size', 'font-weight', 'font-family', 'opacity', 'text-anchor']) {
      target.style.setProperty(name, style.getPropertyValue(name));
    }
    target.removeAttribute('tabindex');
  });
  const { width, height } = svg.getBoundingClientRect();
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  copy.setAttribute('width', String(width));
  copy.setAttribute('height', String(height));
  copy.style.background = getComputedStyle(document.body).backgroundColor;
  return new XMLSerializer().serializeToString(copy);
}

export function save(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function saveSvg(place: RefObject<HTMLElement | null>, name: string): void {
  const svg = place.current?.querySelector('svg');
  if (svg) save(new Blob([plain(svg)], { type: 'image/svg+xml' }), `${name}.svg`);
}

async function savePng(place: RefObject<HTMLElement | null>, name: string): Promise<void> {
  const svg = place.current?.querySelector('svg');
  if (!svg) return;
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(plain(svg))}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = image.width * kScale;
  canvas.height = image.height * kScale;
  canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => blob && save(blob, `${name}.png`));
}

export function SaveButtons({ place, name }: { place: RefObject<HTMLElement | null>; name: string }) {
  return (
    <span class="row small">
      <button type="button" class="plain" aria-label={`Save ${name} as SVG`} onClick={() => saveSvg(place, name)}>SVG</button>
      <button type="button" class="plain" aria-label={`Save ${name} as PNG`} onClick={() => void savePng(place, name)}>PNG</button>
    </span>
  );
}
