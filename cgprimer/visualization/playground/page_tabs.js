// Tabs as in the WAI-ARIA practices: arrow keys move between tabs, and the splitter is a separator.
const tabs = [...document.querySelectorAll("#tabs [role=tab]")];
const narrow = matchMedia("(max-width: 760px)"); // there, the results follow the text at once
const embedded = new URLSearchParams(location.search).has("embed");
const getPane = () => tabs.find(tab => tab.getAttribute("aria-selected") === "true").dataset.pane;
function choosePane(name, focus = false) {
  for (const tab of tabs) {
    const chosen = tab.dataset.pane === name;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    $(`pane-${tab.dataset.pane}`).hidden = !chosen;
    if (chosen && focus) tab.focus();
    if (chosen) tab.scrollIntoView?.({ block: "nearest", inline: "nearest" });
  }
  const alone = name === "step" || (embedded && narrow.matches);
  $("edit").hidden = !alone;
  showLeft(!alone || !$("error").hidden);
  storeLink();
  if (session.summary) refreshPane();
}
function handleTabKey(event) {
  const at = tabs.indexOf(document.activeElement);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
  if (to === undefined || at < 0) return;
  event.preventDefault();
  choosePane(tabs[(to + tabs.length) % tabs.length].dataset.pane, true);
}
function showLeft(shown) { // the text and the values; the step page and small frames need the room
  document.body.classList.toggle("alone", !shown);
  $("edit").setAttribute("aria-expanded", String(shown));
}
function setSplit(percent) {
  const width = Math.round(Math.max(20, Math.min(70, percent)));
  $("split").style.setProperty("--left", `${width}%`);
  $("splitter").setAttribute("aria-valuenow", width);
}
function dragSplitter(event) {
  const { left, width } = $("split").getBoundingClientRect();
  setSplit(100 * (event.clientX - left) / width);
}
for (const tab of tabs) tab.addEventListener("click", () => choosePane(tab.dataset.pane));
$("edit").addEventListener("click", () => showLeft($("edit").getAttribute("aria-expanded") === "false"));
const foldValues = () => { $("values-fold").open = !narrow.matches; };
narrow.addEventListener("change", foldValues);
foldValues();
$("tabs").addEventListener("keydown", handleTabKey);
$("splitter").addEventListener("pointerdown", event => {
  event.preventDefault();
  $("splitter").focus();
  $("splitter").setPointerCapture(event.pointerId);
  $("splitter").addEventListener("pointermove", dragSplitter);
});
$("splitter").addEventListener("pointerup", () => $("splitter").removeEventListener("pointermove", dragSplitter));
$("splitter").addEventListener("keydown", event => {
  const by = { ArrowLeft: -2, ArrowRight: 2, Home: -100, End: 100 }[event.key];
  if (!by) return;
  event.preventDefault();
  setSplit(Number($("splitter").getAttribute("aria-valuenow")) + by);
});
