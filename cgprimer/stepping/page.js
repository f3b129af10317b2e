// The page of a stepping: data.walks[k].steps are instructions for a memory of numbered slots.
// Nothing that a user wrote is executed: an instruction names a function of PRIMITIVES.
const $ = id => document.getElementById(id);
const data = JSON.parse($("data").textContent, (key, value) =>
  value === "nan" ? NaN : value === "inf" ? Infinity : value === "-inf" ? -Infinity : value);
const state = { walk: 0, frames: data.walks.map(() => 0), point: { ...data.point }, h: data.h,
  computed: null, shown: null, lit: [], whole: false };
const here = () => state.frames[state.walk];
const numbersOf = walk => state.computed ? state.computed[walk] : data.walks[walk].numbers;

function buildRows() {
  data.rows.forEach(([name, expression]) => {
    const row = make("tr", $("rows"));
    row.setAttribute("role", "row"); // the style sheet takes the elements' own roles away
    const mark = make("td", row, "mark");
    make("td", row, "", name);
    make("td", row, "expression", expression);
    const value = make("td", row, "number"), derivative = make("td", row, "number");
    for (const cell of row.cells) cell.setAttribute("role", "cell");
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
  parts.flow.textContent = walk.flow ? `on the edges: ${walk.flow}` : "";
  $("differences").hidden = !walk.scheme;
  state.shown = null;
}
function fitColumns() { // as wide as the widest number of the walk, so that nothing jumps
  const walk = data.walks[state.walk], numbers = numbersOf(state.walk), slots = {};
  const widest = { value: 12, derivative: 13 }; // "not computed", and the heading
  walk.steps.forEach((step, k) => {
    step.writes.forEach(([slot], n) => { slots[slot] = numbers[k][n]; });
    for (const [column, , slot] of step.shows) if (slot in slots && column in widest)
      widest[column] = Math.max(widest[column], number(slots[slot]).length);
  });
  const name = Math.max(4, ...data.rows.map(row => row[0].length));
  const style = $("trace").style;
  style.setProperty("--name", `${name + 1}ch`);
  style.setProperty("--value", `${widest.value}ch`);
  style.setProperty("--derivative", `${widest.derivative}ch`);
}

// --- what a step changes -------------------------------------------------------------------------
function put(node, text, unknown = false) { // touches the page only where something changes
  if (node.firstChild) {
    if (node.firstChild.data !== text) node.firstChild.data = text;
  } else if (text !== "") node.textContent = text;
  if (node.classList.contains("unknown") !== unknown) node.classList.toggle("unknown", unknown);
}
const odd = (node, value) => node.classList.toggle("odd", value !== undefined && !Number.isFinite(value));
function paintRow(k, known, walk) {
  const row = parts.rows[k], vertex = parts.ofRow[k];
  const value = known.get(`value:${k}`), derivative = known.get(`derivative:${k}`);
  const sum = derivative === undefined ? known.get(`sofar:${k}`) : undefined;
  const part = most => sum === undefined ? "" : `${compact(sum, most)} + …`;
  put(row.value, value === undefined ? UNKNOWN : number(value), value === undefined);
  put(row.derivative, derivative === undefined ? part(9) || UNKNOWN : number(derivative),
    derivative === undefined);
  odd(row.value, value);
  odd(row.derivative, derivative);
  if (!vertex) return;
  put(vertex.value, value === undefined ? UNKNOWN : compact(value, 9), value === undefined);
  put(vertex.derivative, derivative === undefined ? part(6) && `${walk.mark} ${part(6)}`
    : `${walk.mark} ${compact(derivative, 9)}`, derivative === undefined);
}
const painters = {
  value: paintRow, derivative: paintRow, sofar: paintRow,
  edge: (k, known) => put(parts.edges[k].label,
    known.has(`edge:${k}`) ? compact(known.get(`edge:${k}`), 7) : ""),
  line: (k, known) => put(parts.lines[k].value,
    known.has(`line:${k}`) ? number(known.get(`line:${k}`)) : ""),
  result: (k, known, walk) => {
    const { chip, value, error } = parts.results[k], found = known.get(`result:${k}`);
    put(value, found === undefined ? UNKNOWN : number(found), found === undefined);
    chip.classList.toggle("done", found !== undefined);
    const exact = walk.scheme && found !== undefined ? state.exact?.[k] : undefined;
    put(error, exact === undefined ? "" : `error ${number(Math.abs(found - exact), 3)}`);
  },
};
function paint(shown, walk) {
  const { known, touched } = shown;
  if (touched) for (const key of touched) {
    const [column, k] = key.split(":");
    painters[column](Number(k), known, walk);
  } else {
    parts.rows.forEach((_, k) => paintRow(k, known, walk));
    for (const column of ["edge", "line", "result"])
      parts[`${column}s`].forEach((_, k) => painters[column](k, known, walk));
  }
}
function light(step) { // the current instruction, in all three; what was lit before goes out
  const lit = [];
  const on = (node, word = "lit") => lit.push([node, word]);
  if (step && step.row >= 0) {
    const row = parts.rows[step.row];
    on(row.row);
    if (row[step.column]) on(row[step.column], "at");
  }
  if (step && step.line >= 0) on(parts.lines[step.line].item);
  const groups = step ? step.vertices.map(name => parts.vertices.find(v => v.name === name)) : [];
  for (const vertex of groups) if (vertex) on(vertex.group);
  for (const k of step ? step.edges : []) { on(parts.edges[k].path); on(parts.edges[k].arrow); }
  for (const [node, word] of state.lit)
    if (!lit.some(([n, w]) => n === node && w === word)) node.classList.remove(word);
  for (const [node, word] of lit) if (!node.classList.contains(word)) node.classList.add(word);
  state.lit = lit;
}
function reach(pane, node, nodes = null, above = 0) { // only inside the pane, only if it must
  const a = pane.getBoundingClientRect(), b = node.getBoundingClientRect();
  const high = a.height - above, top = b.top - a.top - above;
  let down = 0;
  if (top < 0 || top + b.height > high * 0.88) {
    down = top - high * 0.4;
    if (nodes) { // no line is cut at the top
      const goal = pane.scrollTop + down + above;
      let low = 0, up = nodes.length - 1;
      while (low < up) {
        const middle = (low + up) >> 1;
        if (nodes[middle].offsetTop < goal) low = middle + 1;
        else up = middle;
      }
      down = nodes[low].offsetTop - above - pane.scrollTop;
    }
  }
  const across = b.left < a.left || b.right > a.right
    ? b.left - a.left - (a.width - b.width) / 2 : 0;
  return () => { if (down || across) pane.scrollBy(across, down); };
}
function show() {
  const walk = data.walks[state.walk], last = here(), step = walk.steps[last];
  const numbers = numbersOf(state.walk);
  state.shown = step ? frame(walk, numbers, state.point, last, state.shown)
    : { known: new Map(), memory: [], touched: null };
  const { memory } = state.shown;
  paint(state.shown, walk);
  light(step);
  const all = walk.steps.length;
  put($("count"), all ? `step ${last + 1} of ${all}` : "");
  put($("phase"), step ? walk.phases[step.phase].title : "");
  const found = step && step.result >= 0 ? memory[step.result] : undefined;
  const result = found === undefined ? "" : number(found, 12);
  const equals = result && !step.text.endsWith(` = ${result}`) ? ` → ${result}` : "";
  put($("what"), step ? step.text + equals : `${walk.method}: ${walk.refused}`);
  const told = [];
  if (step && step.operands.length)
    told.push(`with ${step.operands.map(([n, slot]) => `${n} = ${number(memory[slot])}`).join(", ")}`);
  if (step && step.note) told.push(step.note);
  if (found !== undefined && !Number.isFinite(found)) {
    const first = numbers.findIndex(written => written.some(v => !Number.isFinite(v)));
    if (first < last) told.push(`not finite since step ${first + 1}: ${walk.steps[first].text}`);
  }
  put($("with"), told.join(" · "));
  $("place").value = last;
  $("place").setAttribute("aria-valuetext", `step ${last + 1} of ${all}`);
  $("start").disabled = $("back").disabled = last === 0;
  $("forward").disabled = $("end").disabled = last >= all - 1;
  const moves = []; // one layout for all: first everything is measured, then scrolled
  if (step && step.row >= 0)
    moves.push(reach($("trace"), parts.rows[step.row].row, $("rows").children, $("head").offsetHeight));
  if (step && step.line >= 0) moves.push(reach($("program"), parts.lines[step.line].item, $("lines").children));
  if (step && step.vertices.length && step.vertices.length < 3) {
    const vertex = parts.vertices.find(v => v.name === step.vertices[0]);
    if (vertex) moves.push(reach($("picture"), vertex.group));
  }
  for (const move of moves) move();
  remember();
}
