// The list of groups and vertices, the search and the details of a vertex: everything that the
// picture shows, as text.
const MAX_RESULTS = 50, MAX_LINKS = 100;
const tree = $("tree"), rowsElement = addElement("div", tree, "", "", { id: "rows" });
rowsElement.setAttribute("role", "presentation");
let rows = [], active = 0; // the boxes and frames in the order of the list; the index of the current row
const getDepth = box => getParent(box) < 0 ? 0 : depths[getParent(box)] + 1;
const isOpen = box => isGroup(box) && open[box - N] === 1;
function describeBox(box) {
  if (isGroup(box)) return formatCount(getSize(box), "vertex", "vertices");
  return details[box] ? details[box].split("\n").join(", ") : data.roles[roles[box]].label;
}
function updateTree() {
  const current = rows[active];
  rows = [];
  const visit = g => {
    const members = listMembers(g);
    members.forEach((box, i) => {
      rows.push({ box, position: i + 1, count: members.length });
      if (isOpen(box)) visit(box - N);
    });
  };
  visit(0);
  active = Math.max(0, rows.findIndex(row => row.box === findVisibleBox(current?.box ?? 0)));
  showRows();
}
const getRowHeight = () => innerWidth <= 700 ? 44 : 30;
function showRows() { // only the rows in view are elements of the page
  const height = getRowHeight(), start = Math.max(0, Math.floor(tree.scrollTop / height) - 5);
  const end = Math.min(rows.length, start + Math.ceil(tree.clientHeight / height) + 10);
  rowsElement.style.height = `${rows.length * height}px`;
  const shown = new Set([active]);
  for (let i = start; i < end; i++) shown.add(i);
  rowsElement.replaceChildren(...[...shown].sort((a, b) => a - b).filter(i => rows[i]).map(i => buildRow(i, height)));
  if (rows.length) tree.setAttribute("aria-activedescendant", `row${rows[active].box}`);
}
function buildRow(i, height) {
  const { box, position, count } = rows[i], row = document.createElement("div");
  const depth = getDepth(box);
  Object.assign(row, { id: `row${box}`, className: i === active ? "active" : "" });
  row.style.cssText = `top: ${i * height}px; height: ${height}px; padding-left: ${0.2 + 0.9 * (depth - 1)}rem`;
  const attributes = { role: "treeitem", "aria-level": depth, "aria-posinset": position, "aria-setsize": count, "aria-selected": box === highlight.box };
  if (isGroup(box)) attributes["aria-expanded"] = isOpen(box);
  for (const [name, value] of Object.entries(attributes)) row.setAttribute(name, String(value));
  const mark = addElement("span", row, "mark", isGroup(box) ? isOpen(box) ? "−" : "+" : "·");
  mark.setAttribute("aria-hidden", "true");
  addElement("span", row, "label", getLabel(box));
  addElement("span", row, "kind", describeBox(box));
  row.dataset.row = i;
  return row;
}
function activateRow(i) {
  active = Math.max(0, Math.min(rows.length - 1, i));
  const height = getRowHeight(), top = active * height;
  if (top < tree.scrollTop) tree.scrollTop = top;
  if (top + height > tree.scrollTop + tree.clientHeight) tree.scrollTop = top + height - tree.clientHeight;
  showRows();
}
function showInTree(box) {
  const i = rows.findIndex(row => row.box === box);
  if (i >= 0) activateRow(i);
  else showRows();
}
const TREE_KEYS = {
  ArrowDown: () => activateRow(active + 1),
  ArrowUp: () => activateRow(active - 1),
  PageDown: () => activateRow(active + 10),
  PageUp: () => activateRow(active - 10),
  Home: () => activateRow(0),
  End: () => activateRow(rows.length - 1),
  ArrowRight: box => isGroup(box) && !isOpen(box) ? toggle(box) : isGroup(box) ? activateRow(active + 1) : undefined,
  ArrowLeft: box => {
    if (isOpen(box)) return toggle(box);
    const outer = getParent(box);
    return outer > 0 ? activateRow(rows.findIndex(row => row.box === N + outer)) : undefined;
  },
  Enter: box => { select(box, true); if (isGroup(box)) toggle(box); },
  " ": box => select(box, true),
};
tree.addEventListener("keydown", event => {
  const action = TREE_KEYS[event.key];
  if (!action || event.ctrlKey || event.altKey || event.metaKey || !rows.length) return;
  event.preventDefault();
  event.stopPropagation();
  action(rows[active].box);
});
tree.addEventListener("click", event => {
  const row = event.target.closest("[role=treeitem]");
  if (!row) return;
  active = Number(row.dataset.row);
  const { box } = rows[active];
  select(box, true);
  if (event.target.className === "mark" && isGroup(box)) toggle(box);
});
tree.addEventListener("scroll", showRows);
// Search: names that begin with the text come first, then names and expressions that contain it.
const search = $("search"), results = $("results");
let hits = [], choice = -1;
function findVertices(text) {
  const wanted = text.trim().toLowerCase(), levels = [[], [], [], []];
  if (!wanted) return [];
  for (let v = 0; v < N; v++) {
    const name = labels[v].toLowerCase(), at = name.indexOf(wanted);
    if (at === 0) levels[name.length === wanted.length ? 0 : 1].push(v);
    else if (at > 0) levels[2].push(v);
    else if (details[v].toLowerCase().includes(wanted)) levels[3].push(v);
  }
  return levels.flat();
}
function showResults() {
  const found = findVertices(search.value);
  hits = found.slice(0, MAX_RESULTS);
  choice = hits.length ? 0 : -1;
  results.replaceChildren();
  hits.forEach((vertex, i) => {
    const option = addElement("li", results, "", "", { id: `hit${i}` });
    addElement("b", option, "", labels[vertex]);
    option.append(` ${describeBox(vertex).slice(0, 80)}`);
    option.setAttribute("role", "option");
    option.addEventListener("pointerdown", event => { event.preventDefault(); acceptResult(i); });
  });
  results.hidden = !hits.length;
  search.setAttribute("aria-expanded", String(!results.hidden));
  if (search.value.trim()) report(`${formatCount(found.length, "vertex", "vertices")} found`);
  markChoice();
}
function markChoice() {
  [...results.children].forEach((option, i) => option.setAttribute("aria-selected", String(i === choice)));
  if (choice < 0) { search.removeAttribute("aria-activedescendant"); return; }
  search.setAttribute("aria-activedescendant", `hit${choice}`);
  results.children[choice].scrollIntoView({ block: "nearest" });
}
function closeResults() {
  results.hidden = true;
  search.setAttribute("aria-expanded", "false");
  search.removeAttribute("aria-activedescendant");
}
function acceptResult(i) {
  closeResults();
  reveal(hits[i]);
}
search.addEventListener("input", showResults);
search.addEventListener("blur", closeResults);
search.addEventListener("keydown", event => {
  event.stopPropagation();
  if (event.key === "Escape") { closeResults(); return; }
  if (event.key === "Enter") { if (choice >= 0 && !results.hidden) acceptResult(choice); else showResults(); return; }
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || !hits.length) return;
  event.preventDefault();
  if (!results.hidden) choice = (choice + step + hits.length) % hits.length;
  results.hidden = false;
  search.setAttribute("aria-expanded", "true");
  markChoice();
});
// Details of the selected vertex or group.
function addLinks(heading, entries) {
  addElement("h3", $("facts"), "", `${heading} (${entries.length.toLocaleString("en")})`);
  const list = addElement("ul", $("facts"));
  for (const [vertex, edge] of entries.slice(0, MAX_LINKS)) {
    const item = addElement("li", list), label = data.edges.labels[edge];
    const link = addElement("button", item, "", label ? `${labels[vertex]}: ${label.split("\n").join(", ")}` : labels[vertex], { type: "button" });
    link.addEventListener("click", () => reveal(vertex, true));
  }
  if (entries.length > MAX_LINKS) addElement("li", list, "", `and ${(entries.length - MAX_LINKS).toLocaleString("en")} more`);
}
function addAction(parent, text, action, properties = {}) {
  addElement("button", parent, "", text, { type: "button", ...properties }).addEventListener("click", action);
}
let marking = ""; // "ancestors", "descendants" or nothing
function mark(kind) {
  marking = marking === kind ? "" : kind;
  highlight.marked = marking ? findReachable(highlight.box, marking === "descendants") : null;
  if (marking) report(`${formatCount(highlight.marked.reduce((sum, bit) => sum + bit, 0) - 1, kind.slice(0, -1))} of ${getLabel(highlight.box)}`);
  showDetails();
  draw();
}
function showDetails() {
  const { box } = highlight, facts = $("facts");
  if (box < 0) return;
  $("name").textContent = getLabel(box);
  facts.replaceChildren();
  addElement("p", facts, "", isGroup(box) ? `group of ${describeBox(box)}` : data.roles[roles[box]].label);
  const actions = addElement("div", facts, "actions"), outer = getParent(box);
  if (isGroup(box)) addAction(actions, isOpen(box) ? "close" : "open", () => toggle(box).then(showDetails));
  if (outer > 0) addAction(actions, `close ${getLabel(N + outer)}`, () => toggle(N + outer));
  if (isGroup(box)) {
    const inside = v => v >= first[box - N] && v < last[box - N];
    let entering = 0, leaving = 0, inner = 0;
    for (let e = 0; e < E; e++) {
      const from = inside(ends[2 * e]), to = inside(ends[2 * e + 1]);
      if (from && to) inner++; else if (from) leaving++; else if (to) entering++;
    }
    addElement("p", facts, "", `${formatCount(inner, "edge")} inside, ${entering.toLocaleString("en")} in, ${leaving.toLocaleString("en")} out`);
    return;
  }
  for (const kind of ["ancestors", "descendants"]) addAction(actions, `highlight ${kind}`, () => { mark(kind); $(kind).focus(); }, { id: kind, ariaPressed: String(marking === kind) });
  if (details[box]) addElement("pre", facts, "", details[box]);
  addLinks("depends on", listTails(box));
  addLinks("leads to", listHeads(box));
}
