// Asks before something is removed; for what cannot come back, by typing its name.

/** Resolves to whether the user agreed. */
export function ask({ title, text, verb, name }) {
  const dialog = document.getElementById("confirm");
  const yes = document.getElementById("confirm-yes");
  const typed = document.getElementById("confirm-name");
  document.getElementById("confirm-title").textContent = title;
  document.getElementById("confirm-text").textContent = text;
  document.getElementById("confirm-wanted").textContent = name || "";
  document.getElementById("confirm-typing").hidden = !name;
  yes.textContent = verb;
  yes.disabled = Boolean(name);
  typed.value = "";
  typed.oninput = () => {
    yes.disabled = typed.value.trim() !== name;
  };
  // Enter in the input would press the first button, which is Cancel.
  typed.onkeydown = (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      yes.click();
    }
  };
  dialog.returnValue = "";
  dialog.showModal();
  (name ? typed : yes).focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}
