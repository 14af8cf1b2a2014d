// Drawings over the last hour.
const SVG = "http://www.w3.org/2000/svg";
const WIDE = 600;
const HIGH = 100;
const HOUR_US = 3600e6;
const LINES = ["line", "line second", "line third"];

function drawn(name, attributes) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

function canvas(kind, words) {
  const svg = drawn("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", class: kind, role: "img" });
  svg.setAttribute("aria-label", words);
  return svg;
}

// One chart: names and values of lines over the same moments. A value that is null breaks its line.
function chart(figure, atUs, lines, unit) {
  const end = atUs.length ? atUs[atUs.length - 1] : 0;
  const across = (us) => WIDE - ((end - us) / HOUR_US) * WIDE;
  const known = lines.flatMap((line) => line.values.filter((value) => value !== null));
  const most = Math.max(...known, 0);
  const top = most || 1;
  const words = lines.map((line) => {
    const last = line.values.length ? line.values[line.values.length - 1] : null;
    const highest = Math.max(...line.values.filter((value) => value !== null), 0);
    return [line.name, last === null ? "unknown" : `${count(last, 1)}${unit}`, `most ${count(highest, 1)}${unit}`];
  });
  const label = words.map(([name, now, high]) => `${name} now ${now}, ${high}`).join("; ");
  const svg = canvas("chart", `${figure.dataset.title}, last hour: ${label}`);
  svg.append(...unknownSpans(atUs, lines[0].values, across));
  svg.append(drawn("path", { class: "axis", d: `M0 ${HIGH}H${WIDE}` }));
  lines.forEach((line, place) => {
    const path = pathOf(atUs, line.values, across, (value) => HIGH - (value / top) * HIGH);
    svg.append(drawn("path", { class: LINES[place], d: path }));
  });
  const caption = figure.querySelector("figcaption");
  caption.replaceChildren(element("span", "", figure.dataset.title));
  words.forEach(([name, now, high], place) => {
    const part = element("span");
    const swatch = drawn("svg", { class: "swatch", viewBox: "0 0 20 8", "aria-hidden": "true" });
    swatch.append(drawn("path", { class: LINES[place], d: "M0 4H20" }));
    part.append(swatch, ` ${name} `, element("b", "", now), ` ${high}`);
    caption.append(part);
  });
  const old = figure.querySelector("svg.chart");
  if (old) old.replaceWith(svg);
  else figure.append(svg);
}

function pathOf(atUs, values, across, up) {
  let path = "";
  let pen = false;
  values.forEach((value, place) => {
    if (value === null) pen = false;
    else {
      path += `${pen ? "L" : "M"}${across(atUs[place]).toFixed(1)} ${up(value).toFixed(1)}`;
      if (!pen) path += "h0.5";
      pen = true;
    }
  });
  return path || "M0 0";
}

function unknownSpans(atUs, values, across) {
  const found = [];
  let from = null;
  values.forEach((value, place) => {
    if (value === null && from === null) from = place;
    if (from !== null && (value !== null || place === values.length - 1)) {
      const [left, right] = [across(atUs[Math.max(0, from - 1)]), across(atUs[place])];
      if (from > 0 || place - from > 1) {
        found.push(drawn("rect", { class: "hatch", x: left.toFixed(1), y: 0, width: Math.max(1, right - left).toFixed(1), height: HIGH }));
      }
      from = null;
    }
  });
  return found;
}

// The minutes of one table: inserts, updates and deletes on top of each other.
function spark(row, read, words) {
  const number = read.length;
  const sums = read.map((_, place) => row.insert[place] + row.update[place] + row.delete[place]);
  const top = Math.max(...sums, 1);
  const step = WIDE / 60;
  const first = 60 - number;
  const svg = canvas("spark", words);
  const paths = { insert: "", update: "", delete: "", unread: "" };
  for (let place = 0; place < number; place += 1) {
    const left = (first + place) * step;
    let foot = HIGH;
    if (!read[place]) paths.unread += `M${left} 0h${step}v${HIGH}h-${step}z`;
    for (const kind of ["insert", "update", "delete"]) {
      const tall = (row[kind][place] / top) * HIGH;
      if (tall > 0) paths[kind] += `M${left} ${foot.toFixed(1)}h${step - 1}v-${Math.max(tall, 3).toFixed(1)}h-${step - 1}z`;
      foot -= tall;
    }
  }
  svg.append(drawn("path", { class: "bars unread", d: paths.unread || "M0 0" }), drawn("path", { class: "axis", d: `M0 ${HIGH}H${WIDE}` }));
  for (const kind of ["insert", "update", "delete"]) svg.append(drawn("path", { class: `bars ${kind}`, d: paths[kind] || "M0 0" }));
  return svg;
}
