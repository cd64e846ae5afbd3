// A conversation is a tree of messages: an edit or a new answer is a sibling of the old one.
//
// Example: q1 ── a1 ── q2 ── a2
//            └── a1'            (a1 again; "2/2" where the two meet)
// `choices` says which child of a message is shown: {"": q1, q1: a1'}.

const ROOT = "";

export function newId() {
  return crypto.getRandomValues(new Uint32Array(3))
      .reduce((id, part) => id + part.toString(36).padStart(7, "0"), "");
}

export class Conversation {
  constructor(record = {}) {
    this.id = record.id ?? newId();
    this.title = record.title ?? "";
    this.created = record.created ?? Date.now();
    this.updated = record.updated ?? this.created;
    this.system = record.system ?? "";
    this.isDeleted = false;  // true: an answer that is still under way is not stored any more
    this.choices = {...record.choices};
    this.kept = this.record();  // as it was read or written last
    this.messages = new Map();
    this.children = new Map();  // id of a message or ROOT -> ids, in the order of their making
  }

  // What is stored of it beside the messages.
  record() {
    const {id, title, created, updated, system, choices} = this;
    return {id, title, created, updated, system, choices: {...choices}};
  }

  // The title that another tab has given it, unless this tab is about to keep one of its own.
  takeTitle(title) {
    if (this.title === this.kept.title) this.title = this.kept.title = title;
  }

  // `message`: {id, parent, role, content, ...}; its parent was added before it.
  add(message) {
    this.messages.set(message.id, message);
    const siblings = this.children.get(message.parent) ?? [];
    siblings.push(message.id);
    this.children.set(message.parent, siblings);
    return message;
  }

  // A new message below `parent` (null: at the beginning), which is shown from now on.
  append(parent, role, content) {
    const above = parent?.id ?? ROOT;
    const message = this.add({id: newId(), parent: above, role, content, time: Date.now()});
    this.choices[above] = message.id;
    this.updated = message.time;
    return message;
  }

  parentOf(message) { return this.messages.get(message.parent) ?? null; }

  siblings(message) { return this.children.get(message.parent).map((id) => this.messages.get(id)); }

  // Shows the sibling `step` places after the message (-1: before it), if there is one.
  turn(message, step) {
    const ids = this.children.get(message.parent);
    const id = ids[ids.indexOf(message.id) + step];
    if (id !== undefined) this.choices[message.parent] = id;
    return id !== undefined;
  }

  // The messages that are shown, from the first to the last.
  path() {
    const path = [];
    for (let above = ROOT; this.children.has(above);) {
      const ids = this.children.get(above);
      const id = ids.includes(this.choices[above]) ? this.choices[above] : ids[ids.length - 1];
      path.push(this.messages.get(id));
      above = id;
    }
    return path;
  }

  // From the first message to this one.
  pathTo(message) {
    const path = [];
    for (let at = message; at; at = this.parentOf(at)) path.unshift(at);
    return path;
  }
}
