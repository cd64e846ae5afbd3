// One message on the page: its text, and what can be done with it.
import {button, element} from "./element.js";
import {MarkdownView} from "./markdown_view.js";

const LONGEST_PAUSE = 400;  // ms between two pictures of an answer that grows

// What a button does, in more words than are on it.
const titled = (title) => ({title, "aria-label": title});

export class MessageView {
  #timer = 0;
  #drawn = 0;  // when the text was last drawn, and for how long
  #cost = 0;

  // `actions`: copy(text), edit(view, text), regenerate(view), resume(view), turn(view, step),
  // say(text), why(view).
  constructor(message, actions) {
    this.message = message;
    this.actions = actions;
    this.isUser = message.role === "user";
    this.body = element("div", {className: "body"});
    this.foot = element("div", {className: "actions"});
    const [name, who] = this.isUser ? ["user", "You"] : ["assistant", "Answer"];
    const id = `who-${message.id}`;
    this.element = element(
        "article",
        {className: `message ${name}`, id: `message-${message.id}`, "aria-labelledby": id},
        element("h3", {className: "who", id, textContent: who}), this.body, this.foot);
    this.#fill();
  }

  #fill() {
    this.body.replaceChildren();
    this.markdown = null;
    if (this.isUser) {
      this.body.dir = "auto";
      this.body.textContent = this.message.content;
      return;
    }
    this.markdown = new MarkdownView(this.body, this, this.actions.copy);
    this.markdown.update(this.message.content, !this.message.isRunning);
    this.#markWords();
  }

  // Users without a mouse go through the words with the arrow keys.
  #markWords() {
    const hasWords = (this.message.tokens?.length ?? 0) > 0;
    if (!hasWords || this.body.tabIndex === 0) return;
    this.body.tabIndex = 0;
    this.body.setAttribute("role", "group");
    this.body.setAttribute(
        "aria-label", "Answer. Left and right arrow: its words and their alternatives.");
  }

  // `place`: [which, of how many] siblings; `isLast`: nothing comes after it.
  drawFoot([which, of], isLast) {
    const {message, actions} = this;
    const focused =
        this.foot.contains(document.activeElement) ? document.activeElement.textContent : null;
    this.foot.replaceChildren();
    if (of > 1) this.foot.append(this.#versions(which, of));
    const isEmpty = message.error && !message.content;
    if (!message.isRunning && !isEmpty) {
      this.foot.append(button("Copy", () => actions.copy(message.content)));
      this.foot.append(button("Edit", () => this.edit()));
      if (!this.isUser)
        this.foot.append(button("Again", () => actions.regenerate(this), titled("Another answer")));
      if (!this.isUser && message.content)
        this.foot.append(
            button("Why?", () => actions.why(this), titled("Why the model said this")));
      const ended = message.finish === "length" || message.finish === "stopped" || message.error;
      if (!this.isUser && isLast && ended && message.content) {
        this.foot.append(
            button("Continue", () => actions.resume(this), titled("Continue this answer")));
      }
    }
    this.foot.append(element("span", {className: "facts", textContent: this.#facts()}));
    this.#drawProblem();
    if (focused) this.focusButton(focused);
  }

  // The button of a text below the message; false if there is none that can be pressed.
  focusButton(text) {
    const found = [...this.foot.querySelectorAll("button")].find((b) => b.textContent === text);
    found?.focus();
    return found !== undefined && !found.disabled;
  }

  #versions(which, of) {
    const turn = (text, step, title, disabled) =>
        button(text, () => this.actions.turn(this, step), {...titled(title), disabled});
    return element(
        "span", {className: "switch", role: "group", "aria-label": "Versions of this message"},
        turn("‹", -1, "The previous version", which === 1),
        element("span", {textContent: `${which}/${of}`, "aria-label": `version ${which} of ${of}`}),
        turn("›", 1, "The next version", which === of));
  }

  #facts() {
    const {stats, finish, isRunning} = this.message;
    const facts = [];
    if (isRunning && !stats) facts.push("reading…");
    if (stats?.speed) facts.push(`${stats.speed.toFixed(1)} tokens/s`);
    if (stats?.tokens) facts.push(`${stats.tokens} tokens`);
    if (stats?.wait) facts.push(`first after ${(stats.wait / 1000).toFixed(2)} s`);
    if (finish === "length") facts.push("stopped at the length limit");
    if (finish === "stopped") facts.push("stopped");
    return facts.join(" · ");
  }

  drawFacts() {
    const facts = this.foot.querySelector(".facts");
    if (facts) facts.textContent = this.#facts();
  }

  #drawProblem() {
    this.element.querySelector(".problem")?.remove();
    const {error} = this.message;
    if (!error) return;
    this.body.after(element(
        "div", {className: "problem"}, element("strong", {textContent: error.message}),
        element("p", {textContent: error.advice}),
        button("Try again", () => this.actions.resume(this))));
  }

  // Shows the text as it is now, soon: never more often than the drawing of it allows.
  grow() {
    if (this.#timer) return;
    const pause = Math.min(5 * this.#cost, LONGEST_PAUSE) - (performance.now() - this.#drawn);
    this.#timer =
        setTimeout(() => requestAnimationFrame(() => this.draw(false)), Math.max(pause, 0));
  }

  draw(isFinal) {
    clearTimeout(this.#timer);
    this.#timer = 0;
    if (!isFinal && !this.message.isRunning) return;
    const begin = performance.now();
    for (const text of this.markdown.update(this.message.content, isFinal)) this.actions.say(text);
    this.#markWords();
    this.drawFacts();
    this.actions.drawn(this);
    this.#drawn = performance.now();
    this.#cost = this.#drawn - begin;
  }

  // The text becomes a field; keeping it makes a sibling of the message.
  edit() {
    if (this.element.querySelector(".editor")) return;
    const {content} = this.message;
    const field = element("textarea", {
      value: content,
      dir: "auto",
      rows: Math.min(12, content.split("\n").length + 1),
      "aria-label": this.isUser ? "The question, to change" : "The answer, to change"
    });
    const close = () => {
      form.remove();
      this.body.hidden = false;
      this.focusButton("Edit");
    };
    const keep = element(
        "button", {type: "submit", className: "main", textContent: this.isUser ? "Send" : "Keep"});
    const form = element(
        "form", {className: "editor"}, field,
        element("div", {className: "row end"}, button("Cancel", close), keep));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      close();
      if (field.value.trim() && field.value !== this.message.content)
        this.actions.edit(this, field.value);
    });
    form.addEventListener("keydown", (event) => {
      if (event.key === "Escape") close();
      else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    this.body.hidden = true;
    this.body.before(form);
    field.focus();
  }
}
