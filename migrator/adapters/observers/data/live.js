// The page asks the process what it knows, and says so when it gets no answer.
const EVERY_MS = 2000;
const HOUR_EVERY_MS = 10000;
const HIDDEN_EVERY_MS = 15000;
const PATIENCE_MS = 4000;
const STALE_MS = 5000;
const SLOW = "it gives no answer in time";
const TOKEN = "migrator-token";
const LEVELS = { act: "act now", look: "look", unknown: "unknown", wait: "wait", well: "well" };
const main = byId("main");
const tokenForm = byId("token");
let token = sessionStorage.getItem(TOKEN) || "";
let last = null;
let lastAt = 0;
let hourAt = 0;
let problem = "";
let announced = "";

for (const id of ["chart-rates", "chart-lag", "chart-backlog"]) byId(id).dataset.title = byId(id).textContent.trim();

async function fetched(path) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  let answer, document;
  try {
    answer = await fetch(path, { headers, cache: "no-store", credentials: "same-origin", signal: AbortSignal.timeout(PATIENCE_MS) });
    document = await answer.json();
  } catch (error) {
    throw new Error(error.name === "TimeoutError" ? SLOW : "it can't be reached", { cause: error });
  }
  if (answer.status === 401) askForToken();
  if (!answer.ok) throw new Error(`${answer.status}: ${[document.error, document.remedy].filter(Boolean).join("; ")}`);
  return document;
}

function askForToken() {
  if (tokenForm.hidden) {
    hide(tokenForm, false);
    tokenForm.elements.token.focus();
  }
  put(byId("token-refused"), token ? "This token isn't the right one." : "");
}

tokenForm.addEventListener("submit", (event) => {
  event.preventDefault();
  token = tokenForm.elements.token.value.trim();
  sessionStorage.setItem(TOKEN, token);
  poll();
});

let waiting = 0;
let polls = 0;
async function poll() {
  clearTimeout(waiting);
  polls += 1;
  const own = polls;
  try {
    if (performance.now() - hourAt >= HOUR_EVERY_MS || !hourAt) {
      const hour = await fetched("/hour.json");
      takeHour(hour);
      charts(hour);
      hourAt = performance.now();
    }
    const live = await fetched("/live.json");
    [last, lastAt, problem] = [live, performance.now(), ""];
    hide(tokenForm, true);
    show(live);
  } catch (error) {
    problem = error.message;
    if (!error.cause && !/^\d/.test(problem)) console.error(error);
  }
  staleness();
  if (own === polls) waiting = setTimeout(poll, document.hidden ? HIDDEN_EVERY_MS : EVERY_MS);
}

function staleness() {
  const silent = performance.now() - lastAt;
  const old = problem !== "" && (last === null || silent > STALE_MS || problem !== SLOW);
  const bar = byId("stale");
  hide(bar, !old || !tokenForm.hidden);
  main.classList.toggle("old", old && last !== null);
  main.setAttribute("aria-busy", String(last === null));
  if (!old) return;
  const asOf = last ? `All below is as of ${clock(last.at_us)}, ${span(silent / 1000)} ago.` : "Nothing is known yet.";
  put(bar, `STALE: this process gives no answer that helps (${problem}). ${asOf} If it ended, or the way to it is cut, migrator status and migrator history on its machine tell why.`, 600);
  document.title = `STALE – ${last ? shown(last.migration, 60) : "migrator"}`;
  announce("stale", "No answer from the process: what this page shows is old.");
}

function announce(key, words) {
  if (announced === key) return;
  announced = key;
  put(byId("announce"), words);
}

function show(live) {
  const { verdict } = live;
  byId("verdict").className = verdict.level;
  put(byId("level"), LEVELS[verdict.level] || verdict.level);
  put(byId("migration"), live.migration, 80);
  put(byId("what"), verdict.what);
  put(byId("since"), since(verdict.since_us, live.at_us));
  put(byId("risk"), verdict.risk);
  put(byId("remedy"), verdict.remedy);
  const linked = byId("document");
  if (linked.dataset.name !== verdict.document || !verdict.name) {
    linked.dataset.name = verdict.document;
    linked.replaceChildren(...(verdict.name ? [documentLink(verdict.document)] : []));
  }
  document.title = `${LEVELS[verdict.level] || verdict.level} – ${shown(live.migration, 60)}`;
  announce(`${verdict.level} ${verdict.name}`, `${LEVELS[verdict.level]}: ${verdict.what}`);
  showTroubles(live);
  showFacts(live);
  showFlow(live);
  showWarnings(live.warnings, live.at_us);
  showCutover(live.cutover, live.at_us);
  takeTables(live);
  takeRequests(live);
  const memory = live.memory.map((one) => `${one.process} ${size(one.bytes)}`).join(", ");
  put(byId("footer"), `migrator ${live.version}, as of ${clock(live.at_us)}; this process runs since ${since(live.started_us, live.at_us)}${memory ? `; memory ${memory}` : ""}`);
}

function showTroubles(live) {
  const rest = live.troubles.slice(1);
  hide(byId("troubles"), rest.length === 0);
  put(byId("troubles-title"), `${rest.length} more: ${rest.map((one) => one.name).join(", ")}`);
  const items = keyed(byId("troubles-list"), rest.map((one) => one.name), () => {
    const item = element("li");
    item.append(element("b"), element("span"), element("span"), documentLink("observe"));
    return item;
  });
  for (const one of rest) {
    const item = items.get(one.name);
    item.className = one.level;
    put(item.children[0], one.what);
    put(item.children[1], ` Since ${since(one.since_us, live.at_us)}. At risk: ${one.risk}.`);
    put(item.children[2], ` Do: ${one.remedy}. `);
    item.children[3].href = `/docs/${encodeURIComponent(one.document)}`;
    put(item.children[3], `docs: ${one.document}`);
  }
}

function showFacts(live) {
  const { lag } = live;
  put(byId("phase"), `${live.phase} (${live.role})`);
  const age = byId("lag-age");
  age.className = lag.age_s === null ? "unknown" : "";
  const atMost = lag.at_most_s === null ? "" : `; all of before ${span(lag.at_most_s)} ago is applied`;
  put(age, lag.age_s === null ? `unknown: ${lag.unknown}${atMost}` : lag.age_s === 0 ? "0 s: caught up" : `${span(lag.age_s)} at most`);
  const far = byId("lag-far");
  far.className = lag.behind === null ? "unknown" : "";
  const unit = lag.unit === "bytes" ? "of log" : lag.unit;
  put(far, lag.behind === null ? "unknown" : lag.behind === 0 ? "nothing behind" : `${lag.unit === "bytes" ? size(lag.behind) : count(lag.behind)} ${unit}`);
  const others = live.standbys === null ? "" : `, ${live.standbys} stand${live.standbys === 1 ? "s" : ""} by`;
  put(byId("process"), live.role === "leader" ? `leads, epoch ${live.epoch}${others}` : live.leader ? `stands by; ${live.leader} leads` : "nobody leads");
  hide(byId("note"), !live.note);
  put(byId("note"), `Note: ${live.note}`, 500);
}

function showEnd(id, server, nowUs) {
  const end = byId(`flow-${id}`);
  const asked = server.since_us !== null;
  end.className = `end${!asked ? " unasked" : server.problem ? " wrong" : ""}`;
  const words = server.problem ? `no answer: ${server.problem}` : `answers in ${server.answer_s < 0.01 ? "less than 10 ms" : `${count(server.answer_s * 1000)} ms`}`;
  put(byId(`${id}-state`), asked ? `${words}; since ${since(server.since_us, nowUs)}` : "wasn't asked yet");
  put(byId(`${id}-position`), server.position ? `at ${server.position.token}` : "position unknown", 80);
}

function showFlow(live) {
  showEnd("source", live.source, live.at_us);
  showEnd("target", live.target, live.at_us);
  const { source, event_log: log, rates } = live;
  const kept = [];
  if (source.kept_bytes !== null) kept.push(`keeps ${size(source.kept_bytes)} of log for this`);
  if (source.left_bytes !== null) kept.push(`${size(Math.max(0, source.left_bytes))} more may be written`);
  if (source.expiry_s !== null) kept.push(`keeps log for ${span(source.expiry_s)}`);
  put(byId("source-room"), kept.join("; "));
  byId("flow-log").className = `end${log.segments === null ? " unasked" : ""}`;
  put(byId("log-state"), log.segments === null ? "backlog unknown" : `${count(log.segments)} segment${log.segments === 1 ? "" : "s"} wait`);
  put(byId("log-position"), log.captured ? `at ${log.captured.token}` : "position unknown", 80);
  put(byId("log-room"), [log.bytes === null ? "" : size(log.bytes), log.disk_free_bytes === null ? "" : `${size(log.disk_free_bytes)} free`].filter(Boolean).join("; "));
  put(byId("way-captured"), perSecond(rates.captured_per_s));
  const dumped = rates.dumped_per_s ? ` + ${perSecond(rates.dumped_per_s)} dump rows` : "";
  put(byId("way-applied"), `${perSecond(rates.applied_per_s)}${dumped}`);
  put(byId("target-room"), rates.batches_per_s === null ? "" : `${count(rates.batches_per_s * 60, 1)} batches a minute`);
}

function charts(hour) {
  const { looks } = hour;
  chart(byId("chart-rates"), looks.at_us, [{ name: "captured", values: looks.captured_per_s }, { name: "applied", values: looks.applied_per_s }, { name: "dump rows", values: looks.dumped_per_s }], "/s");
  chart(byId("chart-lag"), looks.at_us, [{ name: "applied", values: looks.lag_s }, { name: "captured", values: looks.capture_lag_s }], " s");
  chart(byId("chart-backlog"), looks.at_us, [{ name: "segments", values: looks.segments }], "");
}

function showWarnings(warnings, nowUs) {
  hide(byId("warnings"), warnings.length === 0);
  const begun = (one) => (one.since_us === null ? "" : `, since ${moment(one.since_us, nowUs)}`);
  const keys = warnings.map((one) => `${one.about}\n${one.text}\n${begun(one)}`);
  keyed(byId("warnings-list"), [...new Set(keys)], (key) => {
    const one = warnings[keys.indexOf(key)];
    const [text, ...remedy] = one.text.split(/; remedy: /);
    const item = element("li");
    item.append(element("b", "", one.about), element("small", "", begun(one)), element("p"), documentLink(one.document));
    put(item.children[2], text, 1000);
    if (remedy.length) {
      const line = element("p");
      put(line, `Do: ${remedy.join("; ")}`, 1000);
      item.insertBefore(line, item.lastChild);
    }
    return item;
  });
}

function showCutover(cutover, nowUs) {
  hide(byId("cutover"), cutover === null);
  if (!cutover) return;
  const under = cutover.under_way ? `switch ${cutover.turn} to the ${cutover.opens} side is in step ${cutover.phase}` : `${cutover.phase}: the ${cutover.open_side} side is open`;
  const began = cutover.since_us === null ? "" : `; it began ${since(cutover.since_us, nowUs)}, and is undone after ${span(cutover.pause_s)}`;
  put(byId("cutover-words"), `${under}${began}; reads go to the ${cutover.reads} side${cutover.wanted ? `; wanted: ${cutover.wanted}` : ""}${cutover.reason ? `. ${cutover.reason}` : ""}`, 1000);
  const items = keyed(byId("cutover-steps"), cutover.steps.map((one) => one.step), () => element("li"));
  for (const one of cutover.steps) {
    const item = items.get(one.step);
    item.className = one.state === "to come" ? "coming" : one.state;
    if (one.state === "now") item.setAttribute("aria-current", "step");
    else item.removeAttribute("aria-current");
    put(item, `${one.step}: ${one.state}${one.seconds === null ? "" : `, ${count(one.seconds, 1)} s`}`);
  }
}

filter.addEventListener("submit", (event) => event.preventDefault());
filter.addEventListener("input", () => last && arrange(last.at_us));
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || event.target.isContentEditable;
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    filter.elements.text.focus();
  }
  if (event.key === "Escape" && event.target === filter.elements.text) {
    filter.elements.text.value = "";
    if (last) arrange(last.at_us);
    filter.elements.text.blur();
  }
});
document.addEventListener("visibilitychange", () => !document.hidden && poll());
poll();
