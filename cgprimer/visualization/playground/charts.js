// Line charts as SVG, in pixels of the page, so that their text is as large as other text.
function chooseTicks(low, high, count) { // multiples of 1, 2 or 5
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find(k => k * power >= rough) * power;
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) ticks.push(k * step);
  return ticks;
}
function chooseRange(values) { // without the few huge values near a pole
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (!sorted.length) return [-1, 1];
  const at = part => sorted[Math.round(part * (sorted.length - 1))];
  let [low, high] = [sorted[0], sorted[sorted.length - 1]];
  const [inner, outer] = [at(0.03), at(0.97)];
  if (high - low > 6 * (outer - inner) && outer > inner) [low, high] = [inner, outer];
  if (high === low) return [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
  const margin = 0.06 * (high - low);
  return [low - margin, high + margin];
}
const formatTick = value => formatNumber(Math.abs(value) < 1e-12 ? 0 : value, 4);
// curves: {name, points: [[x, y], ...]}; each has its own color and dash pattern.
function drawChart(parent, { curves, xLabel, logarithmic = false, description, marker = null }) {
  const rem = parseFloat(getComputedStyle(root).fontSize), width = Math.max(280, parent.clientWidth);
  const height = Math.max(13 * rem, Math.min(0.9 * width, parent.clientHeight || 26 * rem));
  const level = y => logarithmic ? Math.log10(y) : y;
  const xs = curves.flatMap(curve => curve.points.map(([x]) => x));
  let [left, right] = [Math.min(...xs), Math.max(...xs)];
  if (!(right > left)) [left, right] = [left || 0, (left || 0) + 1];
  let [low, high] = chooseRange(curves.flatMap(curve => curve.points.map(([, y]) => level(y))));
  const box = { left: 5.2 * rem, right: width - 1.2 * rem, top: 2.4 * rem, bottom: height - 3.4 * rem };
  const x = value => box.left + (value - left) / (right - left) * (box.right - box.left);
  const y = value => box.bottom - (level(value) - low) / (high - low) * (box.bottom - box.top);
  parent.replaceChildren();
  const svg = addShape("svg", parent, { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": description });
  const clip = addShape("clipPath", addShape("defs", svg, {}), { id: `${parent.id}-clip` });
  addShape("rect", clip, { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top });
  for (const tick of chooseTicks(left, right, Math.max(3, width / (7 * rem)))) {
    addShape("line", svg, { class: tick === 0 ? "axis" : "grid", x1: x(tick), x2: x(tick), y1: box.top, y2: box.bottom });
    addShape("text", svg, { class: "tick", x: x(tick), y: box.bottom + 1.3 * rem, "text-anchor": "middle" }, formatTick(tick));
  }
  let levels = chooseTicks(low, high, Math.max(3, height / (4 * rem)));
  if (logarithmic && levels.some(Number.isInteger)) levels = levels.filter(Number.isInteger);
  for (const tick of levels) {
    const at = box.bottom - (tick - low) / (high - low) * (box.bottom - box.top);
    addShape("line", svg, { class: tick === 0 && !logarithmic ? "axis" : "grid", x1: box.left, x2: box.right, y1: at, y2: at });
    addShape("text", svg, { class: "tick", x: box.left - 0.5 * rem, y: at + 0.35 * rem, "text-anchor": "end" },
      logarithmic ? formatNumber(10 ** tick, 5) : formatTick(tick));
  }
  addShape("rect", svg, { class: "frame", x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top });
  addShape("text", svg, { class: "label", x: (box.left + box.right) / 2, y: height - 0.6 * rem, "text-anchor": "middle" }, xLabel);
  let key = box.left;
  curves.forEach(({ name, points }, k) => {
    let path = "", before = false;
    for (const [a, b] of points) {
      const fits = Number.isFinite(b) && (!logarithmic || b > 0);
      // Coordinates far outside are cut: SVG has only single precision.
      if (fits) path += `${before ? "L" : "M"}${x(a).toFixed(2)},${Math.max(-1e4, Math.min(1e4, y(b))).toFixed(2)}`;
      before = fits;
    }
    addShape("path", svg, { class: `curve c${k}`, d: path, "clip-path": `url(#${parent.id}-clip)` });
    addShape("line", svg, { class: `curve c${k}`, x1: key, x2: key + 2.6 * rem, y1: 1.1 * rem, y2: 1.1 * rem });
    const text = addShape("text", svg, { class: "label", x: key + 3.1 * rem, y: 1.45 * rem }, name);
    key += 4.6 * rem + (text.getComputedTextLength?.() || 0.6 * rem * name.length);
  });
  if (marker) for (const [k, value] of marker.values.entries()) if (Number.isFinite(value) && marker.x >= left && marker.x <= right)
    addShape("circle", svg, { class: `dot c${k}`, cx: x(marker.x), cy: Math.max(-99, Math.min(1e4, y(value))), r: 0.32 * rem });
  return svg;
}
