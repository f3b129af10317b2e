// Runs Python. Messages to the worker: first the addresses, then requests as JSON. Messages from the
// worker: progress, ready, the answer to a request, or a crash, after which the worker is useless.
let python = null, answerRequest = null, settings = null;
const SITE = "/site";
async function fetchBytes(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address}: ${response.status} ${response.statusText}`);
  return response.arrayBuffer();
}
async function start() {
  const address = new URL(settings.pyodide, self.location.href).href;
  const archive = fetchBytes(`cgprimer.zip?v=${settings.version}`);
  archive.catch(() => {}); // reported below
  const { loadPyodide } = await import(`${address}pyodide.mjs`);
  python = await loadPyodide({ indexURL: address, env: { HOME: "/home/pyodide", PYTHONNOUSERSITE: "1" } });
  python.unpackArchive(await archive, "zip", { extractDir: SITE });
  python.runPython(`import sys; sys.path.insert(0, "${SITE}")`);
  answerRequest = python.runPython(
    "from cgprimer.visualization.playground.playground_session import answer_request; answer_request");
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
    if (!await loadLibrary(needs)) return text;
  }
}
self.onmessage = async ({ data }) => {
  try {
    if (data.pyodide) {
      settings = data;
      await start();
    } else self.postMessage({ answer: await answer(data.request) });
  } catch (error) {
    self.postMessage({ crash: String(error?.message ?? error).trim().split("\n").at(-1).slice(0, 200) });
  }
};
