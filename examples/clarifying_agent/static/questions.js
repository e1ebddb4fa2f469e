// The fields of a question, and the typed answer that stands in them.

import { makePicker } from "./picker.js";

const LABELS = { city: "City", state: "State or province", country: "Country" };
const EXAMPLES = { city: "e.g. Toronto, ON", state: "e.g. Ohio, US", country: "e.g. Canada" };
let count = 0;

function make(tag, members = {}, ...children) {
  const element = Object.assign(document.createElement(tag), members);
  element.append(...children);
  return element;
}

function textBox(text, label, members) {
  const id = `field-${(count += 1)}`;
  const box = make(members.rows ? "textarea" : "input", { id, value: text ?? "", dir: "auto", ...members });
  if (!members.rows) box.type = "text";
  return [make("label", { htmlFor: id, textContent: label }), box];
}

function choices(type, name, options, selected) {
  return make("div", { className: "choices" }, ...options.map(([value, label]) => make(
    "label", { className: "mark" },
    make("input", { type, name, value, checked: selected.includes(value) }),
    make("span", { textContent: label, dir: "auto" }),
  )));
}

const fields = {
  open_text(question, answer) {
    const [label, box] = textBox(answer?.text, "Your answer", { rows: 3, placeholder: question.placeholder ?? "" });
    box.dataset.limit = 1000;
    return [label, box];
  },
  multiple_choice(question, answer) {
    const name = `choice-${(count += 1)}`;
    const options = question.options.map((option) => [option.id, option.label]);
    const marks = choices("checkbox", name, options, answer?.selected ?? []);
    if (!question.allow_other) return [marks];
    const [label, box] = textBox(answer?.other, "Something else", {});
    box.dataset.limit = 1000;
    return [marks, make("div", { className: "other" }, label, box)];
  },
  location_picker(question, answer, say) {
    const level = question.location_level;
    const placeholder = question.placeholder ?? EXAMPLES[level];
    const [label, box] = textBox(answer?.label ?? question.prefilled_location, LABELS[level], { placeholder });
    box.dataset.limit = 200;
    const picker = make("div", { className: "picker" }, label, make("div", { className: "search" }, box), make("p", { className: "hint", id: `${box.id}-hint` }));
    makePicker(picker, level, say);
    if (answer) box.place = answer;
    const guesses = (question.suggested_locations ?? []).map((guess) => {
      const button = make("button", { type: "button", className: "quiet small", textContent: guess });
      button.addEventListener("click", () => {
        box.value = guess;
        box.dispatchEvent(new Event("place", { bubbles: true }));
      });
      return button;
    });
    return guesses.length ? [make("div", { className: "actions" }, ...guesses), picker] : [picker];
  },
};

export function makeQuestion(question, answer, say) {
  const legend = make("legend", { textContent: question.question, dir: "auto" });
  if (!question.required) legend.append(make("span", { className: "optional", textContent: "optional" }));
  return make("fieldset", { className: "question" }, legend, ...fields[question.type](question, answer, say));
}

// Returns null where nothing was answered, which the server reads as skipped.
export function readAnswer(question, fieldset) {
  const box = fieldset.querySelector("input[type=text], textarea");
  const text = box?.value.trim() ?? "";
  if (question.type === "open_text") return text ? { kind: "text", text: box.value } : null;
  if (question.type === "location_picker") {
    if (!text) return null;
    return box.place?.label === text ? box.place : { kind: "place", label: text };
  }
  const selected = [...fieldset.querySelectorAll(":checked")].map((input) => input.value);
  if (!selected.length && !text) return null;
  return { kind: "choice", selected, ...(text ? { other: text } : {}) };
}
