/* probe.js - runs inside a page, started by look.py, and returns a list of faults after a tenth of a second. */
(function () {
  var faults = [], seen = {};
  function fault(text) { if (!seen[text]) { seen[text] = 1; faults.push(text); } }
  function name(e) { return e.tagName.toLowerCase() + (e.getAttribute("class") ? "." + e.getAttribute("class").replace(/ .*/, "") : "") + " '" + (e.textContent || "").trim().slice(0, 30) + "'"; }
  function colour(text) { var n = text.match(/[\d.]+/g).map(Number); return { r: n[0], g: n[1], b: n[2], a: n.length > 3 ? n[3] : 1 }; }
  function over(c, d) { return { r: c.r * c.a + d.r * (1 - c.a), g: c.g * c.a + d.g * (1 - c.a), b: c.b * c.a + d.b * (1 - c.a), a: 1 }; }
  function part(x) { x /= 255; return x <= .03928 ? x / 12.92 : Math.pow((x + .055) / 1.055, 2.4); }
  function light(c) { return .2126 * part(c.r) + .7152 * part(c.g) + .0722 * part(c.b); }
  function ground(e) {
    var layers = [], c = { r: 255, g: 255, b: 255, a: 1 };
    for (; e; e = e.parentElement) { var b = colour(getComputedStyle(e).backgroundColor); layers.push(b); if (b.a === 1) break; }
    while (layers.length) c = over(layers.pop(), c);
    return c;
  }
  /* Returns the background colour under the middle of a text in a picture, blended from the shapes below it; null if one has a pattern. An outline that is
   * drawn before the text also counts as background. */
  function drawn_ground(e, s) {
    if (/^stroke/.test(s.paintOrder) && s.stroke !== "none" && parseFloat(s.strokeWidth) >= 2) return colour(s.stroke);
    e.scrollIntoView({ block: "center", inline: "center" });
    var box = e.getBoundingClientRect(), layers = [], c = { r: 255, g: 255, b: 255, a: 1 };
    var under = document.elementsFromPoint(box.left + box.width / 2, box.top + box.height / 2).filter(function (u) { return u !== e && u.tagName !== "text"; });
    for (var i = 0; i < under.length; i++) {
      var t = getComputedStyle(under[i]), html = !(under[i] instanceof SVGElement) || under[i].tagName === "svg", fill = html ? t.backgroundColor : t.fill;
      if (fill === "none") continue;
      if (/^url/.test(fill)) return null;
      var b = colour(fill);
      if (!html) b.a *= t.fillOpacity * t.opacity;
      layers.push(b);
      if (b.a === 1) break;
    }
    while (layers.length) c = over(layers.pop(), c);
    return c;
  }
  /* WCAG 2: texts need a contrast of 4.5 to their background, large ones 3. */
  function contrast(e) {
    var s = getComputedStyle(e), svg = e instanceof SVGElement, g = svg ? drawn_ground(e, s) : ground(e);
    if (!g) return;
    var a = light(over(colour(svg ? s.fill : s.color), g)), b = light(g);
    var c = (Math.max(a, b) + .05) / (Math.min(a, b) + .05), size = parseFloat(s.fontSize);
    var least = size >= 24 || size >= 18.66 && s.fontWeight >= 700 ? 3 : 4.5;
    if (c < least) fault("contrast " + c.toFixed(2) + " of " + name(e));
  }
  function scrolls(e) { for (e = e.parentElement; e && e !== document.body; e = e.parentElement) if (/auto|scroll|hidden/.test(getComputedStyle(e).overflowX)) return true; return false; }
  /* Letters: 12 px in texts, in pictures 7.5 and 9 on a narrow screen; the smallest letter of a picture has 10 px (check.py). */
  var narrow = document.documentElement.clientWidth < 640, paper = matchMedia("print").matches, least = narrow ? 9 : 7.5;
  function letters(e) {
    var size = parseFloat(getComputedStyle(e).fontSize) * (e.getScreenCTM && document.body ? e.getScreenCTM().a : 1);
    if (!paper && !e.closest("math") && document.body && size < (e.closest("svg") ? least : 12)) fault("letters of " + size.toFixed(1) + " px: " + name(e));
  }
  /* WCAG 2.5.8: a target has 24 px, or a circle of 24 px around its middle meets no other. Links in a text are exempt. */
  function targets() {
    var all = Array.from(document.querySelectorAll("a[href], button, input, select, summary")).filter(function (e) {
      var li = e.closest("main li"), box = e.getBoundingClientRect();
      return e.checkVisibility() && box.right > 0 && !e.closest("p, td, th, pre, h1, h2, h3, h4") && !(li && li.textContent.trim() !== e.textContent.trim());
    }).map(function (e) { return { e: e, b: e.getBoundingClientRect() }; });
    all.forEach(function (t) {
      if (t.b.width >= 24 && t.b.height >= 24) return;
      var x = t.b.left + t.b.width / 2, y = t.b.top + t.b.height / 2;
      if (all.some(function (o) { return o !== t && Math.hypot(Math.max(o.b.left - x, 0, x - o.b.right), Math.max(o.b.top - y, 0, y - o.b.bottom)) < 12; }))
        fault("a target of " + Math.round(t.b.width) + " x " + Math.round(t.b.height) + " px: " + name(t.e));
    });
  }
  var page = document.body, width = document.documentElement.clientWidth, texts = 0;
  if (page && document.documentElement.scrollWidth > width) fault("is " + document.documentElement.scrollWidth + " px wide; expected at most " + width);
  document.querySelectorAll(page ? "body *" : "text").forEach(function (e) {
    if (!e.checkVisibility || !e.checkVisibility() || /^(script|title)$/i.test(e.tagName)) return;
    if (Array.from(e.childNodes).some(function (n) { return n.nodeType === 3 && n.data.trim(); })) { texts++; contrast(e); letters(e); }
    var box = e.getBoundingClientRect();
    if (page && box.width && box.right > width + 1 && !scrolls(e) && e.parentElement.getBoundingClientRect().right <= width + 1) fault("goes over the edge, to " + Math.round(box.right) + ": " + name(e));
  });
  var pictures = Array.from(document.images || []);
  pictures.forEach(function (i) { if (!i.complete || !i.naturalWidth) fault("a picture is missing: " + i.getAttribute("src"));
    var scale = i.getBoundingClientRect().width / i.getAttribute("width");
    if (!paper && scale * 10 < least - .01) fault("letters of " + (scale * 10).toFixed(1) + " px in " + i.getAttribute("src"));
  });
  if (narrow && page) targets();
  if (!texts) fault("is empty");
  function seenAll() { return { faults: faults, texts: texts, pictures: pictures.length }; }
  if (!page || paper) return seenAll();     /* a table that still loads may move a little */
  return new Promise(function (done) {
    new PerformanceObserver(function (list) {
      list.getEntries().forEach(function (s) { if (!s.hadRecentInput && s.value > .02) fault("moves after it is shown, by " + s.value.toFixed(3)); });
    }).observe({ type: "layout-shift", buffered: true });
    setTimeout(function () { done(seenAll()); }, 100);
  });
})()
