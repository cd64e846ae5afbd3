// What a person does with the conversation that is shown: ask, stop, edit, branch, ask again.
import {Answering, requestFor} from "./answering.js";
import {Problem} from "./api.js";
import {Conversation} from "./tree.js";

const LONGEST_TITLE = 60;

export class Session {
  #answering = null;
  #conversation = new Conversation();
  #wanted = "";  // id of the conversation to show, which may still be read

  // `page`: draw(conversation), grew(message), ended(message, model), running(isRunning), saved(),
  // failed(error), model().
  constructor({api, store, settings, tabs, page}) {
    Object.assign(this, {api, store, settings, tabs, page});
  }

  get conversation() { return this.#conversation; }

  get isRunning() { return this.#answering !== null; }

  // Whether the answer of this id is coming in.
  receives(id) { return this.#answering?.message.id === id; }

  begin() { this.show(new Conversation({system: this.settings.get("system")})); }

  // False if it is not kept. What was asked for last is shown, whichever is read first.
  async open(id) {
    this.#wanted = id;
    // Another copy of it would not have the answer that is coming in.
    if (id === this.#conversation.id) return true;
    const conversation = await this.store.load(id);
    if (conversation && this.#wanted === id) this.show(conversation);
    return conversation !== null;
  }

  show(conversation) {
    this.stop();
    this.#wanted = conversation.id;
    this.#conversation = conversation;
    this.page.draw(conversation);
  }

  async save(conversation = this.#conversation, messages = []) {
    if (conversation.isDeleted) return;
    try {
      await this.store.save(conversation, messages);
      this.tabs.tellSaved(conversation.id);
      this.page.saved();
    } catch (error) {
      const advice =
          "Export the conversation, then delete old ones: the browser may have no room left.";
      this.page.failed(new Problem(
          `The conversation could not be kept: ${error?.message || error?.name || error}`, advice));
    }
  }

  // Asks below the last message that is shown.
  ask(text) {
    const conversation = this.#conversation;
    this.#wanted = conversation.id;
    if (!conversation.title) {
      const line = text.trim().split("\n")[0].slice(0, LONGEST_TITLE);
      conversation.title = line.replace(/[\ud800-\udbff]$/, "");  // half of a character
    }
    const question = conversation.append(conversation.path().at(-1) ?? null, "user", text);
    this.save(conversation, [question]);
    return this.#answer(question);
  }

  // Another version of a message: of a question it is answered anew, of an answer it is kept as it
  // is.
  edit(message, text) {
    this.stop();
    const conversation = this.#conversation;
    const version = conversation.append(conversation.parentOf(message), message.role, text);
    this.save(conversation, [version]);
    if (message.role === "user") return this.#answer(version);
    version.finish = "stopped";
    this.page.draw(conversation);
    return null;
  }

  regenerate(message) { return this.#answer(this.#conversation.parentOf(message)); }

  // Goes on with another token at the place of `token`.
  branch(message, token, text, logprob) {
    const kept = message.tokens.filter(({end}) => end <= token.start);
    const start = token.start;
    const taken = {start, end: start + text.length, logprob, others: token.others};
    const parent = this.#conversation.parentOf(message);
    return this.#answer(parent, message.content.slice(0, start) + text, [...kept, taken]);
  }

  // Goes on with an answer, or begins it again if there is nothing of it. Of two tabs that did so
  // each would overwrite what the other receives, or has received before.
  async resume(message) {
    this.stop();
    const conversation = this.#conversation;
    const {error} = message;
    const check = {message, isStopped: false, stop: () => (check.isStopped = true)};
    this.#answering = check;
    this.#begin(conversation, message);
    const isElsewhere = await this.tabs.isReceivedElsewhere(message.id);
    const kept = await this.store.load(conversation.id).catch(() => null);
    const stored = kept?.messages.get(message.id);
    const isLonger = stored?.content.length > message.content.length;
    if (isLonger) Object.assign(message, stored);
    const isComplete = isLonger && message.finish === "stop";
    if (!isElsewhere && !isComplete && !check.isStopped) return this.#run(message);
    if (!isLonger && error) message.error = error;
    this.#end(check);
    this.page.ended(message);
    if (isElsewhere) {
      const advice = "Wait until it is complete, or stop it there.";
      this.page.failed(new Problem("Another tab is receiving this answer.", advice));
    }
    return null;
  }

  turn(message, step) {
    if (!this.#conversation.turn(message, step)) return;
    this.page.draw(this.#conversation);
    this.save();
  }

  stop() { this.#answering?.stop(); }

  #answer(question, content = "", tokens = []) {
    this.stop();
    const message = this.#conversation.append(question, "assistant", content);
    message.tokens = tokens;
    return this.#run(message);
  }

  #begin(conversation, message) {
    delete message.error;
    message.isRunning = true;
    this.page.draw(conversation);
    this.page.running(true);
  }

  #end(answering) {
    delete answering.message.isRunning;
    if (this.#answering !== answering) return;
    this.#answering = null;
    this.page.running(false);
  }

  async #run(message) {
    this.stop();
    const conversation = this.#conversation;
    const body = requestFor(conversation, message, this.settings, this.page.model());
    const answering = new Answering(this.api, message, {
      grew: () => this.page.grew(message),
      save: () => this.save(conversation, [message]),
    });
    this.#answering = answering;
    this.#begin(conversation, message);
    this.save(conversation, [message]);  // a reload before the first token finds it
    await answering.run(body);
    conversation.updated = Date.now();
    this.#end(answering);
    this.page.ended(message, answering.model);
    await this.save(conversation, [message]);
  }
}
