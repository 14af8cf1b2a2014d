"use strict";
for (const form of document.querySelectorAll("form.filters")) {
  const items = [...form.nextElementSibling.querySelectorAll("details.item")];
  const texts = new Map(items.map((each) => [each, each.textContent.toLowerCase()]));
  const { text, status, group, open } = form.elements;
  const output = form.querySelector("output");
  const apply = () => {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const each of items) {
      const fits = (!status.value || each.dataset.status === status.value) &&
        (!group.value || each.dataset.group === group.value) && words.every((word) => texts.get(each).includes(word));
      each.hidden = !fits;
      shown += fits;
    }
    open.textContent = items.some((each) => !each.hidden && !each.open) ? "Open all" : "Close all";
    output.textContent = `${shown} of ${items.length} shown`;
  };
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  open.addEventListener("click", () => {
    const all = items.filter((each) => !each.hidden);
    const opening = all.some((each) => !each.open);
    for (const each of all) each.open = opening;
    apply();
  });
  form.hidden = false;
  apply();
}
for (const box of document.querySelectorAll(".command")) {
  if (!navigator.clipboard) break;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(box.querySelector("code").textContent);
    button.textContent = "Copied";
  });
  box.append(button);
}
