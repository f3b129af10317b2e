// A function of one input, and its derivative.
const curve = { axis: "", answer: null };
function chooseAxis() { // keeps the chosen name; a new name starts with a range around its value
  const { inputs, parameters } = session.summary;
  const names = [...inputs, ...parameters].filter(({ shape }) => !shape.length).map(({ name }) => name);
  fillSelect($("axis"), names.map(name => [name, name]), curve.axis);
  if ($("axis").value !== curve.axis) resetRange();
  return names.length > 0;
}
function resetRange() {
  curve.axis = $("axis").value;
  const value = getValue(curve.axis) ?? 0, reach = Math.max(1, 2 * Math.abs(value));
  $("from").value = -reach;
  $("to").value = reach;
}
function readRange() { // null if the range is invalid, which is shown
  const [from, to] = ["from", "to"].map(id => $(id).value === "" ? NaN : Number($(id).value));
  const valid = Number.isFinite(from) && Number.isFinite(to) && from < to;
  for (const id of ["from", "to"]) $(id).setAttribute("aria-invalid", String(!valid));
  if (!valid) showPaneError($("pane-plot"), { message: "The range must go from a smaller to a larger number.", hint: "" });
  return valid ? { from, to } : null;
}
function interpolate(xs, ys, x) {
  const k = Math.max(1, xs.findIndex(other => other >= x)), part = (x - xs[k - 1]) / (xs[k] - xs[k - 1]);
  return ys[k - 1] + part * (ys[k] - ys[k - 1]);
}
const getValue = name => session.at[name]
  ?? parseNumeric([...session.summary.inputs, ...session.summary.parameters].find(entry => entry.name === name)?.value);
function showCurve() {
  const { answer } = curve;
  if (!answer || $("pane-plot").hidden) return;
  const xs = answer.x.map(parseNumeric), [values, derivatives] = [answer.values, answer.derivatives].map(list => list.map(parseNumeric));
  const at = getValue(answer.name) ?? NaN, names = [`${answer.target}(${answer.name})`, `d${answer.target}/d${answer.name}`];
  drawChart($("curve"), {
    curves: [values, derivatives].map((list, k) => ({ name: names[k], points: list.map((y, i) => [xs[i], y]) })),
    xLabel: answer.name, marker: { x: at, values: [values, derivatives].map(list => interpolate(xs, list, at)) },
    description: `${names[0]} and its derivative ${names[1]} for ${answer.name} from ${formatNumber(xs[0], 4)} to ${formatNumber(xs.at(-1), 4)}`,
  });
  setText($("curve-note"), `Dots mark the current value of ${answer.name}; all other names keep their values.`);
}
panes.plot = { async refresh() {
  if (!chooseAxis()) return showPaneError($("pane-plot"), { message: "The graph has no scalar input or parameter.", hint: "" });
  const range = readRange();
  if (!range) return;
  const answer = await askView("curve", { x: $("axis").value, ...range });
  if (!answer) return;
  curve.answer = answer;
  showCurve();
} };
$("axis").addEventListener("change", () => { resetRange(); panes.plot.refresh(); });
for (const id of ["from", "to"]) $(id).addEventListener("input", () => panes.plot.refresh());
$("range").addEventListener("submit", event => event.preventDefault());
new ResizeObserver(() => requestAnimationFrame(showCurve)).observe($("curve"));
