/* refused_series.h - of test_refused.c: frames, features, windows, forecasts of any length. */
#ifndef REFUSED_SERIES_H
#define REFUSED_SERIES_H
#include "refused.h"

static void parts_of_files(bad *b)
{
    weft_dataset data;
    weft_hdf5 *file;
    FILE_FAILS(weft_open_hdf5, b->name, NULL, &file);
    FILE_FAILS(weft_open_hdf5, "/nowhere.h5", b->name, &file);
    FILE_FAILS(weft_open_hdf5, "/nowhere.h5", NULL, NULL);
    FILE_FAILS(weft_read_hdf5_part, NULL, NULL, b->n, &data);
    FILE_FAILS(weft_read_hdf5_part, NULL, NULL, 0, NULL);
    TRY(weft_hdf5_shape, NULL);
    TRY(weft_close_hdf5, NULL);
}

static void frames(bad *b)
{
    parts_of_files(b);
    static const char *const none[] = { "u", NULL };
    weft_frame f = { 0 };
    const double *columns[] = { NULL };
    FILE_FAILS(weft_frame_add, NULL, NULL, NULL, NULL, b->n);
    FILE_FAILS(weft_frame_add, &f, b->name, none, columns, b->n);
    FILE_FAILS(weft_frame_read_csv, &f, b->name, b->name, none, NULL);
    FILE_FAILS(weft_frame_read_csv, NULL, "/nowhere.csv", NULL, NULL, NULL);
    FILE_FAILS(weft_frame_read_hdf5, &f, b->name, b->name, none);
    FILE_FAILS(weft_frame_read_hdf5, NULL, "/nowhere.h5", NULL, NULL);
    FILE_FAILS(weft_frame_write_hdf5, NULL, b->name, NULL);
    FILE_FAILS(weft_frame_write_hdf5, &f, "/nowhere/x.h5", NULL);
    FILE_FAILS(weft_frame_write_csv, NULL, b->name);
    FILE_FAILS(weft_frame_write_csv, &f, "/nowhere/x.csv");
    weft_frame one, two;
    weft_frame_split_opts all = { b->n, &(int32_t){ b->i }, b->r, b->name, b->r };
    FILE_FAILS(weft_frame_split, NULL, &all, &f, &f);
    FILE_FAILS(weft_frame_split, &f, NULL, &one, &two);
    FILE_FAILS(weft_frame_split, &f, &all, &one, NULL);
    all.fraction = 0, all.time = NULL, all.limit = 0;
    FILE_FAILS(weft_frame_split, &f, &all, &one, &two);
    FILE_FAILS(weft_frame_split, &f, &(weft_frame_split_opts){ .time = "?", .limit = b->r }, &one, &two);
    FILE_FAILS(weft_frame_add_column, NULL, b->name, NULL, WEFT_PER_SERIES);
    FILE_FAILS(weft_frame_add_column, &f, b->name, NULL, (weft_column_values)b->i);
    FILE_FAILS(weft_frame_add_static_csv, &f, "/nowhere.csv", b->name, none, NULL);
    FILE_FAILS(weft_frame_downsample, NULL, b->n, (weft_downsampling)b->i);
    TRY(weft_frame_column, NULL, b->name);                                TRY(weft_frame_column, &f, b->name);
    TRY(weft_frame_free, NULL);                                            TRY(weft_frame_free, &f);
}

static weft_tensor *no_model(weft_series_batch s, void *user) { (void)user; return s.future; }

static void features(bad *b)
{
    static const char *const names[] = { "u", NULL }, *const target[] = { "y", NULL };
    weft_frame f = { 0 };
    weft_features_opts o = { .context = b->n, .horizon = b->n, .known = names, .target = target };
    weft_features *x[] = {
        NULL,
        weft_features_new(
            b->w, "x", &(weft_features_opts){ .context = 2, .horizon = 2, .known = names, .target = target })
    };
    weft_checkpoint_item items[2];
    double out[2];
    int32_t index = b->i;
    TRY(weft_features_new, b->w, b->name, &o);
    TRY(weft_features_new, NULL, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        TRY(weft_features_counts, x[i]);
        TRY(weft_features_fit, x[i], NULL);                               TRY(weft_features_fit, x[i], &f);
        TRY(weft_features_state, x[0], items);
        TRY(weft_features_transform, x[i], b->name, &f, b->n, out);
        TRY(weft_features_inverse_transform, x[i], b->name, &f, b->n, b->n, b->n, NULL, out);
        TRY(weft_windows_new, x[i], b->name, &f, &(weft_windows_opts){ .stride = b->n });
        TRY(weft_rolling_forecasts, x[i], &f, NULL, b->n, no_model, NULL, NULL);
        TRY(weft_rolling_forecasts, x[i], &f,
            &(weft_rolling_series){ b->n, b->n, b->n, b->n % 2 ? out : NULL, NULL }, 1, no_model, NULL,
            &(weft_rolling_forecast_opts){ .quantiles = b->i });
        TRY(weft_rolling_forecast, x[i], &f, b->n, b->n, no_model, NULL,
            &(weft_rolling_forecast_opts){ .rows = b->n, .quantiles = b->i }, out);
    }
    TRY(weft_windows_counts, NULL);
    TRY(weft_window_at, NULL, b->n);
    TRY(weft_windows_batch, NULL, &index, b->n, NULL);
    TRY(weft_windows_batch, NULL, NULL, b->n, &(weft_windows_batch_opts){ true, (weft_align)b->i });
    TRY(weft_windows_inverse_transform, NULL, X, out);
}
#endif
