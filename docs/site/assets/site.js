// Formulas: pymdownx.arithmatex leaves \(...\) and \[...\] in elements of this class.
for (const element of document.querySelectorAll(".arithmatex")) {
  const source = element.textContent.trim();
  katex.render(source.slice(2, -2), element, { displayMode: source.startsWith("\\[") });
}

// Diagrams: the theme would load mermaid from another server.
const diagrams = document.querySelectorAll(".diagram");
if (diagrams.length > 0) {
  const script = document.createElement("script");
  script.src = new URL("mermaid/mermaid.tiny.js", document.currentScript.src);
  script.onload = async () => {
    mermaid.initialize({ startOnLoad: false, theme: "neutral" });
    await mermaid.run({ nodes: diagrams });
    for (const { style } of document.querySelectorAll(".diagram svg"))
      style.minWidth = `${0.6 * parseFloat(style.maxWidth)}px`;  // then the diagram scrolls
  };
  document.head.append(script);
}

// Pages of the package are laid out for a laptop; the frame shows them smaller.
const observer = new ResizeObserver(entries => {
  for (const { target, contentRect } of entries)
    target.style.setProperty("--scale", contentRect.width / 1120);
});
for (const frame of document.querySelectorAll(".live")) observer.observe(frame);
