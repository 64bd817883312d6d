/* table.c - splits CSV into cells byte by byte (fuzz.h). It reads only files that the reader has accepted, so
 * it does not check them. */
#include "fuzz.h"

typedef struct { table t; char *to; size_t room; int64_t open; } making;

static void end_cell(making *k, char *from)
{
    if (k->t.cells == k->room)
        k->t.cell = realloc(k->t.cell, (k->room = 2 * k->room + 16) * sizeof *k->t.cell);
    k->t.cell[k->t.cells++] = (csv_cell){ from, (size_t)(k->to - from) };
    *k->to++ = 0;
}

static void end_record(making *k)
{
    if (k->t.cells == (size_t)k->open + 1 && !k->t.cell[k->open].n) {             /* an empty line */
        k->t.cells--;
        return;
    }
    k->t.record = realloc(k->t.record, (size_t)(k->t.records + 2) * sizeof *k->t.record);
    k->t.record[k->t.records++] = k->open;
    k->t.record[k->t.records] = k->open = (int64_t)k->t.cells;
}

table table_read(const uint8_t *bytes, size_t n, char delimiter)
{
    size_t at = n >= 3 && !memcmp(bytes, "\xEF\xBB\xBF", 3) ? 3 : 0;
    making k = { .t.text = malloc(2 * n + 2) };
    k.to = k.t.text;
    while (at < n) {
        char *from = k.to;
        bool quoted = bytes[at] == '"';
        for (at += quoted; at < n; at++) {
            bool line = bytes[at] == '\n' || (bytes[at] == '\r' && at + 1 < n && bytes[at + 1] == '\n');
            if (quoted && bytes[at] == '"' && !(at + 1 < n && bytes[at + 1] == '"'))
                quoted = false;
            else if (!quoted && (line || bytes[at] == (uint8_t)delimiter))
                break;
            else
                *k.to++ = (char)bytes[at += quoted && bytes[at] == '"'];
        }
        end_cell(&k, from);
        bool more = at < n && bytes[at] == (uint8_t)delimiter;
        at += at < n && bytes[at] == '\r' && !more ? 2 : 1;
        if (more && at >= n)                     /* an empty cell after the last delimiter */
            end_cell(&k, k.to);
        if (!more || at >= n)
            end_record(&k);
    }
    return k.t;
}

void table_end(table *t)
{
    free(t->cell);
    free(t->text);
    free(t->record);
}

int64_t table_column(const table *t, const char *name)
{
    for (int64_t c = 0; t->records && c < t->record[1]; c++)
        if (t->cell[c].n == strlen(name) && !memcmp(t->cell[c].text, name, t->cell[c].n))
            return c;
    return -1;
}

csv_cell table_cell(const table *t, int64_t row, int64_t column)
{
    return t->cell[t->record[row + 1] + column];
}

double table_number(const table *t, int64_t row, int64_t column)
{
    csv_cell c = table_cell(t, row, column);
    char *end;
    double value = strtod(c.text, &end);
    SAME(!c.n || end > c.text, "\"%.100s\" was read as a number", c.text);
    return c.n ? value : (double)NAN;
}

bool table_same(csv_cell a, csv_cell b) { return a.n == b.n && !memcmp(a.text, b.text, a.n); }
