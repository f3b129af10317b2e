// The milliseconds from an edit of the text, or from the movement of a slider, to the new picture.
const [edgeEdits, numberEdits, done] = arguments;
const WAIT_AFTER_KEYS = 150; // as in text_editor.js
const count = () => performance.getEntriesByName("graph-answered").length;
async function measure(change, pause) {
  const seen = count(), start = performance.now();
  change();
  while (count() === seen) await new Promise(resolve => { setTimeout(resolve, 1); });
  return performance.now() - start - pause;
}
function enter(node, value) {
  node.value = value;
  node.dispatchEvent(new Event("input", { bubbles: true }));
}
async function enterTexts(texts) {
  const times = [], node = document.querySelector("#text");
  for (const text of texts) times.push(await measure(() => enter(node, text), WAIT_AFTER_KEYS));
  return times.slice(1); // the first one runs code for the first time
}
async function run() {
  const edges = await enterTexts(edgeEdits), numbers = await enterTexts(numberEdits), moves = [];
  const box = document.querySelector("#at-x0");
  for (const k of edgeEdits.keys()) moves.push(await measure(() => enter(box, k / 100), 0));
  done([edges, numbers, moves.slice(1)]);
}
run();
