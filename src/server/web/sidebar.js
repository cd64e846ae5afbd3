// The list of conversations: beside the messages, or over them on a narrow screen.
import {button, element} from "./element.js";

const NARROW = matchMedia("(max-width: 760px)");

export class Sidebar {
  // `open(id)` shows a conversation.
  constructor({element, list, room, shade, opener, closer, open}) {
    Object.assign(this, {element, list, room, shade, opener, open});
    opener.addEventListener("click", () => this.turn(true));
    closer.addEventListener("click", () => this.turn(false));
    shade.addEventListener("click", () => this.turn(false));
    NARROW.addEventListener("change", () => this.turn(false));
    element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.isOver) return;
      event.preventDefault();
      this.turn(false);
    });
    this.turn(false);
  }

  get isOver() { return NARROW.matches && this.element.classList.contains("over"); }

  // On a narrow screen: over the messages, which no key reaches then, or out of the way, where no
  // key reaches it.
  turn(isOpen) {
    const wasOver = this.isOver;
    this.element.classList.toggle("over", isOpen);
    this.element.inert = NARROW.matches && !isOpen;
    this.room.inert = NARROW.matches && isOpen;
    this.shade.hidden = !this.room.inert;
    this.opener.setAttribute("aria-expanded", String(isOpen));
    if (NARROW.matches && isOpen) this.focus();
    else if (wasOver) this.opener.focus();
  }

  // The current conversation, else the first, else the button that begins one.
  focus() {
    (this.list.querySelector("[aria-current]") ?? this.list.querySelector("button") ??
     this.element.querySelector(".wide"))
        .focus();
  }

  // `records`: what is stored of the conversations; `current`: the id of the one that is shown.
  draw(records, current) {
    const focused =
        this.list.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    this.list.replaceChildren(
        ...records.map((record) => {
          const {id, title, updated} = record;
          const opens = button(
              title || "Untitled", () => this.open(id),
              {title: new Date(updated).toLocaleString(), "data-id": id});
          if (id === current) opens.setAttribute("aria-current", "true");
          return element("li", {}, opens);
        }),
    );
    if (focused) this.list.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
  }
}
