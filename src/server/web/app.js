// The page: puts its parts together.
import {Alternatives} from "./alternatives.js";
import {messagesBefore} from "./answering.js";
import {Api} from "./api.js";
import {ask} from "./asking.js";
import {button, element} from "./element.js";
import {Session} from "./session.js";
import {Settings, SettingsDialog} from "./settings.js";
import {fillHelp, listenForKeys} from "./shortcuts.js";
import {Sidebar} from "./sidebar.js";
import {Store} from "./store.js";
import {Tint} from "./surprise.js";
import {Tabs} from "./tabs.js";
import {Transcript} from "./transcript.js";
import {fromJson, save, toJson} from "./transfer.js";
import {Why} from "./why.js";

const $ = (id) => document.getElementById(id);
const LAST = "limpid.last";  // the conversation of the last visit

const settings = new Settings();
const api = new Api(settings);
const store = new Store();
const tint = Tint.isSupported ? new Tint($("scroller")) : null;
const ASK_AGAIN = 2000;  // ms until a server that loads its model is asked again
let models = [];
let defaults = {};
let told = "";  // what connect() has told; "": nothing, or it is settled
let again = 0;  // the timer of connect()

// --- Notices ---

function tell(error) {
  const notice = $("notice");
  const close = button("✕", (event) => {
    notice.hidden = true;
    goOn(event);
  }, {"aria-label": "Close this message"});
  notice.replaceChildren(
      element("strong", {textContent: error.message}), ` ${error.advice ?? ""} `, close);
  notice.hidden = false;
}

// A button that was pressed with the keyboard is gone: the question has the focus.
function goOn({detail}) {
  if (detail === 0) $("question").focus({preventScroll: true});
}

// Screen readers hear an answer block by block, as each is complete.
function say(text) {
  $("spoken").append(element("p", {textContent: text}));
  while ($("spoken").children.length > 20) $("spoken").firstChild.remove();
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    $("spoken-word").textContent = "Copied.";
  } catch {
    tell({
      message: "The browser does not let the page copy.",
      advice: "Select the text and copy it with the keyboard."
    });
  }
}

// --- The conversation ---

const page = {
  draw(conversation) {
    alternatives.hide();
    transcript.show(conversation);
    $("welcome").hidden = conversation.messages.size > 0;
    drawTitle(conversation);
    for (const id of ["rename", "export", "delete"])
      $(id).hidden = conversation.messages.size === 0;
    transcript.goToEnd();
    list();
  },
  grew: (message) => transcript.viewOf(message)?.grow(),
  // `model` answered, if the server said which.
  ended(message, model) {
    // The server may have other models now.
    if (message.error?.status === 404 || (model && model !== page.model())) connect();
    const view = transcript.viewOf(message);
    if (!view) return;
    view.draw(true);
    transcript.drawFoot(session.conversation, view);
    transcript.settle();
    if (message.error) say(`${message.error.message} ${message.error.advice}`);
    if (message.error?.status === 401) openSettings();
  },
  running(isRunning) {
    const losesFocus = [document.body, $("stop")].includes(document.activeElement);
    $("send").hidden = isRunning;
    $("stop").hidden = !isRunning;
    $("transcript").setAttribute("aria-busy", String(isRunning));
    if (!isRunning && losesFocus) $("question").focus({preventScroll: true});
  },
  saved: () => list(),
  failed: tell,
  model: () => (models.includes(settings.get("model")) ? settings.get("model") : models[0]),
};

function drawTitle({title}) {
  $("title").textContent = title || "New conversation";
  document.title = `${title || "New conversation"} – Limpid`;
}

const tabs = new Tabs({receives: (id) => session.receives(id), saved: () => list()});
const session = new Session({api, store, settings, tabs, page});

const transcript = new Transcript({
  root: $("transcript"),
  scroller: $("scroller"),
  toEnd: $("to-end"),
  tint,
  actions: {
    copy,
    say,
    edit(view, text) {
      session.edit(view.message, text);
      if (!view.isUser) transcript.views.at(-1).focusButton("Edit");
    },
    regenerate: (view) => session.regenerate(view.message),
    resume: (view) => session.resume(view.message),
    why: ({message}) => why.show({
      messages: messagesBefore(session.conversation, message),
      answer: message.content,
      model: page.model(),
    }),
    turn(view, step) {
      const index = transcript.views.indexOf(view);
      session.turn(view.message, step);
      // The version that is shown now has the focus where the other had it.
      const buttons = step < 0 ? ["‹", "›"] : ["›", "‹"];
      buttons.some((text) => transcript.views[index].focusButton(text));
    },
  },
});

const why = new Why({dialog: $("why"), api});
$("why-close").addEventListener("click", () => $("why").close());

const alternatives = new Alternatives({
  box: $("alternatives"),
  root: $("transcript"),
  scroller: $("scroller"),
  viewOf: (element) => transcript.views.find((view) => view.body === element),
  branch: (view, token, text, logprob) => session.branch(view.message, token, text, logprob),
  say: (text) => ($("spoken-word").textContent = text),
});

// --- The list of conversations ---

const sidebar = new Sidebar({
  element: $("sidebar"),
  list: $("conversations"),
  room: $("room"),
  shade: $("shade"),
  opener: $("open-sidebar"),
  closer: $("close-sidebar"),
  async open(id) {
    if (!(await session.open(id))) {
      tell({message: "This conversation was deleted in another tab."});
      list();
    }
    sidebar.turn(false);
    $("question").focus();
  },
});

// The id of the conversation of the last visit, if there was one and the browser keeps it.
function lastId() {
  try {
    return sessionStorage.getItem(LAST);
  } catch {
    return null;
  }
}

async function list() {
  const {id, messages} = session.conversation;
  try {
    sessionStorage.setItem(LAST, messages.size > 0 ? id : "");
  } catch {
    // The browser keeps nothing: the next visit begins with a new conversation.
  }
  const records = await store.list();
  const shown = session.conversation;
  // Another tab may have renamed it.
  const stored = records.find((record) => record.id === shown.id);
  if (stored) shown.takeTitle(stored.title);
  drawTitle(shown);
  sidebar.draw(records, shown.id);
}

function begin() {
  session.begin();
  sidebar.turn(false);
  $("question").focus();
}

async function rename() {
  const {conversation} = session;
  const title = await ask(
      $("ask"), {title: "Rename the conversation", yes: "Rename", value: conversation.title});
  if (typeof title !== "string") return;
  conversation.title = title.slice(0, 200);
  await session.save();
  page.draw(conversation);
}

async function remove() {
  const {conversation} = session;
  const text = `“${conversation.title}” and all its messages.`;
  if (!(await ask($("ask"), {title: "Delete the conversation?", text, yes: "Delete"}))) return;
  conversation.isDeleted = true;
  session.begin();
  await store.remove(conversation.id);
  tabs.tellSaved(conversation.id);
  await list();
  $("question").focus();
}

// The conversation that is shown may not be kept, as in a browser that keeps nothing.
async function exportAll() {
  const shown = session.conversation;
  const others = (await store.list()).filter(({id}) => id !== shown.id);
  const all = await Promise.all(others.map(({id}) => store.load(id)));
  save("conversations", toJson(shown.messages.size > 0 ? [shown, ...all] : all));
}

async function importFile(file) {
  try {
    const conversations = fromJson(await file.text());
    for (const conversation of conversations) await session.save(conversation);
    if (conversations.length > 0) session.show(conversations[0]);
  } catch (error) {
    tell({message: error.message, advice: "Choose a file that this page has exported."});
  }
}

// --- Controls ---

function send() {
  const text = $("question").value;
  if (!text.trim() || session.isRunning) return;
  $("question").value = "";
  fit();
  $("notice").hidden = true;
  session.ask(text);
}

// The field is as high as its text, up to a part of the window.
function fit() {
  const field = $("question");
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight + 2, innerHeight * 0.4)}px`;
}

function turnTint(isOn = !settings.get("tint")) {
  settings.set("tint", isOn);
  $("tint").setAttribute("aria-pressed", String(isOn));
  tint?.turn(isOn, transcript.views);
}

function turnTheme() {
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ?? (isDark ? "dark" : "light");
  settings.set("theme", now === "dark" ? "light" : "dark");
  document.documentElement.dataset.theme = settings.get("theme");
}

const settingsDialog = new SettingsDialog({
  dialog: $("settings"),
  settings,
  conversation: () => session.conversation,
  changed() {
    if (session.conversation.messages.size > 0) session.save();
    connect();
  },
});

function openSettings() {
  if (!$("settings").open) settingsDialog.open(models, defaults);
}

const lastView = (test) => transcript.views.findLast(test);

function words() {
  const view = lastView(({isUser, message}) => !isUser && message.tokens?.length > 0);
  view?.body.focus();
  view?.body.dispatchEvent(new KeyboardEvent("keydown", {key: "Home", bubbles: true}));
}

const turnLast = (step) => {
  const view = lastView(({message}) => session.conversation.siblings(message).length > 1);
  if (view) session.turn(view.message, step);
};

listenForKeys(settings, {
  escape() {
    if (alternatives.isOpen) alternatives.hide();
    else if (session.isRunning) session.stop();
    else document.activeElement?.blur();
  },
  write: () => $("question").focus(),
  begin,
  regenerate() {
    const view = lastView(({isUser}) => !isUser);
    if (view) session.regenerate(view.message);
  },
  edit: () => lastView(({isUser}) => isUser)?.edit(),
  before: () => turnLast(-1),
  after: () => turnLast(1),
  words,
  tint: () => turnTint(),
  list() {
    sidebar.turn(true);
    sidebar.focus();
  },
  settings: openSettings,
  help: () => $("help").showModal(),
});

function listen() {
  const clicks = {
    "new-conversation": begin,
    rename,
    delete: remove,
    export: () => save(session.conversation.title, toJson([session.conversation])),
    "export-all": exportAll,
    import: () => $("import-file").click(),
    tint: () => turnTint(),
    theme: turnTheme,
    "open-settings": openSettings,
    "open-help": () => $("help").showModal(),
    stop: () => session.stop(),
  };
  for (const [id, action] of Object.entries(clicks)) $(id).addEventListener("click", action);
  $("import-file").addEventListener("change", async ({target}) => {
    if (target.files[0]) await importFile(target.files[0]);
    target.value = "";
  });
  $("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  $("to-end").addEventListener("click", goOn);
  $("question").addEventListener("input", fit);
  $("question").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
}

// --- Start ---

// Asks for the model, again and again while the server loads it or is not there yet.
async function connect() {
  clearTimeout(again);
  try {
    models = await api.models();
    defaults = await api.defaults(page.model());
    if (told) $("notice").hidden = true;
    told = "";
    $("model").textContent = page.model() ?? "";
    $("model").title = page.model() ?? "";
  } catch (error) {
    const waits = error.status === 503 || error.status === 0;
    // The notice about waiting is shown once: it may have been closed since.
    if (!waits || error.message !== told) tell(error);
    told = error.message;
    if (waits) again = setTimeout(connect, ASK_AGAIN);
    if (error.status === 401) openSettings();
  }
}

async function start() {
  fillHelp($("help-keys"));
  listen();
  $("tint").hidden = tint === null;
  turnTint(settings.get("tint"));
  const keeps = await store.open();
  const last = lastId();
  if (!last || !(await session.open(last))) session.begin();
  if (!keeps) {
    tell({
      message: "This browser keeps no conversations for the page.",
      advice: "Export what you want to keep."
    });
  }
  await connect();
}

start();
