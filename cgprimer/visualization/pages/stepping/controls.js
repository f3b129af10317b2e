// Buttons, keys and sliders of the page.
let address = null;

const getLastIndex = () => data.walks[state.walk].steps.length - 1;
function goTo(to) {
  state.frames[state.walk] = Math.max(0, Math.min(getLastIndex(), to));
  showFrame();
}
function goToPhase(direction) { // to the beginning of a sweep or pass
  const steps = data.walks[state.walk].steps;
  let k = getIndex() + direction;
  while (k > 0 && k < steps.length && steps[k].phase === steps[k - 1].phase) k += direction;
  goTo(k);
}
function chooseWalk(walk) {
  state.walk = walk;
  [...$("tabs").children].forEach((tab, k) => tab.setAttribute("aria-selected", k === walk));
  buildProgram();
  fitColumns();
  fitPicture();
  showFrame();
}
function storeAddress() { // the address opens this tab and step; browsers limit how often it changes
  clearTimeout(address);
  address = setTimeout(() => {
    const place = `#${data.walks[state.walk].method}/${getIndex() + 1}`;
    if (location.hash !== place) history.replaceState(null, "", place);
  }, 300);
}
function openAddress() { // shows the tab and step in the address, which may be invalid
  let named = "";
  try { named = decodeURIComponent(location.hash.slice(1)); } catch { return false; }
  const [method, step] = named.split("/");
  const walk = data.walks.findIndex(w => w.method === method);
  if (walk < 0) return false;
  const wanted = /^\d+$/.test(step) ? Number(step) : 1, last = data.walks[walk].steps.length;
  state.frames[walk] = Math.max(0, Math.min(last, wanted) - 1);
  chooseWalk(walk);
  return true;
}
function showWholeGraph(on) {
  state.whole = on;
  $("whole").setAttribute("aria-pressed", on);
  fitPicture();
  showFrame();
}
const isFolded = pane => document.querySelector("main").classList.contains(`no-${pane}`);
function foldPanes(trace, program) {
  const { classList } = document.querySelector("main");
  classList.toggle("no-trace", trace);
  classList.toggle("no-program", program);
  $("alone").setAttribute("aria-pressed", trace && program);
  fitPicture();
  showFrame();
}
const showGraphAlone = on => foldPanes(on, on);
function setSlidersOpen(open) {
  $("fold").setAttribute("aria-expanded", open);
  $("sliders").hidden = !open;
}
const isOn = id => ["aria-pressed", "aria-expanded"].some(word => $(id).getAttribute(word) === "true");
// --- numbers that change --------------------------------------------------------------------------
function recompute() {
  const moved = Object.keys(data.point).some(n => state.point[n] !== data.point[n])
    || state.h !== data.h;
  state.computed = moved ? data.walks.map(walk => computeValues(walk, state.point, state.h)) : null;
  const exact = data.walks.findIndex(walk => !walk.scheme && walk.steps.length);
  state.exact = exact < 0 ? null : collectResults(data.walks[exact], getNumbers(exact));
  state.shown = null;
  $("reset").disabled = !moved;
  fitColumns();
  showFrame();
}
function addSlider(label, name, from, to, step, onMove) {
  const range = addElement("input", label, "", "", { type: "range", min: from, max: to, step });
  const box = addElement("input", label, "", "", { type: "number", step: "any" });
  range.setAttribute("aria-label", `${name}, slider`);
  box.setAttribute("aria-label", name);
  range.dataset.slider = box.dataset.number = name;
  range.addEventListener("input", () => onMove(Number(range.value), "range"));
  box.addEventListener("input", () => {
    const wrong = box.value === "" || !Number.isFinite(Number(box.value));
    box.setAttribute("aria-invalid", wrong);
    if (!wrong) onMove(Number(box.value), "box");
  });
  return { range, box };
}
function buildSliders() {
  for (const [name, value] of Object.entries(data.point)) {
    const label = addElement("label", $("sliders"), "", name), size = Math.max(1, Math.abs(value) || 1);
    const start = Number.isFinite(value) ? value : 0, reach = Number.isFinite(size) ? size : 1;
    const [from, to] = [start - 2 * reach, start + 2 * reach];
    const moveRange = moved => // a typed number may be outside the range of the slider
      Object.assign(range, { min: Math.min(from, moved), max: Math.max(to, moved), value: moved });
    const { range, box } = addSlider(label, name, from, to, reach / 100, (read, by) => {
      const moved = by === "range" ? Number(read.toPrecision(10)) : read;
      if (by === "range") box.value = moved;
      else moveRange(moved);
      state.point[name] = moved;
      recompute();
    });
    box.style.setProperty("--digits", Math.max(...[start, from, to, start + reach / 100]
      .map(number => String(Number(number.toPrecision(10))).length)));
    inputs.point.set(name, moved => {
      moveRange(Number.isFinite(moved) ? moved : start);
      box.value = Number.isFinite(moved) ? moved : "";
      box.placeholder = formatNumber(moved);
      box.removeAttribute("aria-invalid");
    });
  }
}
function buildDifferences() { // the slider of h has quarters of powers of ten
  const walk = data.walks.findIndex(w => w.scheme);
  if (walk < 0) return;
  const schemes = [data.walks[walk], ...data.others];
  const label = addElement("label", $("differences"), "", "scheme");
  const select = addElement("select", label, "", "", { id: "scheme" });
  for (const { scheme } of schemes) addElement("option", select, "", scheme).value = scheme;
  inputs.chooseScheme = name => { // returns whether the scheme has changed
    const chosen = schemes.find(({ scheme }) => scheme === name);
    if (!chosen || chosen === data.walks[walk]) return false;
    const atEnd = state.frames[walk] === data.walks[walk].steps.length - 1;
    data.walks[walk] = chosen;
    state.frames[walk] = atEnd ? chosen.steps.length - 1 : 0;
    select.value = name;
    buildProgram();
    return true;
  };
  select.addEventListener("change", () => inputs.chooseScheme(select.value) && recompute());
  const own = addElement("label", $("differences"), "", "h");
  const { range, box } = addSlider(own, "h", -16, 0, 0.25, (read, by) => {
    if (by === "range") box.value = formatNumber(10 ** read, 4);
    else range.value = Math.log10(read);
    box.setAttribute("aria-invalid", !(Number(box.value) > 0));
    if (!(Number(box.value) > 0)) return;
    state.h = Number(box.value);
    bySize.disabled = false;
    recompute();
  });
  box.placeholder = "automatic";
  range.setAttribute("aria-label", "h, slider: powers of ten");
  const bySize = addElement("button", $("differences"), "", "automatic h", { type: "button", id: "by-size",
    title: "choose the step size for each variable from its magnitude" });
  inputs.setStepSize = h => {
    state.h = h;
    box.value = h ?? "";
    range.value = h === null ? -5.25 : Math.log10(h);
    box.removeAttribute("aria-invalid");
    bySize.disabled = h === null;
  };
  bySize.addEventListener("click", () => { inputs.setStepSize(null); recompute(); });
}
// Functions that set the controls: of each name of the point, and of finite differences.
const inputs = { point: new Map(), setStepSize: null, chooseScheme: null };
function resetInputs() {
  for (const [name, set] of inputs.point) set(data.point[name]);
  inputs.setStepSize?.(data.h);
}
function buildInputs() {
  inputs.point.clear();
  Object.assign(inputs, { setStepSize: null, chooseScheme: null });
  for (const id of ["sliders", "differences"]) $(id).replaceChildren();
  const unable = findMissingPrimitives([...data.walks, ...data.others]);
  if (data.arrays)
    addElement("p", $("sliders"), "", "Sliders change scalars only: create the page with --scalars.");
  else if (unable.length)
    addElement("p", $("sliders"), "", `no sliders: the page cannot compute ${unable.join(", ")}`);
  else {
    buildSliders();
    buildDifferences();
  }
  const back = addElement("button", $("sliders"), "", "reset", { type: "button", id: "reset",
    hidden: data.arrays || unable.length > 0, title: "restore the initial values" });
  back.addEventListener("click", () => {
    resetInputs();
    state.point = { ...data.point };
    recompute();
  });
  resetInputs();
}
function buildTabs() {
  $("tabs").replaceChildren();
  data.walks.forEach((walk, k) => {
    const tab = addElement("button", $("tabs"), "", walk.method, { type: "button" });
    tab.setAttribute("role", "tab");
    tab.addEventListener("click", () => chooseWalk(k));
  });
}
function buildResults() {
  $("results").replaceChildren();
  data.wrt.forEach(name => {
    const chip = addElement("span", $("results"), "chip", `d${data.target}/d${name} = `);
    parts.results.push({ chip, value: addElement("span", chip), error: addElement("small", chip, "error") });
  });
}
// Builds the page. A page that has data already continues at the same step with the new data.
let isBuilt = false; // not after an error in the data
function showData(read) {
  const saved = isBuilt && saveState();
  stopPlaying();
  isBuilt = false;
  data = parseData(read);
  state = { walk: Math.max(0, data.walks.findIndex(walk => walk.method === data.first)), frames: data.walks.map(() => 0),
    point: { ...data.point }, h: data.h, computed: null, shown: null, lit: [], whole: isOn("whole") };
  Object.assign(parts, { vertices: [], edges: [], rows: [], lines: [], results: [], ofRow: [] });
  document.title = data.title || `${data.target} step by step`;
  setText($("title"), document.title);
  $("title").classList.toggle("unseen", !data.title); // screen readers need a heading
  document.querySelector("main").classList.toggle("arrays", data.arrays); // formatted arrays are wide
  for (const build of [buildTabs, buildResults, buildRows, buildPicture, buildLegend, buildProgram, buildInputs, recompute]) build();
  isBuilt = true;
  if (saved) return restoreState(saved);
  if (!openAddress()) chooseWalk(state.walk);
  if (data.quiz) setQuiz(true);
  reported = JSON.stringify(readState()); // the window around the page knows where it begins
}

const KEYS = { PageDown: () => goToPhase(1), PageUp: () => goToPhase(-1), q: () => setQuiz(!quiz.on) };
KEYS.t = () => foldPanes(!isFolded("trace"), isFolded("program"));
KEYS.p = () => foldPanes(isFolded("trace"), !isFolded("program"));
for (const [key, id, set] of [["w", "whole", showWholeGraph], ["g", "alone", showGraphAlone], ["s", "fold", setSlidersOpen]]) {
  KEYS[key] = () => set(!isOn(id));
  $(id).addEventListener("click", KEYS[key]);
}
for (let k = 1; k < 10; k++) KEYS[k] = () => { if (k <= data.walks.length) chooseWalk(k - 1); };
new ResizeObserver(() => isBuilt && fitPicture()).observe($("picture")); // also if the lines below grow
window.addEventListener("resize", () => { if (isBuilt) { fitPicture(); showFrame(); } });
window.addEventListener("hashchange", openAddress);
