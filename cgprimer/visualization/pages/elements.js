// Functions that create and change the elements of a page.
const $ = id => document.getElementById(id);
// JSON has no nan and no infinities: they are strings. Only numbers are converted, because "nan" and
// "inf" may also be names of parameters.
const NOT_FINITE = { nan: NaN, inf: Infinity, "-inf": -Infinity };
const numeric = value => typeof value === "string" ? NOT_FINITE[value] : value;
function make(tag, parent, words = "", text = "", more = {}) {
  const made = Object.assign(document.createElement(tag), more);
  if (words) made.className = words;
  if (text) made.textContent = text;
  parent.append(made);
  return made;
}
function draw(tag, parent, attributes, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text) made.textContent = text;
  parent.append(made);
  return made;
}
function put(node, text, unknown = false) { // changes the page only if the text differs
  if (node.firstChild) {
    if (node.firstChild.data !== text) node.firstChild.data = text;
  } else if (text !== "") node.textContent = text;
  if (node.classList.contains("unknown") !== unknown) node.classList.toggle("unknown", unknown);
}
