// The location picker: a text box that searches places of one level as you type.
// A combobox with a list, as the ARIA practices describe it: focus stays in the box, arrows move
// through the list, Enter picks, Escape closes the list and nothing else.

const DELAY = 300; // milliseconds of silence before a search
const LIFETIME = 3_600_000;
const CACHED = 200;
const cache = new Map();

export async function search(query, level, signal) {
  const key = `${level}\n${query.trim().toLowerCase()}`;
  const known = cache.get(key);
  if (known && Date.now() - known.at < LIFETIME) return known.places;
  // Posted, so that no address, and with it no log, holds what somebody looks for.
  const body = new URLSearchParams({ q: query.trim(), level });
  const answer = await fetch("/api/location/search", { method: "POST", body, signal });
  if (!answer.ok) return [];
  const { places } = await answer.json();
  cache.delete(key);
  cache.set(key, { places, at: Date.now() });
  if (cache.size > CACHED) cache.delete(cache.keys().next().value);
  return places;
}

export function makePicker(picker, say, changed) {
  const box = picker.querySelector("input[type=text]");
  // Which place of the list was chosen. What is typed stays what was typed.
  const chosen = picker.querySelector("input[type=hidden]");
  const hint = picker.querySelector(".hint");
  const list = document.createElement("ul");
  const other = document.getElementById(box.id.replace(/-text$/, "-typed"));
  let places = [];
  let active = -1;
  let timer = 0;
  let asking = null;

  picker.querySelector(".find").remove();
  list.id = `${box.id}-list`;
  list.hidden = true;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Places");
  box.after(list);
  for (const [name, value] of Object.entries({
    role: "combobox",
    "aria-autocomplete": "list",
    "aria-expanded": "false",
    "aria-controls": list.id,
    "aria-haspopup": "listbox",
    autocomplete: "off",
  })) box.setAttribute(name, value);
  const explain = () => {
    hint.textContent = "Type to search. What you type is used as it is if you choose nothing.";
  };
  if (!hint.textContent.startsWith("Filled")) explain();

  function close() {
    clearTimeout(timer);
    asking?.abort();
    list.hidden = true;
    active = -1;
    box.setAttribute("aria-expanded", "false");
    box.removeAttribute("aria-activedescendant");
  }

  function point(at) {
    active = Math.max(0, Math.min(at, places.length - 1));
    [...list.children].forEach((option, number) => {
      option.setAttribute("aria-selected", String(number === active));
    });
    box.setAttribute("aria-activedescendant", list.children[active].id);
    list.children[active].scrollIntoView({ block: "nearest" });
  }

  function pick(place) {
    box.value = place.label;
    chosen.value = place.label;
    if (other) other.checked = true;
    const { city, state, country } = place;
    hint.textContent = [city, state, country].filter(Boolean).map((part) => part.name).join(", ");
    close();
    say(`${place.label} chosen.`);
    changed();
    box.dispatchEvent(new CustomEvent("place", { bubbles: true, detail: { city, state, country } }));
  }

  function offer(found) {
    places = found;
    active = -1;
    list.replaceChildren(...places.map((place, number) => {
      const option = document.createElement("li");
      option.id = `${list.id}-${number}`;
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", "false");
      option.append(place.name);
      if (place.surroundings) {
        const around = document.createElement("small");
        around.textContent = place.surroundings;
        option.append(around);
      }
      // The box must keep the focus, or the list would close before the click.
      option.addEventListener("pointerdown", (event) => event.preventDefault());
      option.addEventListener("click", () => pick(place));
      return option;
    }));
    list.hidden = places.length === 0;
    box.setAttribute("aria-expanded", String(!list.hidden));
    box.removeAttribute("aria-activedescendant");
    if (places.length === 0) hint.textContent = "No such place is known here; what you typed will be used as it is.";
    say(places.length === 1 ? "One place found." : `${places.length} places found.`);
  }

  async function look() {
    asking?.abort();
    asking = new AbortController();
    const mine = asking;
    try {
      const found = await search(box.value, picker.dataset.level, mine.signal);
      if (asking === mine && !mine.signal.aborted) offer(found);
    } catch (error) {
      if (error.name !== "AbortError") hint.textContent = "The search failed; what you typed will be used as it is.";
    }
  }

  box.addEventListener("input", () => {
    if (other) other.checked = true;
    chosen.value = "";
    close();
    explain();
    if (box.value.trim().length >= 2) timer = setTimeout(look, DELAY);
  });
  box.addEventListener("blur", close);
  box.addEventListener("keydown", (event) => {
    const open = !list.hidden;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (open) point(active < 0 && event.key === "ArrowUp" ? places.length - 1 : active + (event.key === "ArrowDown" ? 1 : -1));
      else if (box.value.trim().length >= 2) look();
    } else if (event.key === "Enter" && open) {
      // An open list is closed first: the next Enter sends the form.
      event.preventDefault();
      if (active >= 0) pick(places[active]);
      else close();
    } else if (event.key === "Escape" && open) {
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  });
}
