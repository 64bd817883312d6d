/* lab_probe.js - for lab_check.sh: tries the page in the frame as a reader would, and lists faults in #faults. `width` is that of the frame. */
const faults = [];
const fault = (what) => faults.push(what);
const number = (cell) => parseFloat(cell.textContent.replace(/,/g, ''));

function tryPage(frame, width) {
    const page = frame.contentDocument, window = frame.contentWindow, saved = [];
    const all = (selector, of = page) => Array.from(of.querySelectorAll(selector));
    window.Blob = class { constructor(parts) { saved.push(parts.join('')); } };
    window.URL.createObjectURL = () => '#';
    window.HTMLAnchorElement.prototype.click = () => {};
    const save = (button) => { button.click(); return saved.pop() || ''; };
    all('details').forEach((fold) => { fold.open = true; });
    if (page.documentElement.scrollWidth > width) fault(`the page is ${page.documentElement.scrollWidth} wide in ${width}`);
    let sorted = 0;
    for (const [k, table] of all('table').entries()) {
        const name = `table ${k + 1}`, box = table.parentNode, csv = box.lastElementChild;
        if (box.scrollWidth > box.clientWidth) fault(`${name} is ${box.scrollWidth} wide in ${box.clientWidth}`);
        if (csv.tagName !== 'BUTTON') { fault(`${name} has no button`); continue; }
        const lines = (save(csv)).trimEnd().split('\n');
        if (lines.length !== table.rows.length) fault(`${name}: ${lines.length} lines for ${table.rows.length} rows`);
        const fields = (line) => line.replace(/"[^"]*"/g, '').split(',').length;
        if (lines.some((line) => fields(line) !== table.rows[0].cells.length)) fault(`${name}: a line has other fields`);
        for (const sign of [1, -1]) {
            const before = table.tBodies[0].rows.length, head = table.tHead.rows[0].cells[1];
            head.querySelector('button').click();
            const values = Array.from(table.tBodies[0].rows, (row) => number(row.cells[1])).filter((x) => !isNaN(x));
            if (values.some((x, i) => i && sign * (x - values[i - 1]) < 0)) fault(`${name} is not sorted: ${values}`);
            if (head.getAttribute('aria-sort') !== (sign > 0 ? 'ascending' : 'descending')) fault(`${name} has no aria-sort`);
            if (table.tBodies[0].rows.length !== before) fault(`${name} lost rows`);
            sorted += new Set(values).size > 1;
        }
    }
    if (!sorted) fault('no table has different numbers to sort');
    for (const [k, figure] of all('figure').entries()) {
        const [svg, csv] = all('button', figure), name = `figure ${k + 1}`;
        if (!svg || !csv) { fault(`${name} has no buttons`); continue; }
        const tree = new DOMParser().parseFromString(save(svg), 'image/svg+xml');
        if (tree.querySelector('parsererror') || tree.documentElement.localName !== 'svg') fault(`${name} is no SVG`);
        else if (!tree.querySelector('style') || !tree.querySelector('#hatch')) fault(`${name} has no style`);
        const lines = (save(csv)).trimEnd().split('\n'), fields = (line) => line.split(',').length;
        if (lines.length < 2 || lines.some((line) => fields(line) !== fields(lines[0]))) fault(`${name}: its numbers are damaged`);
    }
}

addEventListener('load', () => {
    const frame = document.querySelector('iframe');
    try { tryPage(frame, frame.clientWidth); } catch (error) { fault(String(error)); }
    document.getElementById('faults').textContent = `tried: ${faults.length ? faults.join('; ') : 'no fault'}`;
});
