// The numbers that are known after each step; step_frames.py has the same rules in Python.
const UNKNOWN = "not computed";

// Formats a value with enough digits to show its difference from the value at the point; if eight
// digits are too few, as a sum. The rules are those of slide_tables.py.
function formatShifted(value, unmoved) {
  const move = value - unmoved; // nan if no variable is shifted
  if (move === 0 || !Number.isFinite(move)) return markRounding(value);
  for (const digits of [8, 7, 6]) {
    const text = formatNumber(value, digits);
    if (text.length <= 12 && Math.abs(Number(text) - value) <= 0.05 * Math.abs(move))
      return isExact(text, value) ? text : `≈${text}`;
  }
  const added = ` ${move > 0 ? "+" : "-"} ${formatNumber(Math.abs(move), 2)}`;
  const rest = formatNumber(unmoved, SHORT);
  return (rest.length + added.length <= 15 ? rest : "…") + added;
}
function chooseStep(value, relative) { // the step size of a finite difference
  const size = Number.isFinite(value) ? Math.max(1, Math.abs(value)) : 1;
  let power = 1;
  while (power * 2 <= size) power *= 2;
  return relative * power;
}
function computeValues(walk, point, h) { // computes every value of the walk's tape
  const values = walk.leaves.map(([kind, what]) =>
    kind === "given" ? point[what] ?? NaN : kind === "constant" ? parseNumeric(what) : NaN);
  const run = () => walk.instructions.forEach(([name, operands], k) => {
    values[walk.leaves.length + k] = PRIMITIVES[name](...operands.map(o => values[o]));
  });
  run();
  if (!walk.scheme) return values;
  walk.leaves.forEach(([kind, moved], k) => { // step sizes that depend on the variable
    if (kind === "step") values[k] = h ?? chooseStep(values[moved], walk.relative);
  });
  run();
  return values;
}
function findMissingPrimitives(walks) { // primitives that the page cannot compute, so that it has no sliders
  const names = walks.flatMap(walk => walk.instructions.map(([name]) => name));
  return [...new Set(names)].filter(name => !Object.hasOwn(PRIMITIVES, name));
}
function collectResults(walk, numbers) { // the derivatives that are complete
  const found = [];
  for (const step of walk.steps) for (const [column, index, value] of step.reveals)
    if (column === "result") found[index] = numbers[value];
  return found;
}
// The numbers that are known after a step, keyed by "column:index", and the values at the point while
// variables are shifted. Earlier phases contribute only the columns that this phase keeps. A step
// forward continues from the previous frame; `touched` lists the keys that may differ, null: all.
function computeFrame(walk, numbers, last, before) {
  const now = walk.steps[last]?.phase, keeps = walk.phases[now]?.keeps;
  const same = before?.walk === walk && before.numbers === numbers;
  const on = same && before.now === now && before.last <= last;
  const { known, unmoved } = on ? before : { known: new Map(), unmoved: new Map() };
  const touched = new Set();
  const addNumber = (key, value) => { known.set(key, numbers[value]); touched.add(key); };
  for (let k = on ? before.last + 1 : 0; k <= last && k < walk.steps.length; k++) {
    const { phase, reveals, line, result } = walk.steps[k], kept = phase === now;
    for (const [column, index, value] of reveals)
      if (kept || keeps.includes(column)) addNumber(`${column}:${index}`, value);
      else if (walk.scheme && phase === 0) unmoved.set(`${column}:${index}`, numbers[value]);
    if (line >= 0 && result >= 0 && (kept || keeps.includes("line"))) addNumber(`line:${line}`, result);
  }
  if (same && !on) for (const map of [before.known, known]) for (const key of map.keys())
    if (known.has(key) && Object.is(known.get(key), before.known.get(key))) touched.delete(key);
    else touched.add(key);
  return { walk, numbers, now, last, known, unmoved, touched: same ? touched : null };
}
