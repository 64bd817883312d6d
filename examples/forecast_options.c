/* forecast_options.c - the table of options; see forecast_options.h and common/options.h. */
#include <stddef.h>
#include <string.h>
#include "common/program.h"
#include "forecast_model.h"
#include "forecast_options.h"

static const option table[] = {
    { "model", CHOICE, offsetof(options, set.model), ATTENTION_LSTM, 0, MODELS - 1,
      "encoder_decoder_lstm, attention_lstm, transformer_lstm, tft, pf_tft or xtft", model_names },
    SETTING("hidden", WHOLE, hidden, 64, 1, 4096, "width of the model (d_model, or units of each LSTM)"),
    SETTING("layers", WHOLE, layers, 1, 1, 8, "of each LSTM"),
    SETTING("heads", WHOLE, heads, 4, 1, 64, "of the attention; they divide the width"),
    SETTING("blocks", WHOLE, blocks, 1, 0, 16, "of attention, in transformer_lstm"),
    SETTING("context", WHOLE, context, 200, 1, 1e5, "rows of the past that are looked at, at most"),
    SETTING("horizon", WHOLE, horizon, 80, 1, 1e5, "rows of the future that are forecast, at most"),
    SETTING("stride", WHOLE, stride, 20, 1, 1e6, "rows between two windows of the training"),
    SETTING("series", WHOLE, series, 160, 1, 1e6, "series to learn from"),
    SETTING("series-seed", WHOLE, series_seed, 1, 0, 9e15, "of the series"),
    SETTING("batch", WHOLE, batch, 8, 1, 65536, "windows an update"),
    SETTING("shards", WHOLE, shards, 0, 0, 65536, "of an update, whatever the ranks; 0: as many as ranks"),
    SETTING("epochs", WHOLE, epochs, 25, 0, 1e6, "passes over the windows at most"),
    SETTING("warmup", WHOLE, warmup, 200, 0, 1e9, "updates until the full learning rate"),
    SETTING("patience", WHOLE, patience, 10, 1, 1e6, "epochs without a better validation loss until it ends"),
    SETTING("seed", WHOLE, seed, 1, 0, 9e15, "of the weights, the order and dropout"),
    SETTING("dropout", REAL, dropout, 0, 0, 0.95, "share of the units that are left out"),
    SETTING("noise", REAL, noise, 0, 0, 10, "of the measured field, standard deviation"),
    SETTING("lr", REAL, lr, 6e-3, 0, 10, "learning rate, after warm-up; a cosine leads to 0"),
    SETTING("decay", REAL, decay, 0, 0, 10, "of the weights (AdamW)"),
    SETTING("clip", REAL, clip, 1, 1e-9, 1e9, "the gradient's norm at most"),
    SETTING("average", REAL, average, 0.998, 0, 0.999999,
            "of the weights, decay an update; used to judge; 0: none"),
    OTHER("threads", WHOLE, threads, 0, 1, 1024),
    OTHER("every", WHOLE, every, 500, 1, 1e9),
    OTHER("device", DEVICE, device, 0, 0, 0),
    OTHER("out", TEXT, out, 0, 0, 0),
    OTHER("log", TEXT, log, 0, 0, 0),
    OTHER("pictures", TEXT, pictures, 0, 0, 0),
    OTHER("test", TEXT, test, 0, 0, 0),
    OTHER("forecasts", TEXT, forecasts, 0, 0, 0),
    OTHER("resume", FLAG, resume, 0, 0, 0),
    OTHER("quick", FLAG, quick, 0, 0, 0),
};
const option_table forecast_table = {
    "forecast [--out FILE] [--resume] [--log FILE] [--pictures FOLDER] [--every UPDATES] [--quick] "
    "[--forecasts CSV] [settings]\n"
    "forecast --test FILE [--pictures FOLDER] [--forecasts CSV]   (of whole series, each row)\n"
    "mpirun -n RANKS forecast .. does the same on several processors or machines, see docs/cluster.md\n"
    "with [--threads N] [--device cpu|cuda|best], and in training these settings (--quick: others, for a try "
    "of a second):\n\n",
    table,
    sizeof table / sizeof *table,
    SETTINGS,
};
_Static_assert(sizeof table / sizeof *table <= OPTIONS, "room for all");

static void make_quick(settings *s)
{
    s->hidden = 8;
    s->heads = 2;
    s->context = 40;
    s->horizon = 16;
    s->stride = 40;
    s->series = 6;
    s->batch = 16;
    s->epochs = 3;
    s->warmup = 5;
}

options command_line(int argc, char **argv)
{
    options o = { .out = "forecast.h5" };
    options_preset(&forecast_table, &o);
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--quick"))
            make_quick(&o.set);
    int rest = options_read(&forecast_table, &o, o.given, argc, argv);
    if (rest < argc)
        quit(2, "\"%s\" is not an option; `forecast --help` lists them", argv[rest]);
    if (o.test && o.resume)
        quit(2, "--test and --resume are two different things to do");
    if (o.pictures)
        must_be_a_folder("pictures", o.pictures);
    return o;
}
