// Formulas: pymdownx.arithmatex leaves \(...\) and \[...\] in elements of this class.
for (const element of document.querySelectorAll(".arithmatex")) {
  const source = element.textContent.trim();
  katex.render(source.slice(2, -2), element, { displayMode: source.startsWith("\\[") });
}
