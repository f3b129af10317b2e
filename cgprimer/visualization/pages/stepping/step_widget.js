// Shows the step page in a frame, and keeps the page and the attributes of the Python object equal.
const NAMES = ["method", "step", "point", "h", "scheme"];
function render({ model, el }) {
  el.innerHTML = model.get("_frame"); // written by Python, with the page as an escaped attribute
  const frame = el.querySelector("iframe");
  let isReceiving = false;
  const send = () => {
    if (isReceiving) return;
    const state = Object.fromEntries(NAMES.map(name => [name, model.get(name)]));
    frame.contentWindow?.postMessage({ type: "cgprimer-state", ...state }, "*"); // the frame is a sandbox without an address
  };
  const receive = ({ source, data }) => {
    if (source !== frame.contentWindow || data?.type !== "cgprimer-state") return;
    isReceiving = true;
    for (const name of NAMES) model.set(name, data[name]);
    isReceiving = false;
    model.save_changes();
  };
  window.addEventListener("message", receive);
  frame.addEventListener("load", send); // Python may have changed the state before
  for (const name of NAMES) model.on(`change:${name}`, send);
  return () => {
    window.removeEventListener("message", receive);
    for (const name of NAMES) model.off(`change:${name}`, send);
  };
}
export default { render };
