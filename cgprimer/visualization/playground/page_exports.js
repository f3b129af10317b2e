// The dialog with links, the frame for other pages, and exports.
const exported = { text: "", name: "" };
async function copyText(field, words) {
  setText($("shared"), ""); // a repeated message is announced again
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
  } catch { // no permission, or a page without https
    document.execCommand("copy");
  }
  setText($("shared"), `Copied ${words}.`);
}
function openSharing() {
  const link = encodeLink(), page = location.href.split(/[?#]/)[0];
  $("link").value = `${page}#${link}`;
  const source = `${page}?embed#${link}`.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  $("frame").value = `<iframe src="${source}" title="cgprimer playground" width="100%" height="600" allow="clipboard-write"></iframe>`;
  setText($("shared"), "");
  $("exported").hidden = true;
  const picture = findPicture();
  for (const id of ["save-svg", "save-png"]) $(id).disabled = !picture;
  $("sharing").showModal();
}
const findPicture = () => {
  const name = { graph: "#graph", plot: "#curve svg", train: "#losses svg" }[getPane()] ?? "#graph";
  const svg = document.querySelector(name);
  return svg?.firstChild ? svg : null;
};
const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "paint-order", "font-family",
  "font-size", "font-weight", "font-style", "text-anchor", "visibility", "opacity"];
function copyPicture() { // a copy that needs no style sheet, with a background
  const source = findPicture(), copy = source.cloneNode(true);
  const [, , width, height] = source.getAttribute("viewBox").split(" ").map(Number);
  const from = [source, ...source.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((element, k) => {
    const style = getComputedStyle(element);
    for (const name of STYLES) to[k].setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "style"]) to[k].removeAttribute(name);
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  Object.entries({ width, height }).forEach(([name, value]) => copy.setAttribute(name, value));
  const back = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  Object.entries({ width, height, fill: getComputedStyle($("right")).backgroundColor }).forEach(([n, v]) => back.setAttribute(n, v));
  copy.prepend(back);
  return { text: new XMLSerializer().serializeToString(copy), width, height };
}
function saveFile(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const anchor = addElement("a", document.body, "", "", { href: url, download: name });
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
  setText($("shared"), `Saved ${name}.`);
}
const getFileName = ending => `${session.example || "graph"}-${getPane()}.${ending}`;
async function savePng() {
  const { text, width, height } = copyPicture(), scale = Math.min(3, 8000 / Math.max(width, height));
  const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: Math.round(width * scale), height: Math.round(height * scale) });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise(resolve => canvas.toBlob(resolve, "image/png"));
    if (!blob) throw new Error("the picture is too large");
    saveFile(getFileName("png"), blob);
  } catch (error) {
    setText($("shared"), `This browser cannot convert the picture: ${error.message}. Save it as SVG.`);
  } finally {
    URL.revokeObjectURL(url);
  }
}
const PROGRAM_FILES = { latex: ["LaTeX", "tex"], tikz: ["TikZ", "tex"], python: ["Python", "py"] };
async function showExport(format) {
  setText($("shared"), "");
  const answer = await askPython(describeRequest("export", { format }));
  if (!answer) return;
  $("exported").hidden = Boolean(answer.error);
  if (answer.error) return setText($("shared"), [answer.error.message, answer.error.hint && `Hint: ${answer.error.hint}`].filter(Boolean).join(". "));
  const [title, ending] = PROGRAM_FILES[format];
  setText($("code-title"), title);
  $("code").value = answer.text;
  exported.name = `${session.example || "graph"}-${format}.${ending}`;
}
$("share").addEventListener("click", openSharing);
$("copy-link").addEventListener("click", () => copyText($("link"), "the link"));
$("copy-frame").addEventListener("click", () => copyText($("frame"), "the text for embedding"));
$("copy-code").addEventListener("click", () => copyText($("code"), "the program"));
$("save-code").addEventListener("click", () => saveFile(exported.name, $("code").value, "text/plain"));
$("save-svg").addEventListener("click", () => saveFile(getFileName("svg"), copyPicture().text, "image/svg+xml"));
$("save-png").addEventListener("click", savePng);
for (const button of document.querySelectorAll("[data-export]")) button.addEventListener("click", () => showExport(button.dataset.export));
