/* items.c - the program's items in a checkpoint: arrays of numbers, texts and bytes by name. They can be read
 * before the model is built. */
#include <string.h>
#include "io/checkpoint/checkpoint.h"

static const char *item_name_fault(const char *name)
{
    if (!name || !*name)
        return "no name; expected 1 .. 255 bytes";
    if (strlen(name) > 255)
        return "its name is too long; expected 1 .. 255 bytes";
    return strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, "..") ?
               "a name that a file cannot have; expected one without /, not . or .." :
               NULL;
}

static const char *bad_item(const weft_checkpoint_item *items, int64_t i)
{
    const weft_checkpoint_item *k = &items[i];
    const char *bad = item_name_fault(k->name);
    if (bad)
        return bad;
    if (weft__number_of(k->type) == WEFT__ODD)
        return "no type; expected a weft_dtype";
    if (k->n < 0 || (uint64_t)k->n > SIZE_MAX / 16 || (k->n && !k->data) || (k->type == WEFT_TEXT && !k->n))
        return "no data; expected n >= 0 and data, for a text n >= 1";
    for (int64_t j = 0; j < i; j++)
        if (!strcmp(items[j].name, k->name))
            return "the name is used twice; expected unique names";
    return NULL;
}

weft_status weft__items_good(const char *function, const weft_checkpoint_item *items, int64_t n)
{
    if (n < 0 || (n && !items))
        return weft__file_fail(WEFT_EARG, "%s: %lld items%s; expected 0 or more in an array", function,
                               (long long)n, items ? "" : " and items is NULL");
    for (int64_t i = 0; i < n; i++) {
        const char *bad = bad_item(items, i);
        if (bad)
            return weft__file_fail(WEFT_EARG, "%s: item %lld (\"%.255s\"): %s", function,
                                   (long long)i, items[i].name ? items[i].name : "", bad);
    }
    return WEFT_OK;
}

void weft__items_store(weft__sealed *f, const weft_checkpoint_item *items, int64_t n)
{
    char path[WEFT__NAMED];
    for (int64_t i = 0; i < n; i++) {
        const weft_checkpoint_item *k = &items[i];
        int64_t count = k->n;
        if (k->type == WEFT_TEXT) {              /* up to its final 0 */
            const char *end = memchr(k->data, 0, (size_t)k->n);
            if (!end)
                weft__sealed_fail(f, WEFT_EARG, "item \"%s\": no final 0 in its %lld bytes; expected a text "
                                                "that ends in 0", k->name, (long long)k->n);
            count = end ? end - (const char *)k->data + 1 : 1;
        }
        snprintf(path, sizeof path, "items/%s", k->name);
        weft__sealed_write(f, path, &(weft__kind){ weft__number_of(k->type), 1, { count } }, k->data);
    }
}

void weft__items_hold(weft__stage *s, const weft_checkpoint_item *items, int64_t n)
{
    char path[WEFT__NAMED], text[128], most[128];
    for (int64_t i = 0; i < n; i++) {
        const weft_checkpoint_item *k = &items[i];
        const weft__kind expected = { weft__number_of(k->type), 1, { k->n } };
        weft__kind found;
        void *values;
        snprintf(path, sizeof path, "items/%s", k->name);
        if (!weft__sealed_find(s->file, path, &found))
            weft__sealed_fail(s->file, WEFT_EFORMAT, "item \"%s\" is not in the file", k->name);
        else if (found.type != expected.type || found.rank != 1 || found.size[0] > k->n)
            weft__sealed_fail(s->file, found.type == expected.type ? WEFT_ESHAPE : WEFT_EFORMAT,
                          "item \"%s\" is %s; expected %s", k->name, weft__kind_text(&found, text),
                          weft__kind_text(&expected, most));
        else if ((values = weft__hold(s, k->data, weft__kind_bytes(&expected), false)))
            weft__sealed_read(s->file, path, &found, values);
    }
}

int64_t weft_checkpoint_item_size(const char *path, const char *name)
{
    weft__sealed *f;
    weft__kind k = { 0 };
    char in[WEFT__NAMED];
    const char *bad = item_name_fault(name);
    if (bad) {
        weft__file_fail(WEFT_EARG, "weft_checkpoint_item_size: item: %s", bad);
        return -1;
    }
    if (weft__sealed_open(path, NULL, &f))
        return -1;
    snprintf(in, sizeof in, "items/%s", name);
    if (!weft__sealed_find(f, in, &k) || k.rank != 1)
        weft__sealed_fail(f, WEFT_EFORMAT, "item \"%s\" is not in the file", name);
    return weft__sealed_end(f) ? -1 : k.size[0];
}
