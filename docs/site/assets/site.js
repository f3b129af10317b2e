// Formulas: pymdownx.arithmatex leaves \(...\) and \[...\] in elements of this class.
for (const element of document.querySelectorAll(".arithmatex")) {
  const source = element.textContent.trim();
  katex.render(source.slice(2, -2), element, { displayMode: source.startsWith("\\[") });
}

// Pages of the package are laid out for a laptop; the frame shows them smaller.
const observer = new ResizeObserver(entries => {
  for (const { target, contentRect } of entries)
    target.style.setProperty("--scale", contentRect.width / 1120);
});
for (const frame of document.querySelectorAll(".live")) observer.observe(frame);
