// The switch between light and dark; by default a page follows the system of its reader.
const root = document.documentElement, look = document.getElementById("look");
const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => root.dataset.look ? root.dataset.look === "dark" : system.matches;
function updateThemeButton() { look.setAttribute("aria-pressed", String(isDark())); }
function showTheme(dark) { root.dataset.look = dark ? "dark" : "light"; updateThemeButton(); }
function switchTheme() { showTheme(!isDark()); }
look.hidden = false;
look.addEventListener("click", switchTheme);
system.addEventListener("change", updateThemeButton);
updateThemeButton();
