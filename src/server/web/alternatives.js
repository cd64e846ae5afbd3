// The words of an answer under the pointer or the arrow keys: how likely each was, and what else
// could have come.
import {button, element} from "./element.js";
import {percent, surprise, tokenAt, visible, wordOf} from "./tokens.js";
import {characterAt, rangeOf} from "./words.js";

const SHOW_AFTER = 120;  // ms on a word
const HIDE_AFTER = 300;  // ms away from it

export class Alternatives {
  #view = null;
  #token = null;
  #timer = 0;
  #hovered = null;  // the token that the timer waits for
  #highlight = null;

  // `branch(view, token, text)` goes on from an alternative; `say(text)` tells screen readers.
  constructor({box, root, scroller, viewOf, branch, say}) {
    Object.assign(this, {box, root, viewOf, branch, say});
    if (typeof Highlight === "function" && "highlights" in CSS) {
      this.#highlight = new Highlight();
      this.#highlight.priority = 1;
      CSS.highlights.set("word", this.#highlight);
    }
    root.addEventListener(
        "pointermove", (event) => event.pointerType === "mouse" && this.#hover(event));
    root.addEventListener("pointerleave", () => this.#leave());
    root.addEventListener("click", (event) => this.#click(event));
    root.addEventListener("keydown", (event) => this.#key(event));
    root.addEventListener("focusout", (event) => this.#lost(event));
    box.addEventListener("pointerenter", () => clearTimeout(this.#timer));
    box.addEventListener("pointerleave", () => this.#leave());
    box.addEventListener("keydown", (event) => this.#keyInside(event));
    box.addEventListener("focusout", (event) => this.#lost(event));
    document.addEventListener("pointerdown", ({target}) => !box.contains(target) && this.hide());
    addEventListener("resize", () => this.#place());
    scroller.addEventListener("scroll", () => this.#place(), {passive: true});
  }

  get isOpen() { return this.#token !== null; }

  #tokenUnder(event) {
    const place = characterAt(event.clientX, event.clientY);
    const view = place?.view.owner;
    const token = view && tokenAt(view.message.tokens ?? [], place.offset);
    return token ? {view, token} : null;
  }

  #hover(event) {
    const found = event.buttons === 0 ? this.#tokenUnder(event) : null;
    const token = found?.token ?? null;
    if (token === this.#hovered) return;
    this.#hovered = token;
    clearTimeout(this.#timer);
    if (token) this.#timer = setTimeout(() => this.show(found.view, token), SHOW_AFTER);
    else this.#leave();
  }

  #leave() {
    this.#hovered = null;
    clearTimeout(this.#timer);
    if (this.box.contains(document.activeElement)) return;
    this.#timer = setTimeout(() => this.hide(), HIDE_AFTER);
  }

  #click(event) {
    if (event.target.closest("a, button, input") || !getSelection().isCollapsed) return;
    const found = this.#tokenUnder(event);
    if (found) this.show(found.view, found.token);
  }

  #lost({relatedTarget}) {
    if (!this.#token || !relatedTarget) return;
    if (!this.box.contains(relatedTarget) && !this.#view.body.contains(relatedTarget)) this.hide();
  }

  // Left and right go through the tokens that can be seen, down goes into the alternatives.
  #key(event) {
    const view = this.viewOf(event.target);
    if (!view || event.target !== view.body || event.altKey || event.ctrlKey || event.metaKey)
      return;
    const {tokens} = view.message;
    const here = this.#view === view ? tokens.indexOf(this.#token) : -1;
    const to =
        {ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: tokens.length - 1}[event.key];
    if (to !== undefined)
      this.#go(view, to, event.key === "ArrowLeft" || event.key === "End" ? -1 : 1);
    else if ((event.key === "ArrowDown" || event.key === "Enter") && here >= 0) this.#enter();
    else if (event.key === "Escape" && this.isOpen) this.hide();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #go(view, to, step) {
    const {tokens} = view.message;
    const pieces = view.markdown.pieces();
    for (let i = to; i >= 0 && i < tokens.length; i += step) {
      if (!rangeOf(pieces, tokens[i].start, tokens[i].end)) continue;
      this.show(view, tokens[i], true);
      this.say(this.#spoken());
      return;
    }
  }

  #enter() { this.box.querySelector("button:not(:disabled)")?.focus(); }

  #keyInside(event) {
    const buttons = [...this.box.querySelectorAll("button:not(:disabled)")];
    const here = buttons.indexOf(document.activeElement);
    if (event.key === "ArrowDown") buttons[Math.min(here + 1, buttons.length - 1)]?.focus();
    else if (event.key === "ArrowUp" && here > 0) buttons[here - 1].focus();
    else if (event.key === "ArrowUp" || event.key === "Escape") {
      const {body} = this.#view;
      body.focus({preventScroll: true});
      if (event.key === "Escape") this.hide();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  show(view, token, scrolls = false) {
    clearTimeout(this.#timer);
    this.#view = view;
    this.#token = token;
    this.#fill();
    this.#mark(scrolls);
    this.box.showPopover();
    this.#place();
  }

  hide() {
    clearTimeout(this.#timer);
    this.#token = this.#hovered = null;
    this.#highlight?.clear();
    if (this.box.matches(":popover-open")) this.box.hidePopover();
  }

  #range() { return rangeOf(this.#view.markdown.pieces(), this.#token.start, this.#token.end); }

  #mark(scrolls) {
    this.#highlight?.clear();
    const range = this.#range();
    if (!range) return;
    this.#highlight?.add(range);
    if (scrolls && range.startContainer.parentElement) {
      const box = range.getBoundingClientRect();
      if (box.top < 80 || box.bottom > innerHeight - 220) {
        range.startContainer.parentElement.scrollIntoView({block: "center"});
      }
    }
  }

  // Below the word, or above where there is no room below.
  #place() {
    if (!this.isOpen) return;
    const range = this.#range();
    const word = range?.getClientRects()[0];
    if (!word) return this.hide();
    const {width, height} = this.box.getBoundingClientRect();
    const left = Math.min(Math.max(word.left, 8), innerWidth - width - 8);
    const below = word.bottom + 4;
    const top = below + height < innerHeight - 8 ? below : Math.max(word.top - height - 4, 8);
    this.box.style.left = `${Math.max(left, 8)}px`;
    this.box.style.top = `${top}px`;
    return null;
  }

  #text() { return this.#view.message.content.slice(this.#token.start, this.#token.end); }

  #fill() {
    const {logprob, others} = this.#token;
    const [word, facts] = this.box.querySelectorAll("p");
    word.textContent = visible(this.#text());
    const bits = Math.max(surprise(logprob), 0).toFixed(1);
    facts.textContent = `${percent(logprob)} · log-probability ${
        logprob.toFixed(2).replace("-", "−")} · surprise ${bits} bits`;
    const parts = wordOf(this.#view.message, this.#token);
    if (parts.length > 1) {
      const whole =
          parts.map(({start, end}) => this.#view.message.content.slice(start, end)).join("").trim();
      const sum = parts.reduce((total, part) => total + part.logprob, 0);
      facts.append(element("br"), `“${whole}”: ${percent(sum)} in ${parts.length} tokens`);
    }
    this.box.querySelector("ul").replaceChildren(...others.map((other) => this.#choice(other)));
  }

  #choice([text, logprob]) {
    const isTaken = text === this.#text();
    const name = text === null ? "(no text)" : visible(text);
    const chance = percent(logprob);
    const [view, token] = [this.#view, this.#token];
    const choice = button("", () => {
      this.hide();
      this.branch(view, token, text, logprob);
    }, {disabled: isTaken || text === null});
    choice.style.setProperty("--share", `${(100 * Math.exp(logprob)).toFixed(2)}%`);
    choice.append(
        element("span", {className: "text", textContent: name}),
        element("span", {className: "chance", textContent: chance}));
    if (isTaken) {
      choice.className = "taken";
      choice.setAttribute("aria-label", `${name}, ${chance}, taken`);
    } else if (text !== null) {
      choice.title = "Go on from here";
      choice.setAttribute("aria-label", `Go on with ${name}, ${chance}`);
    }
    return element("li", {}, choice);
  }

  #spoken() {
    const {logprob, others} = this.#token;
    const own = this.#text();
    const name = (text) => (text === null ? "no text" : visible(text.trim() || text));
    const rest = others.filter((other) => other[0] !== own);
    const told = rest.map((other) => `${name(other[0])} ${percent(other[1])}`);
    return `${name(own)}, ${percent(logprob)}. Instead: ${told.join(", ")}.`;
  }
}
