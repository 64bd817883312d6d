/* info.c - `weft info`, `weft list` and `weft check`: describe files with weights and their arrays. */
#include <math.h>
#include "tools/weights/arrays.h"

/* ---- info ---- */
/* Prints the sums over the arrays of a type; ALL: of all types. */
enum { ALL = WEFT__ODD + 1 };
static void emit_sums(const weft__weights *w, int type)
{
    int64_t arrays = 0, count = 0, bytes = 0;
    for (int64_t i = 0; i < w->n; i++)
        if (type == ALL || (int)type_of(&w->array[i]) == type) {
            arrays++;
            count += elements_of(&w->array[i].kind);
            bytes += (int64_t)weft__kind_bytes(&w->array[i].kind);
        }
    if (arrays || type == ALL)
        emit("{<dtype>  %-16s <arrays>%d array(s), <numbers>%d number(s), <bytes>%d byte(s)\n}",
             type == ALL ? "all" : type_text((weft__number)type), arrays, count, bytes);
}

static void info(char **path)
{
    weft__weights *w = open_weights(*path);
    if (!w)
        return;
    emit("{<file>%s\n", *path);
    emit("<format>  format           %s\n<bytes>  bytes            %d\n", w->format, (int64_t)w->size);
    emit("<arrays>[");
    for (int type = ALL; type >= 0; type--)
        emit_sums(w, type);
    emit("]<facts>[");
    for (int64_t i = 0; i < w->facts; i++)
        emit("{<key>  %-16s<value> %s\n}", w->fact[i].key, w->fact[i].value);
    emit("]}");
    weft__weights_close(w);
}

WEIGHTS(info, 1, INT_MAX, EACH, "describes files with weights", "FILE .. [--json]",
    "Prints format, size, numbers by type, and other facts in the file: its producer, or for a checkpoint\n"
    "the optimiser, rate, items and random streams. The checksum of a checkpoint is verified.\n",
    OPTION_PART, OPTION_JSON);

/* ---- list ---- */
/* Counts of an array, and moments of its finite numbers, NaN without any. */
typedef struct { int64_t nans, infinities; double least, most, mean, norm; } moments;

static moments moments_of(const numbers *x)
{
    moments m = { 0, 0, (double)NAN, (double)NAN, 0, 0 };
    for (int64_t i = 0; i < x->n; i++) {
        double v = (double)number_at(x, i);
        m.nans += isnan(v);
        m.infinities += isinf(v) != 0;
        if (!isfinite(v))
            continue;
        m.least = fmin(m.least, v);
        m.most = fmax(m.most, v);
        m.mean += v;
        m.norm += v * v;
    }
    int64_t finite = x->n - m.nans - m.infinities;
    m.mean = finite ? m.mean / (double)finite : (double)NAN;
    m.norm = finite ? sqrt(m.norm) : (double)NAN;
    return m;
}

/* form: of the name, with the width of its column. */
static void list_array(weft__weights *w, const weft__array *a, const char *form)
{
    numbers x = { 0 };
    if (asked.statistics && !read_numbers(w, a, &x))
        unreadable();
    emit(form, a->name);
    emit("<dtype>%-8t <shape>%-14k <bytes>%10d", &a->kind, &a->kind, (int64_t)weft__kind_bytes(&a->kind));
    if (x.values && !asked.status) {
        moments m = moments_of(&x);
        emit("<min>  min %-12.6g<max> max %-12.6g<mean> mean %-12.6g<norm> norm %-12.6g", m.least, m.most,
             m.mean, m.norm);
        emit("<nan> nan %d<inf> inf %d", m.nans, m.infinities);
    }
    emit("}\n");
    free(x.values);
}

static void list(char **path)
{
    (void)path;
    weft__weights *w = asked.file[0];
    char form[32];
    size_t width = 0;
    for (int64_t i = 0; i < w->n; i++)
        width = strlen(w->array[i].name) > width ? strlen(w->array[i].name) : width;
    snprintf(form, sizeof form, "{<name>%%-%ds  ", width < 60 ? (int)width : 60);
    emit("[");
    for (int64_t i = 0; i < w->n && !asked.status; i++)
        if (asked.names)
            emit("%s\n", w->array[i].name);
        else
            list_array(w, &w->array[i], form);
    emit("]");
}

WEIGHTS(list, 1, 1, 1, "lists the arrays of a file with weights", "FILE [-s] [--names] [--json]",
    "Prints name, type, shape and bytes of each array, sorted by name. FILE is a checkpoint of weft, HDF5,\n"
    "safetensors, PyTorch (.pt), NumPy (.npz), Keras or ONNX; its content decides.\n",
    IS_FLAG("-s", FIELD(statistics), "also print minimum, maximum, mean and norm of the finite\n"
                                     "numbers, and the counts of NaN and infinities"),
    IS_FLAG("--names", FIELD(names), "print only the names"), OPTION_PART, OPTION_JSON);

/* ---- check: as fsck checks disks. The readers refuse each fault of the structure ---- */
static const char *checked; /* the path */
static int64_t faults, notes;

/* Prints a finding as one line. name: of the array, or NULL: the text is the last failure, with the path. */
static void find(bool fault, const char *name, const char *text)
{
    *(fault ? &faults : &notes) += 1;
    emit(name ? "{<file>%s: " : "{<file>%.0s", checked);
    emit("<kind>%s: ", fault ? "fault" : "note");
    if (name)
        emit("<name>%s: ", name);
    emit("<text>%s\n}", name ? text : weft_file_message());
}

/* Returns false after a failure. */
static bool check_array(weft__weights *w, const weft__array *a)
{
    char odd[96], same[96];
    const char *name = a->name, *dot = strstr(name, "..");
    numbers x;
    bool read = read_numbers(w, a, &x);
    moments m = x.values ? moments_of(&x) : (moments){ 0 };
    bool finite = !m.nans && !m.infinities;
    snprintf(odd, sizeof odd, "NaN: %lld, infinities: %lld, numbers: %lld", (long long)m.nans,
             (long long)m.infinities, (long long)x.n);
    snprintf(same, sizeof same, "all %lld numbers are %.6g", (long long)x.n, m.most);
    const struct { bool found, fault; const char *text; } findings[] = {
        { dot || !*name || *name == '.' || name[strlen(name) - 1] == '.', false,
          "the name has an empty part" },
        { strchr(name, ' '), false, "the name has a blank" },
        { !x.values, false, "weft does not read its type" },
        { x.values && !x.n, false, "it has no numbers" },
        { x.values && x.n > 1 && finite && m.least == m.most, false, same },
        { !finite, m.nans, odd } };
    if (!read)
        find(true, NULL, NULL);
    for (size_t i = 0; read && i < sizeof findings / sizeof *findings; i++)
        if (findings[i].found)
            find(findings[i].fault, name, findings[i].text);
    free(x.values);
    return read;
}

static void check(char **path)
{
    weft__weights *w;
    weft_status s = weft__weights_open(*path, asked.rename.part, &w);
    checked = *path;
    faults = notes = 0;
    if (s == WEFT_ENOENT || s == WEFT_EIO || s == WEFT_EARG || s == WEFT_ENOMEM)
        unreadable();
    else if (s)
        find(true, NULL, NULL);
    for (int64_t i = 0; w && i < w->n && check_array(w, &w->array[i]); i++)
        ;
    failed(faults ? DIFFERENT : SAME);
    if (w && !asked.json && !faults) {
        emit("%s: good: %s, %d array(s), ", *path, w->format, w->n);
        emit("%d note(s)\n", notes);
    }
    weft__weights_close(w);
}

WEIGHTS(check, 1, INT_MAX, EACH, "checks files with weights for damage", "FILE .. [--json]",
    "Prints a line for each fault: damage, NaN. Notes are not faults: infinities, equal numbers, unusual\n"
    "names or types. Exit status: 0 no fault, 1 faults, 2 a file cannot be read.\n",
    OPTION_PART, OPTION_JSON);
