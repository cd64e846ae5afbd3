// What the tabs of the page tell each other.
//
//   {asks: id}       which tab receives this answer?
//   {receives: id}   the sender does
//   {saved: id}      the sender has kept a change of this conversation, or deleted it
const PATIENCE = 300;  // ms for the other tabs to say so

export class Tabs {
  #channel = new BroadcastChannel("limpid");

  // `receives(id)`: whether this tab receives the answer; `saved()`: another tab has kept a change.
  constructor({receives, saved}) {
    this.#channel.addEventListener("message", ({data}) => {
      if (data.saved) saved();
      else if (data.asks && receives(data.asks)) this.#channel.postMessage({receives: data.asks});
    });
  }

  tellSaved(id) { this.#channel.postMessage({saved: id}); }

  // Whether another tab receives the answer.
  isReceivedElsewhere(id) {
    return new Promise((resolve) => {
      const listen = ({data}) => data.receives === id && end(true);
      const end = (isReceived) => {
        clearTimeout(timer);
        this.#channel.removeEventListener("message", listen);
        resolve(isReceived);
      };
      const timer = setTimeout(() => end(false), PATIENCE);
      this.#channel.addEventListener("message", listen);
      this.#channel.postMessage({asks: id});
    });
  }
}
