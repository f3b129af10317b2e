// The text, its point and its derivatives: what all panes show. Python's answer to "summary" decides
// whether a text is valid; panes keep what they show until the text is valid again.
// Points have names of users as keys, such as constructor, and therefore no prototype.
const createPoint = (entries = []) => Object.assign(Object.create(null), Object.fromEntries(entries));
const MAX_DIMENSIONS = 8;
const isValue = (value, dimensions = 0) => Number.isFinite(value) // or an array of numbers
  || Array.isArray(value) && dimensions < MAX_DIMENSIONS && value.every(entry => isValue(entry, dimensions + 1));
const session = { text: "", at: createPoint(), summary: null, valid: false, version: 0, example: "", opened: {} };
const panes = {}; // by name: {refresh(), shown: the version that the pane shows, title}
const config = JSON.parse($("config").textContent);
const getPoint = () => Object.fromEntries(Object.entries(session.at).filter(([, value]) => value !== null));
function describeRequest(view, more = {}) {
  const request = { view, text: session.text, at: getPoint(), of: $("of").value || null, ...more };
  return $("wrt").value ? { ...request, wrt: [$("wrt").value] } : request;
}
const findExample = () => config.examples.flatMap(topic => topic.examples).find(({ name }) => name === session.example);
function showAbout() { // while the text is that of an example
  const example = findExample(), shown = example?.text === $("text").value;
  $("about").hidden = !shown;
  $("examples").value = shown ? session.example : "";
  if (!shown) return;
  setText($("teaches"), example.teaches);
  setText($("source"), `Source: ${example.source}`);
}
async function updateText() {
  clearTimeout(editTimer);
  session.text = $("text").value;
  showAbout();
  storeLink();
  const text = session.text;
  const answer = await askPython({ view: "summary", text });
  if (!answer || text !== session.text) return;
  session.valid = !answer.error && answer.outputs.length > 0;
  showError(answer.error ?? null);
  document.body.classList.toggle("outdated", !session.valid);
  if (answer.error) return;
  session.summary = answer;
  showSummary();
  buildPoint();
  invalidatePanes();
}
const countOf = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
function showSummary() {
  const { inputs, parameters, outputs, vertices, notes } = session.summary;
  const counts = [countOf(vertices, "vertex").replace("vertexs", "vertices"), countOf(inputs.length, "input"),
    countOf(parameters.length, "parameter"), countOf(outputs.length, "output")];
  setText($("summary"), [outputs.length ? `${counts.join(", ")}.` : "Write a definition such as xw = ab*xa",
    ...notes.filter(note => !note.startsWith("These names have no value"))].join(" "));
}
function invalidatePanes() {
  session.version += 1;
  refreshPane();
}
function refreshPane() { // only the pane that is visible
  const pane = panes[getPane()];
  if (!session.valid || pane.shown === session.version) return;
  pane.shown = session.version;
  pane.refresh();
}
// Asks for a view of the current text; null if the answer is outdated or an error, which is shown.
async function askView(view, more = {}, target = null) {
  const version = session.version, pane = target ?? $(`pane-${getPane()}`);
  const answer = await askPython(describeRequest(view, more), `${view}:${JSON.stringify(more.method ?? "")}`);
  if (!answer || version !== session.version) return null;
  showPaneError(pane, answer.error);
  if (!answer.error) performance.mark(`${view}-answered`); // for measurements
  return answer.error ? null : answer;
}
function showPaneError(pane, error) {
  let box = pane.querySelector(":scope > .problem");
  pane.classList.toggle("failed", Boolean(error));
  if (!error) return box?.remove();
  if (!box) {
    box = document.createElement("div");
    box.className = "problem";
    box.setAttribute("role", "alert");
    pane.prepend(box);
  }
  box.replaceChildren();
  addElement("p", box, "", error.message);
  if (error.hint) addElement("p", box, "", `Hint: ${error.hint}`);
}

// --- values of inputs and parameters ---------------------------------------------------------------
const DEFAULT_VALUE = 1; // of an input or a parameter without a declared value
function buildPoint() {
  const { inputs, parameters, outputs } = session.summary, names = [...inputs, ...parameters];
  const shape = JSON.stringify([names, outputs]);
  const kept = new Set(names.map(({ name }) => name));
  for (const name of Object.keys(session.at)) if (!kept.has(name)) delete session.at[name];
  if (shape === session.pointShape) return;
  session.pointShape = shape;
  fillSelect($("of"), outputs.map(name => [name, name]), session.opened.of ?? $("of").value);
  $("of-entry").hidden = outputs.length < 2;
  fillSelect($("wrt"), [["", parameters.length ? "all parameters" : "all inputs"],
    ...names.map(({ name }) => [name, name])], session.opened.wrt ?? $("wrt").value);
  session.opened = {}; // the choices of the address hold until the user changes them
  $("values").replaceChildren();
  for (const [role, list] of [["input", inputs], ["parameter", parameters]]) for (const { name, value, shape } of list)
    shape.length ? addArrayEntry(name, value, shape, role) : addValueEntry(name, value, role);
}
function fillSelect(select, options, value) {
  select.replaceChildren();
  for (const [key, words] of options) addElement("option", select, "", words, { value: key });
  if (options.some(([key]) => key === value)) select.value = value;
}
const LONG_NAME = 7; // characters; the label of a longer name has a separate line
function addEntry(name, role) {
  const entry = addElement("div", $("values"), "value");
  addElement("label", entry, name.length > LONG_NAME ? `${role} long` : role, name, { htmlFor: `at-${name}` });
  return entry;
}
function addValueEntry(name, declared, role) { // a number and a slider
  const start = parseNumeric(declared) ?? DEFAULT_VALUE;
  if (declared === null && !(name in session.at)) session.at[name] = start;
  const value = session.at[name] ?? start, reach = Math.max(1, 2 * Math.abs(value) || 0);
  const entry = addEntry(name, role);
  const box = addElement("input", entry, "", "", { type: "number", step: "any", id: `at-${name}`, value });
  const range = addElement("input", entry, "", "", { type: "range", step: reach / 100, min: -reach, max: reach });
  range.value = value;
  range.setAttribute("aria-label", `${name}, slider`);
  const change = (read, other) => {
    const valid = read !== "" && Number.isFinite(Number(read));
    box.setAttribute("aria-invalid", String(!valid));
    if (!valid) return;
    other.value = Number(Number(read).toPrecision(8));
    session.at[name] = Number(read);
    changePoint();
  };
  box.addEventListener("input", () => change(box.value, range));
  range.addEventListener("input", () => change(range.value, box));
}
function addArrayEntry(name, declared, shape, role) { // the elements as JSON
  const entry = addEntry(name, role);
  const fill = sizes => sizes.length ? Array(sizes[0]).fill(0).map(() => fill(sizes.slice(1))) : DEFAULT_VALUE;
  const start = declared ?? fill(shape);
  if (declared === null && !(name in session.at)) session.at[name] = start;
  const elements = session.at[name] ?? start, small = shape.reduce((a, b) => a * b, 1) <= 64;
  const box = addElement("input", entry, "wide", "", { type: "text", id: `at-${name}`, spellcheck: false });
  if (!small || !Array.isArray(elements)) {
    box.disabled = true;
    box.value = `[${shape.join(", ")}] as declared`;
    return;
  }
  box.value = JSON.stringify(elements);
  box.addEventListener("input", () => {
    let read = null;
    try { read = JSON.parse(box.value); } catch { /* incomplete while typing */ }
    box.setAttribute("aria-invalid", String(!isValue(read)));
    if (!isValue(read)) return;
    session.at[name] = read;
    changePoint();
  });
}
function changePoint() {
  storeLink();
  invalidatePanes();
}
for (const id of ["of", "wrt"]) $(id).addEventListener("change", changePoint);
$("point").addEventListener("submit", event => event.preventDefault());
