// "Why?" at an answer: the page of `limpid explain`, in a frame, with the numbers of this answer.
// The frame has a policy of its own: nothing but its own script runs in it.
export class Why {
  #abort = null;
  #numbers = null;  // a promise of what the frame shows

  constructor({dialog, api}) {
    Object.assign(this, {dialog, api});
    this.status = dialog.querySelector("#why-status");
    this.place = dialog.querySelector("#why-place");
    dialog.addEventListener("close", () => this.#end());
    addEventListener("message", (event) => this.#answer(event));
  }

  // `body`: {messages, answer, model} of POST /explain.
  async show(body) {
    this.#end();
    this.#abort = new AbortController();
    this.status.textContent = "The model reads the conversation once more…";
    this.status.hidden = false;
    this.dialog.showModal();
    try {
      this.#numbers = await this.api.explain(body, this.#abort.signal);
      const frame = document.createElement("iframe");
      frame.title = "Why the model said this";
      frame.src = "explain.html";
      this.place.replaceChildren(frame);
    } catch (error) {
      if (error.name !== "AbortError")
        this.status.textContent = `${error.message} ${error.advice ?? ""}`;
    }
  }

  #answer({source, origin, data}) {
    const frame = this.place.querySelector("iframe");
    if (!frame || source !== frame.contentWindow || origin !== location.origin || data !== "ready")
      return;
    this.status.hidden = true;
    source.postMessage(this.#numbers, origin);
    this.#numbers = null;
    // The frame has the keys now, and the dialog does not see them.
    source.addEventListener("keydown", ({key}) => key === "Escape" && this.dialog.close());
    frame.focus();
  }

  #end() {
    this.#abort?.abort();
    this.#numbers = null;
    this.place.replaceChildren();
  }
}
