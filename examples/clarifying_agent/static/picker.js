// A text box that searches places of one level as you type: a combobox with a list, as the ARIA
// practices describe it. Focus stays in the box, arrows move, Enter picks, Escape closes the list.

const DELAY = 300; // milliseconds of silence before a search
const CACHED = 200;
const cache = new Map();

async function search(q, level, signal) {
  const key = `${level} ${q.trim().toLowerCase()}`;
  if (cache.has(key)) return cache.get(key);
  const headers = { "content-type": "application/json" };
  const answer = await fetch("/api/location/search", { method: "POST", headers, body: JSON.stringify({ q, level }), signal });
  if (!answer.ok) throw new Error(`the search answered ${answer.status}`);
  const { places } = await answer.json();
  cache.set(key, places);
  if (cache.size > CACHED) cache.delete(cache.keys().next().value);
  return places;
}

export function makePicker(picker, level, say) {
  const box = picker.querySelector("input");
  const hint = picker.querySelector(".hint");
  const list = document.createElement("ul");
  let places = [];
  let active = -1;
  let timer = 0;
  let asking = null;

  list.id = `${box.id}-list`;
  list.hidden = true;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Places");
  box.after(list);
  hint.textContent = "Type to search. What you type is used as it is if you choose nothing.";
  const roles = { role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id, "aria-describedby": hint.id, autocomplete: "off" };
  for (const [name, value] of Object.entries(roles)) box.setAttribute(name, value);

  function close() {
    clearTimeout(timer);
    asking?.abort();
    list.hidden = true;
    active = -1;
    box.setAttribute("aria-expanded", "false");
    box.removeAttribute("aria-activedescendant");
  }

  function point(at) {
    active = (at + places.length) % places.length;
    [...list.children].forEach((option, number) => option.setAttribute("aria-selected", String(number === active)));
    box.setAttribute("aria-activedescendant", list.children[active].id);
    list.children[active].scrollIntoView({ block: "nearest" });
  }

  function pick({ answer }) {
    box.value = answer.label;
    box.place = answer;
    hint.textContent = [answer.city, answer.state, answer.country].filter(Boolean).join(", ");
    close();
    say(`${answer.label} chosen.`);
    box.dispatchEvent(new Event("place", { bubbles: true }));
  }

  function offer(found) {
    places = found;
    list.replaceChildren(...places.map((place, number) => {
      const option = document.createElement("li");
      const around = document.createElement("small");
      option.id = `${list.id}-${number}`;
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", "false");
      around.textContent = place.around;
      option.append(place.name, around);
      // The box must keep the focus, or the list would close before the click.
      option.addEventListener("pointerdown", (event) => event.preventDefault());
      option.addEventListener("click", () => pick(place));
      return option;
    }));
    list.hidden = places.length === 0;
    box.setAttribute("aria-expanded", String(!list.hidden));
    if (!places.length) hint.textContent = "No such place is known here; what you typed is used as it is.";
    say(places.length === 1 ? "One place found." : `${places.length} places found.`);
  }

  async function look() {
    asking = new AbortController();
    const { signal } = asking;
    try {
      const found = await search(box.value, level, signal);
      if (!signal.aborted) offer(found);
    } catch {
      if (!signal.aborted) hint.textContent = "The search failed; what you typed is used as it is.";
    }
  }

  box.addEventListener("input", () => {
    close();
    if (box.value.trim().length >= 2) timer = setTimeout(look, DELAY);
  });
  box.addEventListener("blur", close);
  box.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    if (event.key === "ArrowDown") point(active + 1);
    else if (event.key === "ArrowUp") point(active < 0 ? -1 : active - 1);
    else if (event.key === "Enter" && active >= 0) pick(places[active]);
    else if (event.key === "Enter" || event.key === "Escape") close();
    else return;
    event.preventDefault(); // An open list is closed first: the next Enter sends the form.
  });
}
