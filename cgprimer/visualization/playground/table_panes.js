// Tables: the methods next to each other, and the trace.
function addTable(parent, headings, caption) {
  const wrap = addElement("div", parent, "scroll"), table = addElement("table", wrap);
  wrap.tabIndex = 0;
  wrap.setAttribute("role", "region");
  wrap.setAttribute("aria-label", caption);
  addElement("caption", table, "", caption);
  const row = addElement("tr", addElement("thead", table));
  for (const heading of headings) addElement("th", row, "", heading, { scope: "col" });
  return addElement("tbody", table);
}
function addRow(body, cells, heading = 0) { // cells: texts, or [text, class]
  const row = addElement("tr", body);
  cells.forEach((cell, k) => {
    const [text, className] = Array.isArray(cell) ? cell : [cell, ""];
    const added = addElement(k === heading ? "th" : "td", row, className, text);
    if (k === heading) added.scope = "row";
  });
  return row;
}
const formatError = error => error === null ? "" : parseNumeric(error) === 0 || error === 0 ? "0" : formatNumber(parseNumeric(error) ?? error, 2);
const readNumberOf = value => typeof value === "string" ? parseNumeric(value) : value;
function showMethods(answer) {
  $("methods").replaceChildren();
  const names = answer.wrt;
  const body = addTable($("methods"), ["Method", ...names.map(name => `d${answer.target}/d${name}`),
    "relative error", "passes", "operations"], "Derivatives, errors and costs");
  for (const row of answer.methods) {
    if (row.refusal) {
      const [first] = addRow(body, [row.method]).children;
      const cell = addElement("td", first.parentNode, "refusal", row.refusal);
      cell.colSpan = names.length + 3;
      continue;
    }
    addRow(body, [row.method, ...names.map(name => [formatCell(row.derivatives[name]), "number"]),
      [row.error === null ? "" : formatNumber(readNumberOf(row.error), 2), "number"],
      [String(row.passes), "number"], [String(row.operations), "number"]]);
  }
  showPrograms(answer.methods);
}
function showPrograms(methods) {
  $("programs").replaceChildren();
  for (const { method, lines } of methods.filter(row => row.lines.length)) {
    const card = addElement("section", $("programs"), "program");
    addElement("h3", card, "", method);
    const code = addElement("pre", card, "", lines.join("\n"));
    code.tabIndex = 0;
    code.setAttribute("role", "region");
    code.setAttribute("aria-label", `Program of ${method}`);
  }
}
panes.methods = { async refresh() {
  const answer = await askView("methods");
  if (answer) showMethods(answer);
} };

const getTraceMode = () => document.querySelector("input[name=mode]:checked").value;
function showTrace(answer) {
  $("trace").replaceChildren();
  const body = addTable($("trace"), ["name", "expression", "value", answer.heading || answer.kind || "derivative"],
    `Evaluation of ${answer.target}`);
  for (const row of answer.rows)
    addRow(body, [row.name, [row.expression, "code"], [formatCell(row.value), "number"], [formatCell(row.derivative), "number"]]);
  if (!answer.backward.length) return;
  const second = addTable($("trace"), ["name", "expression", "value"], "Backward pass");
  for (const row of answer.backward) addRow(second, [row.name, [row.expression, "code"], [formatCell(row.value), "number"]]);
}
panes.trace = { async refresh() {
  const answer = await askView("trace", { method: getTraceMode() });
  if (answer) showTrace(answer);
} };
for (const option of document.querySelectorAll("input[name=mode]")) option.addEventListener("change", () => panes.trace.refresh());
