// Numbers and what is known of them after each step, as frames.py has it in Python.
const UNKNOWN = "not computed";

// A value in a vertex: while a finite difference moves a variable, with enough digits to see by how
// much; where eight do not tell, as a sum. As number_texts.py has it.
function moved(value, unmoved) {
  const move = value - unmoved; // not a number where nothing is moved
  if (move === 0 || !Number.isFinite(move)) return marked(value);
  for (const digits of [8, 7, 6]) {
    const text = number(value, digits);
    if (text.length <= 12 && Math.abs(Number(text) - value) <= 0.05 * Math.abs(move))
      return Number(text) === value ? text : `≈${text}`;
  }
  const added = ` ${move > 0 ? "+" : "-"} ${number(Math.abs(move), 2)}`;
  const rest = number(unmoved, SHORT);
  return (rest.length + added.length <= 15 ? rest : "…") + added;
}
function shift(value, relative) { // how far a finite difference moves a value
  const size = Number.isFinite(value) ? Math.max(1, Math.abs(value)) : 1;
  let power = 1;
  while (power * 2 <= size) power *= 2;
  return relative * power;
}
function compute(walk, point, h) { // for every step the numbers it writes
  const memory = new Array(walk.size).fill(NaN);
  for (const [name, slot] of Object.entries(walk.given)) memory[slot] = point[name];
  return walk.steps.map(step => step.writes.map(([slot, operation, operands]) => {
    if (operation === ".const") memory[slot] = operands[0];
    else if (operation === ".step") memory[slot] = h ?? shift(memory[operands[0]], operands[1]);
    else memory[slot] = PRIMITIVES[operation](...operands.map(o => memory[o]));
    return memory[slot];
  }));
}
function missing(walks) { // primitives that the page cannot compute: sliders would lie
  const names = new Set();
  for (const walk of walks) for (const step of walk.steps) for (const [, name] of step.writes)
    if (!name.startsWith(".") && !Object.hasOwn(PRIMITIVES, name)) names.add(name);
  return [...names];
}
function finals(walk, numbers) { // the finished derivatives
  const memory = new Array(walk.size).fill(NaN), found = [];
  walk.steps.forEach((step, k) => {
    step.writes.forEach(([slot], n) => { memory[slot] = numbers[k][n]; });
    for (const [column, index, slot] of step.shows)
      if (column === "result") found[index] = memory[slot];
  });
  return found;
}
// What is known after a step: a map from "column:number" to a number. A step forward goes on from
// the frame before; `touched` lists what may differ from it.
function frame(walk, numbers, point, last, before) {
  const on = before && before.walk === walk && before.numbers === numbers && before.last <= last;
  const memory = on ? before.memory : new Array(walk.size).fill(NaN);
  if (!on) for (const [name, slot] of Object.entries(walk.given)) memory[slot] = point[name];
  const known = on ? before.known : new Map(), touched = new Set();
  let phase = on ? before.phase : -1;
  let unmoved = on ? before.unmoved : new Map(); // values at the point, where variables are moved
  const learn = (key, value) => { known.set(key, value); if (on) touched.add(key); };
  for (let k = on ? before.last + 1 : 0; k <= last; k++) {
    const step = walk.steps[k];
    if (step.phase !== phase) {
      if (walk.scheme && phase === 0) unmoved = new Map(known);
      phase = step.phase;
      const keeps = walk.phases[phase].keeps;
      for (const key of known.keys()) if (!keeps.includes(key.split(":")[0])) {
        known.delete(key);
        if (on) touched.add(key);
      }
    }
    step.writes.forEach(([slot], n) => { memory[slot] = numbers[k][n]; });
    for (const [column, index, slot] of step.shows) learn(`${column}:${index}`, memory[slot]);
    if (step.line >= 0 && step.result >= 0) learn(`line:${step.line}`, memory[step.result]);
  }
  const back = !on && before && before.walk === walk && before.numbers === numbers;
  if (back) for (const map of [before.known, known]) for (const key of map.keys())
    if (!known.has(key) || !Object.is(known.get(key), before.known.get(key))) touched.add(key);
  return { walk, numbers, last, known, memory, phase, unmoved, touched: on || back ? touched : null };
}
