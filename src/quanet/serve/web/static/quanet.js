/* Small helpers; every page works without them. */
"use strict";

// Drop zones: a file that is dropped or chosen is sent at once.
function zoneOf(target) {
  return target instanceof Element ? target.closest("[data-drop]") : null;
}
function send(form) {
  form.requestSubmit(form.querySelector("button"));
}
for (const input of document.querySelectorAll("[data-many]")) input.multiple = true;

// Several files are sent one after the other; the list of batches shows what came of each.
async function sendAll(form, input) {
  for (const file of input.files) {
    const body = new FormData();
    body.append("csrf", form.elements.csrf.value);
    body.append("file", file);
    const answer = await fetch(form.action, { method: "POST", body, headers: { accept: "text/html" } });
    if (!answer.ok) {
      document.documentElement.innerHTML = await answer.text();
      return;
    }
  }
  location.assign(input.dataset.many);
}
document.addEventListener("dragover", (event) => {
  const zone = zoneOf(event.target);
  if (zone) {
    event.preventDefault();
    zone.classList.add("over");
  }
});
document.addEventListener("dragleave", (event) => {
  const zone = zoneOf(event.target);
  if (zone && !zone.contains(event.relatedTarget)) zone.classList.remove("over");
});
document.addEventListener("drop", (event) => {
  const zone = zoneOf(event.target);
  if (!zone || !event.dataTransfer.files.length) return;
  event.preventDefault();
  zone.classList.remove("over");
  zone.querySelector('input[type="file"]').files = event.dataTransfer.files;
  send(zone);
});
document.addEventListener("submit", (event) => {
  const zone = zoneOf(event.target);
  if (!zone) return;
  const button = zone.querySelector("button");
  button.textContent = "Sending …";
  setTimeout(() => { button.disabled = true; });
  const input = zone.querySelector('input[type="file"]');
  if (input.files.length > 1) {
    event.preventDefault();
    sendAll(zone, input);
  }
});

// Labelling: a key presses the button that shows it.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target instanceof Element && event.target.closest("input, select, textarea")) return;
  const form = document.querySelector("[data-keys]");
  if (!form || form.classList.contains("htmx-request")) return;
  const button = [...form.querySelectorAll("[data-key]")].find((one) => one.dataset.key === event.key.toLowerCase());
  if (button && !button.disabled) {
    event.preventDefault();
    button.click();
  }
});
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id !== "desk") return;
  const item = document.getElementById("item") || document.querySelector("#desk h1");
  if (item) item.focus({ preventScroll: true });
});
// New results: the page is loaded again unless somebody has scrolled, opened something or is in a form.
document.body.addEventListener("fresh", () => {
  const at = document.activeElement;
  const busy = window.scrollY > 80 || document.querySelector("main details[open]") || at.closest("main form, main details");
  if (!busy) location.reload();
});
// Pages in the background ask for nothing.
document.addEventListener("htmx:beforeRequest", (event) => {
  const path = event.detail.requestConfig ? event.detail.requestConfig.path : "";
  if (document.hidden && /^\/jobs\/|\/band$/.test(path)) event.preventDefault();
});
