// Requests: only with a token that permits them, by POST; the run's leader follows what is filed.
const control = byId("control");
const pace = byId("pace");
const PACES = [
  ["chunk_rows", "rows of a chunk; 0: by its time"],
  ["delay_s", "seconds between chunks"],
  ["p95_s", "bound of 95% of reads, s; 0: none"],
  ["workers", "chunks at the same time; 0: as configured"],
  ["active_sessions", "sessions of others; 0: as configured"],
  ["replica_lag_s", "lag of a replica, s; 0: as configured"],
  ["share", "share of the time, 0 to 1; 0: as configured"],
];
const STEPS = { running: ["pause", "cancel"], paused: ["resume", "cancel"], done: ["restart"], failed: ["restart"], cancelled: ["restart"] };
let paceNow = null;

for (const [name, label] of PACES) {
  const input = element("input");
  input.name = name;
  input.inputMode = "decimal";
  const field = element("label", "", label);
  field.append(input);
  byId("pace-fields").append(field);
}

function sure(words) {
  const dialog = byId("sure");
  put(byId("sure-words"), words);
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
    dialog.returnValue = "";
    dialog.showModal();
  });
}

async function request(document, words) {
  const answer = byId("requests-answer");
  const token = control.elements.token.value.trim();
  if (!token) {
    answer.className = "refused";
    put(answer, "Refused: give the token that permits requests first.");
    control.elements.token.focus();
    return;
  }
  if (words && !(await sure(words))) return;
  answer.className = "";
  put(answer, "Asking…");
  try {
    const found = await fetch("/requests", {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
      body: JSON.stringify({ ...document, reason: control.elements.reason.value }),
      cache: "no-store",
      credentials: "same-origin",
      signal: AbortSignal.timeout(60000),
    });
    const said = await found.json();
    answer.className = found.ok && !said.warning ? "" : "refused";
    if (found.ok) put(answer, `Done: ${said.done}${said.warning ? `. But ${said.warning}` : ""}`, 1000);
    else put(answer, `Refused: ${[said.error, said.cause, said.remedy].filter(Boolean).join(". ")}`, 1000);
  } catch (error) {
    answer.className = "refused";
    put(answer, `No answer: nobody knows whether it was done (${error.name}). Look at the list below, and at migrator dump list.`);
  }
}

function takeRequests(live) {
  const may = live.control;
  for (const form of [control, byId("start"), pace]) hide(form, !may);
  const off = "Nothing can be asked for here: [observe] names no control_token. migrator dump does the same on the machine.";
  put(byId("requests-words"), live.requests === null ? "Dump requests can't be read." : may ? "Each is kept in migrator history. The first dump and the run itself can't be paused, only slowed by the pace." : off, 400);
  const known = live.requests || [];
  const list = keyed(byId("requests-list"), known.map((one) => one.id), (id) => requestItem(id));
  for (const one of known) fillRequest(list.get(one.id), one, may);
  if (live.pace) takePace(live.pace);
}

function requestItem(id) {
  const item = element("li");
  const buttons = element("p", "fields");
  item.append(element("b", "", id), element("span"), buttons);
  return item;
}

function fillRequest(item, one, may) {
  const tables = one.tables.slice(0, 5).join(", ") + (one.tables.length > 5 ? ` and ${one.tables.length - 5} more` : "");
  const rows = one.rows ? `; ${count(one.rows)}${one.estimated_rows ? ` of about ${count(one.estimated_rows)}` : ""} rows, ${one.tables_done} of ${one.tables.length} tables read` : "";
  put(item.children[1], ` ${one.state}: ${tables}: ${one.scope}${rows}${one.reason ? `; ${one.reason}` : ""}`, 1000);
  const steps = may ? STEPS[one.state] || [] : [];
  keyed(item.children[2], steps, (step) => {
    const button = element("button", "", step);
    button.type = "button";
    button.setAttribute("aria-label", `${step} ${one.id}`);
    const words = { cancel: `End ${one.id} where it is? What it brought stays.`, restart: `Begin ${one.id} anew?` }[step];
    button.addEventListener("click", () => request({ act: step, request: one.id }, words));
    return button;
  });
}

function takePace(settings) {
  for (const [name] of PACES) {
    const input = pace.elements[name];
    const untouched = paceNow === null || input.value === String(paceNow[name]);
    if (untouched && document.activeElement !== input) input.value = String(settings[name]);
  }
  paceNow = settings;
}

control.addEventListener("submit", (event) => event.preventDefault());
byId("start").addEventListener("submit", (event) => {
  event.preventDefault();
  const tables = event.target.elements.tables.value.split("\n").map((line) => line.trim()).filter(Boolean);
  request({ act: "start", tables }, tables.length ? `Dump ${shown(tables.join(", "))} again?` : "Dump all tables again?");
});
pace.addEventListener("submit", (event) => {
  event.preventDefault();
  const changed = {};
  for (const [name] of PACES) {
    const text = pace.elements[name].value.trim();
    if (text !== String(paceNow[name])) changed[name] = text === "" || Number.isNaN(Number(text)) ? text : Number(text);
  }
  if (Object.keys(changed).length) request({ act: "pace", pace: changed }, "");
  else put(byId("requests-answer"), "The pace is as it was: nothing was changed.");
});
