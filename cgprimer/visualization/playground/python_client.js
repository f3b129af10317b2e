// Requests to Python, which runs in a worker. One request is sent at a time, so that a request that
// takes too long can be stopped by starting another worker, and outdated requests are never sent.
const SLOW = 1000, LONGEST = 30000; // milliseconds
const client = { worker: null, ready: false, queue: [], current: null, slow: null, late: null, starts: 0 };
function startWorker() {
  client.worker = new Worker(`worker.js?v=${root.dataset.version}`, { type: "module" });
  client.ready = false;
  client.starts += 1;
  client.worker.onmessage = ({ data: message }) => handleWorkerMessage(message);
  client.worker.onerror = event => {
    event.preventDefault();
    handleCrash(event.message || "the worker could not be loaded");
  };
  client.worker.postMessage({ ...root.dataset });
  showActivity("Loading Python (about 13 MB on the first visit) …");
}
function handleWorkerMessage(message) {
  if (message.progress) return showActivity(message.progress);
  if (message.crash) return handleCrash(message.crash);
  if (message.ready) {
    client.ready = true;
    performance.mark("python-ready");
    showActivity("");
    if (client.starts === 1) registerServiceWorker();
    return sendNext();
  }
  const { resolve } = client.current;
  finishRequest();
  resolve(JSON.parse(message.answer));
  sendNext();
}
function askPython(request, slot = request.view) {
  return new Promise(resolve => {
    const index = client.queue.findIndex(entry => entry.slot === slot);
    if (index >= 0) client.queue.splice(index, 1)[0].resolve(null); // outdated
    client.queue.push({ request, slot, resolve });
    sendNext();
  });
}
function sendNext() {
  if (!client.ready || client.current || !client.queue.length) return;
  client.current = client.queue.shift();
  client.slow = setTimeout(() => showActivity("Computing …", true), SLOW);
  client.late = setTimeout(() => stopRequest(`Stopped after ${LONGEST / 1000} seconds.`), LONGEST);
  client.worker.postMessage({ request: JSON.stringify(client.current.request) });
}
function finishRequest() {
  clearTimeout(client.slow);
  clearTimeout(client.late);
  client.current = null;
  showActivity("");
}
// Ends the worker; the request is answered with an error, and its text is not sent again.
function restartWorker(message, hint) {
  client.worker.terminate();
  const entries = [client.current, ...client.queue].filter(Boolean);
  client.queue = [];
  finishRequest();
  startWorker();
  for (const { resolve } of entries) resolve({ error: { message, hint }, stopped: true });
}
function stopRequest(message = "Stopped.") {
  restartWorker(message, "change the text or the values, for example to a smaller graph");
}
function handleCrash(reason) {
  if (!client.ready) { // loading again would fail in the same way
    client.worker.terminate();
    showActivity("");
    return showNotice(`Python could not be loaded: ${reason}. Reload the page to try again.`);
  }
  restartWorker(`Python stopped unexpectedly: ${reason}`, "change the text; Python has been restarted");
}
function showActivity(words, canStop = false) {
  setText($("doing"), words);
  $("spinner").hidden = !words;
  $("stop").hidden = !canStop;
}
$("stop").addEventListener("click", () => stopRequest());
