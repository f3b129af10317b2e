// The editor: a text area, and below it the same text in colors. Tab leaves the text area as usual.
const WAIT = 150; // milliseconds after the last key
let editTimer = null, shownError = null;
function paintText() {
  buildColoredText($("colors"), $("text").value, shownError);
  scrollColors();
}
function scrollColors() {
  $("colors").scrollTop = $("text").scrollTop;
  $("colors").scrollLeft = $("text").scrollLeft;
}
function showError(error) { // null: the text is valid
  shownError = error && Number.isInteger(error.start) ? error : null;
  $("error").hidden = !error;
  $("text").setAttribute("aria-invalid", String(Boolean(error)));
  $("jump").hidden = !shownError;
  if (error) {
    showLeft(true); // with the message
    setText($("summary"), "");
    const at = shownError ? `Line ${error.line}, column ${error.column}: ` : "";
    setText($("what"), `${at}${error.message}`);
    setText($("excerpt"), shownError ? formatExcerpt(error) : "");
    setText($("hint"), error.hint ? `Hint: ${error.hint}` : "");
  }
  paintText();
}
function formatExcerpt({ source_line: line, column, end_column: end }) { // at most about 60 characters
  const letters = [...line], first = Math.max(0, column - 30);
  const blanks = letters.slice(first, column - 1).map(letter => letter === "\t" ? "\t" : " ").join("");
  return `${letters.slice(first, first + 60).join("")}\n${blanks}${"^".repeat(Math.max(1, Math.min(end - column, 60)))}`;
}
function jumpToError() {
  $("text").focus();
  $("text").setSelectionRange(shownError.start, Math.max(shownError.end, shownError.start));
}
function setEditorText(text) {
  $("text").value = text;
  shownError = null;
  paintText();
}
function handleEdit() {
  shownError = null; // its position may have moved
  paintText();
  clearTimeout(editTimer);
  editTimer = setTimeout(updateText, WAIT);
}
$("text").addEventListener("input", handleEdit);
$("text").addEventListener("scroll", scrollColors);
$("jump").addEventListener("click", jumpToError);
