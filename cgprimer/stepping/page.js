// The page of a stepping: data.walks[k].steps are instructions for a memory of numbered slots.
// Nothing that a user wrote is executed: an instruction names a function of PRIMITIVES.
const data = JSON.parse(document.getElementById("data").textContent, (key, value) =>
  value === "nan" ? NaN : value === "inf" ? Infinity : value === "-inf" ? -Infinity : value);
const $ = id => document.getElementById(id);
const UNKNOWN = "not computed";
const state = { walk: 0, frames: data.walks.map(() => 0), point: { ...data.point }, moved: false,
  timer: null, shown: null };

function number(value, digits = 8) { // as Python's format(value, ".8g")
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (value === 0) return "0";
  const power = Number(value.toExponential(digits - 1).split("e")[1]);
  if (power < -4 || power >= digits) {
    const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
    const short = mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
    const size = Math.abs(Number(exponent));
    return `${short}e${exponent[0]}${size < 10 ? "0" : ""}${size}`;
  }
  const text = value.toFixed(Math.max(0, digits - 1 - power));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

// --- arithmetic --------------------------------------------------------------------------------
function shift(value, relative) { // the step of a finite difference
  const size = Number.isFinite(value) ? Math.max(1, Math.abs(value)) : 1;
  let power = 1;
  while (power * 2 <= size) power *= 2;
  return relative * power;
}
function compute(walk, point) { // for every step the numbers it writes
  const memory = new Array(walk.size).fill(NaN);
  for (const [name, slot] of Object.entries(walk.given)) memory[slot] = point[name];
  return walk.steps.map(step => step.writes.map(([slot, operation, operands]) => {
    if (operation === "const") memory[slot] = operands[0];
    else if (operation === "step") memory[slot] = shift(memory[operands[0]], operands[1]);
    else memory[slot] = PRIMITIVES[operation](...operands.map(o => memory[o]));
    return memory[slot];
  }));
}
function missing() { // primitives that the page cannot compute: sliders would lie
  const names = new Set();
  for (const walk of data.walks) for (const step of walk.steps) for (const [, name] of step.writes)
    if (name !== "const" && name !== "step" && !Object.hasOwn(PRIMITIVES, name)) names.add(name);
  return [...names];
}
function frame(walk, numbers, last) { // what is known after a step
  const before = state.shown; // a step forward goes on from where it was
  const on = before && before.walk === walk && before.numbers === numbers && before.last <= last;
  const memory = on ? before.memory : new Array(walk.size).fill(NaN);
  if (!on) for (const [name, slot] of Object.entries(walk.given)) memory[slot] = state.point[name];
  let known = on ? before.known : new Map(), phase = on ? before.phase : -1;
  for (let k = on ? before.last + 1 : 0; k <= last; k++) {
    const step = walk.steps[k];
    if (step.phase !== phase) {
      phase = step.phase;
      const keeps = walk.phases[phase].keeps, kept = new Map();
      for (const [key, value] of known) if (keeps.includes(key.split(":")[0])) kept.set(key, value);
      known = kept;
    }
    step.writes.forEach(([slot], n) => { memory[slot] = numbers[k][n]; });
    for (const [column, index, slot] of step.shows) known.set(`${column}:${index}`, memory[slot]);
    if (step.line >= 0 && step.result >= 0) known.set(`line:${step.line}`, memory[step.result]);
  }
  state.shown = { walk, numbers, last, known, memory, phase };
  return state.shown;
}

// --- what stands on the page -------------------------------------------------------------------
function make(tag, parent, words = "", text = "") {
  const made = document.createElement(tag);
  if (words) made.className = words;
  if (text) made.textContent = text;
  parent.append(made);
  return made;
}
function draw(tag, parent, attributes, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text) made.textContent = text;
  parent.append(made);
  return made;
}
function outline(group, role, [x, y, w, h], words, grow = 0) {
  const [left, top, wide, high] = [x - w / 2 - grow, y - h / 2 - grow, w + 2 * grow, h + 2 * grow];
  if (role === "parameter") {
    const s = 13, r = left + wide, b = top + high;
    return draw("polygon", group, { class: words, points:
      `${left},${y} ${left + s},${top} ${r - s},${top} ${r},${y} ${r - s},${b} ${left + s},${b}` });
  }
  const round = role === "input" ? 14 : role === "operation" ? h / 2 : 0;
  return draw("rect", group,
    { class: words, x: left, y: top, width: wide, height: high, rx: round });
}
const parts = { vertices: [], edges: [], rows: [], lines: [], results: [] };
function buildPicture() {
  const svg = $("graph"), place = data.drawing;
  svg.setAttribute("viewBox", `0 0 ${place.width} ${place.height}`);
  data.edges.forEach(([tail, head], k) => {
    const line = place.lines[k], end = line[line.length - 1], tip = place.tips[k];
    const [dx, dy] = [tip[0] - end[0], tip[1] - end[1]], size = Math.hypot(dx, dy) || 1;
    const [ux, uy] = [dx / size * 6, dy / size * 6];
    const path = draw("polyline", svg,
      { class: "edge", points: line.map(p => p.join(",")).join(" "), "data-edge": `${tail}>${head}` });
    const arrow = draw("polygon", svg, { class: "tip", points:
      `${tip.join(",")} ${end[0] - uy},${end[1] + ux} ${end[0] + uy},${end[1] - ux}` });
    parts.edges.push({ path, arrow });
  });
  data.vertices.forEach(([name, role, row], k) => {
    const box = place.boxes[k], [x, y, w, h] = box;
    const group = draw("g", svg, { class: "vertex", "data-vertex": name });
    outline(group, role, box, `body ${role}`);
    if (role === "output") outline(group, role, box, `body ${role}`, -5);
    outline(group, role, box, "ring", 5);
    const left = x - w / 2 - 9; // a flag, as in the tables: the second cue beside the colour
    draw("polygon", group, { class: "flag",
      points: `${left},${y} ${left - 15},${y - 11} ${left - 15},${y + 11}` });
    draw("text", group, { class: "name", x, y: y - 15 }, name);
    const value = draw("text", group, { x, y: y + 7 });
    const derivative = draw("text", group, { x, y: y + 28 });
    parts.vertices.push({ group, value, derivative, row });
  });
  data.edges.forEach((_, k) => { // numbers over everything else
    const [x, y] = place.labels[k];
    parts.edges[k].label = draw("text", svg, { class: "partial", x, y: y + 6 });
  });
  fitPicture();
}
function fitPicture() { // as large as the pane; but text never under 14 pt at 1920 pixels
  const pane = $("picture"), { width, height } = data.drawing;
  const rem = Math.max(window.innerWidth / 100, 10);
  const fits = Math.min((pane.clientWidth - rem) / width, (pane.clientHeight - rem) / height);
  const scale = Math.max(Math.min(fits, rem / 18 * 1.5), rem / 18 * 0.98);
  $("graph").style.width = `${width * scale}px`;
  $("graph").style.height = `${height * scale}px`;
  $("graph").style.flex = "none";
}
function buildRows() {
  data.rows.forEach(([name, expression]) => {
    const row = make("tr", $("rows"));
    const mark = make("td", row, "mark");
    make("td", row, "", name);
    make("td", row, expression.length > 16 ? "expression" : "", expression);
    const value = make("td", row, "number"), derivative = make("td", row, "number");
    parts.rows.push({ row, mark, value, derivative });
  });
}
function buildProgram() {
  const walk = data.walks[state.walk];
  $("lines").replaceChildren();
  parts.lines = walk.lines.map(text => {
    const item = make("li", $("lines"));
    const mark = make("span", item, "mark");
    make("span", item, "code", text);
    return { item, mark, value: make("span", item, "number") };
  });
  if (walk.refused) make("li", $("lines"), "", walk.refused);
  $("derivative").textContent = walk.derivative;
  $("place").max = Math.max(0, walk.steps.length - 1);
}
function put(node, text, unknown = false) { // touches the page only where something changes
  if (node.firstChild ? node.firstChild.data !== text : text !== "") node.textContent = text;
  if (node.classList.contains("unknown") !== unknown) node.classList.toggle("unknown", unknown);
}
function light(node, on, word = "lit") {
  if (node.classList.contains(word) !== on) node.classList.toggle(word, on);
}
function reach(pane, node) { // scrolls only inside the pane
  const a = pane.getBoundingClientRect(), b = node.getBoundingClientRect();
  if (b.top < a.top + 30) pane.scrollTop -= a.top + 30 - b.top;
  else if (b.bottom > a.bottom) pane.scrollTop += b.bottom - a.bottom + 8;
  if (b.left < a.left) pane.scrollLeft -= a.left - b.left + 8;
  else if (b.right > a.right) pane.scrollLeft += b.right - a.right + 8;
}
const named = walk => walk.mark === "d" ? "d" : walk.mark;

function show() {
  const walk = data.walks[state.walk], last = state.frames[state.walk], step = walk.steps[last];
  const numbers = state.moved ? state.computed[state.walk] : walk.numbers;
  const { known, memory } = step ? frame(walk, numbers, last) : { known: new Map(), memory: [] };
  const seen = []; // scrolled to at the end: one layout for all
  const text = key => known.has(key) ? number(known.get(key)) : UNKNOWN;
  parts.rows.forEach((row, k) => {
    put(row.value, text(`value:${k}`), !known.has(`value:${k}`));
    put(row.derivative, text(`derivative:${k}`), !known.has(`derivative:${k}`));
    const lit = Boolean(step) && step.row === k;
    light(row.row, lit);
    put(row.mark, lit ? "▶" : "");
    light(row.value, lit && step.column === "value", "at");
    light(row.derivative, lit && step.column === "derivative", "at");
    if (lit) seen.push([$("trace"), row.row]);
  });
  parts.lines.forEach((line, k) => {
    const lit = Boolean(step) && step.line === k;
    light(line.item, lit);
    put(line.mark, lit ? "▶" : "");
    put(line.value, known.has(`line:${k}`) ? number(known.get(`line:${k}`)) : "");
    if (lit) seen.push([$("program"), line.item]);
  });
  parts.vertices.forEach((vertex, k) => {
    put(vertex.value, text(`value:${vertex.row}`), !known.has(`value:${vertex.row}`));
    const key = `derivative:${vertex.row}`;
    put(vertex.derivative, known.has(key) ? `${named(walk)} ${number(known.get(key))}` : "");
    const lit = Boolean(step) && step.vertices.includes(data.vertices[k][0]);
    light(vertex.group, lit);
    if (lit && step.vertices.length < 3) seen.push([$("picture"), vertex.group]);
  });
  parts.edges.forEach((edge, k) => {
    const lit = Boolean(step) && step.edges.includes(k);
    light(edge.path, lit);
    light(edge.arrow, lit);
    put(edge.label, known.has(`edge:${k}`) ? number(known.get(`edge:${k}`), 5) : "");
  });
  parts.results.forEach((result, k) => {
    put(result.value, text(`result:${k}`), !known.has(`result:${k}`));
    light(result.chip, known.has(`result:${k}`), "done");
  });
  const all = walk.steps.length;
  put($("count"), all ? `step ${last + 1} of ${all}` : "");
  put($("phase"), step ? walk.phases[step.phase].title : "");
  const result = step && step.result >= 0 ? number(memory[step.result], 12) : "";
  const equals = result && !step.text.endsWith(` = ${result}`) ? ` → ${result}` : "";
  put($("what"), step ? step.text + equals : `${walk.method}: ${walk.refused}`);
  put($("with"), step && step.operands.length
    ? `with ${step.operands.map(([n, slot]) => `${n} = ${number(memory[slot])}`).join(", ")}` : "");
  $("place").value = last;
  $("place").setAttribute("aria-valuetext", `step ${last + 1} of ${all}`);
  $("start").disabled = $("back").disabled = last === 0;
  $("forward").disabled = $("end").disabled = last >= all - 1;
  for (const [pane, node] of seen) reach(pane, node);
}

// --- moving about ------------------------------------------------------------------------------
function go(to) {
  const most = data.walks[state.walk].steps.length - 1;
  state.frames[state.walk] = Math.max(0, Math.min(most, to));
  show();
}
const here = () => state.frames[state.walk];
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
  show();
}
function stop() {
  clearTimeout(state.timer);
  state.timer = null;
  $("play").textContent = "play";
}
function tick() {
  if (here() >= data.walks[state.walk].steps.length - 1) return stop();
  go(here() + 1);
  state.timer = setTimeout(tick, 1000 / Number($("speed").value));
}
function play() {
  if (state.timer !== null) return stop();
  if (here() >= data.walks[state.walk].steps.length - 1) go(0);
  $("play").textContent = "pause";
  state.timer = setTimeout(tick, 1000 / Number($("speed").value));
}
function faster(by) {
  const speed = $("speed");
  speed.selectedIndex = Math.max(0, Math.min(speed.options.length - 1, speed.selectedIndex + by));
}
function dark(on) {
  document.documentElement.dataset.look = on ? "dark" : "light";
  $("look").setAttribute("aria-pressed", on);
}
function move(name, value) {
  if (!Number.isFinite(value)) return;
  state.point[name] = value;
  state.moved = Object.keys(data.point).some(n => state.point[n] !== data.point[n]);
  if (state.moved) state.computed = data.walks.map(walk => compute(walk, state.point));
  show();
}
function buildSliders() {
  const unable = missing();
  if (unable.length) {
    make("p", $("sliders"), "", `no sliders: this page cannot compute ${unable.join(", ")}`);
    return;
  }
  const inputs = [];
  for (const [name, value] of Object.entries(data.point)) {
    const label = make("label", $("sliders"), "", name), size = Math.max(1, Math.abs(value));
    const range = make("input", label), box = make("input", label);
    Object.assign(range, { type: "range", min: value - 2 * size, max: value + 2 * size,
      step: size / 100 });
    range.setAttribute("aria-label", `${name}, slider`);
    Object.assign(box, { type: "number", step: "any" });
    box.setAttribute("aria-label", name);
    range.dataset.slider = box.dataset.number = name;
    const reset = () => { range.value = value; box.value = value; };
    reset();
    range.addEventListener("input", () => {
      const moved = Number(Number(range.value).toPrecision(10));
      box.value = moved;
      move(name, moved);
    });
    box.addEventListener("input", () => {
      if (box.value === "") return;
      range.value = box.value;
      move(name, Number(box.value));
    });
    inputs.push(reset);
  }
  const back = make("button", $("sliders"), "", "reset");
  back.type = "button";
  back.id = "reset";
  back.addEventListener("click", () => {
    inputs.forEach(reset => reset());
    state.point = { ...data.point };
    state.moved = false;
    show();
  });
}
function keyed(event) {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const target = event.target, box = target.tagName === "INPUT" && target.id !== "place";
  if (box && target.type === "number") return;
  const arrows = ["ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown"];
  if (box && arrows.includes(event.key)) return; // a slider's own keys
  if (target.tagName === "SELECT" && arrows.includes(event.key)) return;
  if (event.key === " " && ["BUTTON", "SELECT"].includes(target.tagName)) return;
  const keys = {
    ArrowRight: () => go(here() + 1), ArrowLeft: () => go(here() - 1), Home: () => go(0),
    End: () => go(Infinity), PageDown: () => jump(1), PageUp: () => jump(-1), " ": play,
    "+": () => faster(1), "-": () => faster(-1),
    d: () => dark(document.documentElement.dataset.look !== "dark"),
  };
  const tab = Number(event.key) - 1;
  if (data.walks[tab]) choose(tab);
  else if (keys[event.key]) {
    if (event.key.startsWith("Arrow") || event.key === "Home") stop();
    keys[event.key]();
  } else return;
  event.preventDefault();
}

data.walks.forEach((walk, k) => {
  const tab = make("button", $("tabs"), "", walk.method);
  tab.type = "button";
  tab.setAttribute("role", "tab");
  tab.addEventListener("click", () => choose(k));
});
data.wrt.forEach(name => {
  const chip = make("span", $("results"), "chip", `d${data.target}/d${name} = `);
  parts.results.push({ chip, value: make("span", chip) });
});
const pressed = { start: () => go(0), back: () => go(here() - 1), forward: () => go(here() + 1),
  end: () => go(Infinity) };
for (const [id, act] of Object.entries(pressed))
  $(id).addEventListener("click", () => { stop(); act(); });
$("play").addEventListener("click", play);
$("look").addEventListener("click", () => dark(document.documentElement.dataset.look !== "dark"));
$("place").addEventListener("input", () => { stop(); go(Number($("place").value)); });
document.addEventListener("keydown", keyed);
window.addEventListener("resize", () => { fitPicture(); show(); });
dark(data.dark || window.matchMedia("(prefers-color-scheme: dark)").matches);
buildRows();
buildSliders();
choose(Math.max(0, data.walks.findIndex(walk => walk.method === data.first)));
buildPicture();
show();
