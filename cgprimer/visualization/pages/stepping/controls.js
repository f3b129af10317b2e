// Buttons, keys, sliders: what a lecturer does with the page.
let address = null;

const last = () => data.walks[state.walk].steps.length - 1;
function go(to) {
  state.frames[state.walk] = Math.max(0, Math.min(last(), to));
  show();
}
function jump(direction) { // to the beginning of a sweep or pass
  const steps = data.walks[state.walk].steps;
  let k = here() + direction;
  while (k > 0 && k < steps.length && steps[k].phase === steps[k - 1].phase) k += direction;
  go(k);
}
function choose(walk) {
  state.walk = walk;
  [...$("tabs").children].forEach((tab, k) => tab.setAttribute("aria-selected", k === walk));
  buildProgram();
  fitColumns();
  fitPicture();
  show();
}
function remember() { // the address opens at this tab and step; browsers want it changed seldom
  clearTimeout(address);
  address = setTimeout(() => {
    const place = `#${data.walks[state.walk].method}/${here() + 1}`;
    if (location.hash !== place) history.replaceState(null, "", place);
  }, 300);
}
function arrive() { // at the tab and step that the address names; anybody may have typed it
  let named = "";
  try { named = decodeURIComponent(location.hash.slice(1)); } catch { return false; }
  const [method, step] = named.split("/");
  const walk = data.walks.findIndex(w => w.method === method);
  if (walk < 0) return false;
  const wanted = /^\d+$/.test(step) ? Number(step) : 1, last = data.walks[walk].steps.length;
  state.frames[walk] = Math.max(0, Math.min(last, wanted) - 1);
  choose(walk);
  return true;
}
function whole(on) {
  state.whole = on;
  $("whole").setAttribute("aria-pressed", on);
  fitPicture();
  show();
}
const folded = pane => document.querySelector("main").classList.contains(`no-${pane}`);
function foldPanes(trace, program) {
  const { classList } = document.querySelector("main");
  classList.toggle("no-trace", trace);
  classList.toggle("no-program", program);
  $("alone").setAttribute("aria-pressed", trace && program);
  fitPicture();
  show();
}
const alone = on => foldPanes(on, on);
function fold(open) {
  $("fold").setAttribute("aria-expanded", open);
  $("sliders").hidden = !open;
}
const isOn = id => ["aria-pressed", "aria-expanded"].some(word => $(id).getAttribute(word) === "true");
// --- numbers that move --------------------------------------------------------------------------
function recompute() {
  const moved = Object.keys(data.point).some(n => state.point[n] !== data.point[n])
    || state.h !== data.h;
  state.computed = moved ? data.walks.map(walk => compute(walk, state.point, state.h)) : null;
  const exact = data.walks.findIndex(walk => !walk.scheme && walk.steps.length);
  state.exact = exact < 0 ? null : finals(data.walks[exact], numbersOf(exact));
  state.shown = null;
  $("reset").disabled = !moved;
  fitColumns();
  show();
}
function slider(label, name, from, to, step, onMove) {
  const range = make("input", label, "", "", { type: "range", min: from, max: to, step });
  const box = make("input", label, "", "", { type: "number", step: "any" });
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
    const label = make("label", $("sliders"), "", name), size = Math.max(1, Math.abs(value) || 1);
    const start = Number.isFinite(value) ? value : 0, reach = Number.isFinite(size) ? size : 1;
    const [from, to] = [start - 2 * reach, start + 2 * reach];
    const { range, box } = slider(label, name, from, to, reach / 100, (read, by) => {
      const moved = by === "range" ? Number(read.toPrecision(10)) : read;
      if (by === "range") box.value = moved;
      else { // a number that was typed may lie beyond
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
      box.placeholder = number(value);
      box.removeAttribute("aria-invalid");
    });
  }
}
function buildDifferences() { // the step h goes in quarters of a power of ten
  const walk = data.walks.findIndex(w => w.scheme);
  if (walk < 0) return;
  const schemes = [data.walks[walk], ...data.others];
  const label = make("label", $("differences"), "", "scheme");
  const select = make("select", label, "", "", { id: "scheme" });
  for (const { scheme } of schemes) make("option", select, "", scheme).value = scheme;
  select.addEventListener("change", () => {
    const atEnd = here() === data.walks[walk].steps.length - 1;
    data.walks[walk] = schemes.find(({ scheme }) => scheme === select.value);
    state.frames[walk] = atEnd ? data.walks[walk].steps.length - 1 : 0;
    buildProgram();
    recompute();
  });
  const own = make("label", $("differences"), "", "h");
  const { range, box } = slider(own, "h", -16, 0, 0.25, (read, by) => {
    if (by === "range") box.value = number(10 ** read, 4);
    else range.value = Math.log10(read);
    box.setAttribute("aria-invalid", !(Number(box.value) > 0));
    if (!(Number(box.value) > 0)) return;
    state.h = Number(box.value);
    bySize.disabled = false;
    recompute();
  });
  box.placeholder = "by size";
  range.setAttribute("aria-label", "h, slider: powers of ten");
  const bySize = make("button", $("differences"), "", "h by size", { type: "button", id: "by-size",
    title: "a step for each variable, chosen from its size" });
  const set = h => {
    state.h = h;
    box.value = h ?? "";
    range.value = h === null ? -5.25 : Math.log10(h);
    box.removeAttribute("aria-invalid");
    bySize.disabled = h === null;
  };
  bySize.addEventListener("click", () => { set(null); recompute(); });
  resets.push(() => set(data.h));
}
const resets = [];
function buildInputs() {
  const unable = missing([...data.walks, ...data.others]);
  if (data.arrays)
    make("p", $("sliders"), "", "Sliders are for scalars: a page made with --scalars has them.");
  else if (unable.length)
    make("p", $("sliders"), "", `no sliders: this page cannot compute ${unable.join(", ")}`);
  else {
    buildSliders();
    buildDifferences();
  }
  const back = make("button", $("sliders"), "", "reset", { type: "button", id: "reset",
    hidden: data.arrays || unable.length > 0, title: "back to the point that the page came with" });
  back.addEventListener("click", () => {
    resets.forEach(reset => reset());
    state.point = { ...data.point };
    recompute();
  });
  resets.forEach(reset => reset());
}

const KEYS = { PageDown: () => jump(1), PageUp: () => jump(-1), q: () => setQuiz(!quiz.on) };
KEYS.t = () => foldPanes(!folded("trace"), folded("program"));
KEYS.p = () => foldPanes(folded("trace"), !folded("program"));
for (const [key, id, turned] of [["w", "whole", whole], ["g", "alone", alone], ["s", "fold", fold]]) {
  KEYS[key] = () => turned(!isOn(id));
  $(id).addEventListener("click", KEYS[key]);
}
data.walks.forEach((walk, k) => {
  KEYS[k + 1] = () => choose(k);
  const tab = make("button", $("tabs"), "", walk.method, { type: "button" });
  tab.setAttribute("role", "tab");
  tab.addEventListener("click", () => choose(k));
});
data.wrt.forEach(name => {
  const chip = make("span", $("results"), "chip", `d${data.target}/d${name} = `);
  parts.results.push({ chip, value: make("span", chip), error: make("small", chip, "error") });
});
new ResizeObserver(fitPicture).observe($("picture")); // also where the lines below grow
window.addEventListener("resize", () => { fitPicture(); show(); });
window.addEventListener("hashchange", arrive);
document.querySelector("main").classList.toggle("arrays", data.arrays); // their texts are wide
buildRows();
buildPicture();
buildLegend();
state.walk = Math.max(0, data.walks.findIndex(walk => walk.method === data.first));
buildProgram();
buildInputs();
recompute();
if (!arrive()) choose(state.walk);
