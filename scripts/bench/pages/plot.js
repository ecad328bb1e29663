// The charts by Observable Plot, which chooses all but the data.
import * as Plot from "@observablehq/plot";

for (const { title, rows } of window.CHARTS) {
  const figure = Plot.plot({ title, marks: [Plot.barX(rows, { x: "value", y: "name" })] });
  // For the probe.
  figure.querySelectorAll('g[aria-label="bar"] rect').forEach((bar, place) => (bar.dataset.value = rows[place].value));
  document.body.append(figure);
}
