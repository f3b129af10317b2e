// The graph with its numbers. picture.js draws `data`, as on the step page.
let data = null;
function formatCell(value) { // a number, an array, or nothing
  return value === null || value === undefined ? "" : markRounding(typeof value === "object" ? value : parseNumeric(value));
}
function hasSameStructure(answer) { // as the picture that is shown, whose positions can stay
  const describe = ({ vertices, edges }) => JSON.stringify([vertices.map(vertex => vertex.name ?? vertex[0]), edges]);
  return data !== null && describe(data) === describe(answer);
}
function showGraph(answer) {
  if (hasSameStructure(answer)) answer.drawing = data.drawing;
  data = { ...answer, shapes: config.shapes,
    vertices: answer.vertices.map(({ name, role }, k) => [name, role, k]) };
  Object.assign(parts, { vertices: [], edges: [], rows: [], lines: [], results: [], ofRow: [] });
  $("graph").replaceChildren();
  $("legend").replaceChildren();
  buildPicture();
  buildRoles();
  fitGraph();
  const mark = answer.kind === "adjoint" ? "bar" : "dot";
  answer.vertices.forEach(({ name, role, expression }, k) => {
    const vertex = parts.vertices[k], derivative = formatCell(answer.derivatives?.[k]);
    setText(vertex.value, formatCell(answer.values?.[k]));
    setText(vertex.derivative, derivative && `${mark} ${derivative}`);
    for (const text of [vertex.value, vertex.derivative]) squeezeText(text, vertex.room);
    addShape("title", vertex.group, {}, expression === role ? `${name}: ${role}` : `${name} = ${expression}`);
  });
  answer.edges.forEach((_, k) => setText(parts.edges[k].label, formatCell(answer.partials?.[k])));
  $("graph").setAttribute("aria-label", describeGraph(answer));
  showGradient(answer);
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
  addElement("span", $("legend"), "", "on the edges: local partial derivatives; bar: adjoints");
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
function fitGraph() { // as large as the pane allows, but text stays readable; then the pane scrolls
  if (!data) return;
  const pane = $("picture"), { width, height } = data.drawing;
  const rem = parseFloat(getComputedStyle(root).fontSize);
  const fits = Math.min((pane.clientWidth - 8) / width, Math.max(pane.clientHeight - 8, 0.45 * innerHeight) / height);
  const scale = Math.min(Math.max(fits, (innerWidth > 760 ? 0.72 : 0.55) * rem / 18), 1.5 * rem / 18);
  $("graph").style.width = `${width * scale}px`;
  $("graph").style.height = `${height * scale}px`;
}
panes.graph = { async refresh() {
  const answer = await askView("graph", { method: "reverse" });
  if (answer) showGraph(answer);
} };
new ResizeObserver(() => requestAnimationFrame(fitGraph)).observe($("picture"));
