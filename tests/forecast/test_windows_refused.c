/* test_windows_refused.c - tests invalid features, series and windows, and their error messages. */
#include "series_data.h"

CPU_TEST(windows_refused, invalid_features_are_refused)
{
#define REFUSED(says, change)                          \
    do {                                               \
        weft_features_opts o = series_features;        \
        change;                                        \
        FAILS_AT(w, weft_features_new(w, "x", &o), WEFT_EARG, says); \
    } while (0)
    REFUSED("context and horizon: expected 1 row or more", o.context = 0);
    REFUSED("not 7 and -1", o.horizon = -1);
    REFUSED("\"u\": a name that is empty or occurs twice", o.target = WEFT_NAMES("u"));
    REFUSED("\"t\": a name that is empty or occurs twice", o.past = WEFT_NAMES("t"));
    REFUSED("\"\": a name that is empty or occurs twice", o.past = WEFT_NAMES(""));
    REFUSED("time_as 2; expected a value of weft_time", o.time_as = (weft_time)2);
    REFUSED("expected a target", o.target = NULL);
    REFUSED("expected a target and one of the other two", (o.known = NULL, o.time = NULL));
    REFUSED("masked \"s\": no such column of the past", o.masked = WEFT_NAMES("s"));
    REFUSED("masked \"q\"", o.masked = WEFT_NAMES("q"));
    FAILS_AT(w, weft_features_new(w, NULL, &series_features), WEFT_EARG, "name: expected 1 .. 30 bytes");
    FAILS_AT(w, weft_features_new(w, "a/b", &series_features), WEFT_EARG, "name: expected 1 .. 30 bytes");
    FAILS_AT(w, weft_features_new(w, "x", NULL), WEFT_EARG, "context and horizon");
    cr_assert_not_null(weft_features_new(NULL, "x", &series_features));
    weft_feature_counts none = weft_features_counts(NULL);
    cr_assert(none.past == 0 && !none.fitted);
    weft_features_fit(NULL, NULL);
    weft_features *x = weft_features_new(w, "x", &series_features);
    FAILS_AT(w, weft_features_fit(x, NULL), WEFT_EARG, "the frame is NULL");
    weft_feature_counts n = weft_features_counts(x);
    cr_assert(n.past == 5 && n.future == 3 && n.fixed == 1 && n.target == 1);
}

CPU_TEST(windows_refused, invalid_series_are_refused)
{
    weft_features *x = weft_features_new(w, "x", &series_features);
    scoped_frame good = series_random(2, (int64_t[]){ 20, 20 }), f = series_random(2, (int64_t[]){ 20, 20 });
    FAILS_AT(w, weft_windows_new(x, "v", &good, NULL), WEFT_EARG, "features \"x\" are not fitted");
    weft_features_fit(x, &good);
    OK(w);
    static const struct { const char *column; int64_t row; double value; const char *says;
    } wrong[] = {
        { "u", 3, NAN, "features \"x\": series 0 (\"0\"), row 3, column \"u\": the value is nan" },
        { "p", 25, INFINITY, "series 1 (\"1\"), row 5, column \"p\": the value is inf" },
        { "y", 39, NAN, "series 1 (\"1\"), row 19, column \"y\": the value is nan" },
        { "t", 7, 0, "row 7, column \"t\": the time is" },
        { "t", 7, NAN, "row 7, column \"t\": " },
        { "s", 22, 5,
          "series 1 (\"1\"), row 2, column \"s\": a fixed column; expected a constant, but the value is "
          "5 after 1.25" },
        { "s", 22, NAN, "row 2, column \"s\": the value is nan" },
    };
    for (int i = 0; i < COUNT(wrong); i++) {
        double *at = weft_frame_column(&f, wrong[i].column) + wrong[i].row, before = *at;
        *at = wrong[i].value;
        FAILS_AT(w, weft_windows_new(x, "v", &f, NULL), WEFT_ENUMERIC, wrong[i].says);
        weft_features *other = weft_features_new(w, "x", &series_features);
        FAILS_AT(w, weft_features_fit(other, &f), WEFT_ENUMERIC, wrong[i].says);
        cr_assert(!weft_features_counts(other).fitted);
        *at = before;
    }
    double *t = weft_frame_column(&f, "t"), before = t[12];
    t[12] = t[11];                               /* time does not advance */
    FAILS_AT(w, weft_windows_new(x, "v", &f, NULL), WEFT_ENUMERIC,
             "row 12, column \"t\": the time is");
    FAILS_AT(w, weft_features_fit(x, &f), WEFT_ENUMERIC, "row 12, column \"t\": the time is");
    t[12] = before;
    scoped_frame less = { 0 };
    const double a[] = { 1, 2 };
    DOES(weft_frame_add(&less, NULL, WEFT_NAMES("t", "u"), (const double *const[]){ a, a }, 2));
    FAILS_AT(w, weft_windows_new(x, "v", &less, NULL), WEFT_EARG, "column \"s\": the frame has no");
    FAILS_AT(w, weft_features_fit(x, &less), WEFT_EARG, "column \"v\": the frame has no");
    cr_assert(weft_features_counts(x).fitted);          /* as it was */
}

CPU_TEST(windows_refused, invalid_windows_are_refused)
{
    weft_features *x = weft_features_new(w, "x", &series_features);
    weft_frame f = series_random(2, (int64_t[]){ 20, 20 }), shorter = series_random(2, (int64_t[]){ 0, 10 }),
               none = { 0 };
    weft_features_fit(x, &f);
    FAILS_AT(w, weft_windows_new(x, "v", &shorter, NULL), WEFT_EARG,
             "windows \"v\": 0 windows; the longest of 2 series has 10 rows; expected at least 7 of past "
             "and 4 of future");
    FAILS_AT(w, weft_windows_new(x, "v", &none, NULL), WEFT_EARG, "0 windows");
    static const weft_windows_opts bad[] = { { .stride = -1 },        { .min_context = 8 },
                                             { .min_context = -1 },   { .min_horizon = 5 },
                                             { .min_horizon = -2 },   { .past_noise = -1 },
                                             { .future_noise = NAN }, { .past_noise = INFINITY } };
    for (int i = 0; i < COUNT(bad); i++) {
        cr_assert_not_null(weft_windows_new(x, "v", &f, &bad[i]));
        FAILS(w, WEFT_EARG,
              i < 5 ? "a stride of 1 or more, min_context in 1 .. 7 and min_horizon in 1 .. 4" :
                      "noise: expected 0 or more");
    }
    FAILS_AT(w, weft_windows_new(x, "", &f, NULL), WEFT_EARG, "name: expected 1 .. 30 bytes");
    FAILS_AT(w, weft_windows_new(x, "v", NULL, NULL), WEFT_EARG, "the frame is NULL");
    cr_assert_not_null(weft_windows_new(NULL, "v", &f, NULL));
    weft_windows *v = weft_windows_new(x, "v", &f, NULL);
    OK(w);
    weft_window a = weft_window_at(v, weft_windows_counts(v).windows);
    FAILS(w, WEFT_EARG, "windows \"v\": window 6; expected a number from 0, below 6");
    cr_assert(a.past == 0);
    FAILS_AT(w, weft_windows_batch(v, (int32_t[]){ 0, -1 }, 2, NULL), WEFT_EARG, "window -1;");
    FAILS_AT(w, weft_windows_batch(v, NULL, 2, NULL), WEFT_EARG, "2 windows, index is NULL");
    weft_windows_batch(v, (int32_t[]){ 6 }, 1, &(weft_windows_batch_opts){ .padded = true });
    FAILS(w, WEFT_EARG, "window 6;");
    weft_windows_batch(v, (int32_t[]){ 0 }, 1, &(weft_windows_batch_opts){ true, (weft_align)7 });
    FAILS(w, WEFT_EARG, "past_align 7; expected a value of weft_align");
    weft_windows_batch(v, (int32_t[]){ 0 }, 1, &(weft_windows_batch_opts){ .past_align = WEFT_ALIGN_RIGHT });
    FAILS(w, WEFT_EARG, "windows \"v\": past_align on ragged tensors; expected padded = true");
    weft_windows_batch_opts padded = { .padded = true };
    cr_assert(weft_windows_batch(NULL, NULL, 0, NULL).target && !weft_windows_counts(NULL).windows);
    cr_assert(weft_windows_batch(NULL, NULL, 0, &padded).target);
    double out[64];
    weft_window_batch b = weft_windows_batch(v, (int32_t[]){ 0 }, 1, NULL);
    weft_windows_inverse_transform(v, NULL, out);
    FAILS(w, WEFT_EARG, "windows_inverse_transform: the tensor of predictions");
    FAILS_AT(w, weft_windows_inverse_transform(v, b.target, out), WEFT_EARG, "of a step that has ended");
    weft_windows_inverse_transform(v, weft_zeros(w, WEFT_SHAPE(4, 1)), out);
    FAILS(w, WEFT_ESHAPE, "expected ragged [rows, 1 * columns]");
    weft_real nan[5] = { (weft_real)NAN };
    weft_windows_inverse_transform(
        v, weft_ragged(w, nan, 1, &(weft_lengths){ .n = 1, .len = (int32_t[]){ 5 } }), out);
    FAILS(w, WEFT_ESHAPE, "sequence 0 has 5 rows, but window 0 only 4");
    weft_windows_inverse_transform(
        v, weft_ragged(w, nan, 1, &(weft_lengths){ .n = 1, .len = (int32_t[]){ 1 }, .id = (int64_t[]){ 6 } }),
        out);
    FAILS(w, WEFT_EARG, "window 6;");
    weft_windows_inverse_transform(
        v, weft_ragged(w, nan, 1, &(weft_lengths){ .n = 1, .len = (int32_t[]){ 1 } }), out);
    FAILS(w, WEFT_ENUMERIC, "window 0, row 0, target \"y\": nan");
    weft_frame_free(&f), weft_frame_free(&shorter);
}
