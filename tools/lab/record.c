/* record.c - the record of a run: one JSON file with every number and everything that a repetition needs. */
#include "tools/lab/run.h"
#include <dlfcn.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "tools/options.h"

#ifndef WEFT_COMMIT /* the build sets it in a clone with git; "+": with changes that are not committed */
#define WEFT_COMMIT NULL
#endif

extern char **environ;
const char *const lab_sections[LAB_SECTIONS] = { "counted", "computed", "timed" };

/* Returns NULL for NaN, which JSON lacks; json_object_set_new leaves it out. */
static json_t *number_of(double x)
{
    return x == rint(x) && fabs(x) < 0x1p53 ? json_integer((json_int_t)x) : json_real(x);
}

static json_t *text_of(const char *text)
{
    json_t *string = text ? json_string(text) : NULL;
    return string || !text ? string : json_string("(not UTF-8)");
}

/* ---- results ---- */
static lab_section section_of(const char *experiment, const char *number)
{
    if (!strcmp(experiment, "times") || !strcmp(experiment, "cost") || !strcmp(number, "seconds") ||
        strstr(number, "_ms"))
        return LAB_TIMED;
    return !strcmp(experiment, "plan") || !strcmp(experiment, "adversaries") ? LAB_COUNTED : LAB_COMPUTED;
}

void lab_note(const lab_run *r, const char *experiment, const char *planner, const char *key,
              const char *text, const lab_number *number, int n)
{
    json_t *entry[LAB_SECTIONS] = { NULL };
    weft_journal_text(r->times, "experiment", experiment);
    weft_journal_text(r->times, "planner", planner);
    if (key)
        weft_journal_text(r->times, key, text);
    for (int i = 0; i < n; i++) {
        lab_section s = section_of(experiment, number[i].name);
        weft_journal_number(r->times, number[i].name, number[i].value);
        if (!entry[s]) {
            entry[s] = json_pack("{s:s,s:o}", "experiment", experiment, "planner", text_of(planner));
            json_array_append_new(r->notes[s], entry[s]);
            if (key)
                json_object_set_new(entry[s], key, text_of(text));
        }
        json_object_set_new(entry[s], number[i].name, number_of(number[i].value));
    }
    weft_journal_line_end(r->times);
}

static const char *hash_plan(const weft_plan *p, char text[65])
{
    sha256 s = SHA256_START;
    for (const weft_plan_batch *b = p->batch; b < p->batch + p->batches; b++) {
        const weft_segment *g = p->segment + b->first;
        sha256_add(&s, (const int32_t[]){ (int32_t)b->n, (int32_t)b->rows, (int32_t)b->width }, 3);
        for (int64_t i = 0; i < b->n; i++, g++)
            sha256_add(&s, (const int32_t[]){ (int32_t)g->sequence, (int32_t)g->column, g->offset, g->length,
                                              g->row, g->carry }, 6);
    }
    return sha256_end(&s, text);
}

#define NUMBER(of, key) { #key, (double)(of)->key }
void lab_note_plan(const lab_run *r, int i)
{
    const planned *t = r->made + i;
    const weft_plan_figures *f = &t->figures;
    const lab_plan *l = r->page.plan + i;
    weft_plan_work work = { 0 }, *w = &work;
    weft_token_weights by[3] = { { .cv = LAB_NONE }, { .cv = LAB_NONE }, { .cv = LAB_NONE } };
    weft_plan_disturbance d = { .sum = LAB_NONE };
    double correlation = LAB_NONE, none = LAB_NONE;
    char hash[65];
    bool bound = t->opts.capacity, again = l->epochs > 1;
    bool ok = weft_plan_count_work(&t->plan, w) == WEFT_OK &&
              weft_plan_autocorrelation(&t->plan, &correlation) == WEFT_OK &&
              weft_plan_disturb(&t->plan, r->train.len, r->train.n, &d) == WEFT_OK;
    for (int k = 0; k < 3 && ok; k++)
        ok = weft_plan_weigh(&t->plan, (weft_plan_mean)k, by + k) == WEFT_OK;
    NOTE_TEXT(r, "plan", t->text, "sha256", hash_plan(&t->plan, hash), NUMBER(f, batches), NUMBER(f, rows),
              NUMBER(f, segments), NUMBER(f, tokens), NUMBER(f, cells), NUMBER(f, fill), NUMBER(f, steps),
              NUMBER(f, runs), NUMBER(f, mean_live), NUMBER(f, eta2), NUMBER(f, empty), NUMBER(f, dropped),
              NUMBER(f, cuts), { "l1", bound ? (double)f->l1 : none }, { "l2", bound ? (double)f->l2 : none },
              NUMBER(w, products), NUMBER(w, padded_products), NUMBER(w, sums), NUMBER(w, padded_sums),
              NUMBER(w, squares), NUMBER(w, padded_squares), { "autocorrelation", correlation },
              { "disturbance", d.sum }, { "cv_of_batch", by[0].cv }, { "cv_of_plan", by[1].cv },
              { "cv_of_sequences", by[2].cv }, NUMBER(l, epochs), { "pairs", (double)l->meetings.pairs },
              { "again", again ? (double)l->meetings.again : none },
              { "again_by_chance", again ? l->meetings.by_chance : none }, NUMBER(l, planner_ms));
}

/* ---- conditions ---- */
static json_t *describe_machine(const lab_run *r)
{
    struct utsname u;
    char cpu[256], system[256] = "unknown";
    weft *w = weft_open(&(weft_opts){ .threads = (int)r->asked.threads });
    cpu_model(cpu, sizeof cpu);
    void *blas = dlopen("libopenblas.so.0", RTLD_LAZY | RTLD_LOCAL);
    char *(*config)(void) = NULL;
    if (blas)
        *(void **)&config = dlsym(blas, "openblas_get_config");
    if (!uname(&u))
        snprintf(system, sizeof system, "%.60s %.100s %.60s", u.sysname, u.release, u.machine);
    json_t *machine = json_pack("{s:o,s:I,s:s,s:s,s:s,s:o}", "cpu", text_of(cpu), "cores",
                                (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "instructions",
                                weft_device_name(w), "system", system, "compiler", COMPILER, "openblas",
                                text_of(config ? config() : "not installed"));
    weft_close(w);
    return machine;
}

/* Returns the variables that change what weft computes. */
static json_t *describe_environment(void)
{
    json_t *all = json_object();
    for (char **v = environ; *v; v++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*v, "="), *v);
        if (!strncmp(name, "WEFT_", 5) || !strncmp(name, "OPENBLAS_", 9))
            json_object_set_new(all, name, text_of(*v + strcspn(*v, "=") + 1));
    }
    return all;
}

static json_t *describe_corpus(const lab_run *r)
{
    return json_pack("{s:o,s:I,s:I,s:I,s:I,s:I,s:s}", "name", text_of(r->asked.corpus), "sequences",
                     (json_int_t)r->train.n, "tokens", (json_int_t)r->train.offset[r->train.n],
                     "held_out_sequences", (json_int_t)r->held.n, "held_out_tokens",
                     (json_int_t)r->held.offset[r->held.n], "classes", (json_int_t)r->classes, "sha256",
                     r->corpus);
}

/* Returns whether a record has this option. The others change no result, or only defaults. */
static bool is_recorded(const option *o)
{
    return o->kind == OPTION_WHOLE || o->kind == OPTION_REAL || !strcmp(o->name, "--corpus") ||
           !strcmp(o->name, "--from");
}

/* Returns NULL if the option is not set. */
static json_t *option_value(const option *o, const lab_asked *a)
{
    const void *field = (const char *)a + o->field;
    double x = o->kind == OPTION_WHOLE  ? (double)*(const int64_t *)field :
               o->kind == OPTION_REAL   ? *(const double *)field :
                                          0;
    return o->kind == OPTION_TEXT ? text_of(*(const char *const *)field) : x > 0 ? number_of(x) : NULL;
}

static json_t *describe_options(const lab_run *r)
{
    char only[200];
    json_t *all = json_pack("{s:s}", "only", lab_experiments(r->asked.leave_out, only));
    for (const option *o = subcommand_lab.options; o->name; o++)
        if (is_recorded(o))
            json_object_set_new(all, o->name + 2, option_value(o, &r->asked));
    return all;
}

/* Returns the hash of all members but the seal. */
static json_t *seal_of(const json_t *record)
{
    sha256 s = SHA256_START;
    char hash[65];
    json_auto_t *rest = json_copy((json_t *)record);
    json_object_del(rest, "seal");
    SCOPED char *text = json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS);
    sha256_add_bytes(&s, text ? text : "", text ? strlen(text) : 0);
    return json_string(sha256_end(&s, hash));
}

json_t *lab_make_record(const lab_run *r, const char *command)
{
    char date[32];
    date_now(DATE "T%H:%M:%SZ", date);
    json_t *planners = json_array(), *seeds = json_array();
    for (int i = 0; i < r->named; i++)
        json_array_append_new(planners, json_pack("{s:o,s:b}", "planner", text_of(r->asked.planner[i]),
                                                  "padded", r->asked.padded[i]));
    for (int i = 1; i <= r->asked.seeds; i++)
        json_array_append_new(seeds, json_integer(i));
    const char *stopped = lab_stops(r) ? r->page.stopped : NULL;
    json_t *all = json_pack("{s:i,s:{s:s,s:s*,s:s},s:s,s:o,s:o,s:o,s:{s:o,s:i},s:o,s:o,s:o,s:s*,s:O,s:O,s:O}",
                            "weft_lab_record", LAB_FORMAT, "weft", "version", weft_version(), "commit",
                            WEFT_COMMIT, "real", sizeof(weft_real) == 4 ? "float" : "double", "date", date,
                            "command", text_of(command), "options", describe_options(r), "planners", planners,
                            "seeds", "learning", seeds, "others", 1, "machine", describe_machine(r),
                            "environment", describe_environment(), "corpus", describe_corpus(r), "stopped",
                            stopped, lab_sections[0], r->notes[0], lab_sections[1], r->notes[1],
                            lab_sections[2], r->notes[2]);
    json_object_set_new(all, "seal", seal_of(all));
    return all;
}

/* ---- the file ---- */
/* Writes a member a line, and an element of a list a line. */
bool lab_write_record(const char *path, const json_t *record)
{
    SCOPED char *text = NULL;
    size_t size = 0, i;
    const char *key, *between = "{\n";
    json_t *value, *element;
    FILE *to = open_memstream(&text, &size);
    json_object_foreach((json_t *)record, key, value) {
        fprintf(to, "%s\"%s\": %s", between, key, json_is_array(value) ? "[" : "");
        json_array_foreach(value, i, element) {
            fputs(i ? ",\n " : "\n ", to);
            json_dumpf(element, to, 0);
        }
        json_is_array(value) ? fputc(']', to) : json_dumpf(value, to, JSON_ENCODE_ANY);
        between = ",\n";
    }
    fputs("\n}\n", to);
    return (!fclose(to) && weft_write_file(path, text, size) == WEFT_OK) ||
           say_failure("lab: %s", weft_file_message());
}

json_t *lab_read_record(const char *path, bool *sealed)
{
    json_error_t e;
    int format = LAB_FORMAT;
    const char *version = "?", *hash;
    json_t *all = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
    bool ok = all && !json_unpack_ex(all, &e, 0, "{s:i,s:{s:s}}", "weft_lab_record", &format, "weft",
                                     "version", &version);
    ok = ok && (format != LAB_FORMAT ||
                !json_unpack_ex(all, &e, 0, "{s:{s:s},s:{},s:[],s:[],s:[],s:[]}", "corpus", "sha256", &hash,
                                "options", "planners", lab_sections[0], lab_sections[1], lab_sections[2]));
    char line[16] = "";
    if (e.line > 0)
        snprintf(line, sizeof line, ":%d", e.line);
    if (!ok)
        say_error(FAILED, "lab: --repeat %s%s: %s; expected a whole record of weft lab", path, line, e.text);
    else if (format != LAB_FORMAT)
        ok = say_failure("lab: --repeat %s: found a record of format %d, written by weft %.40s; expected "
                         "format %d; repeat it with that version", path, format, version, LAB_FORMAT);
    json_auto_t *seal = ok ? seal_of(all) : NULL;
    *sealed = json_equal(seal, json_object_get(all, "seal"));
    if (!ok)
        json_decref(all);
    return ok ? all : NULL;
}

/* Sets an option that the command line does not set. */
static bool take_option(lab_asked *a, const char *path, const char *key, const json_t *value)
{
    char text[40];
    const option *o = subcommand_lab.options;
    while (o->name && strcmp(o->name + 2, key))
        o++;
    bool only = !strcmp(key, "only");
    if (!o->name || !(only || is_recorded(o)))
        return say_failure("lab: --repeat %s: found the option \"%.40s\", which weft %s does not know; "
                           "expected a record of this version or an older one", path, key, weft_version());
    json_auto_t *set = only ? NULL : option_value(o, a);
    snprintf(text, sizeof text, "%.17g", json_number_value(value));
    const char *word = json_is_string(value) ? json_string_value(value) : text;
    return set || set_option(&subcommand_lab, o, word, a) ||
           say_failure("lab: --repeat %s: the option \"%s\" is damaged", path, key);
}

bool lab_take_record(lab_asked *a, const char *path, const json_t *record)
{
    const char *key;
    json_t *value;
    size_t i;
    json_object_foreach(json_object_get(record, "options"), key, value)
        if (!take_option(a, path, key, value))
            return false;
    json_array_foreach(json_object_get(record, "planners"), i, value) {
        const char *planner = json_string_value(json_object_get(value, "planner"));
        if (!planner || i >= MOST_PLANNERS)
            return say_failure("lab: --repeat %s: planners: element %d is damaged", path, (int)i);
        a->padded[i] = json_is_true(json_object_get(value, "padded"));
        a->planner[a->planners++] = (char *)planner;
    }
    return true;
}
