// Keeps the page's own files, so that it opens without a network once it was seen.
const kName = 'placet-VERSION';
const kFiles = ['./', 'engine.wasm', 'catalogue.json', 'dialects.json', 'placet.webmanifest'];

self.addEventListener('install', (event) => {
  event.waitUntil(caches.open(kName).then((cache) => cache.addAll(kFiles)).then(() => self.skipWaiting()));
});
self.addEventListener('activate', (event) => {
  event.waitUntil(caches.keys().then((names) =>
    Promise.all(names.filter((name) => name.startsWith('placet-') && name !== kName).map((name) => caches.delete(name)))));
});
self.addEventListener('fetch', (event) => {
  if (event.request.method !== 'GET') return;
  event.respondWith(caches.match(event.request, { ignoreSearch: true }).then((known) => known ?? fetch(event.request)));
});
