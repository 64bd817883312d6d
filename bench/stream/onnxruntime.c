/* onnxruntime.c - see onnxruntime.h. The functions stand at fixed places of a table, which is asked for by
 * the version of the interface in which they all were, 1: those places do not change. */
#include "bench/stream/onnxruntime.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    INTERFACE = 1,
    WARNINGS = 2,
    ALL_OPTIMISATIONS = 99,
    ARENA = 1,
    DEFAULT_MEMORY = 0,
    FLOAT = 1,
    INT64 = 7
};

/* Places in the table, and what stands there. A status that is not NULL is an error. */
typedef struct api {
    void *skip_0[2];
    const char *(*message)(const void *status); /* 2 */
    void *(*env_new)(int level, const char *name, void **out);
    void *skip_4[3];
    void *(*session_new)(void *env, const char *path, void *options, void **out); /* 7 */
    void *skip_8;
    void *(*run)(void *session, const void *options, const char *const *in_names, const void *const *in,
                 size_t n, const char *const *out_names, size_t m, void **out); /* 9 */
    void *(*options_new)(void **out);
    void *skip_11[12];
    void *(*set_optimisation)(void *options, int level); /* 23 */
    void *(*set_threads)(void *options, int threads);
    void *skip_25[24];
    void *(*tensor_over)(const void *memory, void *data, size_t bytes, const int64_t *shape, size_t rank,
                         int type, void **out); /* 49 */
    void *skip_50[19];
    void *(*memory_new)(int allocator, int type, void **out); /* 69 */
} api;
typedef struct base {
    const api *(*table)(uint32_t version);
    const char *(*version)(void);
} base;

typedef struct set {
    const char *in_name[ORT_MOST], *out_name[ORT_MOST];
    void *in[ORT_MOST], *out[ORT_MOST];
    int n, m;
} set;
struct ort {
    const base *from;
    const api *f;
    void *session, *memory;
    set set[2];
};

static bool good(const ort *o, void *status)
{
    if (status)
        fprintf(stderr, "onnxruntime: %s\n", o->f->message(status));
    return !status;
}

ort *ort_open(const char *library, const char *model)
{
    const base *(*hello)(void) = NULL;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL),
         *symbol = handle ? dlsym(handle, "OrtGetApiBase") : NULL;
    void *env = NULL, *options = NULL;
    ort *o = calloc(1, sizeof *o);
    memcpy(&hello, &symbol, sizeof hello);
    if (!hello || !o || !(o->from = hello()) || !(o->f = o->from->table(INTERFACE))) {
        fprintf(stderr, "stream: %s is no onnxruntime: %s\n", library,
                handle ? "it has no OrtGetApiBase" : dlerror());
        free(o);
        return NULL;
    }
    if (good(o, o->f->env_new(WARNINGS, "stream", &env)) && good(o, o->f->options_new(&options)) &&
        good(o, o->f->set_optimisation(options, ALL_OPTIMISATIONS)) &&
        good(o, o->f->set_threads(options, 1)) &&
        good(o, o->f->session_new(env, model, options, &o->session)) &&
        good(o, o->f->memory_new(ARENA, DEFAULT_MEMORY, &o->memory)))
        return o;
    free(o);
    return NULL;
}

const char *ort_version(const ort *o) { return o->from->version(); }

static void *tensor_of(ort *o, const ort_tensor *t)
{
    void *out = NULL;
    size_t bytes = t->whole ? sizeof(int64_t) : sizeof(float);
    for (int i = 0; i < t->rank; i++)
        bytes *= (size_t)t->shape[i];
    void *status = o->f->tensor_over(o->memory, t->data, bytes, t->shape, (size_t)t->rank,
                                     t->whole ? INT64 : FLOAT, &out);
    return good(o, status) ? out : NULL;
}

bool ort_bind(ort *o, int which, const ort_tensor *in, int n, const ort_tensor *out, int m)
{
    set *s = &o->set[which];
    bool bound = n <= ORT_MOST && m <= ORT_MOST;
    s->n = bound ? n : 0;
    s->m = bound ? m : 0;
    for (int i = 0; i < s->n; i++) {
        s->in[i] = tensor_of(o, in + i);
        s->in_name[i] = in[i].name;
        bound = bound && s->in[i];
    }
    for (int i = 0; i < s->m; i++) {
        s->out[i] = tensor_of(o, out + i);
        s->out_name[i] = out[i].name;
        bound = bound && s->out[i];
    }
    return bound;
}

bool ort_run(ort *o, int which)
{
    set *s = &o->set[which];
    return good(o, o->f->run(o->session, NULL, s->in_name, (const void *const *)s->in, (size_t)s->n,
                             s->out_name, (size_t)s->m, s->out));
}
