// Positions of the visible boxes, and the picture on the canvas. Lengths are in pixels at scale 1.
const canvas = $("picture"), pen = canvas.getContext("2d");
const FONT = '"DejaVu Sans", Verdana, sans-serif', LABEL = `bold 16px ${FONT}`, DETAIL = `13px ${FONT}`;
const LINE = 18, PAD = 14, HEADER = 30, MAX_LINES = 3, MAX_CHARACTERS = 34, READABLE = 7, MANY = 4000;
const X = new Float64Array(N + G), Y = new Float64Array(N + G), W = new Float64Array(N + G), H = new Float64Array(N + G);
const view = { x: 0, y: 0, scale: 1, width: 0, height: 0 }; // a point p is drawn at x + scale * p
const sizes = new Array(N + G), layouts = new Array(G);
const shorten = text => text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS - 1)}…` : text;
function listLines(box) { // below the label
  if (isGroup(box)) return [formatCount(getSize(box), "vertex", "vertices")];
  return details[box] ? details[box].split("\n", MAX_LINES).map(shorten) : [];
}
function measureText(text, font) {
  pen.font = font;
  return pen.measureText(text).width;
}
function measureBox(box) { // of a vertex or a closed group
  if (sizes[box]) return sizes[box];
  const lines = listLines(box);
  const width = Math.max(measureText(shorten(getLabel(box)), LABEL), ...lines.map(line => measureText(line, DETAIL)));
  return sizes[box] = [Math.max(44, Math.ceil(width) + 2 * PAD), 26 + LINE * lines.length];
}
function measureMember(box) {
  if (!isGroup(box) || !open[box - N]) return measureBox(box);
  const { width, height } = layouts[box - N];
  return [Math.max(width, measureBox(box)[0] + 60) + 2 * PAD, height + HEADER + PAD];
}
// The distance of columns, with room for the labels of edges between vertices.
function measureEdgeGap(edges) {
  if (!data.edges.labels.length || edges.length > 100) return COLUMN_GAP;
  const widths = edges.filter(([tail, head]) => !isGroup(tail) && !isGroup(head)).map(([tail, head]) => {
    const [, e] = listHeads(tail).find(([vertex]) => vertex === head);
    return measureText(shorten(data.edges.labels[e].split("\n")[0]), DETAIL) + 30;
  });
  return Math.max(COLUMN_GAP, ...widths);
}
function forgetLayouts(g) { // of a group and the groups around it
  for (; g >= 0; g = parents[N + g]) layouts[g] = undefined;
}
const pause = () => new Promise(resolve => { setTimeout(resolve); });
// Computes the missing layouts in slices of 30 milliseconds, so that the page answers meanwhile.
async function computeLayouts(isCurrent, report) {
  const missing = [0, ...visible.frames.map(box => box - N)].filter(g => !layouts[g]).reverse();
  let start = performance.now();
  for (const [done, g] of missing.entries()) {
    layouts[g] = layOutMembers(listMembers(g), innerEdges[g], measureMember, measureEdgeGap(innerEdges[g]));
    if (performance.now() - start < 30) continue;
    report(done / missing.length);
    await pause();
    if (!isCurrent()) return false;
    start = performance.now();
  }
  return true;
}
function placeBoxes() {
  const bends = new Map();
  const place = (g, left, top) => {
    for (const [box, x, y] of layouts[g].boxes) {
      [X[box], Y[box]] = [left + x, top + y];
      [W[box], H[box]] = measureMember(box);
      if (isGroup(box) && open[box - N]) place(box - N, X[box] + PAD, Y[box] + HEADER);
    }
    for (const [key, points] of layouts[g].bends) bends.set(key, points.map((p, i) => p + (i % 2 ? top : left)));
  };
  place(0, 0, 0);
  visible.bends = visible.tails.map((tail, i) => bends.get(`${tail} ${visible.heads[i]}`));
  [X[N], Y[N], W[N], H[N]] = [0, 0, layouts[0].width, layouts[0].height];
}
function shiftBoxes(dx, dy) {
  for (const box of [N, ...visible.boxes, ...visible.frames]) { X[box] += dx; Y[box] += dy; }
  for (const points of visible.bends) if (points) points.forEach((p, i) => { points[i] = p + (i % 2 ? dy : dx); });
}
// Movement of the boxes from the previous layout.
let moving = false;
function animate(before) {
  const boxes = [...visible.frames, ...visible.boxes], end = boxes.map(box => [X[box], Y[box], W[box], H[box]]);
  const begin = boxes.map((box, i) => {
    let known = box;
    while (known >= 0 && !before.has(known)) known = getParent(known) > 0 ? N + getParent(known) : -1;
    return known < 0 ? end[i] : before.get(known);
  });
  const start = performance.now(), duration = 200, set = (i, t) => {
    [X, Y, W, H].forEach((values, k) => { values[boxes[i]] = begin[i][k] + (end[i][k] - begin[i][k]) * t; });
  };
  moving = true;
  const step = now => {
    const t = Math.min(1, Math.max(0, (now - start) / duration));
    for (let i = 0; i < boxes.length; i++) set(i, t * (2 - t));
    moving = t < 1;
    draw();
    if (moving) requestAnimationFrame(step);
  };
  set(0, 0);
  for (let i = 0; i < boxes.length; i++) set(i, 0);
  requestAnimationFrame(step);
}
const copyPositions = () => new Map([...visible.frames, ...visible.boxes].map(box => [box, [X[box], Y[box], W[box], H[box]]]));
// Colors of the theme, read from the style sheet.
let colors = {};
function readColors() {
  const style = getComputedStyle(root), names = ["background", "ink", "edge", "grid", "faint", "lit", "focus"];
  for (const { name } of data.roles) names.push(name, `${name}-fill`);
  colors = Object.fromEntries(names.map(name => [name, style.getPropertyValue(`--${name}`).trim()]));
}
function fit(box = N) { // shows a box or the whole graph
  const margin = 24, { width, height } = view;
  const scale = Math.min((width - 2 * margin) / Math.max(W[box], 1), (height - 2 * margin) / Math.max(H[box], 1));
  view.scale = Math.min(1.25, Math.max(scale, 1e-4));
  center(box);
}
function center(box) {
  view.x = view.width / 2 - view.scale * (X[box] + W[box] / 2);
  view.y = view.height / 2 - view.scale * (Y[box] + H[box] / 2);
  requestDraw();
}
function zoom(factor, x = view.width / 2, y = view.height / 2) {
  const scale = Math.min(4, Math.max(view.scale * factor, 1e-4)), ratio = scale / view.scale;
  [view.x, view.y, view.scale] = [x - ratio * (x - view.x), y - ratio * (y - view.y), scale];
  requestDraw();
}
function pan(dx, dy) { view.x += dx; view.y += dy; requestDraw(); }
// A picture that takes long is not drawn again in each frame: while the reader moves it, the last
// picture is moved instead, and the new one is drawn after the last movement.
const SLOW = 25, REST = 120; // milliseconds
const snapshot = { image: document.createElement("canvas"), cost: 0 };
let requested = false, timer = 0;
function requestDraw() {
  if (requested) return;
  requested = true;
  requestAnimationFrame(() => {
    requested = false;
    if (snapshot.cost < SLOW) { draw(); return; }
    drawSnapshot();
    clearTimeout(timer);
    timer = setTimeout(draw, REST);
  });
}
function keepSnapshot(cost) {
  snapshot.cost = cost;
  if (cost < SLOW) return;
  const { image } = snapshot;
  if (image.width !== canvas.width || image.height !== canvas.height) [image.width, image.height] = [canvas.width, canvas.height];
  image.getContext("2d").drawImage(canvas, 0, 0);
  Object.assign(snapshot, { x: view.x, y: view.y, scale: view.scale });
}
function drawSnapshot() {
  const ratio = devicePixelRatio, zoomed = view.scale / snapshot.scale;
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.fillStyle = colors.background;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.setTransform(zoomed, 0, 0, zoomed, ratio * (view.x - zoomed * snapshot.x), ratio * (view.y - zoomed * snapshot.y));
  pen.drawImage(snapshot.image, 0, 0);
  drawOverview(listArea());
}
// What is highlighted: the selected box, and the vertices that `marked` contains, if any.
const highlight = { box: -1, marked: null };
function isMarked(box) {
  if (!highlight.marked) return false;
  return isGroup(box) ? highlight.marked.subarray(first[box - N], last[box - N]).includes(1) : highlight.marked[box] === 1;
}
const dropped = new Set(data.vertices.dropped), emphasized = new Set(data.vertices.emphasis);
const droppedEdges = new Set(data.edges.dropped), emphasizedEdges = new Set(data.edges.emphasis);
function traceOutline(path, shape, x, y, w, h) {
  if (shape === "hexagon") {
    const slant = Math.min(12, w / 4);
    path.moveTo(x, y + h / 2); path.lineTo(x + slant, y); path.lineTo(x + w - slant, y);
    path.lineTo(x + w, y + h / 2); path.lineTo(x + w - slant, y + h); path.lineTo(x + slant, y + h);
    path.closePath();
  } else if (shape === "rounded" || shape === "circle") path.roundRect(x, y, w, h, shape === "circle" ? Math.min(22, h / 2) : 10);
  else path.rect(x, y, w, h);
}
const groupRoles = Int32Array.from({ length: G }, (_, g) => {
  const role = roles[first[g]];
  for (let v = first[g] + 1; v < last[g]; v++) if (roles[v] !== role) return -1;
  return role;
});
const GROUP_STYLE = { name: "edge", shape: "rectangle", width: 1.6 };
const getRole = box => data.roles[isGroup(box) ? groupRoles[box - N] : roles[box]] ?? GROUP_STYLE;
function drawShape(box, x, y, w, h) {
  const role = getRole(box), path = new Path2D();
  pen.fillStyle = colors[`${role.name}-fill`] ?? colors.background;
  pen.strokeStyle = colors[role.name];
  pen.lineWidth = emphasized.has(box) ? role.width + 2 : role.width;
  traceOutline(path, role.shape, x, y, w, h);
  pen.setLineDash(role.shape === "dotted" ? [2, 3] : dropped.has(box) ? [4, 3] : []);
  pen.fill(path);
  pen.stroke(path);
  if (role.shape === "double") pen.strokeRect(x + 4, y + 4, w - 8, h - 8);
  pen.setLineDash([]);
}
function drawBox(box, fades) {
  const x = X[box], y = Y[box], w = W[box], h = H[box], { scale } = view;
  if (fades) pen.globalAlpha = isMarked(box) ? 1 : 0.3;
  if (dropped.has(box)) pen.globalAlpha *= 0.5;
  if (h * scale < 6) {
    pen.fillStyle = colors[getRole(box).name];
    pen.fillRect(x, y, Math.max(w, 1 / scale), Math.max(h, 1 / scale));
  } else {
    if (isGroup(box)) for (const offset of [8, 4]) drawShape(box, x + offset, y + offset, w - 4, h - 4); // a stack
    drawShape(box, x, y, isGroup(box) ? w - 4 : w, isGroup(box) ? h - 4 : h);
    if (16 * scale >= READABLE) drawText(box, x + (isGroup(box) ? w - 4 : w) / 2, y + 18);
  }
  pen.globalAlpha = 1;
  if (box === highlight.box || (fades && isMarked(box))) { // wider than any outline of a role
    pen.strokeStyle = box === highlight.box ? colors.focus : colors.lit;
    pen.lineWidth = Math.max(4, 3 / scale);
    pen.strokeRect(x - 5, y - 5, w + 10, h + 10);
  }
}
function drawText(box, x, y) {
  pen.textAlign = "center";
  pen.fillStyle = colors.ink;
  pen.font = LABEL;
  pen.fillText(shorten(getLabel(box)), x, y + 1);
  pen.font = DETAIL;
  listLines(box).forEach((line, i) => pen.fillText(line, x, y + LINE * (i + 1)));
}
function drawFrame(box) {
  const { scale } = view, x = X[box], y = Y[box], w = W[box], h = H[box];
  if (w * scale < 3) return;
  const selected = box === highlight.box;
  pen.fillStyle = colors.grid;
  pen.globalAlpha = 0.22;
  pen.fillRect(x, y, w, h);
  pen.globalAlpha = 1;
  pen.strokeStyle = selected ? colors.focus : colors.faint;
  pen.lineWidth = (selected ? 4 : 1.2) / Math.min(scale, 1);
  pen.strokeRect(x, y, w, h);
}
function drawFrameTitle(box, hasRoom) { // at least 11 pixels high, if there is room for it
  const { scale } = view, size = Math.max(16, 11 / scale), text = `− ${getLabel(box)}`;
  if (size * 1.3 > Math.max(HEADER, H[box] / 4)) return;
  pen.font = `bold ${size}px ${FONT}`;
  const { width } = pen.measureText(text), x = X[box] + size / 2, y = Y[box] + Math.max(21, 1.15 * size);
  if (width + size > W[box] || !hasRoom(view.x + scale * (x + width / 2), view.y + scale * (y - size / 3), scale * width, scale * size)) return;
  pen.textAlign = "left";
  pen.lineJoin = "round";
  pen.strokeStyle = colors.background;
  pen.lineWidth = size / 4;
  if (size > 22) pen.strokeText(text, x, y);
  pen.fillStyle = colors.ink;
  pen.fillText(text, x, y);
}
// Edges.
function traceEdge(path, i, straight) {
  const { tails, heads, bends } = visible, tail = tails[i], head = heads[i];
  let x = X[tail] + W[tail], y = Y[tail] + H[tail] / 2;
  const points = moving ? undefined : bends[i], endX = X[head] - 2, endY = Y[head] + H[head] / 2;
  path.moveTo(x, y);
  if (straight) { path.lineTo(endX, endY); return; }
  const turn = (a, b) => {
    const bow = a > x ? (a - x) / 2 : Math.min(80, 30 + (x - a) / 4);
    path.bezierCurveTo(x + bow, y, a - bow, b, a, b);
    [x, y] = [a, b];
  };
  if (points) for (let k = 0; k < points.length; k += 2) turn(points[k], points[k + 1]);
  turn(endX, endY);
}
function traceArrow(path, i) {
  const box = data.backward ? visible.tails[i] : visible.heads[i], way = data.backward ? -1 : 1;
  const x = data.backward ? X[box] + W[box] : X[box], y = Y[box] + H[box] / 2;
  path.moveTo(x, y); path.lineTo(x - 10 * way, y - 5); path.lineTo(x - 10 * way, y + 5); path.closePath();
}
function isInView(i, [left, top, right, bottom]) {
  const tail = visible.tails[i], head = visible.heads[i], y = Y[tail] + H[tail] / 2, z = Y[head] + H[head] / 2;
  if (Math.max(X[tail] + W[tail], X[head]) < left || Math.min(X[tail] + W[tail], X[head]) > right) return false;
  const points = visible.bends[i];
  return (points !== undefined) || (Math.max(y, z) >= top && Math.min(y, z) <= bottom);
}
const getEdgeWidth = count => count === 1 ? 1.5 : Math.min(4, 1.5 + Math.log2(count) / 4);
function drawEdges(area) {
  const seen = visible.tails.map((_, i) => i).filter(i => isInView(i, area)), { scale } = view;
  const straight = seen.length > MANY, fades = highlight.marked !== null;
  const buckets = new Map();
  for (const i of seen) {
    const { tails, heads, counts, edges } = visible, single = counts[i] === 1;
    const joins = tails[i] === highlight.box || heads[i] === highlight.box || (fades && isMarked(tails[i]) && isMarked(heads[i]));
    const strong = joins || (single && emphasizedEdges.has(edges[i])), dashed = single && droppedEdges.has(edges[i]);
    const width = Math.max(Math.round(2 * getEdgeWidth(counts[i])) / 2, 0.5 / scale) + (strong ? Math.max(1.5, 1.5 / scale) : 0);
    const key = `${width} ${strong} ${dashed}`;
    if (!buckets.has(key)) buckets.set(key, { width, strong, dashed, list: [] });
    buckets.get(key).list.push(i);
  }
  for (const { width, strong, dashed, list } of [...buckets.values()].sort((a, b) => a.strong - b.strong)) {
    const lines = new Path2D(), arrows = new Path2D();
    for (const i of list) {
      traceEdge(lines, i, straight && !strong);
      if (scale > 0.3) traceArrow(arrows, i);
    }
    pen.strokeStyle = pen.fillStyle = strong ? colors.lit : colors.edge;
    pen.globalAlpha = strong ? 1 : fades || dashed ? 0.25 : straight ? 0.35 : 0.65;
    pen.lineWidth = width;
    pen.setLineDash(dashed ? [4, 3] : []);
    pen.stroke(lines);
    pen.fill(arrows);
  }
  pen.setLineDash([]);
  pen.globalAlpha = 1;
  return seen;
}
function getEdgeLabel(i) { // the number of merged edges, or the label of an edge
  const { counts, edges } = visible;
  return counts[i] > 1 ? counts[i].toLocaleString("en") : shorten((data.edges.labels[edges[i]] ?? "").split("\n")[0]);
}
// Texts that would cover an earlier text are omitted.
function createTextArea() {
  const taken = new Set();
  return (x, y, width, height) => {
    const cells = [];
    for (let a = Math.floor((x - width / 2) / 12); a <= (x + width / 2) / 12; a++) {
      for (let b = Math.floor((y - height / 2) / 8); b <= (y + height / 2) / 8; b++) cells.push(a * 1e7 + b);
    }
    if (cells.some(cell => taken.has(cell))) return false;
    for (const cell of cells) taken.add(cell);
    return true;
  };
}
function drawEdgeLabels(seen) {
  if (moving || 13 * view.scale < READABLE || seen.length > MANY) return;
  const hasRoom = createTextArea();
  pen.font = DETAIL;
  pen.textAlign = "center";
  pen.lineJoin = "round";
  pen.lineWidth = 4;
  for (const i of seen) {
    const text = getEdgeLabel(i);
    if (!text) continue;
    const { tails, heads, bends } = visible, tail = tails[i], head = heads[i], points = bends[i];
    const x = (X[tail] + W[tail] + (points ? points[0] : X[head])) / 2;
    const y = (Y[tail] + H[tail] / 2 + (points ? points[1] : Y[head] + H[head] / 2)) / 2;
    if (!hasRoom(x, y, pen.measureText(text).width, 16)) continue;
    pen.strokeStyle = colors.background;
    pen.strokeText(text, x, y + 4);
    pen.fillStyle = colors.ink;
    pen.fillText(text, x, y + 4);
  }
}
function listArea() { // the visible part of the plane
  const { x, y, scale, width, height } = view;
  return [-x / scale, -y / scale, (width - x) / scale, (height - y) / scale];
}
function draw() {
  const start = performance.now(), ratio = devicePixelRatio, { scale, width, height } = view;
  clearTimeout(timer);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.fillStyle = colors.background;
  pen.fillRect(0, 0, width, height);
  pen.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * view.x, ratio * view.y);
  const area = listArea(), [left, top, right, bottom] = area;
  const inView = box => X[box] <= right && X[box] + W[box] >= left && Y[box] <= bottom && Y[box] + H[box] >= top;
  const frames = visible.frames.filter(inView), boxes = visible.boxes.filter(inView);
  for (const box of frames) drawFrame(box);
  drawEdgeLabels(drawEdges(area));
  for (const box of boxes) drawBox(box, highlight.marked !== null);
  const hasRoom = createTextArea();
  for (const box of frames) drawFrameTitle(box, hasRoom);
  keepSnapshot(performance.now() - start);
  drawOverview(area);
}
// A small picture of everything, with the visible part in a frame.
const overview = $("overview"), small = overview.getContext("2d");
let miniature = null;
function drawMiniature() {
  const ratio = devicePixelRatio, image = document.createElement("canvas"), brush = image.getContext("2d");
  [image.width, image.height] = [overview.width, overview.height] = [180 * ratio, 120 * ratio];
  const scale = Math.min(image.width / W[N], image.height / H[N]) * 0.94;
  const x = (image.width - scale * W[N]) / 2 - scale * X[N], y = (image.height - scale * H[N]) / 2 - scale * Y[N];
  for (const box of visible.boxes) {
    brush.fillStyle = colors[getRole(box).name];
    brush.fillRect(x + scale * X[box], y + scale * Y[box], Math.max(1, scale * W[box]), Math.max(1, scale * H[box]));
  }
  miniature = { image, scale, x, y };
}
function drawOverview([left, top, right, bottom]) {
  const covers = left <= X[N] && top <= Y[N] && right >= X[N] + W[N] && bottom >= Y[N] + H[N];
  overview.hidden = covers || moving;
  if (overview.hidden) return;
  if (!miniature) drawMiniature();
  const { image, scale, x, y } = miniature;
  small.clearRect(0, 0, overview.width, overview.height);
  small.drawImage(image, 0, 0);
  small.strokeStyle = colors.ink;
  small.lineWidth = 2;
  small.strokeRect(x + scale * left, y + scale * top, scale * (right - left), scale * (bottom - top));
}
function findBoxAt(clientX, clientY) { // the innermost box or frame title at a point of the window
  const { left, top } = canvas.getBoundingClientRect();
  const x = (clientX - left - view.x) / view.scale, y = (clientY - top - view.y) / view.scale;
  const contains = box => x >= X[box] && x <= X[box] + W[box] && y >= Y[box] && y <= Y[box] + H[box];
  return visible.boxes.find(contains) ?? visible.frames.findLast(contains) ?? -1;
}
