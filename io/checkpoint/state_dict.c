/* state_dict.c - reads and writes weights for other programs: data sets under PyTorch's names, flat
 * ("encoder.weight") or nested ("encoder/weight"), as h5py writes a state dict.
 *
 * Such files have no checksums. So this reader refuses a checkpoint, because here its damage would not be
 * detected. */
#include <stdlib.h>
#include <string.h>
#include "io/checkpoint/checkpoint.h"

enum { DEPTH = 16, OBJECTS = 100000 };

typedef struct importing {
    weft__stage stage;
    weft_module *m;
    weft_load_report *report;
    weft__paths table;
    const char *group;                           /* the group that is visited */
    int depth, objects;
    void (*unneeded)(struct importing *l, const char *path);      /* called for sets that belong to no
                                                                   * parameter */
} importing;

/* includes tied names */
static const weft__parameter *next_below(const weft_module *m, const weft__parameter *p)
{
    p = p ? p->next_in_root : m->root->first;
    while (p && !weft__is_below(p->module, m))
        p = p->next_in_root;
    return p;
}

/* ---- the parameters of the module ---- */
static bool locate(weft__h5 *h, const weft_module *m, const weft__parameter *p, char path[WEFT__NAMED],
                   weft__kind *k)
{
    snprintf(path, WEFT__NAMED, "%s", weft__path_in(m, p));
    if (weft__h5_find(h, path, k))
        return true;
    for (char *dot = path; (dot = strchr(dot, '.')); )
        *dot = '/';
    return weft__h5_find(h, path, k);
}

/* Notes the parameters that the file has, so that a tied one may have another name. */
static void find_all(importing *l)
{
    char path[WEFT__NAMED];
    weft__kind k;
    for (const weft__parameter *p = NULL; (p = next_below(l->m, p)); )
        if (locate(l->stage.h, l->m, p, path, &k))
            weft__paths_of(&l->table, weft__numbers_of(p))->found = true;
}

static bool set_fits(importing *l, const char *path, const weft__kind *found, const weft__kind *expected)
{
    char a[128], b[128];
    weft__kind same = *found;
    same.type = expected->type;
    if (!weft__number_is_float(found->type) && !weft__number_is_int(found->type)) {
        weft__h5_fail(l->stage.h, WEFT_EFORMAT,      /* leaving it out without an error would hide it */
                      "%s is %s; expected integers or floating-point numbers, including float16 and bfloat16",
                      path, weft__kind_text(found, a));
        return false;
    }
    if (weft__kind_same(&same, expected))
        return true;
    weft__report_finding(l->stage.h, l->report, WEFT__OTHER_SHAPE, "%s is %s; expected %s, as in the module",
                         path, weft__kind_text(found, a), weft__kind_text(expected, b));
    return false;
}

/* Compares the values held last with those stored under another name of p. */
static void check_tied(importing *l, const weft__parameter *p, const char *path)
{
    const weft__held *last = l->stage.last;
    weft__known *numbers = weft__paths_of(&l->table, weft__numbers_of(p));
    if (numbers->held && memcmp(numbers->held->values, last->values, last->bytes))
        weft__h5_fail(l->stage.h, WEFT_EFORMAT,
                      "%s differs from the parameter that it is tied to; expected equal values", path);
    numbers->held = last;
}

static void hold_parameter(importing *l, const weft__parameter *p)
{
    const weft_tensor *x = &weft__numbers_of(p)->value;
    weft__kind expected = weft__kind_of(x), found;
    char path[WEFT__NAMED];
    if (!locate(l->stage.h, l->m, p, path, &found)) {
        if (!weft__paths_of(&l->table, weft__numbers_of(p))->found)
            weft__report_finding(l->stage.h, l->report, WEFT__MISSING, "%s%s", weft__path_in(l->m, p),
                                 l->report ? "" : " is not in the file, but the module has it");
        return;
    }
    if (!set_fits(l, path, &found, &expected))
        return;
    weft__hold_set(&l->stage, path, &found, expected.type, x->data, true);
    if (!weft__h5_status(l->stage.h))
        check_tied(l, p, path);
    weft__report_finding(l->stage.h, l->report, WEFT__LOADED, "%s", path);
}

/* ---- other sets of the file ---- */
static bool is_needed(const importing *l, const char *path)
{
    char name[WEFT__NAMED];
    snprintf(name, sizeof name, "%s", path);
    for (char *slash = name; (slash = strchr(slash, '/')); )
        *slash = '.';
    return weft__paths_find(&l->table, l->m, name);
}

/* Visits the data sets of a group and its subgroups. */
static bool visit_entry(const char *name, bool is_group, void *user)
{
    importing *l = user;
    const char *before = l->group;
    char path[WEFT__NAMED];
    int n = snprintf(path, sizeof path, "%s%s%s", before, *before ? "/" : "", name);
    if (n >= (int)sizeof path || l->depth >= DEPTH || ++l->objects > OBJECTS) {
        weft__h5_fail(l->stage.h, WEFT_EFORMAT,
                      "%s: too many objects, too many levels or too long names; expected a state dict", path);
        return false;
    }
    if (is_group) {
        l->group = path;
        l->depth++;
        weft__h5_each(l->stage.h, path, visit_entry, l);
        l->group = before;
        l->depth--;
    } else if (!is_needed(l, path)) {
        l->unneeded(l, path);
    }
    return !weft__h5_status(l->stage.h);
}

static void visit_all(importing *l, void (*unneeded)(importing *l, const char *path))
{
    l->group = "";
    l->objects = 0;
    l->unneeded = unneeded;
    weft__h5_each(l->stage.h, "/", visit_entry, l);
}

static void report_extra(importing *l, const char *path)
{
    weft__report_finding(l->stage.h, l->report, WEFT__EXTRA, "%s%s", path,
                         l->report ? "" : " is in the file, but the module does not have it");
}

/* ---- files ---- */
static weft_status foreign(const char *path, const unsigned char *head, size_t n, size_t size)
{
    static const char ours[] = WEFT__MAGIC;
    weft_status s = weft__foreign(path, head, n, size);
    if (s)
        return s;
    if (n >= sizeof ours && !memcmp(head, ours, sizeof ours - 1))
        return weft__file_fail(WEFT_EFORMAT, "%s: a checkpoint of weft; expected a state dict; weft_load "
                                             "reads checkpoints", path);
    return weft__h5_signature(path, head, n, size);
}

static void refuse_ours(weft__h5 *h)
{
    if (weft__h5_exists(h, "parameters") &&
        (weft__h5_exists(h, "streams") || weft__h5_exists(h, "items") || weft__h5_exists(h, "buffers")))
        weft__h5_fail(h, WEFT_EFORMAT, "damaged: a checkpoint of weft without its first bytes; load an "
                                       "earlier checkpoint");
}

/* Keras names its arrays vars/0, vars/1 (.weights.h5) or kernel:0 (.h5). */
static bool is_of_keras(const char *path)
{
    size_t n = strlen(path);
    const char *vars = strstr(path, "vars/");
    return (n > 2 && !strcmp(path + n - 2, ":0")) ||
           (vars && (vars == path || vars[-1] == '/') && strspn(vars + 5, "0123456789") == strlen(vars + 5));
}

static void refuse_keras(importing *l, const char *path)
{
    if (is_of_keras(path))
        weft__h5_fail(l->stage.h, WEFT_EFORMAT,
                      "a file of Keras (%s); expected weft's names. Write its arrays in Python under weft's "
                      "names: transpose kernels, [in, 4H] to [4H, in]; keep LSTM gates in the order i f c o, "
                      "reorder a GRU's z r h to r z h; write the bias as bias_ih, and bias_hh as 0 (a GRU "
                      "has both)",
                      path);
}

static void read_parameters(importing *l)
{
    refuse_ours(l->stage.h);
    if (!weft__paths_make(&l->table, l->m, l->stage.h))
        return;
    visit_all(l, refuse_keras);
    find_all(l);
    for (const weft__parameter *p = NULL; (p = next_below(l->m, p)); )
        hold_parameter(l, p);
    visit_all(l, report_extra);
    weft__paths_end(&l->table);
}

weft_status weft_load_state_dict(const char *path, weft_module *m, weft_load_report *report)
{
    importing l = { .m = m, .report = report };
    if (report)
        *report = (weft_load_report){ 0 };
    weft_status s = weft__check_storable(m, "weft_load_state_dict", path);
    if (!s)
        s = weft__h5_open_file(path, foreign, &l.stage.h);
    if (s)
        return s;
    read_parameters(&l);
    return weft__stage_end(&l.stage, m);
}

weft_status weft_save_state_dict(const char *path, const weft_module *m)
{
    weft_status s = weft__check_storable(m, "weft_save_state_dict", path);
    if (s)
        return s;
    weft__h5 *h = weft__h5_new(path, 0, false);
    if (!h)
        return WEFT_ENOMEM;
    for (const weft__parameter *p = NULL; (p = next_below(m, p)); )
        weft__store(h, weft__path_in(m, p), &weft__numbers_of(p)->value);
    return weft__h5_write_file(h);
}
