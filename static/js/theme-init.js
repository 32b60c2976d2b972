// Sets light or dark before the first paint, so that no page flashes; loaded blocking in the head.
// It also follows the system on pages without any other script, such as the sign-in.
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  let choice = "system";
  try {
    choice = localStorage.getItem("trailer-theme") || "system";
  } catch {
    // Storage may be forbidden; the system's choice is then the answer.
  }
  root.dataset.themeChoice = choice;
  const colour = () => {
    const { themeChoice } = root.dataset;
    const dark = themeChoice === "dark" || (themeChoice === "system" && system.matches);
    root.dataset.theme = dark ? "dark" : "light";
  };
  colour();
  system.addEventListener("change", colour);
})();
