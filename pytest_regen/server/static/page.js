// What the page does beyond plain forms: sends them in place, counts, keeps what was written in this
// tab, and searches places as you type. Everything here is an addition; without it each form posts and
// each answer is a whole page.

import { makePicker } from "./picker.js";

const status = document.getElementById("status");
const LONG = 10_000; // milliseconds after which waiting is worth another word
const VIEWS = 20; // kept at most
let sending = null;

function say(text) {
  status.textContent = "";
  // A live region speaks when it changes, also to what it said before.
  requestAnimationFrame(() => { status.textContent = text; });
}

// What was written, by view. A view is one step of one conversation; the start has no number.

const view = () => String(history.state?.view ?? "start");

function kept(name) {
  try {
    return JSON.parse(sessionStorage.getItem(`${name}.${view()}`));
  } catch {
    return null;
  }
}

function keep(name, value) {
  try {
    sessionStorage.setItem(`${name}.${view()}`, JSON.stringify(value));
    const pages = Object.keys(sessionStorage).filter((key) => key.startsWith("page.") && key !== "page.start");
    const numbers = pages.map((key) => Number(key.slice(5))).sort((a, b) => a - b);
    numbers.slice(0, -VIEWS).forEach((number) => {
      sessionStorage.removeItem(`page.${number}`);
      sessionStorage.removeItem(`fields.${number}`);
    });
  } catch {
    // A full or forbidden storage: the page works as without it.
  }
}

// Hidden fields come from the server with their page, but for the place that was chosen.
const ours = (input) => input.name && (input.type !== "hidden" || input.name.endsWith(".place"));

function keepFields() {
  const fields = [...document.querySelectorAll("#stage input, #stage textarea")].filter(ours);
  keep("fields", fields.map((one) => [one.name, one.value, one.checked ?? false]));
}

function fillIn(stage) {
  const fields = kept("fields");
  if (!Array.isArray(fields)) return;
  const inputs = [...stage.querySelectorAll("input, textarea")].filter(ours);
  inputs.forEach((input, number) => {
    const [name, value, checked] = fields[number] ?? [];
    if (name !== input.name) return;
    if (input.type === "checkbox" || input.type === "radio") input.checked = checked && input.value === value;
    else input.value = value;
  });
}

// Limits are counted as the server counts them: in characters, whatever they are made of inside.

const length = (text) => [...text].length;
const number = (count) => count.toLocaleString("en");

function tooLong(input) {
  const limit = Number(input.dataset.limit);
  const count = length(input.value);
  if (!limit || count <= limit) return null;
  return `This has ${number(count)} characters, and at most ${number(limit)} fit. Shorten it by ${number(count - limit)}.`;
}

function count(stage) {
  const box = stage.querySelector("#message");
  const shown = stage.querySelector("#count");
  if (!box || !shown) return;
  const limit = Number(box.dataset.limit);
  const tell = () => {
    const left = limit - length(box.value);
    shown.textContent = left < 0 ? `${number(-left)} too many` : `${number(limit - left)} / ${number(limit)}`;
    shown.classList.toggle("over", left < 0);
  };
  box.addEventListener("input", tell);
  tell();
}

function enhance(stage) {
  stage.querySelectorAll(".picker").forEach((picker) => makePicker(picker, say, keepFields));
  count(stage);
  stage.querySelector("#message")?.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.target.form.requestSubmit();
  });
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
  stage.addEventListener("input", keepFields);
  stage.addEventListener("change", keepFields);
}

function focusOn(stage) {
  const target = stage.querySelector("[aria-invalid=true]") ?? stage.querySelector("#alert")
    ?? stage.querySelector("#title");
  target.focus();
}

function stageOf(page) {
  const found = new DOMParser().parseFromString(page, "text/html");
  const stage = found.getElementById("stage");
  if (!stage) throw new Error("no page");
  // The focus is set below, where it belongs in a page that is already there.
  stage.querySelectorAll("[autofocus]").forEach((one) => one.removeAttribute("autofocus"));
  return [stage, found.title];
}

function show(page, { filled = false } = {}) {
  const [stage, title] = stageOf(page);
  document.title = title;
  if (filled) fillIn(stage);
  document.getElementById("stage").replaceWith(stage);
  enhance(stage);
  window.scrollTo({ top: 0 });
  focusOn(stage);
  // An alert speaks for itself where it is put into a page that is already there.
  const alert = stage.querySelector("#alert");
  say(alert ? alert.textContent : stage.dataset.announced);
}

function complain(stage, form, text, input = null) {
  stage.querySelector("#alert")?.remove();
  stage.querySelectorAll("[aria-invalid=true]").forEach((one) => one.removeAttribute("aria-invalid"));
  const alert = document.createElement("p");
  Object.assign(alert, { id: "alert", className: "alert", tabIndex: -1, textContent: text });
  alert.setAttribute("role", "alert");
  form.before(alert);
  input?.setAttribute("aria-invalid", "true");
  (input ?? alert).focus();
}

function wait(form) {
  const waiting = document.createElement("p");
  const words = document.createElement("span");
  const cancel = document.createElement("button");
  waiting.className = "waiting";
  words.textContent = "Thinking …";
  Object.assign(cancel, { type: "button", className: "quiet small", textContent: "Cancel" });
  cancel.addEventListener("click", () => sending?.abort("cancelled"));
  waiting.append(words, cancel);
  form.after(waiting);
  form.inert = true;
  say("Thinking.");
  const later = setTimeout(() => {
    words.textContent = "Still thinking. This can take two minutes …";
    say("Still thinking. You can cancel.");
  }, LONG);
  return () => {
    clearTimeout(later);
    waiting.remove();
    form.inert = false;
  };
}

// What these say is true of the same page: it stays, with all that was typed.
const stays = (code) => code === 408 || code === 413 || code === 415 || code === 429 || code >= 500;

// form.action would be the buttons of that name.
async function send(event) {
  const form = event.target;
  event.preventDefault();
  if (sending) return;
  const stage = document.getElementById("stage");
  const long = [...form.querySelectorAll("[data-limit]")].find(tooLong);
  if (long && event.submitter?.value !== "skip") {
    complain(stage, form, tooLong(long), long);
    return;
  }
  keepFields();
  const body = new URLSearchParams(new FormData(form, event.submitter));
  const action = form.getAttribute("action");
  sending = new AbortController();
  const { signal } = sending;
  stage.setAttribute("aria-busy", "true");
  const done = wait(form);
  try {
    const answer = await fetch(action, { method: "POST", body, signal, headers: { accept: "text/html" } });
    const page = await answer.text();
    const [found] = stageOf(page);
    done();
    if (stays(answer.status)) {
      complain(stage, form, found.querySelector("#alert, #title ~ p")?.textContent ?? "This did not work.");
    } else if (answer.ok) {
      history.pushState({ view: Date.now() }, "");
      keep("page", page);
      show(page);
      if (action === "/subject/again") keepFields();
    } else {
      if (view() !== "start") keep("page", page);
      show(page);
    }
  } catch (error) {
    done();
    if (signal.reason === "left") return;
    const words = signal.aborted ? "Cancelled." : "The answer did not arrive.";
    complain(stage, form, `${words} What you wrote is still here${signal.aborted ? "." : ": try again."}`);
  } finally {
    sending = null;
    stage.removeAttribute("aria-busy");
  }
}

// Back, Forward and Reload lead to the views of this tab, each with what was typed into it.

const first = document.documentElement.outerHTML;

function restore() {
  const page = view() === "start" ? first : kept("page");
  if (page) show(page, { filled: true });
  else location.assign("/");
}

// A link to the address that is open already would reload the view instead of leaving it.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.('a[href="/"]');
  if (!link || location.pathname !== "/" || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  sending?.abort("left");
  history.pushState(null, "");
  if ("forgets" in link.dataset) keep("fields", []);
  restore();
});

window.addEventListener("popstate", () => {
  sending?.abort("left");
  restore();
});

const stage = document.getElementById("stage");
if (history.state?.view && kept("page")) {
  restore();
} else {
  if (history.state?.view) history.replaceState(null, "");
  if (location.pathname === "/" && !stage.querySelector("#alert")) fillIn(stage);
  enhance(stage);
}
