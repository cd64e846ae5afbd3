// The colours, before the first picture: the choice of the last visit, or what the system says.
// A classic script, because modules run only once the page has been shown.
"use strict";

{
  let theme = null;
  try {
    theme = JSON.parse(localStorage.getItem("limpid.settings") ?? "{}").theme;
  } catch {
    // No storage, or broken settings: the system's colours.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}
