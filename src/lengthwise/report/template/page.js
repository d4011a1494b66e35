// The copy button. Everything else on the page works without a script.
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
      select(); // the browser refuses: the reader can copy the selected code by a key
      button.textContent = "Selected";
    }
  });
  block.prepend(button);
}
