// Training in slices: Python trains for a fraction of a second, then the page shows the progress.
const SLICE = 120, MAX_CSV = 1e6; // milliseconds; bytes, as MAX_CHARACTERS in scalar_samples.py
const training = { run: null, answer: null, canceled: false };
const isFromFile = () => document.querySelector("input[name=data]:checked").value === "csv";
const numberOf = id => $(id).value === "" ? null : Number($(id).value);
function showDataChoice() {
  $("csv-entry").hidden = !isFromFile();
  $("samples-entry").hidden = isFromFile();
}
async function readFile() {
  const [file] = $("file").files;
  setText($("train-error"), "");
  if (!file) return;
  if (file.size > MAX_CSV) {
    $("file").value = "";
    return setText($("train-error"), `${file.name} has ${formatNumber(file.size / 1e6, 3)} MB, but the page reads at most ${MAX_CSV / 1e6} MB. Use cgprimer train on your computer.`);
  }
  try {
    $("csv").value = await file.text();
  } catch (error) {
    setText($("train-error"), `${file.name} cannot be read: ${error.message}`);
  }
}
async function startTraining() {
  await stopTraining();
  setText($("train-error"), "");
  if (isFromFile() && $("csv").value.length > MAX_CSV)
    return setText($("train-error"), `The data have more than ${MAX_CSV / 1e6} million characters. Use cgprimer train on your computer.`);
  const request = { view: "train", text: session.text, data: isFromFile() ? $("csv").value : null,
    epochs: numberOf("epochs"), optimizer: $("optimizer").value, learning_rate: numberOf("learning-rate"),
    batch_size: numberOf("batch-size"), seed: numberOf("seed") };
  if (!isFromFile()) request.samples = numberOf("samples");
  const answer = await askPython(request);
  if (!answer || answer.error) return showTrainingError(answer?.error);
  training.run = answer.run;
  $("cancel").disabled = false;
  showTraining(answer);
  continueTraining(answer.run);
}
function showTrainingError(error) {
  if (error) setText($("train-error"), [error.message, error.hint && `Hint: ${error.hint}`].filter(Boolean).join(". "));
  finishTraining();
}
async function continueTraining(run) {
  while (training.run === run) {
    const answer = await askPython({ view: "train-more", run, milliseconds: SLICE });
    if (training.run !== run) return;
    if (!answer || answer.error) return showTrainingError(answer?.error);
    showTraining(answer);
    if (answer.finished) return stopTraining();
    await new Promise(requestAnimationFrame);
  }
}
async function stopTraining() {
  const { run } = training;
  finishTraining();
  if (run !== null) await askPython({ view: "train-stop", run }, `train-stop ${run}`);
}
function finishTraining() {
  training.run = null;
  $("cancel").disabled = true;
}
function showTraining(answer) {
  training.answer = answer;
  const epochs = answer.epochs ?? numberOf("epochs");
  $("progress").value = answer.epoch / epochs;
  setText($("epoch"), `epoch ${answer.epoch} of ${epochs}`);
  showLosses();
  showLearned(answer);
}
function showLosses() {
  const { answer } = training;
  if (!answer?.losses?.length || $("pane-train").hidden) return;
  const losses = answer.losses.map(parseNumeric), last = losses.findLast(Number.isFinite);
  drawChart($("losses"), {
    curves: [{ name: "mean loss of an epoch", points: losses.map((loss, k) => [k + 1, loss]) }],
    xLabel: "epoch", logarithmic: losses.every(loss => loss > 0),
    description: `Loss per epoch; the last loss is ${last === undefined ? "not finite" : formatNumber(last, 4)}`,
  });
}
function showLearned({ parameters }) {
  const entries = Object.entries(parameters);
  $("learned").replaceChildren();
  const declared = new Map(session.summary.parameters.map(({ name, value }) => [name, value]));
  const body = addTable($("learned"), ["parameter", "#learned", "#declared"], "Parameters");
  for (const [name, value] of entries.slice(0, 30))
    addRow(body, [name, [formatCell(value), "number"], [Array.isArray(declared.get(name)) ? "" : formatCell(declared.get(name)), "number"]]);
  if (entries.length > 30) addElement("p", $("learned"), "note", `and ${entries.length - 30} more`);
}
panes.train = { refresh: () => showPaneError($("pane-train"), null) };
fillSelect($("optimizer"), config.optimizers.map(name => [name, name]), "adam");
for (const option of document.querySelectorAll("input[name=data]")) option.addEventListener("change", showDataChoice);
$("file").addEventListener("change", readFile);
$("cancel").addEventListener("click", stopTraining);
$("training").addEventListener("submit", event => { event.preventDefault(); startTraining(); });
new ResizeObserver(() => requestAnimationFrame(showLosses)).observe($("losses"));
