// Messages between this page and the window that embeds it, such as a notebook or the playground.
// The page reports where its user moves and moves where the window says. Nothing in a message is
// trusted: unknown methods and names, and values that are not numbers, are ignored.
let reported = "", report = 0; // the last state that both windows know, as JSON

const encodeNumber = value => Number.isFinite(value) ? value : String(value).replace("Infinity", "inf").replace("NaN", "nan");
function readState() {
  const point = Object.fromEntries([...inputs.point.keys()].map(name => [name, encodeNumber(state.point[name])]));
  const scheme = data.walks.find(walk => walk.scheme)?.scheme ?? null;
  return { type: "cgprimer-state", method: data.walks[state.walk].method, step: getIndex(), point, h: state.h, scheme };
}
function reportState() { // at most once per picture that the browser draws
  if (window.parent === window || report) return;
  report = requestAnimationFrame(() => {
    report = 0;
    const now = JSON.stringify(readState());
    if (now === reported) return;
    reported = now;
    window.parent.postMessage(JSON.parse(now), "*"); // a page in a sandbox does not know the address of its parent
  });
}
const isObject = value => typeof value === "object" && value !== null;
function readNumber(value) { // undefined if it is not a number
  if (typeof value === "string" && Object.hasOwn(NOT_FINITE, value)) return NOT_FINITE[value];
  return Number.isFinite(value) ? value : undefined;
}
function moveInputs({ point, h, scheme }) { // returns whether a number may have changed
  const names = isObject(point) ? [...inputs.point.keys()].filter(name => Object.hasOwn(point, name)) : [];
  const moved = names.filter(name => readNumber(point[name]) !== undefined);
  for (const name of moved) inputs.point.get(name)(state.point[name] = readNumber(point[name]));
  const changed = inputs.chooseScheme?.(scheme);
  const sets = inputs.setStepSize && (h === null || (Number.isFinite(h) && h > 0));
  if (sets) inputs.setStepSize(h);
  return moved.length > 0 || changed || sets;
}
function applyState(message) {
  if (moveInputs(message)) recompute();
  const named = data.walks.findIndex(walk => walk.method === message.method);
  const walk = named < 0 ? state.walk : named, last = Math.max(0, data.walks[walk].steps.length - 1);
  if (Number.isInteger(message.step) && message.step >= 0) state.frames[walk] = Math.min(last, message.step);
  if (walk !== state.walk) chooseWalk(walk);
  else showFrame();
  reported = JSON.stringify(readState()); // the other window knows where it has sent this page
}
function handleMessage({ source, data: message }) {
  if (source !== window.parent || source === window || !isObject(message)) return;
  if (message.type === "cgprimer-state") {
    stopPlaying();
    applyState(message);
  } else if (message.type === "cgprimer-theme" && typeof message.dark === "boolean") showTheme(message.dark);
}
window.addEventListener("message", handleMessage);
