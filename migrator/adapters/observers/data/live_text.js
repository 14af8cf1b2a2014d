// Texts. Whatever comes from the process is put by textContent, and what nobody could see in it is named.
const MOST_SHOWN = 300;
const byId = (id) => document.getElementById(id);
const HIDDEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Cs}]/gu;

function shown(text, most = MOST_SHOWN) {
  const whole = String(text);
  const cut = whole.length > most ? `${whole.slice(0, most)}… (${whole.length.toLocaleString("en")} characters)` : whole;
  return cut.replace(HIDDEN, (sign) => `‹U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}›`);
}

function put(node, text, most) {
  const now = shown(text, most);
  if (node.textContent !== now) node.textContent = now;
}

function hide(node, hidden) {
  if (node.hidden !== hidden) node.hidden = hidden;
}

function element(name, kind = "", text = null) {
  const node = document.createElement(name);
  if (kind) node.className = kind;
  if (text !== null) put(node, text);
  return node;
}

function named(text, most) {
  const node = element("bdi");
  put(node, text, most);
  return node;
}

// Children by key: those that stay are kept, so that focus and reading places stay, too.
const children = new WeakMap();
function keyed(parent, keys, make) {
  if (!children.has(parent)) children.set(parent, new Map());
  const known = children.get(parent);
  const wanted = new Set(keys);
  for (const [key, node] of known) {
    if (!wanted.has(key)) {
      node.remove();
      known.delete(key);
    }
  }
  let place = parent.firstElementChild;
  for (const key of keys) {
    let node = known.get(key);
    if (!node) known.set(key, (node = make(key)));
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
  }
  return known;
}

function count(value, digits = 0) {
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

function perSecond(value) {
  return value === null ? "unknown" : `${count(value, value < 10 ? 1 : 0)}/s`;
}

function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let place = 0;
  while (Math.abs(value) >= 1024 && place < units.length - 1) [value, place] = [value / 1024, place + 1];
  return `${count(value, place ? 1 : 0)} ${units[place]}`;
}

function span(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 90) return `${whole} s`;
  if (whole < 5400) return `${Math.round(whole / 60)} min`;
  return whole < 172800 ? `${count(whole / 3600, 1)} h` : `${count(whole / 86400, 1)} days`;
}

function clock(us) {
  return `${new Date(us / 1000).toISOString().slice(11, 19)} UTC`;
}

function moment(us, nowUs) {
  const day = new Date(us / 1000).toISOString().slice(0, 10);
  const today = new Date(nowUs / 1000).toISOString().slice(0, 10);
  return `${day === today ? "" : `${day} `}${clock(us)}`;
}

function since(us, nowUs) {
  return us === null ? "unknown" : `${moment(us, nowUs)}, ${span((nowUs - us) / 1e6)} ago`;
}

function documentLink(name) {
  const link = element("a", "", `docs: ${name}`);
  link.href = `/docs/${encodeURIComponent(name)}`;
  return link;
}
