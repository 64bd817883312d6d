/* fuzz_items.c - weft_load of items alone and weft_checkpoint_item_size: the items are those that were
 * saved, or none are. The options are those of fuzz_checkpoint.c. */
#include "fuzz.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    if (size < 2)
        return size;
    return 1 + h5_mutate(data + 1, size - 1, most - 1, seed, data[0] % SEALS == REPAIRED);
}

static void load(const char *path, size_t n)
{
    extras e;
    weft_checkpoint_item items[ITEMS];
    memset(&e, 7, sizeof e);
    extras before = e;
    model_items(&e, items);
    fuzz_watch(n);
    weft_status s = weft_load(path, NULL, NULL, items, ITEMS);
    fuzz_watched(s);
    if (s) {
        SAME(!memcmp(&e, &before, sizeof e), "an error has changed an item: %s", weft_file_message());
        return;
    }
    SAME(memchr(e.text, 0, sizeof e.text), "a text without its final 0");
    bool same = !memcmp(e.ints, said.ints, sizeof e.ints) && !strcmp(e.text, said.text) &&
                e.score == said.score && !memcmp(e.bytes, said.bytes, sizeof e.bytes);
    SAME(same, "items are not those that were saved");
}

static void sizes(const char *path, size_t n)
{
    static const struct {
        const char *name;
        int64_t n;
    } want[] = { { "ints", 6 }, { "text", 18 }, { "score", 1 }, { "bytes", 3 } };
    for (int i = 0; i < COUNT(want); i++) {
        fuzz_watch(n);
        int64_t is = weft_checkpoint_item_size(path, want[i].name);
        fuzz_watched(is < 0 ? WEFT_EFORMAT : WEFT_OK);
        SAME(is == want[i].n || is == -1, "item %s has %lld, %lld were saved", want[i].name, (long long)is,
             (long long)want[i].n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t n = size - 1;
    const char *path = fuzz_sealed(data[0], data + 1, n);
    if (data[0] & SEALS)
        sizes(path, n);
    else
        load(path, n);
    return 0;
}
