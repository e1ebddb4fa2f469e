// The page in three steps. What it knows stands in the history of this tab, one entry per step, so
// that Back, Forward and Reload lead to each step as it was left; the server keeps nothing.

import { makeQuestion, readAnswer } from "./questions.js";

const byId = (id) => document.getElementById(id);
const STEPS = ["describe", "answer", "result"];
const START = { step: "describe", message: "", answers: {} };
let state = history.state ?? START;
let sending = null;

function say(text) {
  byId("status").textContent = "";
  // A live region speaks when it changes, also to what it said before.
  requestAnimationFrame(() => { byId("status").textContent = text; });
}

function keep(changes) {
  state = { ...state, ...changes };
  history.replaceState(state, "");
}

function show(title) {
  byId("title").textContent = title;
  document.title = state.step === "describe" ? "Subject line" : `${title} · Subject line`;
  for (const step of STEPS) byId(step).hidden = step !== state.step;
  for (const item of document.querySelectorAll("[data-step]")) {
    if (item.dataset.step === state.step) item.setAttribute("aria-current", "step");
    else item.removeAttribute("aria-current");
  }
  byId("back").hidden = state.step === "describe";
  byId("alert").hidden = true;
  byId("written").hidden = state.step === "describe";
  byId("written").querySelector("blockquote").textContent = state.message;
}

const views = {
  describe() {
    byId("message").value = state.message;
    return "Say what should change";
  },
  answer() {
    const { questions, reasoning } = state.asked;
    byId("questions").replaceChildren(...questions.map((question) => makeQuestion(question, state.answers[question.id], say)));
    byId("why").hidden = !reasoning;
    byId("why").querySelector("p").textContent = reasoning ?? "";
    return questions.length === 1 ? "One question first" : `${questions.length} questions first`;
  },
  result() {
    byId("subject").value = state.result.subject_line ?? "";
    byId("core").value = state.result.core_message ?? "";
    const topics = (state.result.topics ?? []).map((topic) => Object.assign(document.createElement("li"), { textContent: topic }));
    byId("result").querySelector(".topics").replaceChildren(...topics);
    return "Your subject line";
  },
};

function render() {
  const title = views[state.step]();
  show(title);
  byId("title").focus();
  window.scrollTo({ top: 0 });
  say(title);
}

function go(changes) {
  state = { ...state, ...changes };
  history.pushState(state, "");
  render();
}

function complain(text, input = null) {
  const alert = byId("alert");
  alert.textContent = text;
  alert.hidden = false;
  input?.setAttribute("aria-invalid", "true");
  input?.setAttribute("aria-describedby", `alert ${input.getAttribute("aria-describedby") ?? ""}`.trim());
  (input ?? alert).focus();
}

// Limits are counted as the server counts them: in characters, not in UTF-16 units.
function isTooLong(input) {
  const limit = Number(input.dataset.limit);
  const length = [...input.value].length;
  if (!limit || length <= limit) return false;
  complain(`This has ${length.toLocaleString("en")} characters, and at most ${limit.toLocaleString("en")} fit.`, input);
  return true;
}

function inWords(seconds) {
  if (seconds < 90) return "in a moment";
  if (seconds < 3000) return `in about ${Math.round(seconds / 60)} minutes`;
  return seconds < 5400 ? "in about an hour" : `in about ${Math.round(seconds / 3600)} hours`;
}

// Whoever answers: this server, or a proxy in front of it, whose answers are no JSON.
async function problemOf(answer) {
  const wait = Number(answer.headers.get("retry-after"));
  const again = wait ? ` Try again ${inWords(wait)}.` : "";
  const members = await answer.json().catch(() => ({}));
  if (members.error) return members.error.includes("Try again") ? members.error : members.error + again;
  return `The server answered ${answer.status}. What you wrote is still here.${again || " Try again in a moment."}`;
}

async function* eventsOf(answer) {
  let text = "";
  for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      const [, name, data] = event.match(/^event: (\w+)\ndata: (.*)$/s) ?? [];
      if (name) yield [name, JSON.parse(data)];
    }
  }
}

async function ask(request) {
  if (sending) return;
  sending = new AbortController();
  const { signal } = sending;
  byId("alert").hidden = true;
  byId(state.step).inert = true;
  byId("waiting").hidden = false;
  say("Thinking. You can cancel.");
  try {
    const answer = await fetch("/api/agents/generate-subject", {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream" },
      body: JSON.stringify(request),
      signal,
    });
    if (!answer.ok) throw new Error(await problemOf(answer));
    for await (const [name, data] of eventsOf(answer)) {
      if (name === "error") throw new Error(data.error);
      // What has arrived is shown below the form until the whole answer is there.
      if (name === "part" && data.subject_line) byId("waiting").firstElementChild.textContent = data.subject_line;
      if (name === "clarification") {
        const asked = { questions: data.clarification_questions, inferred: data.inferred_context, reasoning: data.inferred_context.reasoning, interactionId: data.interactionId, seal: data.seal };
        return go({ step: "answer", asked, answers: {} });
      }
      if (name === "complete") return go({ step: "result", result: data });
    }
    throw new TypeError("the stream broke off");
  } catch (error) {
    const isOurs = error.constructor === Error;
    if (signal.reason === "left") return undefined;
    byId(state.step).inert = false;
    if (signal.aborted) complain("Cancelled. What you wrote is still here.");
    else complain(isOurs ? error.message : "The answer did not arrive. What you wrote is still here: try again.");
  } finally {
    sending = null;
    STEPS.forEach((step) => { byId(step).inert = false; });
    byId("waiting").hidden = true;
    byId("waiting").firstElementChild.textContent = "Thinking …";
  }
  return undefined;
}

function submitAnswers(answers) {
  const { questions, inferred, interactionId, seal } = state.asked;
  const conversationContext = { originalDescription: state.message, questionsAsked: questions, inferredContext: inferred, answers };
  ask({ message: state.message, interactionId, seal, conversationContext });
}

function readAnswers() {
  const read = state.asked.questions.map((question, number) => [question.id, readAnswer(question, byId("questions").children[number])]);
  return Object.fromEntries(read.filter(([, answer]) => answer !== null));
}

byId("describe").addEventListener("submit", (event) => {
  event.preventDefault();
  const box = byId("message");
  box.removeAttribute("aria-invalid");
  if (!box.value.trim()) complain("Say what should change: the box is empty.", box);
  else if (!isTooLong(box)) ask({ message: box.value });
});
byId("message").addEventListener("input", () => keep({ message: byId("message").value }));
byId("message").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  byId("describe").requestSubmit();
});
byId("answer").addEventListener("submit", (event) => {
  event.preventDefault();
  const inputs = [...byId("questions").querySelectorAll("input[type=text], textarea")];
  if (inputs.some(isTooLong)) return;
  const answers = readAnswers();
  const missing = state.asked.questions.findIndex((question) => question.required && !(question.id in answers));
  if (missing < 0) submitAnswers(answers);
  else complain(`This still needs you: “${state.asked.questions[missing].question}” Skipping is possible, too.`, byId("questions").children[missing].querySelector("input, textarea"));
});
byId("answer").addEventListener("input", () => keep({ answers: readAnswers() }));
byId("answer").addEventListener("place", () => keep({ answers: readAnswers() }));
byId("skip").addEventListener("click", () => submitAnswers({}));
byId("result").addEventListener("input", () => {
  keep({ result: { ...state.result, subject_line: byId("subject").value, core_message: byId("core").value } });
});
byId("result").addEventListener("submit", (event) => event.preventDefault());
byId("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(byId("subject").value);
    say("Copied.");
  } catch {
    byId("subject").select(); // Without https a page may not write to the clipboard.
    say("Selected: copy it with the keyboard.");
  }
});
byId("back").addEventListener("click", () => history.back());
// As a link alone it would reload the step that is open, because the address is the same.
for (const link of document.querySelectorAll('a[href="/"]')) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    sending?.abort("left");
    go(START);
  });
}
byId("cancel").addEventListener("click", () => sending?.abort("cancelled"));
window.addEventListener("popstate", () => {
  sending?.abort("left");
  state = history.state ?? START;
  render();
});

history.replaceState(state, "");
views[state.step]();
show(byId("title").textContent);
if (state.step !== "describe") render();
