/* model.c - builds a small model with every kind of saved state (fuzz.h). */
#include "fuzz.h"
#include "io/checkpoint/checkpoint.h"

const extras said = { { 1, -2, 3, 4, 5, 6 }, "letters to phones", .25, { 7, 0, 255 } };

model model_new(uint64_t seed)
{
    model k = { .w = weft_open(&(weft_opts){ .device = WEFT_REF, .threads = 1, .seed = seed }) };
    k.m = weft_module_new(k.w, "net");
    weft_embedding_new(k.m, "embed", &(weft_embedding_opts){ .rows = 10, .columns = 4 });
    weft_lstm_new(k.m, "lstm", &(weft_rnn_opts){ .input = 4, .hidden = 3, .bidirectional = true });
    weft_linear_new(k.m, "out", &(weft_linear_opts){ .in = 6, .out = 10 });
    weft_buffer(k.m, "state", WEFT_SHAPE(3));
    weft_buffer(k.m, "empty", WEFT_SHAPE(0));
    k.o = weft_adamw_new(k.m, NULL);
    k.first = weft_find_parameter(k.m, "embed.weight");
    weft_stream_next(weft_stream_of(k.w, "data"));
    if (!weft_ok(k.w))
        fuzz_found("trouble", "%s", weft_error_message(k.w));
    return k;
}

void model_items(extras *e, weft_checkpoint_item items[ITEMS])
{
    items[0] = (weft_checkpoint_item){ "ints", WEFT_I32, e->ints, COUNT(e->ints) };
    items[1] = (weft_checkpoint_item){ "text", WEFT_TEXT, e->text, sizeof e->text };
    items[2] = (weft_checkpoint_item){ "score", WEFT_F64, &e->score, 1 };
    items[3] = (weft_checkpoint_item){ "bytes", WEFT_BYTES, e->bytes, sizeof e->bytes };
}

uint32_t model_state(const model *k)
{
    uint32_t crc = 0;
    weft__saved all[32];
    for (const weft__parameter *p = NULL; (p = weft__next_stored(k->m, p)); ) {
        const weft_tensor *x = &weft__numbers_of(p)->value;
        crc = weft__crc32c(crc, x->data, (size_t)weft__bytes(&x->f));
    }
    for (int i = 0, n = weft__optim_entries(k->o, all, 32); i < n; i++)
        crc = weft__crc32c(crc, all[i].data,
                           (size_t)all[i].n * weft__number_bytes(weft__number_of(all[i].type)));
    for (const weft_stream *s = k->w->random.streams; s; s = s->next)   /* in any order */
        if (s->count)
            crc ^=
                weft__crc32c(weft__crc32c(weft__crc32c(0, s->name, strlen(s->name)), &s->key, sizeof s->key),
                             &s->count, sizeof s->count);
    const weft__draws *r = &k->w->random;
    return weft__crc32c(weft__crc32c(crc, &r->seed, sizeof r->seed), &r->draw, sizeof r->draw);
}
