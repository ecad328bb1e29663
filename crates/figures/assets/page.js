// Draws the charts of a report from the document and the chart descriptions that stand in the page.
"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const figures = read("figures");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const units = {
    bytes: (n) => {
      const names = ["B", "kB", "MB", "GB", "TB", "PB"];
      let place = 0;
      while (Math.abs(n) >= 1000 && place < names.length - 1) { n /= 1000; place += 1; }
      return (place && Math.abs(n) < 100 ? n.toFixed(1) : Math.round(n)) + " " + names[place];
    },
    percent: (n) => +n.toFixed(1) + " %",
    seconds: (n) => +n.toPrecision(3) + " s",
    microseconds: (n) => n < 1000 ? +n.toPrecision(3) + " µs" : n < 1e6 ? +(n / 1e3).toPrecision(3) + " ms" : +(n / 1e6).toPrecision(3) + " s",
    none: (n) => n.toLocaleString("en"),
  };
  const label = (row, columns, unit) =>
    columns.map((column) => row[column]).filter((part) => part !== null)
      .map((part) => unit && typeof part === "number" ? units[unit](part) : String(part)).join(columns.length > 1 ? (unit ? " – " : ".") : "");
  const charts = [];
  const draw = (spec) => {
    const rows = figures[spec.section].filter((row) => spec.level === null || row.level === spec.level).slice(0, spec.top);
    const palette = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6"].map(colour);
    const axis = (series, position) => ({
      position, beginAtZero: true, type: series.logarithmic ? "logarithmic" : "linear",
      title: { display: series.label !== "", text: series.label, color: colour("--quiet") },
      ticks: { color: colour("--quiet"), maxTicksLimit: 6, callback: (n) => units[series.unit](n) },
      grid: { color: position === "left" ? colour("--line") : "transparent" }, border: { display: false },
    });
    const right = spec.series.find((series) => series.right);
    const scales = {
      x: { ticks: { color: colour("--quiet"), maxRotation: 45, autoSkip: true }, grid: { display: false }, border: { color: colour("--line") } },
      y: axis(right ? spec.series[0] : { ...spec.series[0], label: spec.axis }, "left"),
    };
    if (right) scales.y2 = axis(right, "right");
    const canvas = document.getElementById(spec.id);
    charts.push(new Chart(canvas, {
      data: {
        labels: rows.map((row) => label(row, spec.x, spec.x_unit)),
        datasets: spec.series.map((series, place) => ({
          type: series.line ? "line" : "bar", label: series.label, yAxisID: series.right ? "y2" : "y",
          data: rows.map((row) => row[series.column]), unit: series.unit,
          backgroundColor: palette[place], borderColor: palette[place], borderWidth: series.line ? 2 : 0,
          borderRadius: 3, pointRadius: 3, tension: 0.25, maxBarThickness: 46, order: series.line ? 0 : 1,
        })),
      },
      options: {
        animation: false, responsive: true, maintainAspectRatio: false, scales,
        interaction: { mode: "index", intersect: false },
        plugins: {
          legend: { display: spec.series.length > 1, labels: { color: colour("--ink"), boxWidth: 12, boxHeight: 12 } },
          tooltip: { callbacks: { label: (item) => item.dataset.label + ": " + units[item.dataset.unit](item.raw) } },
        },
      },
    }));
    // What a test looks for: whether anything was drawn, and from which figures.
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    canvas.dataset.drawn = pixels.some((value) => value !== 0);
    canvas.dataset.figures = JSON.stringify(charts[charts.length - 1].data.datasets.map((set) => set.data));
  };
  const all = () => {
    charts.splice(0).forEach((chart) => chart.destroy());
    read("charts").forEach(draw);
  };
  all();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  addEventListener("beforeprint", () => charts.forEach((chart) => chart.resize()));
})();
