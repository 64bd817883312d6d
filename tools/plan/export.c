/* export.c - writes a plan for a training program: FILE.jsonl, a line for each batch, or FILE.npz, the same
 * lists of all batches end to end. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "io/io.h"
#include "io/weights/weights.h"
#include "tools/plan/plan.h"

/* The lists of a plan. rows, width, most: of each batch. cell: its first cell, piece: its first piece. ends
 * [pieces + batches]: cu_seqlens. position, document: of each cell. */
enum { ROWS, WIDTH, MOST, ENDS, POSITION, DOCUMENT, SEQUENCE, OFFSET, LENGTH, ROW, COLUMN, LISTS };
static const char *const names[LISTS] = { "rows",         "width",        "max_seqlen", "cu_seqlens",
                                          "position_ids", "document_ids", "sequence",   "offset",
                                          "length",       "row",          "column" };
typedef struct {
    int32_t *list[LISTS];
    int64_t size[LISTS], *piece, *cell, batches;
} lists;

bool is_export_file(const char *file) { return weft__ends_in(file, ".jsonl") || weft__ends_in(file, ".npz"); }

static int by_place(const void *a, const void *b)
{
    const weft_segment *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return x->column == y->column ? (x->sequence > y->sequence) - (x->sequence < y->sequence) :
                                    (x->column > y->column) - (x->column < y->column);
}

/* Fills in the pieces of a batch, row after row, and their cells. A piece with a carried state goes on at its
 * offset; another begins at position 0. */
static void fill_batch(lists *l, int64_t b, const weft_segment *s, int64_t n)
{
    int64_t first = l->piece[b], width = l->list[WIDTH][b];
    int32_t *ends = l->list[ENDS] + first + b, document = 0;
    ends[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        const int32_t values[] = { (int32_t)s[i].sequence, s[i].offset, s[i].length, s[i].row,
                                   (int32_t)s[i].column };
        for (int k = 0; k < 5; k++)
            l->list[SEQUENCE + k][first + i] = values[k];
        ends[i + 1] = ends[i] + s[i].length;
        if (s[i].length > l->list[MOST][b])
            l->list[MOST][b] = s[i].length;
        document = i && s[i - 1].row == s[i].row ? document + 1 : 0;
        int64_t cell = l->cell[b] + s[i].row * width + s[i].column;
        for (int32_t t = 0; t < s[i].length; t++) {
            l->list[POSITION][cell + t] = t + (s[i].carry >= 0 ? s[i].offset : 0);
            l->list[DOCUMENT][cell + t] = document;
        }
    }
}

static bool count_cells(lists *l, const weft_plan *p)
{
    for (int64_t b = 0; b < p->batches; b++) {
        const weft_plan_batch *batch = p->batch + b;
        int64_t cells;
        if (__builtin_mul_overflow(batch->rows, batch->width, &cells) || batch->width > INT32_MAX ||
            cells > INT32_MAX - l->cell[b])
            return say_failure("plan: --export: found more than %d cells; expected fewer sequences, or "
                               "shorter rows",
                               INT32_MAX);
        l->cell[b + 1] = l->cell[b] + cells;
        l->piece[b + 1] = l->piece[b] + batch->n;
    }
    return true;
}

static void fill(lists *l, const weft_plan *p)
{
    SCOPED weft_segment *s = get_memory(p->segments, sizeof *s);
    for (int i = 0; i < LISTS; i++) {
        l->size[i] = i < ENDS     ? p->batches :
                     i == ENDS    ? p->segments + p->batches :
                     i < SEQUENCE ? l->cell[p->batches] :
                                    p->segments;
        l->list[i] = get_memory(l->size[i], sizeof *l->list[i]);
    }
    memset(l->list[DOCUMENT], -1, (size_t)l->size[DOCUMENT] * sizeof *l->list[DOCUMENT]);
    for (int64_t b = 0; b < p->batches; b++) {
        l->list[ROWS][b] = (int32_t)p->batch[b].rows;
        l->list[WIDTH][b] = (int32_t)p->batch[b].width;
        memcpy(s, p->segment + p->batch[b].first, (size_t)p->batch[b].n * sizeof *s);
        qsort(s, (size_t)p->batch[b].n, sizeof *s, by_place);
        fill_batch(l, b, s, p->batch[b].n);
    }
}

/* ---- JSON lines ---- */
static void print_list(FILE *to, const int32_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        fprintf(to, "%s%d", i ? ", " : "", (int)x[i]);
}

static void print_batch(FILE *to, const lists *l, int64_t b)
{
    int64_t n = l->piece[b + 1] - l->piece[b], width = l->list[WIDTH][b];
    fprintf(to, "{\"batch\": %lld", (long long)b);
    for (int i = 0; i < LISTS; i++) {
        bool grid = i == POSITION || i == DOCUMENT;
        fprintf(to, i < ENDS ? ", \"%s\": " : ", \"%s\": [", names[i]);
        for (int64_t r = 0; grid && r < l->list[ROWS][b]; r++) {
            fputs(r ? ", [" : "[", to);
            print_list(to, l->list[i] + l->cell[b] + r * width, width);
            fputs("]", to);
        }
        if (!grid)
            print_list(to, l->list[i] + (i < ENDS ? b : l->piece[b] + (i == ENDS) * b),
                       i < ENDS ? 1 : n + (i == ENDS));
        fputs(i < ENDS ? "" : "]", to);
    }
    fputs("}\n", to);
}

static bool write_lines(const char *file, const lists *l)
{
    SCOPED char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    for (int64_t b = 0; to && b < l->batches; b++)
        print_batch(to, l, b);
    bool ok = (to && !fclose(to)) || say_failure("plan: --export %s: no memory for its text", file);
    return ok &&
           (!weft_write_file(file, text, size) || say_failure("plan: --export %s", weft_file_message()));
}

/* ---- .npz: a zip archive of stored .npy files ---- */
static unsigned char *put(unsigned char *to, uint64_t value, int bytes)
{
    for (; bytes--; value >>= 8)
        *to++ = (unsigned char)value;
    return to;
}

/* A member: its header in the archive with the one of the .npy file, its numbers, its entry in the
 * directory. */
typedef struct {
    unsigned char head[2 * WEFT__NPY_HEADER], entry[128];
    size_t head_size, entry_size;
} member;

/* Fills in a member that begins at `offset`, and returns its size. */
static size_t make_member(member *m, const char *name, weft__number type, const void *x, int64_t n,
                          size_t offset)
{
    char header[WEFT__NPY_HEADER], title[40];
    const weft__kind kind = { type, 1, { n } };
    size_t header_size = weft__npy_header(&kind, header), size = header_size + weft__kind_bytes(&kind);
    size_t title_size = (size_t)snprintf(title, sizeof title, "%s.npy", name);
    unsigned long crc = crc32_z(crc32_z(0, (unsigned char *)header, header_size), x, size - header_size);
    unsigned char common[26], *to = put(common, 20, 2);
    to = put(put(put(to, 0, 2), 0, 2), 0x00210000, 4); /* stored, 1 January 1980 */
    to = put(put(put(to, crc, 4), size, 4), size, 4);
    to = put(put(to, title_size, 2), 0, 2);
    size_t common_size = (size_t)(to - common);
    to = put(m->head, 0x04034b50, 4);
    memcpy(to, common, common_size);
    memcpy(to + common_size, title, title_size);
    memcpy(to + common_size + title_size, header, header_size);
    m->head_size = 4 + common_size + title_size + header_size;
    to = put(put(m->entry, 0x02014b50, 4), 20, 2);
    memcpy(to, common, common_size);
    to = put(put(put(put(to + common_size, 0, 2), 0, 2), 0, 2), 0, 4);
    to = put(to, offset, 4);
    memcpy(to, title, title_size);
    m->entry_size = (size_t)(to - m->entry) + title_size;
    return m->head_size + size - header_size;
}

static bool write_npz(const char *file, lists *l)
{
    enum { MEMBERS = LISTS + 2 };
    SCOPED member *m = get_memory(MEMBERS, sizeof *m);
    unsigned char end[22];
    weft__span span[3 * MEMBERS + 1];
    uint64_t offset = 0, directory = 0;
    for (int i = 0; i < MEMBERS; i++) {
        bool wide = i >= LISTS;
        void *x = !wide ? (void *)l->list[i] : i == LISTS ? l->piece : l->cell;
        int64_t n = wide ? l->batches + 1 : l->size[i];
        size_t bytes = (size_t)n * (wide ? 8 : 4);
        weft__turn(wide ? 8 : 4, x, bytes);
        size_t size = make_member(m + i,
                                  !wide      ? names[i] :
                                  i == LISTS ? "first_piece" :
                                               "first_cell",
                                  wide ? WEFT__I64 : WEFT__I32, x, n, (size_t)offset);
        span[2 * i] = (weft__span){ m[i].head, m[i].head_size };
        span[2 * i + 1] = (weft__span){ x, bytes };
        span[2 * MEMBERS + i] = (weft__span){ m[i].entry, m[i].entry_size };
        offset += size;
        directory += m[i].entry_size;
    }
    unsigned char *to = put(put(end, 0x06054b50, 4), 0, 4);
    to = put(put(put(to, MEMBERS, 2), MEMBERS, 2), directory, 4);
    put(put(to, offset, 4), 0, 2);
    span[3 * MEMBERS] = (weft__span){ end, sizeof end };
    bool ok = offset + directory < UINT32_MAX ||
              say_failure("plan: --export %s: found %llu bytes; expected less than 4 GiB, or FILE.jsonl",
                          file, (unsigned long long)offset);
    return ok && (!weft__write_file(file, span, 3 * MEMBERS + 1) ||
                  say_failure("plan: --export %s", weft_file_message()));
}

bool export_plan(const char *file, const planned *t)
{
    const weft_plan *p = &t->plan;
    lists l = { .batches = p->batches };
    l.piece = get_memory(p->batches + 1, sizeof *l.piece);
    l.cell = get_memory(p->batches + 1, sizeof *l.cell);
    bool ok = count_cells(&l, p);
    if (ok) {
        fill(&l, p);
        ok = weft__ends_in(file, ".npz") ? write_npz(file, &l) : write_lines(file, &l);
    }
    for (int i = 0; i < LISTS; i++)
        free(l.list[i]);
    free(l.piece);
    free(l.cell);
    return ok;
}
