// What the page does beyond plain forms: sends them in place, counts, and searches places as you type.
// Everything here is an addition; without it each form posts and each answer is a whole page.

import { makePicker } from "./picker.js";

const status = document.getElementById("status");
let sending = null;

function say(text) {
  status.textContent = "";
  // A live region speaks when it changes, also to what it said before.
  requestAnimationFrame(() => { status.textContent = text; });
}

function enhance(stage) {
  stage.querySelectorAll(".picker").forEach((picker) => makePicker(picker, say));
  const box = stage.querySelector("#message");
  const count = stage.querySelector("#count");
  if (box && count) {
    const tell = () => {
      count.textContent = `${box.value.length.toLocaleString("en")} / ${Number(count.dataset.limit).toLocaleString("en")}`;
    };
    box.addEventListener("input", tell);
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) box.form.requestSubmit();
    });
    tell();
  }
  stage.querySelectorAll("[data-copies]").forEach((button) => {
    if (!navigator.clipboard) return;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copies).textContent);
      button.textContent = "Copied";
      say("Copied.");
    });
  });
  stage.querySelectorAll("form").forEach((form) => form.addEventListener("submit", send));
}

function focusOn(stage) {
  const target = stage.querySelector("[aria-invalid=true]") ?? stage.querySelector("#alert")
    ?? stage.querySelector("#title");
  target.focus();
}

function show(page) {
  const found = new DOMParser().parseFromString(page, "text/html");
  const stage = found.getElementById("stage");
  if (!stage) throw new Error("no page");
  document.title = found.title;
  document.getElementById("stage").replaceWith(stage);
  enhance(stage);
  window.scrollTo({ top: 0 });
  focusOn(stage);
  if (!stage.querySelector("#alert")) say(stage.dataset.announced);
}

function complain(stage, form, text) {
  stage.querySelector("#alert")?.remove();
  const alert = document.createElement("p");
  Object.assign(alert, { id: "alert", className: "alert", tabIndex: -1, textContent: text });
  alert.setAttribute("role", "alert");
  form.before(alert);
  alert.focus();
}

// form.action would be the buttons of that name.
async function send(event) {
  const form = event.target;
  event.preventDefault();
  if (sending) return;
  const stage = document.getElementById("stage");
  const body = new URLSearchParams(new FormData(form, event.submitter));
  sending = new AbortController();
  stage.setAttribute("aria-busy", "true");
  const waiting = document.createElement("p");
  waiting.className = "waiting";
  waiting.textContent = "Thinking …";
  form.querySelector(".actions").after(waiting);
  say("Thinking.");
  try {
    const answer = await fetch(form.getAttribute("action"), { method: "POST", body, signal: sending.signal });
    show(await answer.text());
  } catch {
    complain(stage, form, "The answer did not arrive. What you wrote is still here: try again.");
  } finally {
    sending = null;
    waiting.remove();
    stage.removeAttribute("aria-busy");
  }
}

enhance(document.getElementById("stage"));
