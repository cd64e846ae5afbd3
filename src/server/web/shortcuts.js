// Keys of the whole page. One list holds what they do and what the help says of them.
import {element} from "./element.js";

// `actions`: name -> function. Letters work outside of text fields, and can be turned off in
// Settings.
const KEYS = [
  {keys: "Enter", help: "send the question; Shift+Enter begins a new line"},
  {keys: "Esc", help: "stop the answer; leave a field or a dialog"},
  {keys: "/", help: "write a question", action: "write"},
  {keys: "n", help: "new conversation", action: "begin"},
  {keys: "r", help: "another answer to the last question", action: "regenerate"},
  {keys: "e", help: "edit the last question", action: "edit"},
  {keys: "[", help: "the previous version of the last message that has several", action: "before"},
  {keys: "]", help: "the next version of it", action: "after"},
  {
    keys: "w",
    help: "go through the words of the last answer: ← and →, then ↓ for the alternatives",
    action: "words"
  },
  {keys: "s", help: "colour words by surprise", action: "tint"},
  {keys: "c", help: "list of conversations", action: "list"},
  {keys: ",", help: "settings", action: "settings"},
  {keys: "?", help: "this list", action: "help"},
];

function isField(target) {
  return target.closest?.("textarea, select, [contenteditable]") ||
      target.matches?.("input:not([type=checkbox])");
}

export function listenForKeys(settings, actions) {
  const byKey = new Map(KEYS.filter(({action}) => action).map(({keys, action}) => [keys, action]));
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]"))
      return;
    if (event.key === "Escape") {
      actions.escape();
      return;
    }
    // AltGr, with which many keyboards write [ and ], counts as Ctrl and Alt on Windows.
    const isCommand = (event.ctrlKey || event.altKey) && !event.getModifierState("AltGraph");
    if (isCommand || event.metaKey || isField(event.target) || !settings.get("keys")) return;
    const action = byKey.get(event.key);
    if (!action) return;
    event.preventDefault();
    actions[action]();
  });
}

export function fillHelp(body) {
  body.replaceChildren(
      ...KEYS.map(
          ({keys, help}) => element(
              "tr", {}, element("th", {scope: "row"}, element("kbd", {textContent: keys})),
              element("td", {textContent: help}))),
  );
}
