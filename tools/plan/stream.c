/* stream.c - packs lengths as they come, for `weft plan --stream`, and keeps the open rows in a file. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "io/weights/weights.h"
#include "tools/corpora/corpora.h"
#include "tools/plan/plan.h"
#include "weft_plan.h"

/* Reads the next length. Returns 1; 0 at the end; -1 after a printed error. */
static int next_length(FILE *from, const char *path, long long *line, int64_t *length)
{
    char word[48];
    size_t n = 0;
    int c;
    while (isspace(c = getc_unlocked(from)))
        *line += c == '\n';
    for (; c != EOF && !isspace(c); c = getc_unlocked(from))
        if (n < sizeof word - 1)
            word[n++] = c ? (char)c : '?';
    if (ferror(from))
        return say_failure("%s: cannot read it: %s", path, strerror(errno)) - 1;
    word[n] = 0;
    if (!n)
        return 0;
    if (c != EOF)
        ungetc(c, from);
    return read_length(path, *line, word, length) ? 1 : -1;
}

static void print_rows(weft_packer *p)
{
    for (weft_packed_row r; weft_packer_next(p, &r);) {
        printf("{\"row\": %lld, \"tokens\": %lld, \"pieces\": [", (long long)r.number, (long long)r.tokens);
        for (int64_t i = 0; i < r.n; i++)
            printf("%s[%lld, 0, %lld]", i ? ", " : "", (long long)r.piece[i].id,
                   (long long)r.piece[i].length);
        puts("]}");
    }
}

/* ---- the state, an array of int64 in NumPy's format ---- */
static bool read_state(weft_packer *p, const char *path)
{
    SCOPED unsigned char *bytes = NULL;
    size_t size;
    weft__array a = { 0 };
    weft_status s = weft__read_file(path, NULL, &bytes, &size);
    if (s == WEFT_ENOENT)
        return true;
    if (s != WEFT_OK)
        return say_failure("plan: --state %s", weft_file_message());
    const char *reason = weft__npy_read(bytes, size, &a);
    if (reason || a.kind.type != WEFT__I64 || a.kind.rank != 1)
        return say_failure("plan: --state %s: %s", path, reason ? reason : "expected the state of a stream");
    int64_t n = a.kind.size[0], *state SCOPED = get_memory(n, sizeof *state);
    memcpy(state, a.bytes, (size_t)n * sizeof *state);
    weft__turn(sizeof *state, state, (size_t)n * sizeof *state);
    return weft_packer_set_state(p, state, n) == WEFT_OK ||
           say_failure("plan: --state %s: %s", path, weft_plan_message());
}

static bool write_state(const weft_packer *p, const char *path)
{
    int64_t n = weft_packer_state_size(p), *state SCOPED = get_memory(n, sizeof *state);
    char header[WEFT__NPY_HEADER];
    size_t size = weft__npy_header(&(weft__kind){ WEFT__I64, 1, { n } }, header),
           bytes = (size_t)n * sizeof *state;
    weft_packer_get_state(p, state);
    weft__turn(sizeof *state, state, bytes);
    return !weft__write_file(path, (weft__span[]){ { header, size }, { state, bytes } }, 2) ||
           say_failure("plan: --state %s", weft_file_message());
}

static bool pack(weft_packer *p, FILE *from, const char *path)
{
    int64_t length;
    long long line = 1;
    int more;
    while ((more = next_length(from, path, &line, &length)) > 0) {
        if (weft_packer_add(p, weft_packer_count(p), length) != WEFT_OK)
            return say_failure("plan: %s:%lld: %s", path, line, weft_plan_message());
        print_rows(p);
        if (ferror(stdout))
            return false;
    }
    return !more;
}

int plan_stream(const char *lengths, const char *planner, const char *state, bool flush)
{
    bool standard = !strcmp(lengths, "-");
    const weft_planner *named;
    weft_plan_opts o;
    void *memory;
    weft_packer *p = NULL;
    FILE *from = standard ? stdin : fopen(lengths, "r");
    bool ok = from || say_failure("%s: %s", lengths, strerror(errno));
    ok = ok && ((weft_plan_parse(planner, &named, &o, &memory) == WEFT_OK &&
                 (free(memory), weft_packer_new(named, &o, &p) == WEFT_OK)) ||
                say_failure("plan: %s", weft_plan_message()));
    setvbuf(stdout, NULL, _IOLBF, 1 << 16);
    ok = ok && (!state || read_state(p, state)) && pack(p, from, standard ? "stdin" : lengths);
    if (ok && (!state || flush)) {
        weft_packer_end(p);
        print_rows(p);
    }
    ok = finish_output("plan", ok ? GOOD : FAILED) == GOOD && (!state || write_state(p, state));
    if (from && !standard)
        fclose(from);
    weft_packer_free(p);
    return ok ? GOOD : FAILED;
}
