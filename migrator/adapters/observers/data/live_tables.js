// Source tables with their dump and their changes, and the map of verified target tables.
const KINDS = ["insert", "update", "delete"];
const RECENT = 5;
const VERDICTS = { different: 0, unknown: 1, "not verified": 2, equal: 3 };
const filter = byId("filter");
const activity = new Map();
let minutesRead = [];
let fallen = new Map();
let sourceRows = [];
let mapRows = [];

function takeHour(hour) {
  activity.clear();
  for (const row of hour.tables) activity.set(row.table, row);
  minutesRead = hour.minutes.read;
  fallen = new Map(hour.fallen.map((one) => [one.table, one]));
}

function recent(row, kind) {
  const values = row ? row[kind].slice(-RECENT - 1, -1) : [];
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : 0;
}

function takeTables(live) {
  const troubled = new Map();
  for (const trouble of live.troubles) {
    for (const table of trouble.tables) if (!troubled.has(table)) troubled.set(table, trouble);
  }
  const known = new Map(live.dumps.map((dump) => [dump.table, dump]));
  for (const table of activity.keys()) if (!known.has(table)) known.set(table, { table, done: null, rows: 0, estimated_rows: 0 });
  sourceRows = [...known.values()].map((dump) => {
    const row = activity.get(dump.table);
    const rates = KINDS.map((kind) => recent(row, kind));
    const off = fallen.get(dump.table);
    const trouble = troubled.get(dump.table);
    const why = off
      ? `inserts fell off: at least ${count(off.usual_per_minute)} a minute before, now ${count(off.now_per_minute, 1)}, since ${clock(off.since_us)}`
      : trouble ? trouble.what : "";
    return { key: dump.table, dump, row, rates, why, rank: trouble && trouble.level === "act" ? 0 : why ? 1 : dump.done === false ? 2 : 3 };
  });
  mapRows = live.verified.map((one) => ({ key: one.table, one, rank: VERDICTS[one.verdict] ?? 1 }));
  byId("source-none").hidden = sourceRows.length > 0;
  put(byId("source-none"), live.role === "leader" ? "No table is known yet." : "The process that leads counts changes; this one stands by.");
  takeFilling(live.filling);
  arrange(live.at_us);
}

function left(dump) {
  return dump.done === false ? Math.max(0, dump.estimated_rows - dump.rows) + 1 : 0;
}

function compared(order) {
  const byName = (one, other) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0);
  const changes = (one) => one.rates.reduce((sum, rate) => sum + rate, 0);
  if (order === "changes") return (one, other) => changes(other) - changes(one) || byName(one, other);
  if (order === "left") return (one, other) => left(other.dump) - left(one.dump) || byName(one, other);
  if (order === "name") return byName;
  return (one, other) => one.rank - other.rank || byName(one, other);
}

function arrange(nowUs) {
  const words = filter.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (text) => words.every((word) => text.toLowerCase().includes(word));
  const order = filter.elements.order.value;
  const sources = sourceRows.filter((one) => fits(`${one.key} ${one.why}`)).sort(compared(order));
  const body = byId("source-tables").tBodies[0];
  const rows = keyed(body, sources.map((one) => one.key), sourceRow);
  for (const one of sources) fillSource(rows.get(one.key), one);
  const byRank = (one, other) => one.rank - other.rank || (one.key < other.key ? -1 : 1);
  const targets = mapRows.filter((one) => fits(`${one.key} ${one.one.verdict}`)).sort(order === "name" ? compared("name") : byRank);
  const tiles = keyed(byId("map"), targets.map((one) => one.key), mapTile);
  for (const one of targets) fillTile(tiles.get(one.key), one.one, nowUs);
  mapWords(nowUs);
  const all = sourceRows.length + mapRows.length;
  put(byId("filter-shown"), `${count(sources.length + targets.length)} of ${count(all)} shown`);
  hide(byId("source-tables"), sources.length === 0);
}

function sourceRow(key) {
  const row = element("tr");
  row.setAttribute("role", "row");
  const cells = ["", "dump", "insert", "update", "delete", ""].map((label, place) => {
    const cell = element("td", place > 1 && place < 5 ? "n" : "");
    cell.setAttribute("role", "cell");
    if (label) cell.dataset.label = label;
    row.append(cell);
    return cell;
  });
  cells[0].append(named(key, 120), element("span", "why"));
  const bar = element("progress");
  bar.setAttribute("aria-label", "first dump");
  cells[1].append(element("span"), bar);
  return row;
}

function fillSource(row, one) {
  const { dump } = one;
  row.className = one.rank === 0 ? "differs" : one.why ? "named" : "";
  put(row.querySelector(".why"), one.why);
  const [words, bar] = row.cells[1].children;
  hide(bar, dump.done !== false);
  if (dump.done === null) put(words, "unknown here");
  else if (dump.done) put(words, `done, ${count(dump.rows)} rows`);
  else {
    const most = Math.max(dump.estimated_rows, dump.rows, 1);
    bar.max = most;
    bar.value = dump.rows;
    put(words, `${count(dump.rows)} of about ${count(dump.estimated_rows)} rows`);
  }
  KINDS.forEach((kind, place) => put(row.cells[2 + place], one.row ? count(one.rates[place], one.rates[place] < 10 ? 1 : 0) : "0"));
  if (row.drawn === one.row) return;
  row.drawn = one.row;
  const label = KINDS.map((kind, place) => `${kind} ${count(one.rates[place], 1)} a minute`).join(", ");
  row.cells[5].replaceChildren(...(one.row ? [spark(one.row, minutesRead, `last hour: ${label}`)] : [element("span", "dim", "no change")]));
}

function mapTile(key) {
  const tile = element("li");
  const name = element("b");
  name.append(named(key, 120));
  tile.append(name, element("span"), element("span", "dim"));
  return tile;
}

function fillTile(tile, one, nowUs) {
  const signs = { equal: "= ", different: "≠ ", unknown: "? " };
  tile.className = one.verdict in signs ? one.verdict : "none";
  const keys = one.verdict === "different" && one.differing ? `, ${count(one.differing)} keys` : "";
  put(tile.children[1], `${signs[one.verdict] || "– "}${one.verdict}${keys}`);
  const share = one.key_share < 1 && one.at_us !== null ? `, ${Math.floor(one.key_share * 100)}% of keys` : "";
  put(tile.children[2], one.at_us === null ? "" : ` ${span((nowUs - one.at_us) / 1e6)} ago${share}`);
}

function mapWords(nowUs) {
  const numbers = {};
  for (const { one } of mapRows) numbers[one.verdict] = (numbers[one.verdict] || 0) + 1;
  const parts = Object.keys(VERDICTS).filter((verdict) => numbers[verdict]).map((verdict) => `${count(numbers[verdict])} ${verdict}`);
  const ages = mapRows.filter(({ one }) => one.at_us !== null).map(({ one }) => (nowUs - one.at_us) / 1e6);
  const oldest = ages.length ? `; the oldest verdict is ${span(Math.max(...ages))} old` : "";
  put(byId("map-words"), parts.length ? `${parts.join(", ")}${oldest}` : "No target table is known to this process yet.");
}

function takeFilling(filling) {
  hide(byId("filling-title"), filling.length === 0);
  const rows = keyed(byId("filling"), filling.map((one) => one.target), (key) => {
    const item = element("li");
    item.append(named(key, 120), element("span"));
    return item;
  });
  for (const one of filling) put(rows.get(one.target).children[1], `: ${count(one.rows)} of about ${count(one.of_rows)} rows of its grain's tables`);
}
