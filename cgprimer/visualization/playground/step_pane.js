// The step page in a frame: it has its own files, and gets its data by messages.
const steps = { loaded: null, folded: false };
function loadStepPage() { // once, at the first use
  steps.loaded ??= new Promise(resolve => {
    $("steps").addEventListener("load", resolve, { once: true });
    $("steps").src = "step.html";
  });
  return steps.loaded;
}
const postToSteps = message => $("steps").contentWindow.postMessage(message, location.origin);
function postTheme() {
  if (steps.loaded) postToSteps({ type: "cgprimer-theme", dark: isDark() });
}
function foldSliders() { // once the page has data: the same values have sliders next to it
  const page = $("steps").contentDocument;
  if (!page.documentElement.classList.contains("ready")) return requestAnimationFrame(foldSliders);
  if (page.getElementById("fold").getAttribute("aria-expanded") === "true") page.getElementById("fold").click();
}
panes.step = { async refresh() {
  const [answer] = await Promise.all([askView("step"), loadStepPage()]);
  if (!answer) return;
  postToSteps({ type: "cgprimer-data", data: answer });
  if (root.dataset.look) postTheme();
  if (!steps.folded) foldSliders();
  steps.folded = true;
} };
look.addEventListener("click", postTheme);
function followSteps(point) { // values that the sliders of the step page have set
  const moved = Object.entries(point).filter(([name, value]) => {
    const box = $(`at-${name}`);
    return box?.type === "number" && Number.isFinite(value) && Number(box.value) !== value;
  });
  if (!moved.length) return;
  for (const [name, value] of moved) {
    session.at[name] = value;
    for (const input of $(`at-${name}`).parentNode.querySelectorAll("input")) input.value = value;
  }
  session.version += 1; // the other panes are outdated
  panes.step.shown = session.version;
  storeLink();
}
window.addEventListener("message", ({ source, origin, data: message }) => {
  if (source !== $("steps").contentWindow || origin !== location.origin) return;
  if (message?.type === "cgprimer-error") showPaneError($("pane-step"), { message: String(message.message), hint: "" });
  if (message?.type === "cgprimer-state") followSteps(message.point ?? {});
});
