// Prints on one sheet with the largest letters for which everything fits. Content that would need
// letters below 5 points continues on further sheets.
function fitPaper() {
  const print = [...document.styleSheets[0].cssRules].filter(rule => rule.media?.mediaText === "print").pop();
  const set = (...pairs) => pairs.forEach(([name, value]) => root.style.setProperty(`--${name}`, value));
  const high = 186 / 25.4 * 96, main = document.querySelector("main");
  const many = [parts.rows.length, parts.lines.length];
  const fits = (points, columns, graph) => {
    const lines = Math.max(many[0], many[1] / columns); // cannot fit: the layout is not tried
    if (lines * points * 1.35 * 96 / 72 > high) return false;
    set(["paper", `${points}pt`], ["columns", columns], ["room", `${graph}mm`]);
    return document.body.offsetHeight <= high && main.scrollWidth <= main.clientWidth;
  };
  root.classList.remove("sheets");
  print.media.mediaText = "all"; // to measure the printed layout
  const found = [11, 10, 9, 8, 7, 6, 5].some(points => [85, 60].some(graph =>
    [1, 2, 3, 4].some(columns => fits(points, columns, graph))));
  if (!found) set(["paper", "8pt"], ["columns", 2], ["room", "60mm"]);
  root.classList.toggle("sheets", !found);
  print.media.mediaText = "print";
}
window.addEventListener("beforeprint", fitPaper);
