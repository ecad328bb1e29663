// Adds the time of the reader's zone to each time in UTC, where they differ. Text alone: nothing becomes part of the page.
"use strict";
{
  const shown = { minutes: { hour: "2-digit", minute: "2-digit" }, seconds: { timeStyle: "medium" }, date: { dateStyle: "short", timeStyle: "medium" } };
  const zone = (at) => new Intl.DateTimeFormat(undefined, { timeZoneName: "short" }).formatToParts(at).find(({ type }) => type === "timeZoneName").value;
  const add = (element, text) => {
    const own = document.createElement("small");
    own.className = "own";
    own.textContent = text;
    element.append(own);
  };
  for (const time of document.querySelectorAll("time[data-at]")) {
    const at = new Date(Number(time.dataset.at) * 1000);
    if (at.getTimezoneOffset() === 0) continue;
    document.documentElement.classList.add("zoned");
    const text = new Intl.DateTimeFormat("sv-SE", shown[time.className]).format(at);
    add(time, time.className === "date" ? ` (${text} ${zone(at)})` : text);
  }
  for (const plot of document.querySelectorAll(".zoned .plot")) {
    const times = plot.querySelectorAll("time[data-at]");
    if (times.length) add(plot.querySelector(".zone"), zone(new Date(Number(times[times.length - 1].dataset.at) * 1000)));
  }
}
