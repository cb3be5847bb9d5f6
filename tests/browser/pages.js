// What `look` reports of a page: the body of a function of `window` and `document`.
document.querySelectorAll("details").forEach(e => { e.open = true; });
const shown = e => e.getClientRects().length && e.textContent.trim();
const texts = [...document.querySelectorAll("svg text, figure span, td, th, h1, h2, figcaption")].filter(shown);
const boxes = texts.filter(e => !e.querySelector("div")).map(e => [e.textContent, e.getBoundingClientRect()]);
const part = ([a, b], [c, d]) => Math.min(b, d) - Math.max(a, c);
const overlap = (a, b) =>
  part([a.left, a.right], [b.left, b.right]) > 1 && part([a.top, a.bottom], [b.top, b.bottom]) > 1;
const overlaps = [];
boxes.forEach(([text, box], i) => boxes.slice(i + 1).forEach(([other, its]) => {
  if (overlap(box, its)) overlaps.push([text, other]);
}));
const columns = [...document.querySelectorAll("th")].filter(shown).map(e => e.cellIndex);
const asked = window.performance.getEntriesByType("resource").map(e => e.name);
const script = document.createElement("script");
script.src = "/axe.js";
await new Promise(done => { script.onload = done; document.head.append(script); });
const found = await window.axe.run(document, {resultTypes: ["violations"]});
return {
  scrolled: document.documentElement.scrollWidth,
  overlaps,
  outside: boxes.filter(([, box]) => box.left < 0).map(([text]) => text),
  small: texts.filter(e => parseFloat(window.getComputedStyle(e).fontSize) *
    (e.getScreenCTM ? e.getScreenCTM().a : 1) < 10).map(e => e.textContent),
  empty: columns.filter(i => ![...document.querySelectorAll("td")].some(e => e.cellIndex === i && shown(e))),
  axes: [...document.querySelectorAll("figure")].map(e => [...e.querySelectorAll("span")].filter(shown).length),
  dark: window.matchMedia("(prefers-color-scheme: dark)").matches,
  asked,
  violations: found.violations.flatMap(v => v.nodes.map(n => `${v.id}: ${n.html}`)),
};
