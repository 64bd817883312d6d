"use strict";
/* search.js - ranks pages by the words of the index, then the places of the best pages by their texts. Works in a page, and in node for tests. */
function Search(index) {
  const ending = new RegExp(index.stem), terms = [];
  index.terms.split("\n").reduce((last, line) => {
    const [word, heads, texts] = line.split(" "), term = last.slice(0, index.alphabet.indexOf(line[0])) + word.slice(1);
    terms.push({ term, heads: heads || "", texts: texts || "" });
    return term;
  }, "");
  const words = text => text.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase().replace(/iz/g, "is").match(/[a-z0-9]+/g) || [];
  const stem = word => word.replace(ending, "").replace(/([bdgmnprt])\1$/, "$1");
  const stems = text => words(text).map(stem);
  const spaced = list => ` ${list.filter(w => w !== "weft" && w !== "torch").join(" ")} `;
  const hits = (list, w) => list.filter(s => s === w.stem || w.begun && s.startsWith(w.begun)).length;
  const synonyms = query => index.places.filter(p => spaced(stems(query)).includes(` ${p[0]} `));
  /* Returns the words of a query with their terms. The last word may be incomplete: its terms begin with it. A word of no page, or of nearly every
   * page, weighs nothing. */
  function parse(query) {
    return words(spaced(words(query))).map((w, i, all) => {
      const begun = i === all.length - 1 && w.length > 1 && w, found = terms.filter(t => t.term === stem(w) || begun && t.term.startsWith(w));
      const n = found.reduce((n, t) => n + t.heads.length + t.texts.length, 0);
      return { stem: stem(w), begun, found, weight: n ? Math.log(1 + 2 * index.pages.length / (1 + n)) : 0 };
    });
  }
  /* Returns the numbers of the pages that are worth a look, at most 12, best first. */
  this.pages = query => {
    const score = index.pages.map(() => 0);
    for (const w of parse(query)) {
      const best = {};
      for (const t of w.found) for (const c of t.texts) best[c] = best[c] || 1;
      for (const t of w.found) for (const c of t.heads) best[c] = 3;
      for (const c in best) score[index.alphabet.indexOf(c)] += w.weight * best[c];
    }
    for (const p of synonyms(query)) score[p[1]] += 99;
    return [...score.keys()].filter(i => score[i] > 0).sort((a, b) => score[b] - score[a] || a - b).slice(0, 12);
  };
  /* Scores a place: title, heading or names, names in other libraries, text. The query as a whole counts most. */
  function score(query, parsed, title, [, names, elsewhere, text]) {
    const q = spaced(words(query)), top = stems(title), head = stems(names), like = stems(elsewhere), body = stems(text);
    let sum = 0, all = true;
    for (const w of parsed) {
      const t = hits(top, w), h = hits(head, w), l = hits(like, w), n = hits(body, w);
      sum += w.weight * ((h > 0) * 3 / (1 + head.length / 12) + (l > 0) * 3 + (t > 0) * 2 + 2 * n / (n + 1 + body.length / 200));
      all = all && t + h + l + n > 0;
    }
    if (all) sum *= 1.5;
    if ([names, ...names.split(" ")].some(n => spaced(words(n)) === q)) sum += 60;
    else if (spaced(head).includes(spaced(stems(query)))) sum += 6;
    if (spaced(words(elsewhere)).includes(q)) sum += 50 * Math.sqrt(parsed.length / like.length);
    return sum + 3 * spaced(words(text)).includes(q);
  }
  /* Returns the pages with their best places: [{ page: [URL, title], places: [{ place, score }] }]. texts: number of a page -> its places. */
  this.rank = (query, texts) => {
    const parsed = parse(query), meant = synonyms(query);
    return this.pages(query).filter(n => texts[n]).map(n => {
      const bonus = i => 100 * meant.some(m => m[1] === n && m[2] === i);
      const places = texts[n].map((place, i) => ({ place, score: score(query, parsed, index.pages[n][1], place) + bonus(i) }));
      return { page: index.pages[n], places: places.filter(p => p.score > 0).sort((a, b) => b.score - a.score).slice(0, 3) };
    }).filter(r => r.places.length).sort((a, b) => b.places[0].score - a.places[0].score);
  };
  /* Cuts the sentence with most words of the query out of a text: [[words, whether they are marked]] */
  this.sentence = (query, text) => {
    const parsed = parse(query), count = s => parsed.filter(w => hits(stems(s), w)).length;
    const best = text.split(/\n|(?<=[.:;?]) /).filter(s => s.length > 12).reduce((a, b) => count(b) > count(a) || !a ? b : a, "");
    const parts = best.split(/(\s+)/).map(p => [p, count(p) > 0]), from = Math.max(0, parts.findIndex(p => p[1]) - 24);
    return (from ? [["\u2026 ", false]] : []).concat(parts.slice(from, from + 64));
  };
}
if (typeof module !== "undefined") module.exports = Search;
else (function () {
  const field = document.getElementById("find"), said = document.getElementById("said"), list = document.getElementById("found"), texts = {}, asked = {};
  let engine, pages;
  function load(name) { const s = document.createElement("script"); s.src = `search/${name}.js`; document.head.append(s); }
  function make(tag, inside, to) { const e = document.createElement(tag); if (to) e.href = to; e.append(...inside); return e; }
  function item({ page: [url, title], places: [best, ...rest] }, query) {
    const link = p => make("a", [p.place[1]], url + (p.place[0] && "#" + p.place[0])), more = rest.filter(p => p.score > best.score / 2);
    const sentence = engine.sentence(query, best.place[3]).map(([text, marked]) => marked ? make("mark", [text]) : text);
    return make("li", [link(best), " ", make("small", [title === best.place[1] ? "page" : title]), make("p", sentence), ...(more.length ? [make("p", ["also: ", ...more.map(link)])] : [])]);
  }
  function find() {
    const query = field.value.trim(), wanted = engine ? engine.pages(query) : [];
    wanted.filter(n => !asked[n]).forEach(n => { asked[n] = true; load(n); });
    if (!engine || !wanted.every(n => texts[n])) return;
    const found = engine.rank(query, texts);
    list.replaceChildren(...found.map(r => item(r, query)));
    said.textContent = !query ? "Words, or names of weft or PyTorch." : found.length ? `The best ${found.length} of ${pages} pages` :
      `No page has \u201c${query}\u201d. Try one word, such as lstm, clip, pack or schedule.`;
  }
  window.weft_index = index => { pages = index.pages.length; engine = new Search(index); find(); };
  window.weft_text = (n, places) => { texts[n] = places; find(); };
  /* The keys up and down go through the results, / returns to the field, Enter in the field opens the first result. */
  document.addEventListener("keydown", e => {
    const links = [field, ...list.querySelectorAll("li > a")], i = links.indexOf(document.activeElement);
    const to = e.key === "ArrowDown" && i >= 0 ? links[i + 1] : e.key === "ArrowUp" && i > 0 ? links[i - 1] : e.key === "/" && i !== 0 ? field : null;
    if (to) { e.preventDefault(); to.focus(); }
  });
  field.value = new URLSearchParams(location.search).get("q") || "";
  field.addEventListener("input", find);
  field.form.addEventListener("submit", e => { e.preventDefault(); const a = list.querySelector("a"); if (a) location.href = a.href; });
  load("index");
})();
