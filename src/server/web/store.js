// Where conversations are kept: IndexedDB, one record a conversation and one a message, so that
// a new message writes itself and not the whole conversation. Of a conversation's record a tab
// writes what it has changed, so that it undoes nothing of another tab.
import {Conversation} from "./tree.js";

function done(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function open() {
  const request = indexedDB.open("limpid", 1);
  request.onupgradeneeded = () => {
    request.result.createObjectStore("conversations", {keyPath: "id"});
    request.result.createObjectStore("messages", {keyPath: ["conversation", "id"]});
  };
  return done(request);
}

// What is in `record`, and was not in `before`.
const changed = (before, record) =>
    Object.fromEntries(Object.entries(record).filter(([key, value]) => before[key] !== value));

// `stored` with the changes that made `record` of `before`.
const merged = (stored, before, record) => ({
  ...stored,
  ...changed(before, record),
  choices: {...stored.choices, ...changed(before.choices, record.choices)},
});

// All messages of a conversation, by their key.
const messagesOf = (id) => IDBKeyRange.bound([id], [id, []]);

export class Store {
  #database = null;
  #isCleared = false;  // the browser has removed what it kept, and the database with it

  // False where the browser keeps nothing, as in some private windows; everything else then does
  // nothing.
  async open() {
    try {
      this.#database = await open();
      this.#database.onversionchange = () => this.#database.close();
      this.#database.onclose = () => (this.#isCleared = true);
    } catch {
      this.#database = null;
    }
    return this.#database !== null;
  }

  async #transaction(mode) {
    if (this.#isCleared) this.#isCleared = !(await this.open());
    return this.#database?.transaction(["conversations", "messages"], mode) ?? null;
  }

  // The records of the conversations, the newest first.
  async list() {
    const transaction = await this.#transaction("readonly");
    if (!transaction) return [];
    const records = await done(transaction.objectStore("conversations").getAll());
    return records.sort((a, b) => b.updated - a.updated);
  }

  async load(id) {
    const transaction = await this.#transaction("readonly");
    if (!transaction) return null;
    const [record, messages] = await Promise.all([
      done(transaction.objectStore("conversations").get(id)),
      done(transaction.objectStore("messages").getAll(messagesOf(id))),
    ]);
    if (!record) return null;
    const conversation = new Conversation(record);
    // Ids are random, and a parent is older than its children; siblings keep their order.
    messages.sort((a, b) => a.order - b.order);
    for (const message of messages) {
      // An answer without an end: the page was closed in the middle of it.
      if (message.role === "assistant" && !message.finish && !message.error)
        message.finish = "stopped";
      conversation.add(message);
    }
    return conversation;
  }

  // Writes what is kept of the conversation beside its messages, and those of `messages`: all of
  // them if it is new here, or was deleted in another tab.
  async save(conversation, messages = []) {
    const transaction = await this.#transaction("readwrite");
    if (!transaction) return;
    const ended = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error);
    });
    const all = [...conversation.messages.values()];
    const order = new Map(all.map(({id}, index) => [id, index]));
    const records = transaction.objectStore("conversations");
    const store = transaction.objectStore("messages");
    const record = conversation.record();
    const before = conversation.kept;
    const known = records.get(conversation.id);
    known.onsuccess = () => {
      for (const {isRunning, ...message} of known.result ? messages : all)
        store.put({...message, conversation: conversation.id, order: order.get(message.id)});
      records.put(known.result ? merged(known.result, before, record) : record);
    };
    await ended;
    conversation.kept = record;
  }

  async remove(id) {
    const transaction = await this.#transaction("readwrite");
    if (!transaction) return;
    transaction.objectStore("messages").delete(messagesOf(id));
    await done(transaction.objectStore("conversations").delete(id));
  }
}
