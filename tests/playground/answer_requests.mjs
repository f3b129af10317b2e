// Answer requests of the playground in Pyodide, as its worker does.
//
// node answer_requests.mjs PYODIDE_FOLDER ARCHIVE... reads one line with a list of requests from
// standard input and writes one line with a list of [answer, milliseconds of CPU time]. The request
// {"unpack": ARCHIVE} unpacks another archive. The first line of the output has the times of the start.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [folder, ...archives] = process.argv.slice(2);
const start = performance.now();
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`));
const python = await loadPyodide({ stdout: () => {}, stderr: () => {} });
const loaded = performance.now();

function unpack(archive) {
  python.unpackArchive(new Uint8Array(readFileSync(archive)), "zip", { extractDir: "/site" });
  python.runPython("import importlib; importlib.invalidate_caches()");
}

archives.forEach(unpack);
python.runPython("import sys; sys.path.insert(0, '/site')");
const unpacked = performance.now();
const pages = new URL("../../cgprimer/visualization/pages/", import.meta.url);
const scripts = ["vendor/dagre.min.js", "dagre_layout.js"].map((name) => readFileSync(new URL(name, pages), "utf8"));
python.globals.set("lay_out", new Function(`${scripts.join("\n")}\nreturn layOutWithDagre;`)());
python.runPython(`
from cgprimer.visualization.diagrams.dagre_layout import create_dagre_engine
from cgprimer.visualization.diagrams.layout_engines import set_layout_engine
set_layout_engine(create_dagre_engine(lay_out, 100))`);
const session = python.pyimport("cgprimer.visualization.playground.playground_session");
const imported = performance.now();
console.log(JSON.stringify({
  load: loaded - start, unpack: unpacked - loaded, import: imported - unpacked,
}));
for await (const line of createInterface({ input: process.stdin })) {
  const answers = JSON.parse(line).map((request) => {
    const began = process.cpuUsage();
    const answer = request.unpack ? unpack(request.unpack) ?? "null"
      : session.answer_request(typeof request === "string" ? request : JSON.stringify(request));
    const { user, system } = process.cpuUsage(began);
    return [answer, (user + system) / 1000];
  });
  console.log(JSON.stringify(answers));
}
