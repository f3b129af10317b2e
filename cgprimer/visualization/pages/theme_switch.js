// The switch between light and dark; without it the page has the colours of its reader's system.
const root = document.documentElement, look = document.getElementById("look");
const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => root.dataset.look ? root.dataset.look === "dark" : system.matches;
function press() { look.setAttribute("aria-pressed", String(isDark())); }
function switchTheme() { root.dataset.look = isDark() ? "light" : "dark"; press(); }
look.hidden = false;
look.addEventListener("click", switchTheme);
system.addEventListener("change", press);
press();
