// Elements of the page, made in one expression.

// `properties` are the element's own, as textContent; those with a hyphen, and "role", are
// attributes. A child is an element or a text.
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role") made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children);
  return made;
}

// A button that does not end a form. `properties` as above.
export function button(textContent, onClick, properties = {}) {
  const made = element("button", {type: "button", textContent, ...properties});
  made.addEventListener("click", onClick);
  return made;
}
