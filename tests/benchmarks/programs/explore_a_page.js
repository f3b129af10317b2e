// The milliseconds until the first drawing, for drawing all vertices, and between frames while the picture moves.
const [done] = arguments;
const wait = () => new Promise(resolve => { setTimeout(resolve, 20); });
async function explore() {
  while (!performance.getEntriesByName("first drawing").length) await wait();
  const drawn = performance.getEntriesByName("first drawing")[0].startTime, start = performance.now();
  await setAllOpen(1);
  const opened = performance.now() - start;
  const times = await new Promise(resolve => {
    const list = [];
    const step = now => {
      list.push(now);
      pan(list.length % 20 < 10 ? 9 : -9, 2);
      if (list.length < 40) requestAnimationFrame(step); else resolve(list);
    };
    requestAnimationFrame(step);
  });
  done([drawn, opened, (times.at(-1) - times[0]) / (times.length - 1)]);
}
explore();
