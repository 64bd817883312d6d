"use strict";
/* search.js - the search: ranks pages by the words of the index, then the places of the best pages by their texts. Works in a page and, for tests, in node. */
function Search(index) {
  var ending = new RegExp(index.stem), terms = [], last = "";
  index.terms.split("\n").forEach(function (line) {
    var part = line.split(" "), shared = index.alphabet.indexOf(line[0]);
    last = last.slice(0, shared) + part[0].slice(1);
    terms.push({ term: last, heads: part[1] || "", texts: part[2] || "" });
  });
  function words(text) { return text.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase().replace(/iz/g, "is").match(/[a-z0-9]+/g) || []; }
  function stem(word) { return word.replace(ending, "").replace(/([bdgmnprt])\1$/, "$1"); }
  function stems(text) { return words(text).map(stem); }
  function spaced(list) { return " " + list.filter(function (w) { return w !== "weft" && w !== "torch"; }).join(" ") + " "; }
  /* Returns the words of a query, with their terms: of the last word, which may be incomplete, all that begin with it. A word that is on no page, or on
   * nearly all, weighs nothing. */
  function parse(query) {
    var all = words(spaced(words(query)));
    return all.map(function (w, i) {
      var s = stem(w), begun = i === all.length - 1 && w.length > 1;
      var found = terms.filter(function (t) { return t.term === s || begun && t.term.startsWith(w); });
      var n = found.reduce(function (n, t) { return n + t.heads.length + t.texts.length; }, 0);
      return { stem: s, begun: begun ? w : null, found: found, weight: n ? Math.log(1 + 2 * index.pages.length / (1 + n)) : 0 };
    });
  }
  function synonyms(query) {
    var q = spaced(stems(query));
    return index.places.filter(function (p) { return q.includes(" " + p[0] + " "); });
  }
  /* Returns the numbers of the pages that are worth a look, at most 12, best first. */
  this.pages = function (query) {
    var score = index.pages.map(function () { return 0; });
    parse(query).forEach(function (w) {
      var best = {};
      w.found.forEach(function (t) {
        Array.from(t.texts).forEach(function (c) { best[c] = Math.max(best[c] || 0, 1); });
        Array.from(t.heads).forEach(function (c) { best[c] = 3; });
      });
      Object.keys(best).forEach(function (c) { score[index.alphabet.indexOf(c)] += w.weight * best[c]; });
    });
    synonyms(query).forEach(function (p) { score[p[1]] += 99; });
    return score.map(function (s, i) { return i; }).filter(function (i) { return score[i] > 0; }).sort(function (a, b) { return score[b] - score[a] || a - b; }).slice(0, 12);
  };
  function hits(list, w) { return list.filter(function (s) { return s === w.stem || w.begun && s.startsWith(w.begun); }).length; }
  /* Scores a place: title, heading or names, names in other libraries, text. The query as a whole counts most. */
  function score(query, parsed, title, place) {
    var q = spaced(words(query)), head = stems(place[1]), like = stems(place[2]), text = stems(place[3]), top = stems(title), sum = 0, all = true;
    parsed.forEach(function (w) {
      var n = hits(text, w), h = hits(head, w), l = hits(like, w);
      sum += w.weight * ((h > 0) * 3 / (1 + head.length / 12) + (l > 0) * 3 + (hits(top, w) > 0) * 2 + 2 * n / (n + 1 + text.length / 200));
      all = all && n + h + l + hits(top, w) > 0;
    });
    if (all) sum *= 1.5;
    if (place[1].split(" ").concat(place[1]).some(function (n) { return spaced(words(n)) === q; })) sum += 60;
    else if (spaced(head).includes(spaced(stems(query)))) sum += 6;
    if (spaced(words(place[2])).includes(q)) sum += 50 * Math.sqrt(parsed.length / like.length);
    if (spaced(words(place[3])).includes(q)) sum += 3;
    return sum;
  }
  /* Returns the pages with their best places: [{ page, places: [{ place, score }] }]. texts: page -> its places. */
  this.rank = function (query, texts) {
    var parsed = parse(query), meant = synonyms(query);
    if (!parsed.length) return [];
    return this.pages(query).filter(function (n) { return texts[n]; }).map(function (n) {
      var places = texts[n].map(function (place, i) {
        return { place: place, score: score(query, parsed, index.pages[n][1], place) + 100 * meant.some(function (m) { return m[1] === n && m[2] === i; }) };
      }).filter(function (p) { return p.score > 0; }).sort(function (a, b) { return b.score - a.score; });
      return { page: index.pages[n], places: places.slice(0, 3) };
    }).filter(function (r) { return r.places.length; }).sort(function (a, b) { return b.places[0].score - a.places[0].score; });
  };
  /* Cuts the sentence with most words of the query out of a text: [[words, whether they are marked]] */
  this.sentence = function (query, text) {
    var parsed = parse(query), best = "", most = -1;
    function meant(word) { return stems(word).some(function (s) { return parsed.some(function (w) { return hits([s], w); }); }); }
    text.split(/\n|(?<=[.:;?]) /).forEach(function (s) {
      var list = stems(s), n = parsed.filter(function (w) { return hits(list, w); }).length;
      if (n > most && s.length > 12) { most = n; best = s; }
    });
    var parts = best.split(/(\s+)/), first = Math.max(0, parts.findIndex(meant) - 24);
    return (first ? [["\u2026 ", false]] : []).concat(parts.slice(first, first + 64).map(function (p) { return [p, meant(p)]; }));
  };
}
if (typeof module !== "undefined") module.exports = Search;
else (function () {
  var field = document.getElementById("find"), said = document.getElementById("said"), list = document.getElementById("found"), before = list.innerHTML;
  var engine, pages, texts = {}, asked = {}, at = 0;
  function load(name) { var s = document.createElement("script"); s.src = "search/" + name + ".js"; document.head.appendChild(s); }
  function make(tag, inside, to) { var e = document.createElement(tag); if (to) e.href = to; e.append.apply(e, [].concat(inside)); return e; }
  function marked(parts) { return parts.map(function (p) { return p[1] ? make("mark", p[0]) : p[0]; }); }
  function item(r, query) {
    var best = r.places[0].place, url = r.page[0], more = r.places.slice(1).filter(function (p) { return p.score > r.places[0].score / 2; });
    function to(place) { return url + (place[0] ? "#" + place[0] : ""); }
    var li = make("li", [make("a", best[1], to(best)), " ", make("small", r.page[1] === best[1] ? "page" : r.page[1]), make("p", marked(engine.sentence(query, best[3])))]);
    if (more.length) li.append(make("p", ["also: "].concat(more.flatMap(function (p) { return [make("a", p.place[1], to(p.place)), "  "]; }))));
    return li;
  }
  function find() {
    var query = field.value.trim(), wanted = engine ? engine.pages(query) : [];
    if (!engine) return;
    wanted.forEach(function (n) { if (!asked[n]) { asked[n] = 1; load(n); } });
    if (!wanted.every(function (n) { return texts[n]; })) return;
    var found = engine.rank(query, texts);
    if (query) list.replaceChildren.apply(list, found.map(function (r) { return item(r, query); })); else list.innerHTML = before;
    said.textContent = !query ? "All headings of these pages." : found.length ? "The best " + found.length + " of " + pages + " pages" :
      "No page has \u201c" + query + "\u201d. Try one word, such as lstm, clip, pack or schedule. The search knows names of PyTorch also.";
  }
  window.weft_index = function (index) { pages = index.pages.length; engine = new Search(index); find(); };
  window.weft_text = function (n, places) { texts[n] = places; find(); };
  /* The keys up and down go through the results, / returns to the field, Enter in the field opens the first result. */
  document.addEventListener("keydown", function (e) {
    var links = [field].concat(Array.from(list.querySelectorAll("li > a:first-child"))), i = links.indexOf(document.activeElement);
    var to = e.key === "ArrowDown" && i >= 0 ? links[i + 1] : e.key === "ArrowUp" && i > 0 ? links[i - 1] : e.key === "/" && i !== 0 ? field : null;
    if (to) { e.preventDefault(); to.focus(); }
  });
  field.value = new URLSearchParams(location.search).get("q") || "";
  field.addEventListener("input", find);
  field.form.addEventListener("submit", function (e) { e.preventDefault(); var a = list.querySelector("a"); if (field.value.trim() && a) location.href = a.href; });
  load("index");
})();
