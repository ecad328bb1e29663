// The charts as Grafana's bar gauges, in its own theme, light or dark as the reader prefers.
import { createTheme, FieldType, getDisplayProcessor, ThresholdsMode } from "@grafana/data";
import { BarGauge, ThemeContext } from "@grafana/ui";
import React from "react";
import { createRoot } from "react-dom/client";

const HEIGHT = 40;
const mode = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
const theme = createTheme({ colors: { mode } });
const { background, text } = theme.colors;
Object.assign(document.body.style, { background: background.primary, color: text.primary, fontFamily: theme.typography.fontFamily });

function Chart({ title, unit, rows }) {
  // Without the second threshold of a new panel, which turns all above 80 red.
  const thresholds = { mode: ThresholdsMode.Absolute, steps: [{ value: -Infinity, color: "green" }] };
  const config = { unit, min: 0, max: Math.max(...rows.map(({ value }) => value)), thresholds };
  const field = { name: title, type: FieldType.number, config, values: [] };
  const display = getDisplayProcessor({ field, theme });
  const gauge = ({ name, value }) => (
    <BarGauge key={name} width={window.innerWidth - 16} height={HEIGHT} theme={theme} field={config} display={display}
      orientation="horizontal" value={{ ...display(value), title: name }} />
  );
  return <section><h2>{title}</h2>{rows.map(gauge)}</section>;
}

createRoot(document.body.appendChild(document.createElement("div"))).render(
  <ThemeContext.Provider value={theme}>{window.CHARTS.map((chart) => <Chart key={chart.title} {...chart} />)}</ThemeContext.Provider>,
);
