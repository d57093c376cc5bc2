// How wide a place is, so that charts are drawn in the page's own pixels and text keeps its size.
import type { RefObject } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';

const kLeast = 240;

export function useWidth(place: RefObject<HTMLElement | null>, first = 640): number {
  const [width, setWidth] = useState(first);
  // After every render, as the place may come later than the view that asks.
  useLayoutEffect(() => {
    const own = place.current;
    if (own === null) return undefined;
    setWidth(Math.max(kLeast, Math.floor(own.clientWidth)));
    const watch = new ResizeObserver(([entry]) => {
      if (entry !== undefined) setWidth(Math.max(kLeast, Math.floor(entry.contentRect.width)));
    });
    watch.observe(own);
    return () => watch.disconnect();
  }, [place.current]);
  useLayoutEffect(() => {
    if (place.current !== null) setWidth(Math.max(kLeast, Math.floor(place.current.clientWidth)));
  });
  return width;
}
