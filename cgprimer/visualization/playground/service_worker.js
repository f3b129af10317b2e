// Keeps the files of one version of the playground, so that the next visit needs no network. The
// version is a hash of all files: another version has another cache.
const CACHE = "cgprimer-playground-{{ version }}";
const FILES = {{ files }};
// Libraries are loaded when needed. Pages of others cannot fill the cache: it accepts neither pages
// nor other versions of an address.
const isLibrary = ({ mode, url }) => mode !== "navigate" && /\.(zip\?v={{ version }}|whl)$/.test(url);
self.addEventListener("install", event => event.waitUntil(caches.open(CACHE).then(cache => cache.addAll(
  FILES.map(file => new Request(file, { cache: file.startsWith("https:") ? "default" : "no-cache" }))))));
self.addEventListener("activate", event => event.waitUntil((async () => {
  for (const name of await caches.keys())
    if (name.startsWith("cgprimer-playground-") && name !== CACHE) await caches.delete(name);
  await self.clients.claim();
})()));
async function answer(request) {
  const cache = await caches.open(CACHE), address = request.url.split("#")[0];
  const page = request.mode === "navigate" ? address.split("?")[0] : address;
  const kept = await cache.match(page);
  if (kept) return kept;
  const response = await fetch(request);
  if (response.ok && response.type !== "opaque" && isLibrary(request)) cache.put(address, response.clone());
  return response;
}
self.addEventListener("fetch", event => {
  if (event.request.method === "GET") event.respondWith(answer(event.request));
});
