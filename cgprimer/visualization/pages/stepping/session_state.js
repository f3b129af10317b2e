// Where a page stands, so that one made of a text that has been edited can stand there, too.
function keepPlace() {
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
    folds, panes: [folded("trace"), folded("program")], speed: $("speed").value, playing: timer !== null,
    quiz: { on: quiz.on, asked: quiz.asked, right: quiz.right }, answer: $("answer").value,
  };
}
function enter(node, value, kind = "input") {
  if (!node || value === undefined || value === null) return;
  node.value = value;
  node.dispatchEvent(new Event(kind));
}
// The same instruction; where it is gone, the same number of a step. A number that has been moved
// stays so unless the text has another one now.
function takePlace(place) {
  enter(document.querySelector("#scheme"), place.scheme, "change");
  const boxes = [...document.querySelectorAll("#sliders [data-number]")];
  for (const [name, given, value] of place.moved)
    if (Object.is(data.point[name], given)) enter(boxes.find(box => box.dataset.number === name), value);
  enter(document.querySelector("#differences [data-number]"), place.h);
  for (const { method, at, text, phase, end } of place.places) {
    const k = data.walks.findIndex(walk => walk.method === method), steps = data.walks[k]?.steps ?? [];
    const alike = steps.map((_, i) => i).filter(i => steps[i].text === text && data.walks[k].phases[steps[i].phase]?.title === phase);
    const nearest = alike.sort((a, b) => Math.abs(a - at) - Math.abs(b - at))[0];
    if (k >= 0) state.frames[k] = Math.max(0, Math.min(steps.length - 1, end ? Infinity : nearest ?? at));
  }
  for (const [id, on] of place.folds) if (isOn(id) !== on) $(id).click();
  foldPanes(...place.panes);
  $("speed").value = place.speed;
  Object.assign(quiz, { asked: place.quiz.asked, right: place.quiz.right });
  if (quiz.on !== place.quiz.on) setQuiz(place.quiz.on);
  choose(Math.max(0, data.walks.findIndex(walk => walk.method === place.method)));
  $("answer").value = place.answer;
  if (place.playing) play();
}
