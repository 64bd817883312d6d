/* keras_config.c - reads the order of layers, and what recurrent layers compute, from the JSON text of a
 * model of Keras. A text that is not as expected describes no layers; nothing depends on it but the order. */
#include <string.h>
#include "io/weights/keras.h"

enum { DEPTH = 16, LAYERS = 4096, NAMED = 320 };

static const char *skip_blanks(const char *p) { return p + strspn(p, " \t\r\n"); }

/* Returns the end of the value that begins at p: the next "," or closing bracket outside of it. */
static const char *value_end(const char *p)
{
    int64_t depth = 0;
    for (; *p; p++) {
        if (*p == '"') {
            for (p++; *p && *p != '"'; p++)
                p += *p == '\\' && p[1];
            if (!*p)
                return p;
        } else if (*p == '{' || *p == '[')
            depth++;
        else if (depth == 0 && strchr(",]}", *p))
            return p;
        else if (*p == '}' || *p == ']')
            depth--;
    }
    return p;
}

/* Returns the value after an opening bracket or a ","; NULL: no more. */
static const char *next_value(const char *p)
{
    if (!*p || !strchr("{[,", *p))
        return NULL;
    p = skip_blanks(p + 1);
    return *p && !strchr("]},", *p) ? p : NULL;
}

/* Returns the value of a member of an object; NULL: there is none. */
static const char *member(const char *object, const char *key)
{
    size_t n = strlen(key);
    const char *p = object && *object == '{' ? next_value(object) : NULL;
    for (; p; p = next_value(value_end(p)))
        if (*p == '"' && !strncmp(p + 1, key, n) && p[n + 1] == '"') {
            p = skip_blanks(p + n + 2);
            return *p == ':' ? skip_blanks(p + 1) : NULL;
        }
    return NULL;
}

/* Writes the text of a JSON string without escapes. Returns false for any other value. */
static bool text_of(const char *v, char text[NAMED])
{
    size_t n = v && *v == '"' ? strcspn(v + 1, "\"\\") : 0;
    if (!n || n >= NAMED || v[n + 1] != '"')
        return false;
    snprintf(text, NAMED, "%.*s", (int)n, v + 1);
    return true;
}

static bool begins_with(const char *v, char letter) { return v && *v == letter; }

static void add_layers(weft__weights *w, const char *model, const char *prefix, int depth,
                       weft__keras_config *out)
{
    const char *all = member(member(model, "config"), "layers"), *v = depth < DEPTH && all ? all : "";
    char name[NAMED];
    for (v = next_value(v); v && out->n < LAYERS && !w->status; v = next_value(value_end(v))) {
        const char *config = member(v, "config");
        if (!text_of(member(config, "name"), name) || strlen(prefix) + strlen(name) + 1 >= NAMED)
            continue;
        const char *path = weft__weights_print(w, "%s%s%s", prefix, *prefix ? "." : "", name);
        out->layer[out->n++] = (weft__keras_layer){ path, config };
        add_layers(w, v, path, depth + 1, out);
    }
}

void weft__keras_layers(weft__weights *w, const char *text, weft__keras_config *out)
{
    out->layer = weft__weights_memory(w, LAYERS * sizeof *out->layer);
    if (out->layer)
        add_layers(w, skip_blanks(text), "", 0, out);
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
    char first[NAMED] = "tanh", second[NAMED] = "sigmoid", merge[NAMED] = "concat";
    const char *v = layer < 0 ? NULL : c->layer[layer].config;
    bool backwards = false, gru = !strncmp(cell, "gru", 3), plain = !strncmp(cell, "rnn", 3);
    text_of(member(v, "merge_mode"), merge);
    for (size_t i = !reverse; i < sizeof parts / sizeof *parts; i++) {
        const char *part = member(member(v, parts[i]), "config");
        backwards = backwards || (!reverse && begins_with(member(v, "go_backwards"), 't'));
        v = part ? part : v;
        i += i == 0 && part; /* the layer of the other direction is not its part */
    }
    if (!text_of(member(v, "activation"), first))
        return NULL;
    text_of(member(v, "recurrent_activation"), second);
    if (backwards)
        return weft__weights_print(w, "%s with go_backwards", cell);
    if (strcmp(merge, "concat"))
        return weft__weights_print(w, "%s with merge_mode %s", cell, merge);
    if (gru && begins_with(member(v, "reset_after"), 'f'))
        cell = "gru_reset_before";
    if (plain && !strcmp(first, "relu"))
        return "rnn_relu";
    if (!strcmp(first, "tanh") && (plain || !strcmp(second, "sigmoid")))
        return cell;
    return weft__weights_print(w, "%s with %s and %s", cell, first, plain ? "no gates" : second);
}
