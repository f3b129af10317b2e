// Plays frames by buttons, keys and swipes. The page defines getIndex(), getLastIndex(), goTo(),
// and its additional keys in KEYS.
let timer = null;
function stopPlaying() {
  clearTimeout(timer);
  timer = null;
  $("play").textContent = "play";
}
function playNext() {
  if (getIndex() >= getLastIndex()) return stopPlaying();
  goTo(getIndex() + 1);
  timer = setTimeout(playNext, 1000 / Number($("speed").value));
}
function togglePlay() {
  if (timer !== null) return stopPlaying();
  if (getIndex() >= getLastIndex()) goTo(0);
  $("play").textContent = "pause";
  timer = setTimeout(playNext, 1000 / Number($("speed").value));
}
function changeSpeed(by) {
  const speed = $("speed");
  speed.selectedIndex = Math.max(0, Math.min(speed.options.length - 1, speed.selectedIndex + by));
}
function toggleFullScreen() {
  // A live page uses the window around it, which stays when the page is replaced.
  const page = window.frameElement?.dataset.live ? window.parent.document : document;
  if (page.fullscreenElement) page.exitFullscreen();
  else page.documentElement.requestFullscreen?.().catch(() => {}); // a frame may forbid full screen
}
function toggleHelp() {
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
    ArrowRight: () => goTo(getIndex() + 1), ArrowLeft: () => goTo(getIndex() - 1), Home: () => goTo(0),
    End: () => goTo(Infinity), " ": togglePlay, "+": () => changeSpeed(1), "-": () => changeSpeed(-1),
    d: switchTheme, f: toggleFullScreen, "?": toggleHelp, ...KEYS,
  };
  if (!Object.hasOwn(keys, event.key)) return;
  if (event.key.startsWith("Arrow") || event.key === "Home") stopPlaying();
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
  stopPlaying();
  goTo(getIndex() + (across < 0 ? 1 : -1));
}
const actions = { start: () => goTo(0), back: () => goTo(getIndex() - 1), forward: () => goTo(getIndex() + 1),
  end: () => goTo(Infinity) };
for (const [id, act] of Object.entries(actions))
  $(id).addEventListener("click", () => { stopPlaying(); act(); });
for (const [id, act] of Object.entries({ play: togglePlay, full: toggleFullScreen, keys: toggleHelp }))
  $(id).addEventListener("click", act);
$("place").addEventListener("input", () => { stopPlaying(); goTo(Number($("place").value)); });
document.addEventListener("keydown", handleKey);
for (const kind of ["touchstart", "touchend"])
  document.querySelector("main").addEventListener(kind, handleSwipe, { passive: true });
