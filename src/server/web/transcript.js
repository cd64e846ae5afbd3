// The messages of the conversation that is shown, in a list that follows its end while an answer
// grows.
import {MessageView} from "./message_view.js";

const NEAR = 60;  // pixels from the end that still count as the end

export class Transcript {
  #views = [];
  #follows = true;

  constructor({root, scroller, toEnd, tint, actions}) {
    Object.assign(this, {root, scroller, toEnd, tint});
    this.actions = {...actions, drawn: (view) => this.#drawn(view)};
    scroller.addEventListener("scroll", () => this.#scrolled(), {passive: true});
    toEnd.addEventListener("click", () => this.goToEnd());
  }

  get views() { return this.#views; }

  viewOf(message) { return this.#views.find((view) => view.message === message); }

  // Shows the conversation's path. Messages that are there already stay.
  show(conversation) {
    const path = conversation.path();
    let same = 0;
    while (same < this.#views.length && this.#views[same].message === path[same]) ++same;
    for (const view of this.#views.splice(same)) {
      this.tint?.forget(view);
      view.element.remove();
    }
    const added = path.slice(same).map((message) => new MessageView(message, this.actions));
    this.root.append(...added.map((view) => view.element));
    this.#views.push(...added);
    for (const view of added) this.tint?.watch(view);
    // An answer further up may be begun again or continued.
    this.#views.filter(({message}, i) => i >= same - 1 || message.isRunning)
        .forEach((view) => this.drawFoot(conversation, view));
  }

  drawFoot(conversation, view) {
    const siblings = conversation.siblings(view.message);
    const which = siblings.indexOf(view.message) + 1;
    view.drawFoot([which, siblings.length], view === this.#views.at(-1));
  }

  #drawn(view) {
    this.tint?.paint(view);
    this.settle();
  }

  // After a message may have grown.
  settle() {
    if (this.#follows) this.goToEnd();
  }

  goToEnd() {
    this.#follows = true;
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  #scrolled() {
    const {scrollTop, scrollHeight, clientHeight} = this.scroller;
    this.#follows = scrollHeight - scrollTop - clientHeight < NEAR;
    this.toEnd.hidden = this.#follows;
  }
}
