"use strict";
// What the scripts of all pages share: each page's own script follows.

const find = (id) => document.getElementById(id);

// Numbers in base64.
function unpack(text, Type) {
  return new Type(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
}

// An element. Text is always set as text, so nothing that a model or a file says becomes markup.
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element && name !== "role") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
function drawn(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}
