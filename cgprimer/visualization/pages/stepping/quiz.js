// A quiz that asks for the number of each step before the page shows it. Answers are not stored.
const quiz = { on: false, asked: 0, right: 0, tries: [], question: "", marked: [] };
const WORDS = { bar: "adjoint", dot: "tangent" };

// Parses a number as people write it: 0.75, 0,75, 3/4, 7.5e-1, −7,5·10^-1, inf; null for anything else.
function parseNumber(text) {
  const plain = text.replace(/\s/g, "").replace(/[−–]/g, "-").replace(/^≈/, "")
    .replace("∞", "inf").replace(/[·×*]10\^\(?([+-]?\d+)\)?/, "e$1");
  const parts = plain.split("/").map(part => {
    const [, sign, word] = /^([+-]?)(inf|nan)$/i.exec(part) ?? [];
    if (word) return parseNumeric((sign === "-" ? "-" : "") + word.toLowerCase()) ?? NaN;
    const is = /^[+-]?(\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)?$/i.test(part);
    return is ? Number(part.replace(",", ".")) : null;
  });
  if (parts.length > 2 || parts.includes(null)) return null;
  return parts.length === 2 ? parts[0] / parts[1] : parts[0];
}
// An answer is correct if its error is at most half a unit of the third digit. 0 is correct for
// values that consist of rounding errors only.
function isCorrect(answer, value, operands) {
  if (Object.is(answer, value) || answer === value) return true;
  if (value === 0) return false;
  const unit = 10 ** (Number(value.toExponential().split("e")[1]) - 2);
  const noise = answer === 0 ? 2 ** -50 * Math.max(0, ...operands.map(Math.abs)) : 0;
  return Math.abs(answer - value) <= Math.max(noise, 0.5 * unit * (1 + 1e-9));
}
function isTooRough(text, answer, value) { // correct in fewer than three digits
  const digits = text.replace(/e.*$/i, "").replace(/\D/g, "").replace(/^0+/, "").length;
  return !text.includes("/") && digits > 0 && digits < 3 && Number(value.toPrecision(digits)) === answer;
}
function findNextStep() {
  const step = data.walks[state.walk].steps[getIndex() + 1], numbers = getNumbers(state.walk);
  const value = step && step.result >= 0 ? numbers[step.result] : undefined;
  return { step, value: typeof value === "number" ? value : undefined, numbers };
}
function formatQuestion(step) { // the question, without the formula of the answer
  const parts = step.text.split("; "), walk = data.walks[state.walk];
  const part = parts.length > 1 ? parts.find(text => text.endsWith(" = 1")) ?? step.text : step.text;
  const equals = part.indexOf(" = "), name = equals < 0 ? part : part.slice(0, equals);
  const shown = step.reveals.find(([column, , value]) => value === step.result
    && ["value", "derivative", "edge"].includes(column));
  const word = shown && { value: "value", derivative: WORDS[walk.mark], edge: walk.mark === "d" ? "local partial derivative" : "" }[shown[0]];
  const of = word && shown[0] !== "edge" ? ` of ${data.rows[shown[1]][0]}` : "";
  return [`${name} = ?`, word ? `the ${word}${of}` : ""];
}
function markAsked(step) { // marks where the requested number will appear
  for (const node of quiz.marked) node.classList.remove("asked");
  const vertex = parts.vertices.find(v => v.name === step?.vertices[0]);
  quiz.marked = !step ? [] : [parts.rows[step.row]?.[step.column], parts.lines[step.line]?.item,
    step.vertices.length < 3 && vertex?.group].filter(Boolean);
  for (const node of quiz.marked) node.classList.add("asked");
}
function updateQuestion() {
  if (!quiz.on) return;
  const { step, value } = findNextStep(), question = [state.walk, getIndex(), value].join();
  if (question !== quiz.question) {
    Object.assign(quiz, { question, tries: [] });
    $("answer").value = "";
    setText($("verdict"), "");
  }
  const [name, words] = value === undefined ? ["", step ? "no question for this step: press Enter to continue" : "that was the last step"] : formatQuestion(step);
  setText($("question"), name);
  setText($("kind"), words);
  $("answer").disabled = $("reveal").disabled = $("check").disabled = !step;
  markAsked(value === undefined ? null : step);
  setText($("score"), `correct at first try: ${quiz.right} of ${quiz.asked}`);
}
function goToNextStep(verdict) {
  stopPlaying();
  goTo(getIndex() + 1);
  setText($("verdict"), verdict);
}
function checkAnswer() {
  const { step, value, numbers } = findNextStep(), text = $("answer").value.trim();
  if (!step) return;
  if (value === undefined) return goToNextStep("");
  if (text === "") return;
  const answer = parseNumber(text), tries = quiz.tries.length ? `${quiz.tries.join("  ")}  ` : "";
  const operands = step.operands.map(([, k]) => numbers[k]).filter(Number.isFinite);
  if (answer === null) return setText($("verdict"), `${tries}“${text}” is not a number: write it like 0.75, 0,75, 3/4 or 7.5e-1`);
  if (isCorrect(answer, value, operands)) {
    if (!quiz.tries.length) {
      quiz.asked++;
      quiz.right++;
    }
    return goToNextStep(`${tries}✓ ${text} is correct`);
  }
  if (isTooRough(text, answer, value)) return setText($("verdict"), `${tries}${text} is rounded too much: give three digits`);
  if (!quiz.tries.length) quiz.asked++;
  quiz.tries.push(`✗ ${text}`);
  const sign = isCorrect(-answer, value, operands) ? ": check the sign" : "";
  setText($("verdict"), `${quiz.tries.join("  ")}${sign}`);
  setText($("score"), `correct at first try: ${quiz.right} of ${quiz.asked}`);
  $("answer").select();
}
function revealAnswer() {
  const { step, value } = findNextStep();
  if (!step) return;
  if (value !== undefined && !quiz.tries.length) quiz.asked++;
  goToNextStep(value === undefined ? "" : `answer: ${markRounding(value)}`);
}
function setQuiz(on) {
  Object.assign(quiz, { on, question: "" });
  $("quiz").hidden = !on;
  $("ask").setAttribute("aria-pressed", on);
  markAsked(null);
  updateQuestion();
  if (on) $("answer").focus();
}
$("ask").addEventListener("click", () => setQuiz(!quiz.on));
$("quiz").addEventListener("submit", event => { event.preventDefault(); checkAnswer(); });
$("reveal").addEventListener("click", revealAnswer);
// Numbers do not contain these letters; arrows change the step while the answer is empty.
const ANSWERING = { q: () => setQuiz(false), "?": revealAnswer, ArrowRight: () => goTo(getIndex() + 1), ArrowLeft: () => goTo(getIndex() - 1) };
$("answer").addEventListener("keydown", event => {
  const arrow = event.key.startsWith("Arrow");
  if (event.ctrlKey || event.altKey || event.metaKey || (arrow && $("answer").value)) return;
  if (!Object.hasOwn(ANSWERING, event.key)) return;
  event.preventDefault();
  event.stopPropagation();
  ANSWERING[event.key]();
});
window.addEventListener("keydown", event => { // a number is an answer, wherever it is typed
  if (!quiz.on || $("help").open || event.ctrlKey || event.altKey || event.metaKey) return;
  if (!/^[-−.,\d]$/.test(event.key) || ["INPUT", "SELECT"].includes(event.target.tagName) && event.target.id !== "place") return;
  event.stopPropagation();
  $("answer").focus();
}, true);
