// Words coloured by how much they surprised the model. The colours are highlights of the CSS Custom Highlight API,
// which need no element a word; only what is on the screen has them.
import { surprise } from "./tokens.js";
import { rangeOf } from "./words.js";

const LEVELS = [1, 2, 4, 7]; // bits from which on a word is coloured, ever stronger

export class Tint {
  #highlights;
  #ranges = new Map(); // message view -> [[level, range], ...]
  #watcher;
  #isOn = false;

  constructor(root) {
    this.#highlights = LEVELS.map((_, level) => {
      const highlight = new Highlight();
      CSS.highlights.set(`surprise-${level + 1}`, highlight);
      return highlight;
    });
    this.#watcher = new IntersectionObserver((entries) => this.#seen(entries), { root, rootMargin: "200px" });
  }

  static get isSupported() {
    return typeof Highlight === "function" && "highlights" in CSS;
  }

  // `views` are those of the messages.
  turn(isOn, views) {
    this.#isOn = isOn;
    for (const view of views) this.watch(view);
  }

  watch(view) {
    this.#watcher.unobserve(view.element);
    this.clear(view);
    view.element.limpidView = view;
    if (this.#isOn) this.#watcher.observe(view.element);
  }

  forget(view) {
    this.#watcher.unobserve(view.element);
    this.clear(view);
  }

  #seen(entries) {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) this.paint(target.limpidView);
      else this.clear(target.limpidView);
    }
  }

  clear(view) {
    for (const [level, range] of this.#ranges.get(view) ?? []) this.#highlights[level].delete(range);
    this.#ranges.delete(view);
  }

  paint(view) {
    if (!this.#isOn) return;
    this.clear(view);
    const ranges = [];
    const pieces = view.markdown?.pieces() ?? [];
    for (const token of view.message.tokens ?? []) {
      const level = LEVELS.findLastIndex((bits) => surprise(token.logprob) >= bits);
      const range = level < 0 ? null : rangeOf(pieces, token.start, token.end, StaticRange);
      if (!range) continue;
      this.#highlights[level].add(range);
      ranges.push([level, range]);
    }
    this.#ranges.set(view, ranges);
  }
}
