// Functions that create and change the elements of a page.
const $ = id => document.getElementById(id);
// JSON has no nan and no infinities: they are strings. Only numbers are converted, because "nan" and
// "inf" may also be names of parameters.
const NOT_FINITE = { nan: NaN, inf: Infinity, "-inf": -Infinity };
const parseNumeric = value => typeof value === "string" ? NOT_FINITE[value] : value;
function addElement(tag, parent, className = "", text = "", properties = {}) {
  const element = Object.assign(document.createElement(tag), properties);
  if (className) element.className = className;
  if (text) element.textContent = text;
  parent.append(element);
  return element;
}
function addShape(tag, parent, attributes, text = "") {
  const shape = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) shape.setAttribute(name, value);
  if (text) shape.textContent = text;
  parent.append(shape);
  return shape;
}
function setText(node, text, unknown = false) { // changes the page only if the text differs
  if (node.firstChild) {
    if (node.firstChild.data !== text) node.firstChild.data = text;
  } else if (text !== "") node.textContent = text;
  if (node.classList.contains("unknown") !== unknown) node.classList.toggle("unknown", unknown);
}
