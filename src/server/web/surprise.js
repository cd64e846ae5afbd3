// Words coloured by how much they surprised the model. The colours are highlights of the CSS Custom
// Highlight API, which need no element a word; only what is on the screen has them.
import {surprise} from "./tokens.js";
import {rangeOf} from "./words.js";

const LEVELS = [1, 2, 4, 7];  // bits from which on a word is coloured, ever stronger

export class Tint {
  #highlights;
  // Message view -> {ranges: [[level, range], ...], and how many tokens (nTokens) and ranges
  // (nFinal) of it lie in text that stays as it is, up to `end`}.
  #drawn = new Map();
  #watcher;
  #isOn = false;

  constructor(root) {
    this.#highlights = LEVELS.map((_, level) => {
      const highlight = new Highlight();
      CSS.highlights.set(`surprise-${level + 1}`, highlight);
      return highlight;
    });
    this.#watcher =
        new IntersectionObserver((entries) => this.#seen(entries), {root, rootMargin: "200px"});
  }

  static get isSupported() { return typeof Highlight === "function" && "highlights" in CSS; }

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
    for (const {target, isIntersecting} of entries) {
      if (isIntersecting) this.paint(target.limpidView);
      else this.clear(target.limpidView);
    }
  }

  clear(view) {
    const drawn = this.#drawn.get(view);
    if (drawn) this.#remove(drawn, 0);
    this.#drawn.delete(view);
  }

  // The ranges from the `first` on.
  #remove(drawn, first) {
    for (const [level, range] of drawn.ranges.splice(first)) this.#highlights[level].delete(range);
  }

  // An answer that grows is painted where its text was drawn anew, and not from its begin.
  paint(view) {
    const {markdown} = view;
    if (!this.#isOn || !markdown) return;
    if (markdown.finalEnd < this.#drawn.get(view)?.end) this.clear(view);  // it was begun again
    const drawn = this.#drawn.get(view) ?? {ranges: [], nFinal: 0, nTokens: 0, end: 0};
    this.#drawn.set(view, drawn);
    this.#remove(drawn, drawn.nFinal);
    const pieces = markdown.pieces();
    const tokens = view.message.tokens ?? [];
    for (let i = drawn.nTokens; i < tokens.length; ++i) {
      const token = tokens[i];
      const level = LEVELS.findLastIndex((bits) => surprise(token.logprob) >= bits);
      const range = level < 0 ? null : rangeOf(pieces, token.start, token.end, StaticRange);
      if (range) {
        this.#highlights[level].add(range);
        drawn.ranges.push([level, range]);
      }
      if (token.end <= markdown.finalEnd)
        [drawn.nTokens, drawn.nFinal] = [i + 1, drawn.ranges.length];
    }
    drawn.end = markdown.finalEnd;
  }
}
