// The page with steps: data.walks[k].steps list the values of the walk's tape that become visible.
// No text of a user is executed: an instruction names a function of PRIMITIVES.
const parseNumbers = walk => ({ ...walk, numbers: walk.numbers.map(parseNumeric) });
function parseData(read) {
  const point = Object.fromEntries(Object.entries(read.point).map(([n, v]) => [n, parseNumeric(v)]));
  return { ...read, point, walks: read.walks.map(parseNumbers), others: read.others.map(parseNumbers) };
}
let data = null, state = null; // showData() sets both
const getIndex = () => state.frames[state.walk];
// Replaces the step of a method that has none.
const NOTHING = { text: "", line: -1, row: -1, result: -1, operands: [], vertices: [], edges: [], note: "" };
const getNumbers = walk => state.computed ? state.computed[walk] : data.walks[walk].numbers;

function buildRows() {
  $("rows").replaceChildren();
  data.rows.forEach(([name, expression]) => {
    const row = addElement("tr", $("rows"));
    row.setAttribute("role", "row"); // the style sheet removes the roles of table elements
    const mark = addElement("td", row, "mark");
    addElement("td", row, "", name);
    addElement("td", row, "expression", expression);
    const value = addElement("td", row, "number"), derivative = addElement("td", row, "number");
    for (const cell of row.cells) cell.setAttribute("role", "cell");
    parts.rows.push({ row, mark, value, derivative });
  });
}
function fitPanes(walk) { // widths of trace and program; the graph has the rest
  const style = document.querySelector("main").style, longest = texts => Math.max(0, ...texts.map(text => text.length));
  const [name, expression] = [0, 1].map(k => longest(data.rows.map(row => row[k])));
  const wide = (letters, more) => data.arrays ? "100%" // arrays fill the available width
    : `calc(${0.95 * letters}ch + ${more}rem)`; // these letters are narrower than the zero of main
  style.setProperty("--rows", wide(Math.max(4, name) + 1 + Math.max(10, expression) + 12 + 13, 4.6));
  style.setProperty("--code", wide(longest(walk.lines) + 9, 3.4));
}
function buildProgram() {
  const walk = data.walks[state.walk];
  $("lines").replaceChildren();
  parts.lines = walk.lines.map(text => {
    const item = addElement("li", $("lines"));
    const mark = addElement("span", item, "mark");
    addElement("span", item, "code", text);
    return { item, mark, value: addElement("span", item, "number") };
  });
  if (walk.refusal) { // no line breaks within options
    const words = addElement("span", addElement("li", $("lines"), "refused"), "code");
    for (const part of walk.refusal.split(/(--\S+)/))
      if (part.startsWith("--")) addElement("span", words, "word", part);
      else words.append(part);
  }
  fitPanes(walk);
  buildHeading(walk.derivative || "derivative");
  $("place").max = Math.max(0, walk.steps.length - 1);
  parts.flow.textContent = walk.edge_numbers ? `on the edges: ${walk.edge_numbers}` : "";
  $("differences").hidden = !walk.scheme;
  state.shown = null;
}
function buildHeading(title) { // no line breaks within words; long titles break after a slash
  const heading = $("derivative");
  heading.title = title;
  heading.replaceChildren();
  const words = title.split(" ").flatMap(word => word.length > 13 ? word.split(/(?<=[/])/) : [word]);
  words.forEach((word, k) => {
    if (k) heading.append(words[k - 1].endsWith("/") ? document.createElement("wbr") : " ");
    const cut = word.length > 11 && words.length > 1 && word.endsWith("/");
    addElement("span", heading, "word", cut ? `${word.slice(0, 9)}…/` : word);
  });
}
function fitColumns() { // as wide as the widest number of the walk, so that columns do not move
  const walk = data.walks[state.walk], numbers = getNumbers(state.walk);
  // "not computed"; and the heading, whose bold letters are wider than those of the numbers
  const words = [...$("derivative").children].map(word => 1.15 * word.textContent.length);
  const widest = { value: 12, derivative: Math.max(13, ...words), line: 1 };
  for (const step of walk.steps) {
    for (const [column, , value] of step.reveals) if (column in widest)
      widest[column] = Math.max(widest[column], markRounding(numbers[value]).length);
    if (step.line >= 0 && step.result >= 0)
      widest.line = Math.max(widest.line, markRounding(numbers[step.result]).length);
  }
  const name = Math.max(4, ...data.rows.map(row => row[0].length));
  const style = $("trace").style;
  style.setProperty("--name", `${name + 1}ch`);
  style.setProperty("--value", `${widest.value}ch`);
  style.setProperty("--derivative", `${widest.derivative}ch`);
  $("program").style.setProperty("--line", `${widest.line}ch`);
}

// --- what a step changes -------------------------------------------------------------------------
const isNotFinite = value => typeof value === "number" && !Number.isFinite(value);
function markNotFinite(node, value) {
  const is = isNotFinite(value);
  if (node.classList.contains("odd") !== is) node.classList.toggle("odd", is);
}
function paintRow(k, known, walk, unmoved) {
  const row = parts.rows[k], vertex = parts.ofRow[k];
  const value = known.get(`value:${k}`), derivative = known.get(`derivative:${k}`);
  const sum = derivative === undefined ? known.get(`sofar:${k}`) : undefined;
  const part = sum === undefined ? "" : `${markRounding(sum)} + …`;
  setText(row.value, value === undefined ? UNKNOWN : markRounding(value), value === undefined);
  setText(row.derivative, derivative === undefined ? part || UNKNOWN : markRounding(derivative),
    derivative === undefined);
  markNotFinite(row.value, value);
  markNotFinite(row.derivative, derivative ?? sum);
  if (!vertex) return;
  setText(vertex.value, value === undefined ? UNKNOWN : formatShifted(value, unmoved.get(`value:${k}`)),
    value === undefined);
  setText(vertex.derivative, derivative === undefined ? part
    : `${walk.mark} ${markRounding(derivative)}`, derivative === undefined);
  markNotFinite(vertex.value, value);
  markNotFinite(vertex.derivative, derivative ?? sum);
  for (const text of [vertex.value, vertex.derivative]) squeezeText(text, vertex.room);
}
const painters = {
  value: paintRow, derivative: paintRow, sofar: paintRow,
  edge: (k, known) => {
    const { label } = parts.edges[k], value = known.get(`edge:${k}`);
    setText(label, value === undefined ? "" : value.shape ?? markRounding(value));
    markNotFinite(label, value);
  },
  line: (k, known) => {
    const node = parts.lines[k].value, value = known.get(`line:${k}`);
    setText(node, value === undefined ? "" : markRounding(value));
    markNotFinite(node, value);
  },
  result: (k, known, walk) => {
    const { chip, value, error } = parts.results[k], found = known.get(`result:${k}`);
    setText(value, found === undefined ? UNKNOWN : markRounding(found, 8), found === undefined);
    markNotFinite(value, found);
    chip.classList.toggle("done", found !== undefined);
    const exact = walk.scheme && found !== undefined ? state.exact?.[k] : undefined;
    setText(error, exact === undefined ? "" : `error ${formatNumber(Math.abs(found - exact), 3)}`);
  },
};
function paintFrame({ known, unmoved, touched }, walk) {
  if (touched) for (const key of touched) {
    const [column, k] = key.split(":");
    painters[column](Number(k), known, walk, unmoved);
  } else {
    parts.rows.forEach((_, k) => paintRow(k, known, walk, unmoved));
    for (const column of ["edge", "line", "result"])
      parts[`${column}s`].forEach((_, k) => painters[column](k, known, walk));
  }
}
function highlightStep(step) { // highlights the current instruction in picture, trace and program
  const row = parts.rows[step.row], nodes = [row?.row, parts.lines[step.line]?.item];
  for (const { name, group } of parts.vertices) if (step.vertices.includes(name)) nodes.push(group);
  for (const k of step.edges) nodes.push(parts.edges[k].path, parts.edges[k].arrow);
  const lit = nodes.filter(node => node).map(node => [node, "lit"]);
  if (row?.[step.column]) lit.push([row[step.column], "at"]);
  for (const [node, word] of state.lit)
    if (!lit.some(([n, w]) => n === node && w === word)) node.classList.remove(word);
  for (const [node, word] of lit) if (!node.classList.contains(word)) node.classList.add(word);
  state.lit = lit;
}
function planScroll(pane, node, nodes = null, above = 0) { // scrolls the pane only if the element is not visible
  const a = pane.getBoundingClientRect(), b = node.getBoundingClientRect();
  const high = a.height - above, top = b.top - a.top - above;
  let down = 0;
  if (top < 0 || top + b.height > high * 0.88) {
    down = top - high * 0.4;
    if (nodes) { // the first line is completely visible
      const goal = pane.scrollTop + down + above;
      let low = 0, up = nodes.length - 1;
      while (low < up) {
        const middle = (low + up) >> 1;
        if (nodes[middle].offsetTop < goal) low = middle + 1;
        else up = middle;
      }
      const most = pane.scrollHeight - pane.clientHeight;
      while (low > 0 && nodes[low].offsetTop - above > most) low--; // near the end
      down = nodes[low].offsetTop - above - pane.scrollTop;
    }
  }
  const across = !nodes && (b.left < a.left || b.right > a.right) // lists stay at their left
    ? b.left - a.left - (a.width - b.width) / 2 : 0;
  return () => { if (down || across) pane.scrollBy(across, down); };
}
function planSideScroll(pane, { row }, cell) { // scrolls to the current column, next to the name, which stays
  const [a, b, name] = [pane, cell, row.cells[1]].map(node => node.getBoundingClientRect());
  const across = Math.max(0, b.right - a.right) || Math.min(0, b.left - name.right);
  return () => { if (across) pane.scrollBy(across, 0); };
}
function showFrame() {
  const walk = data.walks[state.walk], last = getIndex(), step = walk.steps[last] ?? NOTHING;
  const numbers = getNumbers(state.walk);
  state.shown = computeFrame(walk, numbers, last, state.shown);
  paintFrame(state.shown, walk);
  highlightStep(step);
  const all = walk.steps.length;
  setText($("count"), all ? `step ${last + 1} of ${all}` : "");
  setText($("phase"), walk.phases[step.phase]?.title ?? "");
  const found = numbers[step.result], result = found === undefined ? "" : markRounding(found, 8);
  const sign = step.text.includes(" = ") ? " →" : ":"; // a path has arrows of its own
  const equals = result && !step.text.endsWith(` = ${result}`) ? `${sign} ${result}` : "";
  setText($("what"), all ? step.text + equals : `${walk.method}: ${walk.refusal}`);
  const notes = [];
  if (step.operands.length) {
    const operands = step.operands.map(([n, value]) => `${n} = ${markRounding(numbers[value])}`.replace("= ≈", "≈ "));
    if (operands.length > 8) operands.splice(7, operands.length - 8, "…"); // as many as names in a text
    notes.push(`with ${operands.join(", ")}`);
  }
  if (step.note) notes.push(step.note);
  if (isNotFinite(found)) {
    const first = walk.steps.findIndex(s => s.result >= 0 && isNotFinite(numbers[s.result]));
    if (first >= 0 && first < last) notes.push(`not finite since step ${first + 1}: ${walk.steps[first].text}`);
  }
  setText($("with"), notes.join(" · "));
  $("place").value = last;
  $("place").setAttribute("aria-valuetext", `step ${last + 1} of ${all}`);
  $("start").disabled = $("back").disabled = last === 0;
  $("forward").disabled = $("end").disabled = last >= all - 1;
  const moves = []; // everything is measured before anything scrolls, which needs one layout
  const row = parts.rows[step.row];
  if (row) moves.push(planScroll($("trace"), row.row, $("rows").children, $("head").offsetHeight));
  if (row?.[step.column]) moves.push(planSideScroll($("trace"), row, row[step.column]));
  if (step.line >= 0) moves.push(planScroll($("program"), parts.lines[step.line].item, $("lines").children));
  const vertex = parts.vertices.find(v => v.name === step.vertices[0]);
  if (vertex && step.vertices.length < 3) moves.push(planScroll($("picture"), vertex.group));
  for (const move of moves) move();
  updateQuestion();
  storeAddress();
  reportState();
}
