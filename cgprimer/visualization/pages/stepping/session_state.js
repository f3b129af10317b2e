// The state of a page, so that the page of an edited file can continue at the same step.
function saveState() {
  const folds = ["fold", "whole"].map(id => [id, isOn(id)]);
  const moved = Object.entries(state.point).filter(([n, v]) => !Object.is(v, data.point[n]));
  const differs = data.walks.find(walk => walk.scheme);
  return {
    method: data.walks[state.walk].method,
    places: data.walks.map((walk, k) => {
      const at = state.frames[k], { text, phase } = walk.steps[at] ?? NOTHING;
      return { method: walk.method, at, text, phase: walk.phases[phase]?.title, end: at > 0 && at === walk.steps.length - 1 };
    }),
    moved: moved.map(([name, value]) => [name, data.point[name], value]),
    scheme: differs?.scheme, h: Object.is(state.h, data.h) ? undefined : state.h,
    folds, panes: [isFolded("trace"), isFolded("program")], speed: $("speed").value, playing: timer !== null,
    quiz: { on: quiz.on, asked: quiz.asked, right: quiz.right }, answer: $("answer").value,
  };
}
function enterValue(node, value, kind = "input") {
  if (!node || value === undefined || value === null) return;
  node.value = value;
  node.dispatchEvent(new Event(kind));
}
// Continues at the same instruction, or at the same step number if the instruction is gone. Values of
// sliders are kept unless the file declares another value now.
function restoreState(saved) {
  enterValue(document.querySelector("#scheme"), saved.scheme, "change");
  const boxes = [...document.querySelectorAll("#sliders [data-number]")];
  for (const [name, given, value] of saved.moved)
    if (Object.is(data.point[name], given)) enterValue(boxes.find(box => box.dataset.number === name), value);
  enterValue(document.querySelector("#differences [data-number]"), saved.h);
  for (const { method, at, text, phase, end } of saved.places) {
    const k = data.walks.findIndex(walk => walk.method === method), steps = data.walks[k]?.steps ?? [];
    const alike = steps.map((_, i) => i).filter(i => steps[i].text === text && data.walks[k].phases[steps[i].phase]?.title === phase);
    const nearest = alike.sort((a, b) => Math.abs(a - at) - Math.abs(b - at))[0];
    if (k >= 0) state.frames[k] = Math.max(0, Math.min(steps.length - 1, end ? Infinity : nearest ?? at));
  }
  for (const [id, on] of saved.folds) if (isOn(id) !== on) $(id).click();
  foldPanes(...saved.panes);
  $("speed").value = saved.speed;
  Object.assign(quiz, { asked: saved.quiz.asked, right: saved.quiz.right });
  if (quiz.on !== saved.quiz.on) setQuiz(saved.quiz.on);
  chooseWalk(Math.max(0, data.walks.findIndex(walk => walk.method === saved.method)));
  $("answer").value = saved.answer;
  if (saved.playing) togglePlay();
}
