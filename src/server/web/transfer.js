// Conversations as a JSON file, and back. A file comes from anywhere: nothing in it is believed.
import {Conversation, newId} from "./tree.js";

const FORMAT = "limpid-conversations";
const VERSION = 1;

export function toJson(conversations) {
  const all = conversations.map((conversation) => ({
                                  ...conversation.record(),
                                  messages: [...conversation.messages.values()].map((message) => {
                                    const {conversation: _, order, isRunning, ...kept} = message;
                                    return kept;
                                  }),
                                }));
  return JSON.stringify({format: FORMAT, version: VERSION, conversations: all});
}

export function save(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], {type: "application/json"}));
  link.download =
      `${name.replace(/[^\p{L}\p{N} _-]+/gu, "").trim().slice(0, 60) || "conversations"}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const text = (value, fallback = "") => (typeof value === "string" ? value : fallback);
const number = (value, fallback) => (Number.isFinite(value) ? value : fallback);

function need(condition, message) {
  if (!condition) throw new Error(message);
}

function tokensOf(value, length) {
  if (!Array.isArray(value)) return [];
  const tokens = [];
  let at = 0;
  for (const token of value) {
    const isPlaced = Number.isInteger(token?.start) && Number.isInteger(token.end);
    if (!isPlaced || token.start < at || token.end <= token.start || token.end > length) continue;
    const others =
        (Array.isArray(token.others) ? token.others : [])
            .filter((other) => Array.isArray(other) && Number.isFinite(other[1]))
            .map(([shown, logprob]) => [typeof shown === "string" ? shown : null, logprob]);
    tokens.push({start: token.start, end: token.end, logprob: number(token.logprob, 0), others});
    at = token.end;
  }
  return tokens;
}

function conversationOf(value) {
  need(
      isObject(value) && Array.isArray(value.messages),
      "A conversation of the file has no messages.");
  const ids =
      new Map([["", ""]]);  // the file's -> new ones, so that nothing that is there is overwritten
  const conversation = new Conversation({
    title: text(value.title).slice(0, 200),
    created: number(value.created),
    updated: number(value.updated),
    system: text(value.system),
  });
  for (const message of value.messages) {
    need(isObject(message) && typeof message.id === "string", "A message of the file has no id.");
    need(
        message.role === "user" || message.role === "assistant",
        "A message of the file has an unknown role.");
    need(ids.has(message.parent), "A message of the file comes before the one that it answers.");
    const id = newId();
    ids.set(message.id, id);
    const content = text(message.content);
    conversation.add({
      id,
      parent: ids.get(message.parent),
      role: message.role,
      content,
      time: number(message.time, 0),
      finish: message.role === "user"                 ? null :
          ["stop", "length"].includes(message.finish) ? message.finish :
                                                        "stopped",
      tokens: tokensOf(message.tokens, content.length),
      stats: isObject(message.stats) ? {
        speed: number(message.stats.speed, 0),
        tokens: number(message.stats.tokens, 0),
        wait: 0
      } :
                                       null,
    });
  }
  for (const [parent, child] of Object.entries(isObject(value.choices) ? value.choices : {})) {
    if (ids.has(parent) && ids.has(child)) conversation.choices[ids.get(parent)] = ids.get(child);
  }
  return conversation;
}

// The conversations of a file, or an Error that says what is wrong with it.
export function fromJson(source) {
  let value = null;
  try {
    value = JSON.parse(source);
  } catch {
    need(false, "The file is not JSON.");
  }
  need(
      isObject(value) && value.format === FORMAT,
      "The file does not hold conversations of this page.");
  need(value.version === VERSION, "The file was written by a newer version of this page.");
  need(Array.isArray(value.conversations), "The file has no conversations.");
  return value.conversations.map(conversationOf);
}
