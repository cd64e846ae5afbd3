// A dialog that asks for a yes, or for a text.
export function ask(dialog, {title, text = "", yes, value = null}) {
  const [input, button] = [dialog.querySelector("#ask-input"), dialog.querySelector("#ask-yes")];
  dialog.querySelector("#ask-title").textContent = title;
  dialog.querySelector("#ask-text").textContent = text;
  button.textContent = yes;
  input.hidden = value === null;
  input.value = value ?? "";
  // The first button of a form is the one that Enter presses.
  input.onkeydown = (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    button.click();
  };
  dialog.returnValue = "";
  dialog.showModal();
  if (value !== null) input.select();
  return new Promise((resolve) => {
    dialog.addEventListener(
        "close",
        () => resolve(dialog.returnValue === "yes" ? input.value.trim() || true : null),
        {once: true},
    );
  });
}
