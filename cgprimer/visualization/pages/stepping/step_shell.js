// The step page waits for its data from the window that embeds it, and accepts new data at any time.
"use strict";
function startPage() { // returns the function that shows data
{% include "visualization/pages/stepping/step_scripts.js" %}
return showData;
}
let show = null;
window.addEventListener("message", ({ source, data: message }) => {
  if (source !== window.parent || source === window || message?.type !== "cgprimer-data") return;
  show ??= startPage();
  try {
    show(message.data);
    document.documentElement.classList.add("ready");
  } catch (error) { // data that are not those of a step page
    document.documentElement.classList.remove("ready");
    source.postMessage({ type: "cgprimer-error", message: `the step page cannot show these data: ${error.message}` }, "*");
  }
});
