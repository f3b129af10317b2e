// Events of several workers: a curtain hides the future part of the timeline.
const data = JSON.parse($("data").textContent);
const KEYS = {};
let current = 0;
const getIndex = () => current, getLastIndex = () => data.frames.length - 1;
function goTo(to) {
  current = Math.max(0, Math.min(getLastIndex(), to));
  const { at, words, server } = data.frames[current], [left, right, top, bottom] = data.box;
  const curtain = $("curtain").style, now = left + (right - left) * at;
  curtain.left = `${100 * now}%`;
  curtain.width = `${100 * (right - now) + 0.4}%`;
  curtain.top = `${100 * top - 0.4}%`; // lines extend slightly beyond the axes
  curtain.height = `${100 * (bottom - top) + 0.4}%`;
  $("room").scrollLeft = now * $("picture").clientWidth - 0.6 * $("room").clientWidth; // if the picture is wider than the window
  setText($("what"), words);
  setText($("server"), server);
  setText($("count"), `event ${current + 1} of ${data.frames.length}`);
  $("place").value = current;
  $("place").setAttribute("aria-valuetext", words);
  $("start").disabled = $("back").disabled = current === 0;
  $("forward").disabled = $("end").disabled = current >= getLastIndex();
}
$("place").max = getLastIndex();
goTo(/^#\d+$/.test(location.hash) ? Number(location.hash.slice(1)) - 1 : 0);
window.addEventListener("hashchange", () => {
  if (/^#\d+$/.test(location.hash)) goTo(Number(location.hash.slice(1)) - 1);
});
