// Opens the page: examples, the text of the address, and the answers that were computed in advance.
async function registerServiceWorker() { // caches the files for the next visit
  try {
    await navigator.serviceWorker.register("service_worker.js");
  } catch { // blocked storage, or no https: the page works, and the next visit loads Python again
    setText($("kept"), "This browser does not allow the page to keep its files, so each visit loads Python again.");
  }
}
function buildExamples() {
  for (const { topic, examples } of config.examples) {
    const group = addElement("optgroup", $("examples"), "", "", { label: topic });
    for (const { name, title } of examples) addElement("option", group, "", `${name}: ${title}`, { value: name, title });
  }
  addElement("option", $("examples"), "", "(own text)", { value: "", hidden: true });
}
function chooseExample(name) {
  session.example = name;
  session.at = createPoint();
  session.pointShape = "";
  setEditorText(findExample().text);
  updateText();
}
function showPrecomputed() { // of the first example, so that its gradient is shown at once
  const { summary, graph, text } = config.precomputed;
  if (text !== $("text").value || location.hash.includes("at=") || getPane() !== "graph") return;
  Object.assign(session, { text, summary, valid: true });
  showSummary();
  buildPoint();
  showGraph(graph);
  performance.mark("precomputed-shown");
}
function showDefect(reason) { // the page stays usable
  showNotice(`The page has a defect (${reason}). If something does not work, reload the page.`);
}
window.addEventListener("error", event => showDefect(event.message));
window.addEventListener("unhandledrejection", event => showDefect(event.reason?.message ?? event.reason));
$("app").hidden = false;
$("unserved").remove();
document.body.classList.toggle("embed", embedded);
$("whole-page").hidden = !embedded;
buildExamples();
openLink();
session.started = true;
showPrecomputed();
if (!client.worker) showNotice("This browser has no WebAssembly or no workers, so Python cannot run. Use a current browser, or ask for WebAssembly to be allowed.");
else updateText();
$("examples").addEventListener("change", () => chooseExample($("examples").value));
$("reset").addEventListener("click", () => chooseExample(session.example || config.first));
