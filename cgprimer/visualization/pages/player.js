// Playing of frames by buttons, keys and swipes. The page defines here(), last() and go(); KEYS has its
// additional keys.
let timer = null;
function stop() {
  clearTimeout(timer);
  timer = null;
  $("play").textContent = "play";
}
function tick() {
  if (here() >= last()) return stop();
  go(here() + 1);
  timer = setTimeout(tick, 1000 / Number($("speed").value));
}
function play() {
  if (timer !== null) return stop();
  if (here() >= last()) go(0);
  $("play").textContent = "pause";
  timer = setTimeout(tick, 1000 / Number($("speed").value));
}
function faster(by) {
  const speed = $("speed");
  speed.selectedIndex = Math.max(0, Math.min(speed.options.length - 1, speed.selectedIndex + by));
}
function fullScreen() {
  // A live page uses the window around it, which stays when the page is replaced.
  const page = window.frameElement?.dataset.live ? window.parent.document : document;
  if (page.fullscreenElement) page.exitFullscreen();
  else page.documentElement.requestFullscreen?.().catch(() => {}); // a frame may forbid full screen
}
function help() {
  if ($("help").open) $("help").close();
  else $("help").showModal();
}

// --- keys and touch -----------------------------------------------------------------------------
function handleKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || ($("help").open && event.key !== "?")) return;
  const target = event.target, box = target.tagName === "INPUT" && target.id !== "place";
  if (box && target.type !== "range") return;
  const arrows = ["ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown"];
  if (box && arrows.includes(event.key)) return; // keys of the slider
  if (target.tagName === "SELECT" && arrows.includes(event.key)) return;
  if (event.key === " " && ["BUTTON", "SELECT"].includes(target.tagName)) return;
  const keys = {
    ArrowRight: () => go(here() + 1), ArrowLeft: () => go(here() - 1), Home: () => go(0),
    End: () => go(Infinity), " ": play, "+": () => faster(1), "-": () => faster(-1),
    d: switchTheme, f: fullScreen, "?": help, ...KEYS,
  };
  if (!Object.hasOwn(keys, event.key)) return;
  if (event.key.startsWith("Arrow") || event.key === "Home") stop();
  keys[event.key]();
  event.preventDefault();
}
let touchStart = null;
function handleSwipe(event) { // a swipe to the left is forward; panes that scroll sideways ignore it
  const pane = event.target.closest("section");
  if (event.type === "touchstart") {
    const scrolls = pane && pane.scrollWidth > pane.clientWidth + 1;
    touchStart = event.touches.length === 1 && !scrolls ? event.touches[0] : null;
    return;
  }
  if (!touchStart) return;
  const across = event.changedTouches[0].clientX - touchStart.clientX;
  const down = event.changedTouches[0].clientY - touchStart.clientY;
  touchStart = null;
  if (Math.abs(across) < 50 || Math.abs(across) < 2 * Math.abs(down)) return;
  stop();
  go(here() + (across < 0 ? 1 : -1));
}
const pressed = { start: () => go(0), back: () => go(here() - 1), forward: () => go(here() + 1),
  end: () => go(Infinity) };
for (const [id, act] of Object.entries(pressed))
  $(id).addEventListener("click", () => { stop(); act(); });
for (const [id, act] of Object.entries({ play, full: fullScreen, keys: help }))
  $(id).addEventListener("click", act);
$("place").addEventListener("input", () => { stop(); go(Number($("place").value)); });
document.addEventListener("keydown", handleKey);
for (const kind of ["touchstart", "touchend"])
  document.querySelector("main").addEventListener(kind, handleSwipe, { passive: true });
