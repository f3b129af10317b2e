// The state of the page: what is open, what is selected, and what the reader does.
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const ANIMATED = 400; // boxes; more are not animated
let version = 0;
function report(text) { $("status").textContent = text; }
// Shows the open groups; `anchor` is a box that keeps its position.
async function refresh(anchor = -1) {
  const mine = ++version, before = copyPositions();
  updateVisible();
  const isCurrent = () => mine === version;
  if (!await computeLayouts(isCurrent, part => report(`computing the picture: ${Math.round(100 * part)} %`))) return;
  placeBoxes();
  const at = anchor < 0 ? undefined : before.get(anchor);
  if (at) shiftBoxes(at[0] - X[anchor], at[1] - Y[anchor]);
  miniature = null;
  updateTree();
  const shown = formatCount(visible.boxes.length, "box", "boxes");
  report(`${shown} and ${formatCount(visible.tails.length, "arrow")} for ${$("picture").getAttribute("aria-label").slice(9)}`);
  if (at && visible.boxes.length <= ANIMATED && !calm.matches) animate(before);
  else draw();
}
async function toggle(box) {
  open[box - N] = isOpen(box) ? 0 : 1;
  forgetLayouts(box - N);
  if (highlight.box >= 0 && findVisibleBox(highlight.box) !== highlight.box) highlight.box = box;
  await refresh(box);
  if (box === highlight.box) showDetails();
}
async function setAllOpen(value) {
  openAll(value);
  layouts.fill(undefined);
  await refresh();
  fit();
  draw();
}
function select(box, centers = false) {
  if (box !== highlight.box) { highlight.marked = null; marking = ""; }
  highlight.box = box;
  showDetails();
  showInTree(box);
  if (centers && box >= 0) center(box);
  draw();
}
async function reveal(box, focuses = false) { // opens the groups around a vertex and selects it
  if (openAround(box)) {
    for (let g = getParent(box); g >= 0; g = parents[N + g]) layouts[g] = undefined;
    await refresh();
  }
  if (view.scale < 0.5) view.scale = 1;
  select(box, true);
  if (focuses) $("name").focus();
}
function clearHighlight() {
  if (marking) mark(marking);
}
function closeOuter() {
  const outer = getParent(highlight.box);
  if (highlight.box >= 0 && outer > 0) toggle(N + outer);
}
function resizePicture() {
  const { clientWidth, clientHeight } = canvas, ratio = devicePixelRatio, wasEmpty = !view.width;
  [canvas.width, canvas.height] = [clientWidth * ratio, clientHeight * ratio];
  [view.width, view.height] = [clientWidth, clientHeight];
  if (wasEmpty) fit();
  draw();
  showRows();
}
// Pointers: one moves the picture, two zoom; a click opens a group or selects a vertex.
const pointers = new Map();
let travelled = 0;
canvas.addEventListener("pointerdown", event => {
  if (!pointers.size) travelled = 0;
  pointers.set(event.pointerId, [event.clientX, event.clientY]);
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", event => {
  const old = pointers.get(event.pointerId);
  if (!old) return;
  const [dx, dy] = [event.clientX - old[0], event.clientY - old[1]];
  travelled += Math.hypot(dx, dy);
  if (travelled < 5) return;
  canvas.classList.add("moving");
  if (pointers.size === 2) {
    const other = [...pointers].find(([id]) => id !== event.pointerId)[1], { left, top } = canvas.getBoundingClientRect();
    const distance = (x, y) => Math.hypot(x - other[0], y - other[1]);
    zoom(distance(event.clientX, event.clientY) / Math.max(1, distance(...old)), (event.clientX + other[0]) / 2 - left, (event.clientY + other[1]) / 2 - top);
    pan(dx / 2, dy / 2);
  } else pan(dx, dy);
  pointers.set(event.pointerId, [event.clientX, event.clientY]);
});
function releasePointer(event) {
  if (!pointers.delete(event.pointerId) || pointers.size) return;
  canvas.classList.remove("moving");
  if (event.type !== "pointerup" || travelled >= 5) return;
  const box = findBoxAt(event.clientX, event.clientY);
  if (box < 0) return;
  select(box);
  const below = (event.clientY - canvas.getBoundingClientRect().top - view.y) / view.scale - Y[box];
  if (isGroup(box) && (!isOpen(box) || below < Math.max(HEADER, 20 / view.scale))) toggle(box);
}
canvas.addEventListener("pointerup", releasePointer);
canvas.addEventListener("pointercancel", releasePointer);
canvas.addEventListener("wheel", event => {
  event.preventDefault();
  const { left, top } = canvas.getBoundingClientRect(), lines = event.deltaMode === 1 ? 20 : 1;
  zoom(Math.exp(-Math.max(-200, Math.min(200, event.deltaY * lines)) / 400), event.clientX - left, event.clientY - top);
}, { passive: false });
overview.addEventListener("pointerdown", event => {
  const box = overview.getBoundingClientRect(), ratio = devicePixelRatio, { scale, x, y } = miniature;
  view.x = view.width / 2 - view.scale * ((event.clientX - box.left) * ratio - x) / scale;
  view.y = view.height / 2 - view.scale * ((event.clientY - box.top) * ratio - y) / scale;
  requestDraw();
});
const STEP = 80;
const PICTURE_KEYS = {
  ArrowLeft: () => pan(STEP, 0), ArrowRight: () => pan(-STEP, 0), ArrowUp: () => pan(0, STEP), ArrowDown: () => pan(0, -STEP),
  Enter: () => { if (isGroup(highlight.box)) toggle(highlight.box); },
};
const PAGE_KEYS = {
  "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: () => fit(),
  "/": () => search.focus(), Backspace: closeOuter, Escape: clearHighlight,
  d: switchTheme, D: switchTheme, "?": () => $("help").open ? $("help").close() : $("help").showModal(),
};
window.addEventListener("keydown", event => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const action = PAGE_KEYS[event.key] ?? (event.target === canvas ? PICTURE_KEYS[event.key] : undefined);
  if (!action) return;
  event.preventDefault();
  action();
});
$("in").addEventListener("click", () => zoom(1.25));
$("out").addEventListener("click", () => zoom(0.8));
$("fit").addEventListener("click", () => fit());
$("expand").addEventListener("click", () => setAllOpen(1));
$("collapse").addEventListener("click", () => setAllOpen(0));
$("keys").addEventListener("click", () => $("help").showModal());
function addLegend() {
  const entries = [...data.roles];
  if (G > 1) entries.push({ ...GROUP_STYLE, label: "group" });
  for (const { name, label, shape, width } of entries) {
    const item = addElement("li", $("legend")), picture = addShape("svg", item, { viewBox: "0 0 30 18", "aria-hidden": "true" });
    const look = { fill: name === "edge" ? "var(--background)" : `var(--${name}-fill)`, stroke: `var(--${name})`, "stroke-width": width };
    if (name === "edge") addShape("rect", picture, { x: 5, y: 5, width: 22, height: 11, ...look });
    if (shape === "hexagon") addShape("path", picture, { d: "M2 9 7 2H23L28 9 23 16H7Z", ...look });
    else addShape("rect", picture, { x: 2, y: 2, width: 24, height: 13, rx: { rounded: 4, circle: 6.5 }[shape] ?? 0, "stroke-dasharray": shape === "dotted" ? "2 3" : "none", ...look });
    if (shape === "double") addShape("rect", picture, { x: 5, y: 5, width: 18, height: 7, ...look });
    addElement("span", item, "", label);
  }
}
async function revealNamed() { // the vertex that the address names, as in net.html#xh1_57
  const vertex = labels.findIndex(label => `#${encodeURIComponent(label.split(" ")[0])}` === location.hash);
  if (vertex >= 0) await reveal(vertex);
}
function updateColors() { readColors(); miniature = null; draw(); }
async function openPage() {
  readColors();
  addLegend();
  await refresh();
  resizePicture();
  await revealNamed();
  window.addEventListener("hashchange", revealNamed);
  new ResizeObserver(resizePicture).observe(canvas);
  new MutationObserver(updateColors).observe(root, { attributes: true, attributeFilter: ["data-look"] });
  system.addEventListener("change", updateColors);
  performance.mark("first drawing");
}
openPage();
