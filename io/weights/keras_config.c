/* keras_config.c - reads the order of layers, and what recurrent layers compute, from the JSON text of a
 * model of Keras. A text that is not as expected describes no layers; nothing depends on it but the order. */
#include <string.h>
#include "io/weights/keras.h"

enum { DEPTH = 16, LAYERS = 4096, NAMED = 320 };

static const char *after_space(const char *p, const char *end)
{
    while (p < end && strchr(" \t\r\n", *p))
        p++;
    return p;
}

/* Returns the end of the value that begins at p: the next "," or closing bracket outside of it. */
static const char *value_end(const char *p, const char *end)
{
    int64_t depth = 0;
    for (; p < end; p++) {
        if (*p == '"')
            for (p++; p < end && *p != '"'; p++)
                p += *p == '\\';
        else if (*p == '{' || *p == '[')
            depth++;
        else if (depth == 0 && strchr(",]}", *p))
            return p;
        else if (*p == '}' || *p == ']')
            depth--;
    }
    return end;
}

/* Returns the next value after an opening bracket or a ",", and moves *p to its end; at NULL: no more. */
static weft__json next_value(const char **p, const char *end)
{
    weft__json v = { NULL, NULL };
    const char *at = after_space(*p, end);
    if (at >= end || !strchr("{[,", *at))
        return v;
    at = after_space(at + 1, end);
    if (at >= end || strchr("]},", *at))
        return v;
    v = (weft__json){ at, value_end(at, end) };
    *p = v.end;
    return v;
}

/* Returns the value of a member of an object. */
static weft__json member(weft__json object, const char *key)
{
    size_t n = strlen(key);
    const char *p = object.at;
    if (!p || *p != '{')
        return (weft__json){ NULL, NULL };
    for (weft__json v; (v = next_value(&p, object.end)).at;) {
        bool found =
            (size_t)(v.end - v.at) > n + 2 && *v.at == '"' && !memcmp(v.at + 1, key, n) && v.at[n + 1] == '"';
        const char *colon = found ? after_space(v.at + n + 2, v.end) : v.end;
        if (colon < v.end && *colon == ':' && (colon = after_space(colon + 1, v.end)) < v.end)
            return (weft__json){ colon, v.end };
    }
    return (weft__json){ NULL, NULL };
}

/* Writes the text of a JSON string without escapes. Returns false if the value is not one, or is too long. */
static bool text_of(weft__json v, char text[NAMED])
{
    const char *last = v.at && *v.at == '"' ? memchr(v.at + 1, '"', (size_t)(v.end - v.at) - 1) : NULL;
    size_t n = last ? (size_t)(last - v.at) - 1 : 0;
    if (!n || n >= NAMED || memchr(v.at, '\\', n + 1))
        return false;
    memcpy(text, v.at + 1, n);
    text[n] = 0;
    return true;
}

static void add_layers(weft__weights *w, weft__json model, const char *prefix, int depth,
                       weft__keras_config *out)
{
    weft__json all = member(member(model, "config"), "layers");
    const char *p = all.at;
    char name[NAMED], path[2 * NAMED];
    for (weft__json v; p && depth < DEPTH && out->n < LAYERS && (v = next_value(&p, all.end)).at;) {
        weft__json config = member(v, "config");
        if (!text_of(member(config, "name"), name))
            continue;
        int n = snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "", name);
        if (n < NAMED && (out->layer[out->n].name = weft__weights_text(w, path, (size_t)n))) {
            out->layer[out->n++].config = config;
            add_layers(w, v, out->layer[out->n - 1].name, depth + 1, out);
        }
    }
}

void weft__keras_layers(weft__weights *w, const char *text, size_t n, weft__keras_config *out)
{
    const char *begin = after_space(text, text + n);
    out->n = 0;
    out->layer = weft__weights_memory(w, LAYERS * sizeof *out->layer);
    if (out->layer)
        add_layers(w, (weft__json){ begin, text + n }, "", 0, out);
}

int64_t weft__keras_find(const weft__keras_config *c, const char *name)
{
    for (size_t n = strlen(name); n;) {
        for (int64_t i = 0; i < c->n; i++)
            if (!strncmp(c->layer[i].name, name, n) && !c->layer[i].name[n])
                return i;
        while (n && name[--n] != '.')
            continue;
    }
    return -1;
}

const char *weft__keras_cell(weft__weights *w, const weft__keras_config *c, int64_t layer, bool reverse,
                             const char *cell)
{
    static const char *const parts[] = { "backward_layer", "layer", "cell" };
    char first[NAMED] = "tanh", second[NAMED] = "sigmoid", merge[NAMED] = "concat", text[3 * NAMED];
    weft__json v = layer < 0 ? (weft__json){ NULL, NULL } : c->layer[layer].config;
    bool backwards = false;
    text_of(member(v, "merge_mode"), merge);
    for (size_t i = !reverse; i < sizeof parts / sizeof *parts; i++) {
        weft__json part = member(member(v, parts[i]), "config"), turned = member(v, "go_backwards");
        backwards = backwards || (!reverse && turned.at && *turned.at == 't');
        v = part.at ? part : v;
        i += i == 0 && part.at; /* the layer of the other direction is not its part */
    }
    if (!text_of(member(v, "activation"), first))
        return NULL;
    text_of(member(v, "recurrent_activation"), second);
    if (backwards || strcmp(merge, "concat")) {
        int n = snprintf(text, sizeof text, "%s with %s%s", cell, backwards ? "go_backwards" : "merge_mode ",
                         backwards ? "" : merge);
        return weft__weights_text(w, text, (size_t)n);
    }
    bool gru = !strncmp(cell, "gru", 3), plain = !strncmp(cell, "rnn", 3);
    weft__json after = member(v, "reset_after");
    if (gru && after.at && *after.at == 'f')
        cell = "gru_reset_before";
    if (plain && !strcmp(first, "relu"))
        return "rnn_relu";
    if (!strcmp(first, "tanh") && (plain || !strcmp(second, "sigmoid")))
        return cell;
    int n = snprintf(text, sizeof text, "%s with %s and %s", cell, first, plain ? "no gates" : second);
    return weft__weights_text(w, text, (size_t)n);
}
