/* test_refused_records.c - tests program operators with inconsistent records, and extents beyond an int. */
#include "tests/check.h"
#include "core/inside.h"

/* ---- an operator that a user wrote ---- */
static bool like_x(weft_call *c)
{
    for (int k = 0; k < c->m; k++)
        weft_op_like(c->y[k], c->x[0]);
    return true;
}
static bool larger(weft_call *c)
{
    weft_op_set_shape(c->y[0], WEFT_REAL, 1, (int64_t[]){ 1000000 });
    return true;
}
static bool of_ints(weft_call *c) { weft_op_set_shape(c->y[0], WEFT_I32, 1, (int64_t[]){ 3 }); return true; }
static void writes(weft_call *c)
{
    weft_real zero[3] = { 0 };
    weft *w = weft_context_of(c->y[0]);
    for (int k = 0; k < c->m; k++)
        w->dev.k->upload(&w->dev, weft_op_data(c->y[k]), zero, sizeof zero);
}

CPU_TEST(refused_records, inconsistent_records_are_refused)
{
    static const struct { weft_op op; weft_status kind; const char *part;
    } wrong[] = {
        { { .name = "seven", .results = 7, .shape = like_x, .forward = writes },
          WEFT_EARG,
          "seven: 7 results; expected 0 (which means 1) .. 6" },
        { { .name = "less", .results = -3, .shape = like_x, .forward = writes },
          WEFT_EARG,
          "less: -3 results" },
        { { .name = "laid", .layout = WEFT_PADDED, .shape = like_x, .forward = writes },
          WEFT_EARG,
          "laid: layout 4" },
        { { .name = "odd", .layout = (weft_layout)-1, .shape = like_x, .forward = writes },
          WEFT_EARG,
          "odd: layout -1" },
        { { .name = "nothing", .adds = true, .shape = like_x }, WEFT_EARG, ".adds without .forward" },
        { { .name = "large", .shape = larger }, WEFT_ESHAPE, "large: [3]: a view; expected the type" },
        { { .name = "ints", .shape = of_ints },
          WEFT_ESHAPE,
          "ints: [3]: a view; expected the type and number of elements of its input" },
        { { .shape = like_x, .forward = writes }, WEFT_EARG, "has no name" }
    };
    static const weft_op fine[] = { { .name = "four", .results = 4, .shape = like_x, .forward = writes },
                                    { .name = "view", .shape = like_x } };
    for (int i = 0; i < COUNT(wrong); i++) {
        weft_tensor *x = weft_zeros(w, WEFT_SHAPE(3));
        cr_assert_eq(weft_numel(weft_op_apply(&wrong[i].op, &x, 1, NULL, 0)), 0);
        FAILS(w, wrong[i].kind, wrong[i].part);
    }
    for (int i = 0; i < COUNT(fine); i++) {
        weft_tensor *x = weft_zeros(w, WEFT_SHAPE(3));
        cr_assert_eq(weft_numel(weft_op_apply(&fine[i], &x, 1, NULL, 0)), 3);
    }
}

/* ---- more than an int holds, without the memory ---- */
CPU_TEST(refused_records, extents_beyond_int)
{
    static int32_t len[1 << 16];
    weft_lengths l = { .n = 1 << 16, .len = len };
    weft_tensor *many[64];
    for (int i = 0; i < COUNT(many); i++)
        many[i] = weft_zeros(w, WEFT_SHAPE((int64_t)1 << 58, 0));
    weft_concat(many, COUNT(many), 0);
    FAILS(w, WEFT_ESHAPE, "too many elements");
    len[l.n - 1] = 1;
    weft_pack_padded_sequence(weft_zeros(w, WEFT_SHAPE(1 << 16, 1 << 15, 0)), &l, WEFT_ALIGN_LEFT);
    FAILS(w, WEFT_ESHAPE, "pack_padded_sequence: 65536 sequences of 32768 steps; expected fewer than 2^31");
    weft_move_pads(weft_zeros(w, WEFT_SHAPE(1 << 16, 1 << 15, 0)), &l, WEFT_ALIGN_LEFT, WEFT_ALIGN_RIGHT);
    FAILS(w, WEFT_ESHAPE, "move_pads: 65536 sequences");
    weft_tensor *x = weft_reshape(weft_ragged(w, NULL, 0, &(weft_lengths){ .n = 1 << 16, .len = len }), 2,
                                  (int64_t[]){ 1, 1 });
    weft_pad_packed_sequence(weft_slice(x, 1, 0, 0), 1 << 15, 0, WEFT_ALIGN_LEFT);
    FAILS(w, WEFT_ESHAPE, "pad_packed_sequence: 65536 sequences of 32768 steps");
    weft_move_pads(weft_zeros(w, WEFT_SHAPE(1, 3)), &(weft_lengths){ .n = 1, .len = (int32_t[]){ 2 } },
                   WEFT_ALIGN_LEFT, (weft_align)99);
    FAILS(w, WEFT_EARG, "move_pads: [1, 3]: to 99; expected a value of weft_align");
}
