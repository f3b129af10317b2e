// The address of the page carries its text: #text=... or #example=..., and tab, at, of, wrt. Texts are
// percent-encoded, so that a lecturer can write such a link by hand.
const LONGEST_TEXT = 50000; // characters in an address
const address = { ignore: "" };
function encodeLink() {
  const example = findExample();
  const fields = example && example.text === $("text").value ? { example: example.name } : { text: $("text").value.toWellFormed() };
  const point = Object.entries(session.at).filter(([name, value]) => isMoved(name, value));
  if (point.length) fields.at = JSON.stringify(Object.fromEntries(point));
  for (const id of ["of", "wrt"]) if ($(id).value && $(id).selectedIndex > 0) fields[id] = $(id).value;
  fields.tab = getPane();
  return Object.entries(fields).map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
}
function isMoved(name, value) { // differs from the value that the page would choose
  const entry = [...session.summary?.inputs ?? [], ...session.summary?.parameters ?? []].find(entry => entry.name === name);
  return entry && JSON.stringify(value) !== JSON.stringify(entry.value ?? (entry.shape.length ? value : DEFAULT_VALUE));
}
function storeLink() {
  if (!session.started) return;
  const link = encodeLink();
  if (link.length > 3 * LONGEST_TEXT) return;
  try { history.replaceState(null, "", `#${link}`); } catch { /* forbidden in some frames, or too often */ }
  $("whole-page").href = `${location.pathname}#${link}`;
}
function decodeLink(hash) { // fields of the address; raises URIError if they are damaged
  return Object.fromEntries(hash.replace(/^#/, "").split("&").filter(Boolean).map(part => {
    const [name, ...rest] = part.split("=");
    return [name, decodeURIComponent(rest.join("=").replaceAll("+", "%20"))];
  }));
}
function openLink() { // shows what the address says; a bad address shows the first example and a message
  let fields = {}, problem = "";
  try {
    fields = decodeLink(location.hash);
  } catch {
    problem = "This link is damaged, so the page shows an example.";
  }
  if (fields.text?.length > LONGEST_TEXT) {
    problem = `The text in this link has more than ${LONGEST_TEXT} characters, so the page shows an example.`;
    fields = {};
  }
  const examples = config.examples.flatMap(topic => topic.examples);
  const [example, first] = [fields.example, config.first].map(wanted => examples.find(({ name }) => name === wanted));
  if (fields.example && !example) problem = `This version has no example ${fields.example.slice(0, 40)}, so the page shows another one.`;
  session.example = example?.name ?? (fields.text === undefined ? config.first : "");
  setEditorText(fields.text ?? (example ?? first).text);
  $("examples").value = session.example;
  session.at = readPoint(fields.at);
  session.pointShape = "";
  $("of").replaceChildren();
  $("wrt").replaceChildren();
  session.opened = { of: fields.of, wrt: fields.wrt };
  choosePane(tabs.some(tab => tab.dataset.pane === fields.tab) ? fields.tab : "graph");
  if (problem) showNotice(problem);
}
function readPoint(text) {
  try {
    const read = JSON.parse(text ?? "{}");
    const values = Object.entries(read).filter(([, value]) => isValue(value));
    return createPoint(values);
  } catch {
    return createPoint();
  }
}
function showNotice(words) {
  setText($("notice").firstElementChild, words);
  $("notice").hidden = false;
}
$("dismiss").addEventListener("click", () => { $("notice").hidden = true; });
window.addEventListener("hashchange", () => { openLink(); updateText(); });
