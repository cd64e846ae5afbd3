// What a person can set, kept in the browser, and the dialog that shows it.
import {element} from "./element.js";

const KEY = "limpid.settings";

// A sampler that is left empty is the server's choice, and its field shows what that is (`default`:
// its name in /props).
const SAMPLERS = [
  {
    name: "temperature",
    label: "Temperature",
    help: "0 always takes the likeliest token",
    min: 0,
    step: "any"
  },
  {name: "top_k", label: "Top k", help: "only the k likeliest tokens; 0: all", min: 0, step: 1},
  {
    name: "top_p",
    label: "Top p",
    help: "only the likeliest that together have probability p",
    min: 0,
    max: 1,
    step: "any"
  },
  {
    name: "min_p",
    label: "Min p",
    help: "only tokens at least p times as likely as the likeliest",
    min: 0,
    max: 1,
    step: "any"
  },
  {
    name: "repeat_penalty",
    label: "Repeat penalty",
    help: "above 1: less of what was just said; 1: off",
    min: 0.001,
    max: 1000,
    step: "any"
  },
  {
    name: "repeat_last_n",
    label: "Repeat window",
    help: "tokens that the penalty looks back",
    min: -1,
    step: 1
  },
  {name: "presence_penalty", label: "Presence penalty", help: "", step: "any"},
  {name: "frequency_penalty", label: "Frequency penalty", help: "", step: "any"},
  {name: "seed", label: "Seed", help: "the same seed, the same answer", min: 0, step: 1},
  {
    name: "max_tokens",
    label: "Longest answer",
    help: "in tokens",
    min: 1,
    step: 1,
    default: "n_predict"
  },
];

const DEFAULTS = {
  apiKey: "",
  system: "",
  model: "",
  alternatives: 5,
  tint: false,
  theme: "",
  keys: true
};

// What the browser keeps now.
function read() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return typeof kept === "object" && kept !== null ? kept : {};
  } catch {
    return {};
  }
}

export class Settings {
  #values = read();

  get(name) {
    const value = this.#values[name];
    return typeof value === typeof DEFAULTS[name] ? value : DEFAULTS[name];
  }

  // Leaves the others as they are kept: another tab may have changed them.
  set(name, value) {
    if (value === (this.#values[name] ?? DEFAULTS[name] ?? null)) return;
    this.#values[name] = value;
    try {
      localStorage.setItem(KEY, JSON.stringify({...read(), [name]: value}));
    } catch {
      // Kept until the page is closed.
    }
  }

  // The samplers that a person has set, as a request has them.
  samplers() {
    const samplers = {};
    for (const {name} of SAMPLERS) {
      const value = this.#values[`sampler.${name}`];
      if (Number.isFinite(value)) samplers[name] = value;
    }
    return samplers;
  }

  setSampler(name, value) { this.set(`sampler.${name}`, value); }
}

function field(name, label, help, input) {
  input.id = `setting-${name}`;
  const row = element(
      "div", {className: "field"}, element("label", {textContent: label, htmlFor: input.id}),
      input);
  if (help) {
    const id = `hint-${name}`;
    input.setAttribute("aria-describedby", id);
    row.append(element("small", {id, textContent: help}));
  }
  return row;
}

export class SettingsDialog {
  // `conversation()` is the one whose system prompt is shown; `changed()` is called after a change.
  constructor({dialog, settings, conversation, changed}) {
    Object.assign(this, {dialog, settings, conversation, changed});
    dialog.addEventListener("close", () => dialog.returnValue === "keep" && this.#keep());
    dialog.querySelector("#settings-defaults").addEventListener("click", () => this.#empty());
  }

  open(models, defaults) {
    const {settings} = this;
    const fields = this.dialog.querySelector("#settings-fields");
    const system = element("textarea", {rows: 3, dir: "auto", value: this.conversation().system});
    const key =
        element("input", {type: "password", autocomplete: "off", value: settings.get("apiKey")});
    const others =
        element("input", {type: "number", min: 0, max: 20, value: settings.get("alternatives")});
    const keys = element("input", {type: "checkbox", checked: settings.get("keys")});
    fields.replaceChildren(
        field("system", "System prompt", "of this conversation, and of new ones", system),
        ...(models.length > 1 ? [this.#models(models)] : []),
        field("apiKey", "API key", "kept in this browser, sent to this server only", key),
        ...SAMPLERS.map((sampler) => this.#sampler(sampler, defaults)),
        field(
            "alternatives", "Alternatives", "for each word; 0 saves the server a little work",
            others),
        field(
            "keys", "Shortcuts of one letter", "n, e, r and others, outside of text fields", keys),
    );
    this.dialog.returnValue = "";
    this.dialog.showModal();
  }

  #models(models) {
    const choice = element("select", {}, ...models.map((id) => new Option(id, id)));
    choice.value =
        models.includes(this.settings.get("model")) ? this.settings.get("model") : models[0];
    return field("model", "Model", "", choice);
  }

  #sampler({name, label, help, min, max, step, default: source}, defaults) {
    const value = this.settings.samplers()[name];
    const usual = defaults[source ?? name];
    const input =
        element("input", {type: "number", step, value: value ?? "", className: "sampler"});
    if (min !== undefined) input.min = min;
    if (max !== undefined) input.max = max;
    input.placeholder =
        Number.isFinite(usual) ? String(Math.round(usual * 1e4) / 1e4) : "the server's";
    if (name === "max_tokens" && usual < 0) input.placeholder = "no limit";
    if (name === "seed" && (usual < 0 || usual === 0xffffffff)) input.placeholder = "random";
    return field(name, label, help, input);
  }

  #input(name) { return this.dialog.querySelector(`#setting-${name}`); }

  #empty() {
    for (const {name} of SAMPLERS) this.#input(name).value = "";
    this.#input("system").value = this.#input("apiKey").value = "";
    this.#input("alternatives").value = DEFAULTS.alternatives;
    this.#input("keys").checked = DEFAULTS.keys;
  }

  #keep() {
    const {settings} = this;
    for (const {name} of SAMPLERS) {
      const {value, valueAsNumber} = this.#input(name);
      settings.setSampler(name, value === "" ? null : valueAsNumber);
    }
    const others = this.#input("alternatives").valueAsNumber;
    settings.set("alternatives", Number.isFinite(others) ? others : DEFAULTS.alternatives);
    settings.set("apiKey", this.#input("apiKey").value.trim());
    settings.set("keys", this.#input("keys").checked);
    settings.set("system", this.#input("system").value);
    this.conversation().system = this.#input("system").value;
    if (this.#input("model")) settings.set("model", this.#input("model").value);
    this.changed();
  }
}
