// A page that follows a file: it is made anew beside the one that is shown, told where that one
// stands, and put in its place. What is wrong with the file stands over the last page that was right.
const EVERY = 400; // milliseconds
let frame = null, shown = "";

function tell(said, error) {
  $("banner").hidden = !said;
  put($("said"), said);
  put($("error"), error);
}
function prints(event) { // the page, not the window around it
  if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "p" || !frame) return;
  event.preventDefault();
  frame.contentWindow.print();
}
function sameLook() {
  const { look } = frame.contentDocument.documentElement.dataset;
  if (look) document.documentElement.dataset.look = look;
}
function swap(version) { // resolves to whether the new page is there
  const next = make("iframe", $("stage"), "coming", "",
    { src: `page?${version}${frame ? "" : location.hash}`, title: "the page", allow: "fullscreen" });
  next.dataset.live = "yes"; // its full screen is the one of this window, which outlives it
  return new Promise(done => next.addEventListener("load", () => {
    const page = next.contentDocument, before = frame?.contentDocument, focused = document.hasFocus();
    if (!page?.querySelector("main")) { // the server has gone in between
      next.remove();
      return done(false);
    }
    next.classList.remove("coming"); // what is hidden cannot have the focus
    if (before) {
      const { look } = before.documentElement.dataset, focus = before.activeElement?.id;
      if (look) page.documentElement.dataset.look = look;
      next.contentWindow.press?.();
      if (frame.contentWindow.keepPlace) next.contentWindow.takePlace?.(frame.contentWindow.keepPlace());
      page.documentElement.scrollTo(0, before.documentElement.scrollTop);
      frame.remove();
      if (focus) page.getElementById(focus)?.focus();
    }
    frame = next;
    document.title = page.title;
    // Else keys would reach this window alone; and not at once, when the old page is still going.
    if (focused) setTimeout(() => next.contentWindow.focus());
    page.addEventListener("keydown", prints);
    new MutationObserver(sameLook).observe(page.documentElement, { attributes: true });
    sameLook();
    done(true);
  }, { once: true }));
}
async function look() {
  try {
    const news = await (await fetch("news")).json();
    if (news.version && news.version !== shown && await swap(news.version)) shown = news.version;
    tell(news.error && (shown ? "not yet: the page shows the text before this" : "there is no page yet"), news.error);
    const { hash } = frame?.contentWindow.location ?? location;
    if (hash !== location.hash) history.replaceState(null, "", hash || "#");
  } catch {
    tell("cgprimer has ended: this page follows the file no more", "Start it again with the same --port, and the page goes on.");
  }
  setTimeout(look, EVERY);
}
document.addEventListener("keydown", prints);
window.addEventListener("focus", () => frame?.focus());
look();
