// Tables: the methods next to each other, and the trace.
function addTable(parent, headings, caption) {
  const wrap = addElement("div", parent, "scroll"), table = addElement("table", wrap);
  wrap.tabIndex = 0;
  wrap.setAttribute("role", "region");
  wrap.setAttribute("aria-label", caption);
  addElement("caption", table, "", caption);
  const row = addElement("tr", addElement("thead", table));
  for (const heading of headings) { // "#" marks a column of numbers
    const [, mark, words] = heading.match(/^(#?)(.*)$/s);
    addElement("th", row, mark && "number", words, { scope: "col" });
  }
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
function showMethods(answer) {
  $("methods").replaceChildren();
  const names = answer.wrt;
  const body = addTable($("methods"), ["method", ...names.map(name => `#d${answer.target}/d${name}`),
    "#error", "#passes", "#operations"], "Derivatives, relative errors and costs");
  for (const row of answer.methods) {
    if (row.refusal) {
      const cell = addElement("td", addRow(body, [row.method]), "refusal", row.needs ? "" : row.refusal);
      cell.colSpan = names.length + 4;
      if (row.needs) addElement("button", cell, "", "Load symbolic differentiation and reference values (4 MB)",
        { type: "button", id: "load-symbolic", onclick: loadSymbolic });
      continue;
    }
    addRow(body, [row.method, ...names.map(name => [formatCell(row.derivatives[name]), "number"]),
      [row.error === null ? "" : formatNumber(parseNumeric(row.error), 2), "number"],
      [String(row.passes), "number"], [String(row.operations), "number"]]);
  }
  showPrograms(answer.methods);
}
function showPrograms(methods) {
  $("programs").replaceChildren();
  for (const { method, lines } of methods.filter(row => row.lines.length)) {
    const card = addElement("section", $("programs"), "program");
    addElement("h2", card, "", method);
    const code = addElement("pre", card, "", lines.join("\n"));
    code.tabIndex = 0;
    code.setAttribute("role", "region");
    code.setAttribute("aria-label", `Program of ${method}`);
  }
}
async function loadSymbolic() {
  $("load-symbolic").disabled = true;
  const { error } = await askPython({ load: "sympy" });
  if (error) return showPaneError($("pane-methods"), error);
  panes.methods.refresh();
}
panes.methods = { async refresh() {
  const answer = await askView("methods");
  if (answer) showMethods(answer);
} };

const getTraceMode = () => document.querySelector("input[name=mode]:checked").value;
function showTrace(answer) {
  $("trace").replaceChildren();
  const body = addTable($("trace"), ["name", "expression", "#value", `#${answer.heading || answer.kind || "derivative"}`],
    `Evaluation of ${answer.target}`);
  for (const row of answer.rows)
    addRow(body, [row.name, [row.expression, "code"], [formatCell(row.value), "number"], [formatCell(row.derivative), "number"]]);
  if (!answer.backward.length) return;
  const second = addTable($("trace"), ["name", "expression", "#value"], "Backward pass");
  for (const row of answer.backward) addRow(second, [row.name, [row.expression, "code"], [formatCell(row.value), "number"]]);
}
panes.trace = { async refresh() {
  const answer = await askView("trace", { method: getTraceMode() });
  if (answer) showTrace(answer);
} };
for (const option of document.querySelectorAll("input[name=mode]")) option.addEventListener("change", () => panes.trace.refresh());
