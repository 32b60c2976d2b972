// The choice of light, dark or the system's colours, kept in the browser.

const system = matchMedia("(prefers-color-scheme: dark)");
const root = document.documentElement;

function apply(choice) {
  root.dataset.themeChoice = choice;
  root.dataset.theme = choice === "dark" || (choice === "system" && system.matches) ? "dark" : "light";
  for (const button of document.querySelectorAll("[data-theme-choice]")) {
    if (button !== root) {
      button.setAttribute("aria-checked", String(button.dataset.themeChoice === choice));
    }
  }
}

export function startTheme() {
  apply(root.dataset.themeChoice || "system");
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-theme-choice]");
    if (!button) {
      return;
    }
    try {
      localStorage.setItem("trailer-theme", button.dataset.themeChoice);
    } catch {
      // Without storage the choice lasts for this page.
    }
    apply(button.dataset.themeChoice);
  });
}
