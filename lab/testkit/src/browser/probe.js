// Looks at pages in frames of several widths, as a person would: is all text there, can it be read, can each bar be seen?
"use strict";
const CONTRAST_MIN = 4.5, SHAPE_CONTRAST_MIN = 3, SHAPE_MIN_PX = 2;
// A colour as red, green, blue (0 to 255) and alpha.
const colour = (text) => {
  const numbers = (text.match(/-?[\d.]+(e-?\d+)?/g) || []).map(Number);
  if (text.startsWith("color(srgb")) return [...numbers.slice(0, 3).map((n) => n * 255), numbers[3] ?? 1];
  if (text.startsWith("rgb")) return [...numbers.slice(0, 3), numbers[3] ?? 1];
  throw new Error("a colour of a kind that the probe does not know: " + text);
};
const over = (top, below) => [0, 1, 2].map((n) => top[n] * top[3] + below[n] * (1 - top[3])).concat(1);
const luminance = ([r, g, b]) => {
  const linear = (n) => (n /= 255) <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4;
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
};
const contrast = (one, other) => {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
};
const look = (frame, dark) => {
  const view = frame.contentWindow, page = frame.contentDocument, faults = [];
  const counts = { texts: 0, shapes: 0, hints: 0 };
  const style = (element) => view.getComputedStyle(element);
  const name = (element) => element.tagName.toLowerCase() + (element.getAttribute("class") ? "." + element.getAttribute("class").replaceAll(" ", ".") : "");
  const width = page.documentElement.clientWidth;
  const fault = (text) => faults.push(`${width} px ${dark ? "dark" : "light"}: ${text}`);
  const backgrounds = new Map();
  const background = (element) => {
    if (!element) return [255, 255, 255, 1];
    if (!backgrounds.has(element)) backgrounds.set(element, over(colour(style(element).backgroundColor), background(element.parentElement)));
    return backgrounds.get(element);
  };
  const scroller = (element) => {
    for (let at = element; at; at = at.parentElement) {
      if (["auto", "scroll"].includes(style(at).overflowX) && at.scrollWidth > at.clientWidth + 1) return at;
    }
  };
  const inside = (rect, outer) => rect.left >= outer.left - 0.6 && rect.right <= outer.right + 0.6;
  if (view.matchMedia("(prefers-color-scheme: dark)").matches !== dark) fault("the page is not shown in this scheme");
  if (page.documentElement.scrollWidth > width) fault(`the page is ${page.documentElement.scrollWidth} px wide`);
  // Text: within its card and the screen, and of enough contrast.
  const walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const element = node.parentElement, text = node.data.trim();
    if (!text || ["SCRIPT", "STYLE", "title"].includes(element.tagName) || style(element).visibility !== "visible") continue;
    const range = page.createRange();
    range.selectNodeContents(node);
    const rects = [...range.getClientRects()].filter((rect) => rect.width > 0);
    if (!rects.length) continue;
    counts.texts += 1;
    // A column that is so narrow that letters stand below each other can't be read.
    if (text.length >= 12 && rects.length > text.length / 4) fault(`letters stand below each other: ${name(element)} "${text}"`);
    // A name within a path that fits into a line stands in one.
    if (!/[\s-]/.test(text) && (node.previousSibling?.nodeName === "WBR" || node.nextSibling?.nodeName === "WBR")) {
      let block = element;
      while (!block.clientWidth && block.parentElement) block = block.parentElement;
      const tops = new Set(rects.map((rect) => Math.round(rect.top)));
      if (tops.size > 1 && rects.reduce((sum, rect) => sum + rect.width, 0) <= block.clientWidth) fault(`a name is broken: ${name(element)} "${text}"`);
    }
    if (!scroller(element)) {
      const card = (element.closest(".card, .lead, .tiles > div") || page.body).getBoundingClientRect();
      if (rects.some((rect) => !inside(rect, card) || rect.left < 0 || rect.right > width)) fault(`text sticks out: ${name(element)} "${text}"`);
    }
    const below = background(element);
    const found = contrast(over(colour(style(element).color), below), below);
    if (found < CONTRAST_MIN) fault(`contrast ${found.toFixed(2)}: ${name(element)} "${text}"`);
  }
  for (const element of page.body.querySelectorAll("*")) {
    const { overflowX, overflowY, visibility } = style(element);
    if (visibility !== "visible" || element instanceof view.SVGElement) continue;
    const wide = element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0;
    const high = element.scrollHeight > element.clientHeight + 1 && element.clientHeight > 0;
    if ((wide && ["hidden", "clip"].includes(overflowX)) || (high && ["hidden", "clip"].includes(overflowY))) fault(`clipped: ${name(element)}`);
    if (!wide || !["auto", "scroll"].includes(overflowX)) continue;
    // What is scrolled has a hint that can be seen.
    const hint = element.parentElement.querySelector(".hint");
    const seen = hint && style(hint).visibility === "visible" && style(hint).display !== "none" && hint.getBoundingClientRect().height >= 8;
    if (seen) counts.hints += 1; else fault(`scrolls without a hint: ${name(element)}`);
  }
  // Texts of one axis do not touch, and none stands there twice.
  for (const axis of page.querySelectorAll(".under, .axis .field, .scale")) {
    const texts = [...axis.children].map((child) => child.textContent);
    texts.filter((text, place) => texts.indexOf(text) < place).forEach((text) => fault(`an axis says "${text}" twice: ${name(axis)}`));
    const rects = [...axis.children].map((child) => child.getBoundingClientRect());
    rects.forEach((rect, place) => {
      const next = rects[place + 1];
      if (next && rect.right > next.left + 0.5 && rect.left < next.right && rect.bottom > next.top + 0.5 && rect.top < next.bottom) fault(`texts of an axis touch: ${name(axis)} "${axis.textContent}"`);
    });
  }
  // What stands for a value can be seen.
  for (const shape of page.querySelectorAll("[data-value]")) {
    if (!(Number(shape.dataset.value) > 0)) continue;
    counts.shapes += 1;
    const rect = shape.getBoundingClientRect();
    if (rect.width < SHAPE_MIN_PX || rect.height < SHAPE_MIN_PX) fault(`a value of ${shape.dataset.value} is ${rect.width} × ${rect.height} px: ${name(shape)}`);
    const below = background(shape.parentElement);
    const found = contrast(over(colour(style(shape).color), below), below);
    if (found < SHAPE_CONTRAST_MIN) fault(`contrast ${found.toFixed(2)}: ${name(shape)}`);
  }
  for (const curve of page.querySelectorAll(".curve")) {
    if (!curve.getAttribute("d")) continue;
    counts.shapes += 1;
    const below = background(curve.ownerSVGElement.parentElement);
    const found = contrast(over(colour(style(curve).color), below), below);
    if (found < SHAPE_CONTRAST_MIN) fault(`contrast ${found.toFixed(2)}: ${name(curve)}`);
    // A line that lies on another has gaps, through which that one is seen.
    const later = [...curve.ownerSVGElement.querySelectorAll(".curve")].filter((other) => curve.compareDocumentPosition(other) & 4);
    if (later.some((other) => other.getAttribute("d") === curve.getAttribute("d") && style(other).strokeDasharray === "none")) fault(`a line lies under another: ${name(curve)}`);
  }
  // The last tile does not stand alone.
  for (const tiles of page.querySelectorAll(".tiles")) {
    const ends = new Map();
    for (const tile of tiles.children) ends.set(Math.round(tile.getBoundingClientRect().top), tile.getBoundingClientRect().right);
    const right = Math.max(...ends.values());
    if ([...ends.values()].some((end) => end < right - 1)) fault(`a line of tiles is not full: ${name(tiles)}`);
  }
  // The reader's zone is not UTC here.
  for (const time of page.querySelectorAll("time[data-at]")) if (!time.querySelector(".own")) fault(`a time is in UTC alone: ${name(time)} "${time.textContent}"`);
  return { faults, counts };
};
const lookAtAll = () => {
  const dark = document.body.dataset.dark === "true";
  return [...document.querySelectorAll("iframe")].map((frame) => look(frame, dark));
};
const tell = (all) => {
  const lines = all.flatMap(({ faults, counts }) => ["frame", ...faults.map((text) => "fault " + text), ...Object.entries(counts).map(([what, count]) => `${what} ${count}`)]);
  document.getElementById("told").textContent = lines.map((line) => encodeURIComponent(line)).join("\n");
};
addEventListener("load", () => {
  // As high as it needs to be: a scroll bar would take of its width.
  for (const frame of document.querySelectorAll("iframe")) frame.style.height = frame.contentDocument.documentElement.scrollHeight + 50 + "px";
  // Until nothing is wrong any more: a hint comes with the first frame that is drawn.
  const again = (left) => {
    let all;
    try {
      all = lookAtAll();
    } catch (error) {
      all = [{ faults: [`the probe failed: ${error}`], counts: {} }];
    }
    tell(all);
    if (left > 0 && all.some(({ faults }) => faults.length)) setTimeout(() => again(left - 1), 200);
  };
  again(20);
});
