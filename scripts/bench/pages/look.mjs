// Makes the pages of the three, lets the probe look at them in a headless Chromium, and prints what it finds.
//
// usage: node look.mjs CHROMIUM PROBE DIR      DIR has binlogz.html, advise.json, plot.js, grafana.js
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const WIDTHS = [390, 768, 1440];
const [chromium, probe, folder] = process.argv.slice(2);
const read = (name) => readFileSync(join(folder, name), "utf8");
const advise = JSON.parse(read("advise.json"));

const levels = (value) => advise.levels.map((row) => ({ name: `level ${row.level}`, value: value(row) }));
const charts = [
  { title: "Size of the log by level", unit: "bytes", rows: [{ name: "off", value: advise.summary[0].plain_bytes }, ...levels((row) => row.bytes)] },
  { title: "What it adds to a commit, p99", unit: "µs", rows: levels((row) => row.p99_us) },
  { title: "By table", unit: "bytes", rows: advise.tables.filter(({ level }) => level === advise.tables[0].level).map((row) => ({ name: `${row.database}.${row.table}`, value: row.plain_bytes })) },
];

// In a page of its own: the text is data there, whatever it holds.
const page = (script) => `<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>charts</title><style>body { background: #fff; color: #000 }</style><body>
<script>window.CHARTS = ${JSON.stringify(charts).replaceAll("<", "\\u003c")}</script>
<script>${read(script).replaceAll("</script", "<\\/script")}</script>`;
writeFileSync(join(folder, "plot.html"), page("plot.js"));
writeFileSync(join(folder, "grafana.html"), page("grafana.js"));

const run = (dark, args) => {
  const home = mkdtempSync(join(tmpdir(), "pages-"));
  try {
    return execFileSync(chromium, ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic",
      "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
      `--blink-settings=preferredColorScheme=${dark ? 0 : 1}`, `--user-data-dir=${home}`, ...args],
    { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] });
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
};
const quoted = (text) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;");

const faultsOf = (name, dark) => {
  const frames = WIDTHS.map((width) => `<iframe style="border:0;width:${width}px;height:800px" srcdoc="${quoted(read(`${name}.html`))}"></iframe>`);
  const file = join(folder, "frames.html");
  writeFileSync(file, `<!DOCTYPE html><meta charset="utf-8"><body data-dark="${dark}"><pre id="told"></pre>
<script>${readFileSync(probe, "utf8")}</script>${frames.join("")}`);
  const dom = run(dark, ["--virtual-time-budget=20000", "--window-size=1600,1200", "--dump-dom", `file://${file}`]);
  rmSync(file);
  const [, told = ""] = dom.match(/<pre id="told">([^<]*)/) || [];
  const lines = told.split("\n").map(decodeURIComponent);
  if (!told) throw new Error(`${name}: the probe has not looked at the page`);
  const count = (what) => lines.filter((line) => line.startsWith(what + " ")).reduce((sum, line) => sum + Number(line.split(" ")[1]), 0);
  return { faults: lines.filter((line) => line.startsWith("fault ")).map((line) => line.slice(6)), texts: count("texts"), shapes: count("shapes") };
};

// A fault without its width, its scheme and the text it is about.
const KINDS = [
  ["clipped or beyond the screen", /text sticks out|clipped|px wide/],
  ["scrolls without a hint", /scrolls without/],
  ["contrast of text below 4.5", /contrast .* "/],
  ["marks too pale or too small", /contrast|a value of/],
  ["other", /./],
];
const header = ["page", "bytes", "without JavaScript", "texts", "marks", ...KINDS.map(([kind]) => kind)];
console.log(header.join(" | "));
for (const name of ["binlogz", "plot", "grafana"]) {
  const looked = [false, true].map((dark) => faultsOf(name, dark));
  const faults = looked.flatMap(({ faults }) => faults);
  const counts = KINDS.map(() => 0);
  for (const fault of faults) counts[KINDS.findIndex(([, pattern]) => pattern.test(fault))] += 1;
  const sum = (what) => looked.reduce((total, one) => total + one[what], 0);
  const html = read(`${name}.html`), bare = html.replace(/<script[\s\S]*?<\/script>/g, "").replace(/<[^>]*>/g, "");
  console.log([name, Buffer.byteLength(html), bare.includes("level 3") || bare.includes("level 9") ? "yes" : "empty", sum("texts"), sum("shapes"), ...counts].join(" | "));
  writeFileSync(join(folder, `${name}.faults`), faults.join("\n") + "\n");
  for (const dark of [false, true]) {
    for (const width of WIDTHS) {
      run(dark, [`--window-size=${width},1400`, `--screenshot=${join(folder, `${name}-${width}-${dark ? "dark" : "light"}.png`)}`, `file://${join(folder, `${name}.html`)}`]);
    }
  }
}
