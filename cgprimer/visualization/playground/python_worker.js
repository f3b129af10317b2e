// Runs Python. Messages to the worker: first the addresses, then requests as JSON. Messages from the
// worker: progress, ready, the answer to a request, or a crash, after which the worker is useless.
let python = null, answerRequest = null, settings = null;
const SITE = "/site";
// Imports the modules that most requests need.
const WARM_UP = `
import json
from cgprimer.visualization.diagrams.dagre_layout import create_dagre_engine
from cgprimer.visualization.diagrams.layered_layout import lay_out_layers
from cgprimer.visualization.diagrams.layout_engines import set_layout_engine
from cgprimer.visualization.playground.playground_session import answer_request
set_layout_engine(lay_out_layers)
for view in ("summary", "graph", "trace", "methods"):
    answer_request(json.dumps({"view": view, "text": "input x = 1; y = a*x; parameter a = 2"}))
`;
async function fetchBytes(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address}: ${response.status} ${response.statusText}`);
  return response.arrayBuffer();
}
// After the first visit, the memory of Python with all modules imported is kept in the cache of the
// service worker. The next visit continues from there, which takes a sixth of the time.
const SNAPSHOT = "snapshot.bin";
const openCache = () => caches.open(`cgprimer-playground-${settings.version}`); // fails if storage is blocked
async function readSnapshot() {
  try {
    const response = await (await openCache()).match(SNAPSHOT);
    return response ? new Uint8Array(await response.arrayBuffer()) : null;
  } catch {
    return null;
  }
}
async function storeSnapshot(bytes) {
  try {
    await (await openCache()).put(SNAPSHOT, new Response(bytes));
  } catch { /* the next visit loads Python again */ }
}
async function deleteSnapshot() {
  try {
    await (await openCache()).delete(SNAPSHOT);
  } catch { /* blocked storage has no snapshot */ }
}
async function loadPython(loadPyodide, indexURL, snapshot) {
  if (!snapshot) return loadPyodide({ indexURL, _makeSnapshot: true });
  try {
    return await loadPyodide({ indexURL, _loadSnapshot: snapshot });
  } catch { // made by another version of the browser, or incomplete
    await deleteSnapshot();
    throw new Error("the files that this browser has kept are damaged");
  }
}
// Python's own layout has straighter main paths, fewer crossings, and takes less time for small graphs.
const SMALLEST_FOR_DAGRE = 100; // vertices
async function installLayoutEngine() {
  const { layOutWithDagre } = await import(`./dagre.js?v=${settings.version}`);
  python.globals.set("lay_out_with_dagre", layOutWithDagre);
  python.runPython(`set_layout_engine(create_dagre_engine(lay_out_with_dagre, ${SMALLEST_FOR_DAGRE}))`);
}
async function start() {
  const indexURL = new URL(settings.pyodide, self.location.href).href;
  const archive = fetchBytes(`cgprimer.zip?v=${settings.version}`);
  archive.catch(() => {}); // reported below
  const [{ loadPyodide }, snapshot] = await Promise.all([import(`${indexURL}pyodide.mjs`), readSnapshot()]);
  python = await loadPython(loadPyodide, indexURL, snapshot);
  python.unpackArchive(await archive, "zip", { extractDir: SITE }); // files are not part of a snapshot
  if (snapshot) python.runPython("import importlib; importlib.invalidate_caches()");
  else {
    python.runPython(`import sys; sys.path.insert(0, "${SITE}")\n` + WARM_UP);
    const bytes = python.makeMemorySnapshot(); // before Python refers to anything of JavaScript
    setTimeout(() => storeSnapshot(bytes), 3000);
  }
  await installLayoutEngine();
  answerRequest = python.globals.get("answer_request");
  self.postMessage({ ready: true });
}
async function loadLibrary(name) { // returns whether the library can be imported now
  self.postMessage({ progress: `Loading ${name} …` });
  try {
    if (name === "numpy") {
      if (settings.numpy === undefined) return false; // the folder has no wheel of numpy
      await python.loadPackage("numpy", { messageCallback: () => {}, errorCallback: () => {} });
    } else {
      python.unpackArchive(await fetchBytes(`sympy.zip?v=${settings.version}`), "zip", { extractDir: SITE });
      python.runPython("import importlib; importlib.invalidate_caches()");
    }
    return python.runPython(`import importlib.util; importlib.util.find_spec("${name}") is not None`);
  } catch {
    return false;
  } finally {
    self.postMessage({ progress: " " });
  }
}
async function answer(request) {
  const { load } = request.startsWith('{"load"') ? JSON.parse(request) : {};
  if (load) return JSON.stringify(await loadLibrary(load) ? {} : { error: { message: `${load} could not be loaded`, hint: "" } });
  const loaded = new Set();
  for (;;) {
    const text = answerRequest(request), { needs } = text.includes('"needs"') ? JSON.parse(text) : {};
    if (!needs || loaded.has(needs)) return text;
    loaded.add(needs);
    if (!await loadLibrary(needs)) return JSON.stringify({ needs, error: {
      message: needs !== "numpy" ? `${needs} could not be loaded`
        : settings.numpy === undefined ? "graphs with arrays need NumPy, which this copy of the playground does not contain"
          : "graphs with arrays need NumPy, which could not be loaded",
      hint: needs !== "numpy" ? "check the connection, and reload the page"
        : settings.numpy === undefined ? "replace the arrays by scalars, or ask the person who hosts this page to add NumPy"
          : "check the connection, and reload the page",
    } });
  }
}
self.onmessage = async ({ data }) => {
  try {
    if (data.pyodide) {
      settings = data;
      await start();
    } else self.postMessage({ answer: await answer(data.request) });
  } catch (error) {
    if (settings) await deleteSnapshot(); // it may be damaged
    self.postMessage({ crash: String(error?.message ?? error).trim().split("\n").at(-1).slice(0, 200) });
  }
};
