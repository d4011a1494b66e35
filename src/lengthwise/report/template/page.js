// The copy button, which is of no use without a script. All else on the page works without one.
for (const block of document.querySelectorAll(".code")) {
  const text = block.querySelector("code");
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  const select = () => getSelection().selectAllChildren(text);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch {
      select(); // a browser that lets no page write to the clipboard: one key copies what is selected
      button.textContent = "Selected";
    }
  });
  block.prepend(button);
}
