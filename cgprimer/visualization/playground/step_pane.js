// The step page in a frame: it has its own files, and gets its data by messages.
const steps = { loaded: null };
function loadStepPage() { // once, at the first use
  steps.loaded ??= new Promise(resolve => {
    $("steps").addEventListener("load", () => {
      $("steps").contentDocument.getElementById("fold").click(); // the values have sliders on the left
      resolve();
    }, { once: true });
    $("steps").src = "step.html";
  });
  return steps.loaded;
}
const postToSteps = message => $("steps").contentWindow.postMessage(message, location.origin);
function postTheme() {
  if (steps.loaded) postToSteps({ type: "cgprimer-theme", dark: isDark() });
}
panes.step = { async refresh() {
  const [answer] = await Promise.all([askView("step"), loadStepPage()]);
  if (!answer) return;
  postToSteps({ type: "cgprimer-data", data: answer });
  if (root.dataset.look) postTheme();
} };
look.addEventListener("click", postTheme);
window.addEventListener("message", ({ source, data: message }) => {
  if (source === $("steps").contentWindow && message?.type === "cgprimer-error")
    showPaneError($("pane-step"), { message: String(message.message), hint: "" });
});
