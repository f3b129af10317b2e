// The graph as SVG. parts.vertices and parts.edges have the elements that a step changes.
function addOutline(group, shape, [x, y, w, h], words, grow = 0) { // shapes as in vertex_shapes.py
  const [left, top, wide, high] = [x - w / 2 - grow, y - h / 2 - grow, w + 2 * grow, h + 2 * grow];
  if (shape === "hexagon") {
    const s = Math.min(12, w / 4), r = left + wide, b = top + high;
    return addShape("polygon", group, { class: words, points:
      `${left},${y} ${left + s},${top} ${r - s},${top} ${r},${y} ${r - s},${b} ${left + s},${b}` });
  }
  const round = { rounded: 10, circle: data.drawing.pill }[shape] ?? 0;
  return addShape("rect", group,
    { class: words, x: left, y: top, width: wide, height: high, rx: round });
}
function addBody(group, role, box) {
  const shape = data.shapes[role][0];
  addOutline(group, shape, box, `body ${role}`);
  if (shape === "double") addOutline(group, shape, box, `body ${role}`, -4);
}
const parts = {}; // elements of the page; showData() empties the lists
function buildPicture() {
  const svg = $("graph"), place = data.drawing;
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${place.width} ${place.height}`);
  data.edges.forEach(([tail, head], k) => {
    const line = place.lines[k], end = line[line.length - 1], tip = place.tips[k];
    const [dx, dy] = [tip[0] - end[0], tip[1] - end[1]], size = Math.hypot(dx, dy) || 1;
    const [ux, uy] = [dx / size * 6, dy / size * 6];
    const path = addShape("polyline", svg,
      { class: "edge", points: line.map(p => p.join(",")).join(" "), "data-edge": `${tail}>${head}` });
    const points = `${tip.join(",")} ${end[0] - uy},${end[1] + ux} ${end[0] + uy},${end[1] - ux}`;
    parts.edges.push({ path, points });
  });
  data.vertices.forEach(([name, role, row], k) => {
    const box = place.boxes[k], [x, y, w, h] = box;
    const group = addShape("g", svg, { class: "vertex", "data-vertex": name });
    addBody(group, role, box);
    addOutline(group, data.shapes[role][0], box, "ring", 5);
    // A flag, as in the tables, is a second cue in addition to the color, on a side without arrows.
    const left = x - w / 2 - 9, top = y - h / 2 - 9;
    addShape("polygon", group, { class: "flag", points: place.is_horizontal
      ? `${x},${top} ${x - 11},${top - 15} ${x + 11},${top - 15}`
      : `${left},${y} ${left - 15},${y - 11} ${left - 15},${y + 11}` });
    addShape("text", group, { class: "name", x, y: y - 15 }, name);
    const value = addShape("text", group, { x, y: y + 7 });
    const derivative = addShape("text", group, { x, y: y + 28 });
    const room = w - (data.shapes[role][0] === "hexagon" ? 30 : 16);
    parts.vertices.push({ name, group, value, derivative, room });
    parts.ofRow[row] = parts.vertices[k];
  });
  for (const edge of parts.edges) // arrow heads are above the rings of highlighted vertices
    edge.arrow = addShape("polygon", svg, { class: "tip", points: edge.points });
  data.edges.forEach((_, k) => { // numbers are above everything else
    const [x, y] = place.labels[k];
    parts.edges[k].label = addShape("text", svg, { class: "partial", x, y: y + 6 });
  });
}
function squeezeText(text, room) { // narrows a long number to the width of its vertex
  text.removeAttribute("textLength");
  if (text.textContent.length > 11 && text.getComputedTextLength() > room) {
    text.setAttribute("textLength", room);
    text.setAttribute("lengthAdjust", "spacingAndGlyphs");
  }
}
function fitPicture() { // fills the pane, but text has at least 14 pt at 1920 pixels
  const pane = $("picture"), { width, height } = data.drawing;
  const rem = Math.max(window.innerWidth / 100, window.innerWidth > 700 ? 10 : 12);
  const fits = Math.min((pane.clientWidth - rem) / width, (pane.clientHeight - rem) / height);
  const readable = rem / 18 * 0.98, large = fits < readable;
  $("whole").hidden = !large;
  const scale = large && !state.whole ? readable : Math.min(fits, rem / 18 * 1.5);
  $("graph").style.width = `${width * scale}px`;
  $("graph").style.height = `${height * scale}px`;
}
function buildLegend() {
  $("legend").replaceChildren();
  const roles = [...new Set(data.vertices.map(([, role]) => role))];
  for (const [role, [, word]] of Object.entries(data.shapes)) {
    if (!roles.includes(role)) continue;
    const entry = addElement("span", $("legend"), "entry");
    const swatch = addShape("svg", entry, { class: "swatch", viewBox: "-2 -2 64 40" });
    addBody(swatch, role, [30, 18, 58, 34]);
    addElement("span", entry, "", word);
  }
  const lit = addElement("span", $("legend"), "entry");
  const swatch = addShape("svg", lit, { class: "swatch lit", viewBox: "-2 -2 64 40" });
  addShape("polygon", swatch, { class: "flag", points: "14,18 0,8 0,28" });
  addShape("line", swatch, { class: "edge lit", x1: 18, y1: 18, x2: 60, y2: 18 });
  addElement("span", lit, "", "this step");
  parts.flow = addElement("span", $("legend"), "entry");
}
