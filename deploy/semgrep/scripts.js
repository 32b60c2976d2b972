function show(element, text) {
  // ruleid: markup-from-text
  element.innerHTML = text;
  // ruleid: markup-from-text
  element.querySelector("p").innerHTML += text;
  // ruleid: markup-from-text
  element.outerHTML = text;
  // ruleid: markup-from-text
  element.insertAdjacentHTML("beforeend", text);
  // ruleid: markup-from-text
  document.write(text);
  // ruleid: markup-from-text
  eval(text);
  // ok: markup-from-text
  element.textContent = text;
}
