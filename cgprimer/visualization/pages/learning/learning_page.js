// The progress of a run: data.frames[k] has the regions, the loss and the parameters at one step.
const data = JSON.parse($("data").textContent);
const KEYS = {}, parts = { areas: [], samples: [], weights: [] };
let current = 0;
const getIndex = () => current, getLastIndex = () => data.frames.length - 1;
function goTo(to) {
  current = Math.max(0, Math.min(getLastIndex(), to));
  showFrame();
}
const SHAPES = [ // as on slides: circle, square, triangles, diamond
  "M-9,0a9,9 0 1,0 18,0a9,9 0 1,0 -18,0Z", "M-8,-8H8V8H-8Z", "M0,-10L10,8H-10Z",
  "M0,-11L11,0L0,11L-11,0Z", "M0,10L10,-8H-10Z", "M-3,-10H3V-3H10V3H3V10H-3V3H-10V-3H-3Z",
];
const shapeOf = region => SHAPES[data.classes ? region % SHAPES.length : 0];

function buildPlane() {
  const svg = $("plane"), [[left, right], [low, high]] = data.ends, [across, up] = data.names;
  svg.setAttribute("viewBox", "-110 -20 1140 1110");
  parts.areas = data.regions.map((_, k) => addShape("path", svg, { class: `area${k}`, "fill-rule": "evenodd" }));
  parts.lines = addShape("path", svg, { class: "boundary" });
  addShape("rect", svg, { class: "frame", x: 0, y: 0, width: 1000, height: 1000 });
  data.samples.forEach(([x, y, region]) => {
    const group = addShape("g", svg, { transform: `translate(${x},${y})` });
    addShape("path", group, { class: `sample of${region}`, d: shapeOf(region) });
    parts.samples.push(addShape("circle", group, { class: "ring", r: 18 }));
  });
  const text = (x, y, anchor, words) => addShape("text", svg, { x, y, "text-anchor": anchor }, words);
  text(0, 1035, "start", formatNumber(left, 3));
  text(1000, 1035, "end", formatNumber(right, 3));
  text(500, 1060, "middle", across);
  text(-10, 1000, "end", formatNumber(low, 3));
  text(-10, 25, "end", formatNumber(high, 3));
  addShape("text", svg, { transform: "translate(-60,500) rotate(-90)", "text-anchor": "middle" }, up);
  data.regions.forEach((words, k) => {
    const entry = addElement("span", $("legend"), "entry");
    const swatch = addShape("svg", entry, { viewBox: "-14 -14 28 28", class: "swatch" });
    addShape("rect", swatch, { class: `area${k}`, x: -14, y: -14, width: 28, height: 28 });
    addShape("path", swatch, { class: `sample of${k}`, d: shapeOf(k) });
    entry.append(words);
  });
  if (!data.classes) return;
  const entry = addElement("span", $("legend"), "entry");
  const swatch = addShape("svg", entry, { viewBox: "-22 -22 44 44", class: "swatch" });
  addShape("circle", swatch, { class: "ring wrong", r: 18 });
  entry.append("wrong prediction");
}
function buildLoss() { // on a logarithmic axis if all losses are positive
  const svg = $("loss"), [left, right, top, bottom] = [80, 585, 15, 215];
  const known = data.frames.filter(f => typeof f.loss === "number");
  const curved = known.every(f => f.loss > 0), level = loss => curved ? Math.log10(loss) : loss;
  const levels = known.map(f => level(f.loss));
  const [low, high] = [Math.min(...levels), Math.max(...levels)], end = data.frames[getLastIndex()].step || 1;
  setText($("scale"), curved ? "loss over steps, logarithmic" : "loss over steps");
  parts.at = ({ step, loss }) => typeof loss !== "number" ? null : [
    left + (right - left) * step / end,
    bottom - (bottom - top) * (high > low ? (level(loss) - low) / (high - low) : 0.5)];
  addShape("path", svg, { class: "axis", d: `M${left},${top}V${bottom}H${right}` });
  addShape("polyline", svg, { class: "curve", points: known.map(f => parts.at(f).join(",")).join(" ") });
  const text = (x, y, anchor, words) => addShape("text", svg, { x, y, "text-anchor": anchor }, words);
  const value = shown => formatNumber(curved ? 10 ** shown : shown, 2);
  if (known.length) text(left - 8, top + 6, "end", value(high));
  if (high > low) text(left - 8, bottom, "end", value(low));
  text(left, bottom + 25, "middle", "0");
  text(right, bottom + 25, "end", `step ${formatNumber(end)}`);
  parts.dot = addShape("circle", svg, { class: "dot", r: 8 });
}
function buildWeights() {
  for (const name of data.weights) {
    const row = addElement("div", $("weights"), "weight");
    addElement("code", row, "", name);
    const bar = addElement("i", addElement("span", row, "bar"));
    parts.weights.push({ bar, value: addElement("output", row) });
  }
  if (data.more) addElement("p", $("weights"), "", `and ${data.more} more`);
  const sizes = data.frames.flatMap(f => f.weights.map(w => Math.abs(parseNumeric(w))));
  parts.largest = Math.max(1e-300, ...sizes.filter(Number.isFinite));
}
function showFrame() {
  const frame = data.frames[current], wrong = new Set(frame.wrong);
  setText($("what"), frame.words);
  setText($("count"), `snapshot ${current + 1} of ${data.frames.length}`);
  parts.areas.forEach((area, k) => area.setAttribute("d", frame.areas[k]));
  parts.lines.setAttribute("d", frame.lines);
  parts.samples.forEach((ring, k) => ring.classList.toggle("wrong", wrong.has(k)));
  const at = parts.at(frame);
  parts.dot.setAttribute("visibility", at ? "visible" : "hidden");
  if (at) Object.entries({ cx: at[0], cy: at[1] }).forEach(([name, v]) => parts.dot.setAttribute(name, v));
  parts.weights.forEach(({ bar, value }, k) => {
    const weight = parseNumeric(frame.weights[k]), share = 50 * Math.min(1, Math.abs(weight) / parts.largest);
    bar.style.width = `${share || 0}%`;
    bar.style.left = `${weight < 0 ? 50 - share : 50}%`;
    setText(value, formatNumber(weight, 4));
  });
  $("place").value = current;
  $("place").setAttribute("aria-valuetext", frame.words);
  $("start").disabled = $("back").disabled = current === 0;
  $("forward").disabled = $("end").disabled = current >= getLastIndex();
}
document.querySelector("main").classList.toggle("values", !data.classes);
$("place").max = getLastIndex();
$("speed").value = "4";
buildPlane();
buildLoss();
buildWeights();
goTo(/^#\d+$/.test(location.hash) ? Number(location.hash.slice(1)) - 1 : 0);
window.addEventListener("hashchange", () => {
  if (/^#\d+$/.test(location.hash)) goTo(Number(location.hash.slice(1)) - 1);
});
