// Splits a text of the language into parts with roles, for colors only: Python parses the text.
const TOKEN = /(?<comment>#[^\n]*)|(?<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)|(?<name>[\p{L}_][\p{L}\p{N}_]*)|(?<other>\n|[^\s])/gu;
const DECLARATIONS = ["input", "parameter", "output"], INITIALIZER_NAMES = ["zeros", "ones", "normal", "uniform", "glorot", "he"];
const LONGEST_COLORED = 20000; // characters; longer texts are shown in one color
function splitTokens(text) {
  return [...text.matchAll(TOKEN)].map(match => {
    const kind = Object.keys(match.groups).find(name => match.groups[name] !== undefined);
    return { start: match.index, end: match.index + match[0].length, word: match[0], kind };
  });
}
function collectRoles(tokens) { // roles that declarations and definitions give to names
  const roles = new Map();
  let first = true, declaration = "";
  tokens.forEach((token, k) => {
    if (token.kind === "comment") return;
    if (token.word === "\n" || token.word === ";") { first = true; declaration = ""; return; }
    const next = tokens[k + 1];
    if (first && DECLARATIONS.includes(token.word) && next?.kind === "name") declaration = token.word;
    else if (first && token.kind === "name" && next?.word === "=") roles.set(token.word, "variable");
    else if (declaration && declaration !== "output" && token.kind === "name"
      && [declaration, ","].includes(tokens[k - 1].word)) roles.set(token.word, declaration);
    if (token.word === declaration) token.kind = "keyword";
    else if (declaration && token.word === "in") token.kind = "keyword";
    else if (declaration && INITIALIZER_NAMES.includes(token.word) && tokens[k - 1].word === "=") token.kind = "function";
    first = false;
  });
  return roles;
}
function colorText(text) { // [start, end, role] of each part that has a role
  const tokens = splitTokens(text), roles = collectRoles(tokens);
  return tokens.filter(token => token.kind !== "other").map(({ start, end, word, kind }) => {
    if (kind !== "name") return [start, end, kind];
    if (/^\s*\(/.test(text.slice(end, end + 99))) return [start, end, "function"];
    return [start, end, roles.get(word) ?? (/^x/i.test(word) ? "input" : "parameter")];
  });
}
function buildColoredText(parent, text, error) { // error: its start and end, or null
  parent.replaceChildren();
  const parts = text.length > LONGEST_COLORED ? [] : colorText(text);
  const [from, to] = error ? [error.start, Math.max(error.end, error.start + 1)] : [-1, -1];
  const addPart = (start, end, role) => {
    const cuts = [start, Math.min(end, Math.max(start, from)), Math.min(end, Math.max(start, to)), end];
    [role, `${role} wrong`, role].forEach((words, k) => {
      const part = text.slice(cuts[k], cuts[k + 1]);
      if (part) addElement("span", parent, words.trim(), part);
    });
  };
  let end = 0;
  for (const [start, stop, role] of parts) {
    addPart(end, start, "");
    addPart(start, stop, role);
    end = stop;
  }
  addPart(end, text.length, "");
  // An error at the end of a line or of the text has no character that could be underlined.
  const missing = error && (from >= text.length || text[from] === "\n");
  if (missing) {
    const mark = document.createElement("span");
    mark.className = "wrong";
    mark.textContent = " ";
    insertAtOffset(parent, mark, from);
  }
  parent.append("\n"); // the last empty line has a height
}
function insertAtOffset(parent, node, offset) {
  let before = 0;
  for (const child of [...parent.childNodes]) {
    const length = child.textContent.length;
    if (offset < before + length) {
      const rest = child.cloneNode();
      rest.textContent = child.textContent.slice(offset - before);
      child.textContent = child.textContent.slice(0, offset - before);
      child.after(node, rest);
      return;
    }
    before += length;
  }
  parent.append(node);
}
