// A page that follows a file. A new version is loaded behind the current page, gets its state, and
// replaces it. Errors in the file are shown over the last valid page.
const INTERVAL = 400; // milliseconds
let frame = null, shown = "";

function showBanner(headline, error) {
  $("banner").hidden = !headline;
  setText($("said"), headline);
  setText($("error"), error);
}
function printPage(event) { // prints the page instead of the window around it
  if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "p" || !frame) return;
  event.preventDefault();
  frame.contentWindow.print();
}
function copyTheme() {
  const { look } = frame.contentDocument.documentElement.dataset;
  if (look) document.documentElement.dataset.look = look;
}
function replacePage(version) { // resolves to true if the new page was loaded
  const next = addElement("iframe", $("stage"), "coming", "",
    { src: `page?${version}${frame ? "" : location.hash}`, title: "page of the file", allow: "fullscreen" });
  next.dataset.live = "yes"; // full screen belongs to this window, which stays
  return new Promise(done => next.addEventListener("load", () => {
    const page = next.contentDocument, before = frame?.contentDocument, focused = document.hasFocus();
    if (!page?.querySelector("main")) { // the server has stopped meanwhile
      next.remove();
      return done(false);
    }
    next.classList.remove("coming"); // hidden elements cannot have the focus
    if (before) {
      const { look } = before.documentElement.dataset, focus = before.activeElement?.id;
      if (look) page.documentElement.dataset.look = look;
      next.contentWindow.updateThemeButton?.();
      if (frame.contentWindow.saveState) next.contentWindow.restoreState?.(frame.contentWindow.saveState());
      page.documentElement.scrollTo(0, before.documentElement.scrollTop);
      frame.remove();
      if (focus) page.getElementById(focus)?.focus();
    }
    frame = next;
    document.title = page.title;
    // Otherwise only this window would get keys. Delayed, because the old page is still being removed.
    if (focused) setTimeout(() => next.contentWindow.focus());
    page.addEventListener("keydown", printPage);
    new MutationObserver(copyTheme).observe(page.documentElement, { attributes: true });
    copyTheme();
    done(true);
  }, { once: true }));
}
async function pollNews() {
  try {
    const news = await (await fetch("news")).json();
    if (news.version && news.version !== shown && await replacePage(news.version)) shown = news.version;
    showBanner(news.error && (shown ? "error in the file: the page shows the last valid version" : "error in the file: no page to show yet"), news.error);
    const { hash } = frame?.contentWindow.location ?? location;
    if (hash !== location.hash) history.replaceState(null, "", hash || "#");
  } catch {
    showBanner("cgprimer has stopped: the page no longer follows the file", "Restart cgprimer with the same --port to continue.");
  }
  setTimeout(pollNews, INTERVAL);
}
document.addEventListener("keydown", printPage);
window.addEventListener("focus", () => frame?.focus());
pollNews();
