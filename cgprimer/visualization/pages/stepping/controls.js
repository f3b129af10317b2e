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
    const { range, box } = addSlider(label, name, from, to, reach / 100, (read, by) => {
      const moved = by === "range" ? Number(read.toPrecision(10)) : read;
      if (by === "range") box.value = moved;
      else { // a typed number may be outside the range of the slider
        range.min = Math.min(from, moved);
        range.max = Math.max(to, moved);
        range.value = moved;
      }
      state.point[name] = moved;
      recompute();
    });
    box.style.setProperty("--digits", Math.max(...[start, from, to, start + reach / 100]
      .map(number => String(Number(number.toPrecision(10))).length)));
    resets.push(() => {
      Object.assign(range, { min: from, max: to, value: start });
      box.value = Number.isFinite(value) ? value : "";
      box.placeholder = formatNumber(value);
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
  select.addEventListener("change", () => {
    const atEnd = getIndex() === data.walks[walk].steps.length - 1;
    data.walks[walk] = schemes.find(({ scheme }) => scheme === select.value);
    state.frames[walk] = atEnd ? data.walks[walk].steps.length - 1 : 0;
    buildProgram();
    recompute();
  });
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
  const setStepSize = h => {
    state.h = h;
    box.value = h ?? "";
    range.value = h === null ? -5.25 : Math.log10(h);
    box.removeAttribute("aria-invalid");
    bySize.disabled = h === null;
  };
  bySize.addEventListener("click", () => { setStepSize(null); recompute(); });
  resets.push(() => setStepSize(data.h));
}
const resets = [];
function buildInputs() {
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
    resets.forEach(reset => reset());
    state.point = { ...data.point };
    recompute();
  });
  resets.forEach(reset => reset());
}

const KEYS = { PageDown: () => goToPhase(1), PageUp: () => goToPhase(-1), q: () => setQuiz(!quiz.on) };
KEYS.t = () => foldPanes(!isFolded("trace"), isFolded("program"));
KEYS.p = () => foldPanes(isFolded("trace"), !isFolded("program"));
for (const [key, id, set] of [["w", "whole", showWholeGraph], ["g", "alone", showGraphAlone], ["s", "fold", setSlidersOpen]]) {
  KEYS[key] = () => set(!isOn(id));
  $(id).addEventListener("click", KEYS[key]);
}
data.walks.forEach((walk, k) => {
  KEYS[k + 1] = () => chooseWalk(k);
  const tab = addElement("button", $("tabs"), "", walk.method, { type: "button" });
  tab.setAttribute("role", "tab");
  tab.addEventListener("click", () => chooseWalk(k));
});
data.wrt.forEach(name => {
  const chip = addElement("span", $("results"), "chip", `d${data.target}/d${name} = `);
  parts.results.push({ chip, value: addElement("span", chip), error: addElement("small", chip, "error") });
});
new ResizeObserver(fitPicture).observe($("picture")); // also if the lines below grow
window.addEventListener("resize", () => { fitPicture(); showFrame(); });
window.addEventListener("hashchange", openAddress);
document.querySelector("main").classList.toggle("arrays", data.arrays); // formatted arrays are wide
buildRows();
buildPicture();
buildLegend();
state.walk = Math.max(0, data.walks.findIndex(walk => walk.method === data.first));
buildProgram();
buildInputs();
recompute();
if (!openAddress()) chooseWalk(state.walk);
