/* g2p_options.c - the table of options; see g2p_options.h and common/options.h. */
#include "common/program.h"
#include "g2p_options.h"

static const option table[] = {
    SETTING("hidden", WHOLE, hidden, 128, 1, 4096, "units of each recurrent layer, in each direction"),
    SETTING("embed", WHOLE, embed, 32, 1, 4096, "width of the vectors of letters and phones"),
    SETTING("layers", WHOLE, layers, 2, 1, 8, "layers of the encoder"),
    SETTING("decoder-layers", WHOLE, decoder_layers, 1, 1, 8, "layers of the decoder"),
    SETTING("batch", WHOLE, batch, 32, 1, 65536, "words an update"),
    SETTING("shards", WHOLE, shards, 0, 0, 65536, "of an update, whatever the ranks; 0: as many as ranks"),
    SETTING("pool", WHOLE, pool, 50, 1, 1e6, "batches that are sorted by length together"),
    SETTING("epochs", WHOLE, epochs, 8, 0, 1e6, "passes over the training words"),
    SETTING("warmup", WHOLE, warmup, 300, 0, 1e9, "updates until the full learning rate"),
    SETTING("seed", WHOLE, seed, 1, 0, 9e15, "of every random number"),
    SETTING("words", WHOLE, words, 0, 0, 1e9, "take about so many words of the dictionary, 0: all"),
    SETTING("lr", REAL, lr, 2.5e-3, 0, 10, "learning rate, after warm-up; a cosine leads to 0"),
    SETTING("dropout", REAL, dropout, 0.1, 0, 0.95, "share of the units that are left out"),
    SETTING("smoothing", REAL, smoothing, 0.05, 0, 0.95, "of the labels"),
    SETTING("decay", REAL, decay, 0, 0, 10, "of the weights (AdamW)"),
    SETTING("clip", REAL, clip, 2, 1e-9, 1e9, "the gradient's norm at most"),
    SETTING("average", REAL, average, 0.9995, 0, 0.999999,
            "of the weights, decay an update; used to judge and to say; 0: none"),
    OTHER("threads", WHOLE, threads, 0, 1, 1024),
    OTHER("beam", WHOLE, beam, 1, 1, 100),
    OTHER("every", WHOLE, every, 500, 1, 1e9),
    OTHER("device", DEVICE, device, 0, 0, 0),
    OTHER("data", TEXT, data, 0, 0, 0),
    OTHER("out", TEXT, out, 0, 0, 0),
    OTHER("log", TEXT, log, 0, 0, 0),
    OTHER("pictures", TEXT, pictures, 0, 0, 0),
    OTHER("test", TEXT, test, 0, 0, 0),
    OTHER("say", TEXT, say, 0, 0, 0),
    OTHER("said", TEXT, said, 0, 0, 0),
    OTHER("resume", FLAG, resume, 0, 0, 0),
};
const option_table g2p_table = {
    "g2p --data DICT [--out FILE] [--resume] [--log FILE] [--pictures FOLDER] [--every UPDATES] "
    "[--said TEXT] [settings]\n"
    "g2p --test FILE [--data DICT] [--beam K] [--said TEXT]   (the test's words, as it says them)\n"
    "g2p --say FILE [--beam K] WORD...\n"
    "mpirun -n RANKS g2p .. does the same on several processors or machines, see docs/cluster.md\n"
    "with [--threads N] [--device cpu|cuda|best], and in training these settings:\n\n",
    table, sizeof table / sizeof *table, SETTINGS,
};
_Static_assert(sizeof table / sizeof *table <= OPTIONS, "room for all");

options command_line(int argc, char **argv)
{
    options o = { .out = "g2p.h5" };
    options_preset(&g2p_table, &o);
    int rest = options_read(&g2p_table, &o, o.given, argc, argv);
    o.words = argv + rest;
    o.count = argc - rest;
    if (o.count && !o.say)
        quit(2, "\"%s\" is not an option; `g2p --help` lists them", o.words[0]);
    if (!o.data && !o.test && !o.say)
        quit(2, "--data DICT, --test FILE or --say FILE is expected; `g2p --help` says more");
    if ((o.test != NULL) + (o.say != NULL) > 1 || (o.resume && !o.data))
        quit(2, "--test, --say and --data with --resume are three different things to do");
    if (o.pictures)
        must_be_a_folder("pictures", o.pictures);
    if (o.say && !o.count)
        quit(2, "--say FILE: which words?");
    return o;
}
