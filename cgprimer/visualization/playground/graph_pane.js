// The graph with its numbers. picture.js draws `data`, as on the step page.
let data = null;
function formatCell(value) { // a number, an array, or nothing
  return value === null || value === undefined ? "" : markRounding(typeof value === "object" ? value : parseNumeric(value));
}
function hasSameStructure(answer) { // as the picture that is shown, whose positions can stay
  const describe = ({ vertices, edges }) => JSON.stringify([vertices.map(vertex => [vertex.name ?? vertex[0], vertex.role ?? vertex[1]]), edges]);
  return data !== null && describe(data) === describe(answer);
}
function showGraph(answer) { // changes only the numbers if the picture has the right vertices and edges
  const same = hasSameStructure(answer), drawing = same ? data.drawing : answer.drawing;
  data = { ...answer, drawing, shapes: config.shapes, vertices: answer.vertices.map(({ name, role }, k) => [name, role, k]) };
  if (!same) buildGraph();
  const mark = answer.kind === "adjoint" ? "bar" : "dot";
  answer.vertices.forEach(({ name, role, expression }, k) => {
    const vertex = parts.vertices[k], derivative = formatCell(answer.derivatives?.[k]);
    showNumber(vertex.value, formatCell(answer.values?.[k]), vertex.room);
    showNumber(vertex.derivative, derivative && `${mark} ${derivative}`, vertex.room);
    setText(vertex.title, expression === role ? `${name}: ${role}` : `${name} = ${expression}`);
  });
  answer.edges.forEach((_, k) => setText(parts.edges[k].label, formatCell(answer.partials?.[k])));
  $("graph").setAttribute("aria-label", describeGraph(answer));
  showGradient(answer);
}
function buildGraph() {
  Object.assign(parts, { vertices: [], edges: [], rows: [], lines: [], results: [], ofRow: [] });
  $("graph").replaceChildren();
  $("legend").replaceChildren();
  buildPicture();
  buildRoles();
  for (const vertex of parts.vertices) vertex.title = addShape("title", vertex.group, {});
  showBeginning();
}
const LETTER_WIDTH = 10.9; // of the picture's monospaced letters; measuring each text would take long
function showNumber(node, text, room) {
  setText(node, text);
  if (text.length * LETTER_WIDTH > room) squeezeText(node, room);
  else node.removeAttribute("textLength");
}
function describeGraph({ vertices, values, derivatives, kind }) {
  const text = vertices.map(({ name }, k) =>
    values ? `${name} = ${formatCell(values[k])}, ${kind} ${formatCell(derivatives[k])}` : name);
  return `Computational graph. ${text.slice(0, 40).join("; ")}${text.length > 40 ? "; …" : ""}`;
}
function buildRoles() { // the legend of the shapes
  const roles = new Set(data.vertices.map(([, role]) => role));
  for (const [role, [, word]] of Object.entries(data.shapes).filter(([name]) => roles.has(name))) {
    const entry = addElement("span", $("legend"), "entry");
    addBody(addShape("svg", entry, { class: "swatch", viewBox: "-2 -2 64 40", "aria-hidden": "true" }), role, [30, 18, 58, 34]);
    addElement("span", entry, "", word);
  }
  addElement("span", $("legend"), "", "on edges: partial derivatives; bar: adjoints");
}
function showGradient({ gradient, target }) {
  const box = $("gradient");
  box.replaceChildren();
  for (const [name, value] of Object.entries(gradient ?? {})) {
    const chip = addElement("span", box, "chip");
    addElement("span", chip, "light", `d${target}/d${name} = `);
    chip.append(formatCell(value));
  }
}
const zoom = { scale: null }; // null: as large as the pane allows, but text stays readable
const MIN_SCALE = 0.02, MAX_SCALE = 4;
function computeScales() { // of the whole graph, and the default
  const pane = $("picture"), { width, height } = data.drawing, rem = parseFloat(getComputedStyle(root).fontSize) / 18;
  const whole = Math.min((pane.clientWidth - 8) / width, Math.max(pane.clientHeight - 8, 0.45 * innerHeight) / height);
  const readable = (innerWidth > 760 ? 0.72 : 0.55) * rem;
  return { whole, automatic: whole < 0.85 * readable ? readable : Math.min(whole, 1.5 * rem) };
}
function fitGraph() {
  if (!data) return;
  const { whole, automatic } = computeScales(), scale = zoom.scale ?? automatic;
  $("graph").style.width = `${data.drawing.width * scale}px`;
  $("graph").style.height = `${data.drawing.height * scale}px`;
  $("whole").hidden = automatic <= whole && zoom.scale === null; // everything is visible already
}
function zoomTo(scale) { // the center of the pane stays where it is
  const pane = $("picture"), { width, height } = $("graph").getBoundingClientRect();
  const x = (pane.scrollLeft + pane.clientWidth / 2) / width, y = (pane.scrollTop + pane.clientHeight / 2) / height;
  zoom.scale = scale && Math.max(MIN_SCALE, Math.min(MAX_SCALE, scale));
  fitGraph();
  const after = $("graph").getBoundingClientRect();
  pane.scrollTo(x * after.width - pane.clientWidth / 2, y * after.height - pane.clientHeight / 2);
}
const zoomBy = factor => data && zoomTo((zoom.scale ?? computeScales().automatic) * factor);
function showBeginning() { // of a graph that is larger than its pane
  zoom.scale = null;
  fitGraph();
  const [x, y] = data.drawing.boxes[0], scale = computeScales().automatic, pane = $("picture");
  pane.scrollTo(x * scale - pane.clientWidth / 2, y * scale - pane.clientHeight / 2);
}
panes.graph = { async refresh() {
  const answer = await askView("graph", { method: "reverse" });
  if (answer) showGraph(answer);
} };
new ResizeObserver(() => requestAnimationFrame(fitGraph)).observe($("picture"));
$("zoom-in").addEventListener("click", () => zoomBy(1.25));
$("zoom-out").addEventListener("click", () => zoomBy(0.8));
$("whole").addEventListener("click", () => data && zoomTo(computeScales().whole));
$("picture").addEventListener("wheel", event => {
  if (!event.ctrlKey) return;
  event.preventDefault();
  zoomBy(event.deltaY < 0 ? 1.1 : 1 / 1.1);
}, { passive: false });
