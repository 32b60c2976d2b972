// Sets light or dark before the first paint, so that no page flashes; loaded blocking in the head.
(() => {
  let choice = "system";
  try {
    choice = localStorage.getItem("trailer-theme") || "system";
  } catch {
    // Storage may be forbidden; the system's choice is then the answer.
  }
  const dark =
    choice === "dark" || (choice === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  document.documentElement.dataset.themeChoice = choice;
})();
