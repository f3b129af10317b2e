// One sheet of paper: letters as large as let everything stand on it. What needs letters below 5
// points goes over several sheets.
function fitPaper() {
  const print = [...document.styleSheets[0].cssRules].find(rule => rule.media?.mediaText === "print");
  const size = (points, columns) => {
    root.style.setProperty("--paper", `${points}pt`);
    root.style.setProperty("--columns", columns);
  };
  const high = 186 / 25.4 * 96, main = document.querySelector("main");
  const fits = () => document.body.offsetHeight <= high && main.scrollWidth <= main.clientWidth;
  root.classList.remove("sheets");
  print.media.mediaText = "all"; // so that it can be measured
  const found = [11, 10, 9, 8, 7, 6, 5].some(points => [1, 2, 3].some(columns => {
    size(points, columns);
    return fits();
  }));
  if (!found) size(8, 2);
  root.classList.toggle("sheets", !found);
  print.media.mediaText = "print";
}
window.addEventListener("beforeprint", fitPaper);
