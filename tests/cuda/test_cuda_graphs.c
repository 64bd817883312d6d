/* test_cuda_graphs.c - tests on the emulated GPU that steps sent as graphs (weft_opts.graphs) have the bits
 * of plain steps, also if steps change, read results, grow or fail. The first two tests also run on a real
 * GPU (tests/gpu_first.sh). */
#include "cuda_emulated.h"
#include "tests/listen.h"

static weft *open_graphs(bool graphs)
{
    return open_with((weft_opts){ .device = WEFT_CUDA, .seed = 1, .graphs = graphs });
}

#define FOR_GRAPHS(w)   for (weft *w = open_graphs(true); w; CLEAN(w), w = NULL)
#define GRAPH_TEST(...) WITH_CONTEXTS(FOR_GRAPHS, __VA_ARGS__, .disabled = false)

static net trained(weft *w, int updates)
{
    net n = net_in(w);
    for (int i = 0; i < updates; i++)
        train_few(&n);
    return n;
}

/* ---- a program with different kinds of steps ---- */
static weft_tensor *loss_of(const net *n, int step, int64_t sequences, const int32_t *len)
{
    static int32_t tokens[TOKENS], next[TOKENS];
    for (int i = 0; i < TOKENS; i++) {           /* new numbers in each step */
        tokens[i] = (i * 7 + step) % WORDS;
        next[i] = (i * 5 + 2 * step) % WORDS;
    }
    weft_lengths of = { .n = sequences, .len = len };
    weft_tensor *x = weft_ragged_ints(n->w, tokens, &of), *y = weft_ragged_ints(n->w, next, &of);
    x = weft_dropout(weft_embedding_run(n->embed, x), .3, "in", false);
    x = weft_dropout(weft_rnn_run(n->rnn, x, WEFT_ZERO_STATE).y, .5, "out", false);
    return weft_mean_loss(weft_cross_entropy(weft_linear_run(n->out, x), y, NULL));
}
static void update(const net *n, int step)
{
    weft_clip_grad_norm(n->all, .1, 0);
    weft_optim_set_lr(n->optim, 1e-2 / (1 + step));
    weft_optim_step(n->optim);
}
typedef enum { PLAIN, LENGTHS, READS, EVALUATES, GROWS, WAYS } habit;
static double read_of;                           /* digest of the numbers read, in order */
static void step_of(const net *n, habit way, int step)
{
    int32_t len[] = { 3, 0, 5, 1, 5, 2 };
    if (way == LENGTHS) {                        /* the same tokens each time, with other lengths */
        len[0] = 1 + step % 5;
        len[3] = 5 - step % 3;
    }
    for (int i = 0; way == GROWS && i < COUNT(len); i++)
        len[i] = 2 + step / 6 * 9;
    weft_tensor *loss = loss_of(n, step, COUNT(len) - (way == LENGTHS ? step % 2 : 0), len);
    if (way == READS && step % 3)
        read_of = 2 * read_of + weft_item(loss);
    weft_backward(loss);
    if (way == READS && step % 3 == 2)
        weft_synchronize(n->w);
    update(n, step);
    weft_clear(n->w);
    if (way == EVALUATES) {
        WEFT_NO_GRAD(n->w) WEFT_EVAL(n->w)
            read_of = 2 * read_of + weft_item(loss_of(n, step, 2, len));
        weft_clear(n->w);
    }
}

typedef struct ended { weft_real values[4096], embed[WORDS * WIDTH]; double read; } ended;
static void run(bool graphs, habit way, int steps, ended *e)
{
    weft *w = open_graphs(graphs);
    net n = net_in(w);
    read_of = 0;
    for (int i = 0; i < steps; i++)
        step_of(&n, way, i);
    OK(w);
    memset(e, 0, sizeof *e);
    weft_real *all = numbers(weft_find_parameter(n.all, "rnn.weight_hh_l0"));
    memcpy(e->values, all, 4 * HIDDEN * HIDDEN * sizeof *all);
    memcpy(e->embed, numbers(weft_find_parameter(n.all, "embed.weight")), sizeof e->embed);
    e->read = read_of;
    CLEAN(w);
}
static void same_end(const char *what, const ended *a, const ended *b)
{
    same_bits(what, a->values, b->values, COUNT(a->values));
    same_bits(what, a->embed, b->embed, COUNT(a->embed));
    cr_assert(!memcmp(&a->read, &b->read, sizeof a->read), "%s: read %.17g; %.17g without graphs", what,
              a->read, b->read);
}

/* ---- the bits of plain steps ---- */
enum { UPDATES = 20 };
Test(graphs, same_bits_for_twenty_updates)
{
    static ended graphed, plain;
    run(false, PLAIN, UPDATES, &plain);
    begin_counting();
    run(true, PLAIN, UPDATES, &graphed);
    same_end("graphs", &graphed, &plain);
    if (!is_emulated())
        return;                                  /* a GPU counts nothing */
    /* The first step allocates, and the third repeats the second. Then one graph is made, and later steps
     * update it. */
    cr_assert_eq(counted(GRAPHS), UPDATES - 3, "%lld", counted(GRAPHS));
    cr_assert_eq(counted(MADE), 1, "%lld", counted(MADE));
    cr_assert_eq(counted(UPDATED), UPDATES - 4);
}
Test(graphs, same_bits_when_steps_differ)
{
    static const char *const name[WAYS] = { "plain", "lengths", "reads", "evaluates", "grows" };
    static ended graphed, plain;
    for (habit way = LENGTHS; way < WAYS; way++) {
        const int steps = way == GROWS ? 30 : UPDATES;
        run(false, way, steps, &plain);
        begin_counting();
        run(true, way, steps, &graphed);
        same_end(name[way], &graphed, &plain);
        if (!is_emulated())
            continue;
        cr_assert_geq(counted(GRAPHS), steps / 3, "%s: %lld", name[way], counted(GRAPHS));
        cr_assert_geq(counted(UPDATED), counted(GRAPHS) / 3, "%s: %lld of %lld", name[way], counted(UPDATED),
                      counted(GRAPHS));
    }
}
/* If the driver refuses updates, the bits stay the same, and after a few new graphs most steps are plain. */
Test(graphs, refused_updates_limit_new_graphs)
{
    static ended graphed, plain;
    run(false, PLAIN, 2 * UPDATES, &plain);
    setenv("WEFT_EMU_GRAPHS", "2", 1);
    begin_counting();
    run(true, PLAIN, 2 * UPDATES, &graphed);
    unsetenv("WEFT_EMU_GRAPHS");
    same_end("made anew", &graphed, &plain);
    cr_assert_eq(counted(MADE), counted(GRAPHS));
    cr_assert_eq(counted(UPDATED), 0);
    cr_assert(counted(GRAPHS) >= 8 && counted(GRAPHS) <= UPDATES, "%lld", counted(GRAPHS));
}
/* Without memory for a graph the context reports it, changes nothing, and continues with plain steps. */
GRAPH_TEST(graphs, end_after_enomem)
{
    net n = trained(w, 3);
    setenv("WEFT_EMU_GRAPHS", "0", 1);
    train_few(&n);
    weft_synchronize(w);
    FAILS(w, WEFT_ENOMEM, "graph: out of memory");
    unsetenv("WEFT_EMU_GRAPHS");
    begin_counting();
    train_few(&n), train_few(&n), train_few(&n), train_few(&n);
    OK(w);
    cr_assert_eq(counted(GRAPHS), 0);
    same_bits("bias", bias(&n), bias_after(7), WORDS);
}

/* ---- cost of a step ---- */
GRAPH_TEST(graphs, step_neither_waits_nor_stops_the_device)
{
    net n = trained(w, 4);
    begin_counting();
    int64_t blocks = weft_usage_of(w).allocations, launches = weft_usage_of(w).launches;
    for (int i = 0; i < UPDATES; i++)
        train_few(&n);
    cr_assert_eq(counted(WAITS), 0);
    cr_assert_eq(counted(STALLS), 0);
    cr_assert_eq(weft_usage_of(w).allocations, blocks);
    cr_assert_eq(counted(GRAPHS), UPDATES);
    cr_assert_eq(counted(MADE), 0);
    cr_assert_geq(weft_usage_of(w).launches - launches, 20 * UPDATES, "usage counts launches inside graphs");
    same_bits("bias", bias(&n), bias_after(4 + UPDATES), WORDS);
}
GRAPH_TEST(graphs, steps_without_repetition_are_plain)
{
    begin_counting();
    for (int i = 0; i < 30; i++) {
        weft_tensor *x = weft_full(w, 1, WEFT_SHAPE(3));
        for (int k = 0; k < i; k++)
            x = weft_tanh(x);
        weft_clear(w);
        weft_clear(w);                           /* an empty step does not count */
    }
    cr_assert_eq(counted(GRAPHS), 0);
}
/* Without weft_clear no step ends, so no graph is made. WEFT_SYNC waits for each kernel and makes none. */
Test(graphs, need_weft_clear_and_no_weft_sync)
{
    begin_counting();
    weft *w = open_graphs(true);
    net n = net_in(w);
    for (int i = 0; i < 6; i++)
        weft_backward(loss_of(&n, i, COUNT(few), few)), update(&n, i);
    CLEAN(w);
    setenv("WEFT_SYNC", "1", 1);
    w = open_graphs(true);
    n = net_in(w);
    for (int i = 0; i < 6; i++)
        train_few(&n);
    CLEAN(w);
    cr_assert_eq(counted(GRAPHS), 0);
}
/* Uploads of a few steps fill the ring while the device is late. Those of the second size exceed one part of
 * it. */
static void send_and_add(weft *w, weft_tensor *sum, int64_t n, int first)
{
    weft_real *x = malloc((size_t)n * sizeof *x);
    for (int k = 0; k < 3; k++) {
        for (int64_t l = 0; l < n; l++)
            x[l] = (weft_real)((l + first + k) % 1000);
        weft_assign(sum, weft_add(sum, weft_reals(w, x, WEFT_SHAPE(n))));
    }
    free(x);
}
Test(graphs, uploads_survive_a_late_device)
{
    enum { ROUNDS = 24 };
    static const int64_t size[] = { 40000, 110000 };
    for (int s = 0; s < COUNT(size); s++) {
        const int64_t n = size[s] * 4 / (int64_t)sizeof(weft_real);
        weft *w = open_graphs(true);
        weft_tensor *sum = weft_buffer(weft_module_new(w, "m"), "sum", WEFT_SHAPE(n));
        begin_counting();
        for (int i = 0; i < ROUNDS; i++)
            send_and_add(w, sum, n, i), weft_clear(w);
        cr_assert_geq(counted(GRAPHS), ROUNDS / 2, "%lld", counted(GRAPHS));
        weft_real *all = numbers(sum);
        for (int64_t l = 0; l < n; l++) {
            double needed = 0;
            for (int i = 0; i < ROUNDS; i++)
                for (int k = 0; k < 3; k++)
                    needed += (double)((l + i + k) % 1000);
            cr_assert((double)all[l] == needed, "%g at %lld, not %g", (double)all[l], (long long)l, needed);
        }
        CLEAN(w);
    }
}
GRAPH_TEST(graphs, long_steps_take_several)
{
    enum { LONG = 2500 };
    begin_counting();
    for (int i = 0; i < 5; i++) {
        weft_tensor *t = weft_full(w, i, WEFT_SHAPE(1)), *one = weft_full(w, 1, WEFT_SHAPE(1));
        for (int k = 0; k < LONG; k++)
            t = weft_add(t, one);
        cr_assert_eq(weft_item(t), i + LONG);
        weft_clear(w);
    }
    cr_assert_eq(counted(GRAPHS), 3 * 3, "%lld", counted(GRAPHS));
}

/* ---- several contexts ---- */
Test(graphs, two_contexts_in_one_thread_are_independent)
{
    weft *w[2] = { open_graphs(true), open_graphs(true) };
    net n[2] = { net_in(w[0]), net_in(w[1]) };
    static int32_t tokens[TOKENS];
    begin_counting();
    for (int i = 0; i < 6; i++) {                /* the steps of both contexts interleave */
        for (int c = 0; c < 2; c++) {
            weft_lengths of = { .n = COUNT(few), .len = few };
            weft_embedding_run(n[c].embed, weft_ragged_ints(w[c], tokens, &of));
        }
        weft *third = open_graphs(false);        /* allocates and frees memory */
        net m = net_in(third);
        train_few(&m);
        CLEAN(third);
        for (int c = 0; c < 2; c++)
            train_few(&n[c]);
    }
    cr_assert_eq(counted(GRAPHS), 2 * 3);
    for (int c = 0; c < 2; c++) {
        same_bits("bias", bias(&n[c]), bias_after(6), WORDS);
        CLEAN(w[c]);
    }
}

/* ---- failures ---- */
/* If the host program waits for the whole device within a step, the context reports it, changes nothing, and
 * continues without graphs. */
static void host_waits(void)
{
    void *symbol = hook("weft_emu_host_waits");
    int (*fn)(void);
    memcpy(&fn, &symbol, sizeof fn);
    fn();
}
GRAPH_TEST(graphs, wait_of_the_host_program_is_reported)
{
    net n = trained(w, 5);
    host_waits();                                /* allowed between two steps */
    train_few(&n);
    weft_real before[WORDS];
    memcpy(before, bias(&n), sizeof before);
    weft_tensor *loss = loss_of(&n, 0, COUNT(few), few);
    host_waits();
    weft_backward(loss);
    weft_synchronize(w);
    FAILS(w, WEFT_EDEVICE, "graph: operation failed due to a previous error during capture: a call of CUDA");
    same_bits("unchanged", bias(&n), before, WORDS);
    begin_counting();
    for (int i = 0; i < 4; i++)
        loss = loss_of(&n, i, COUNT(few), few), host_waits(), weft_backward(loss), weft_clear(w);
    OK(w);
    cr_assert_eq(counted(GRAPHS), 0);
}
/* After a refused launch or ENOMEM during capture, the captured launches are sent, the error is reported, and
 * the next step is valid. */
Test(graphs, failed_step_leaves_the_next_valid)
{
    for (int how = 0; how < 2; how++) {
        net n = trained(open_graphs(true), 4);
        if (how)
            setenv("WEFT_EMU_REFUSE", "update_each", 1);
        else
            weft_zeros(n.w, WEFT_SHAPE(1 << 20, 1 << 20));
        train_few(&n);
        unsetenv("WEFT_EMU_REFUSE");
        const char *why = how ? "optim_step: update: too many resources" : "zeros: ";
        cr_assert(strstr(weft_error_message(n.w), why), "%s", weft_error_message(n.w));
        weft_recover(n.w);
        for (int i = 0; i < 4; i++)
            train_few(&n);
        OK(n.w);
        same_bits("bias", bias(&n), bias_after(8), WORDS);
        CLEAN(n.w);
    }
}
/* Reports an index out of range within a graph, with the name of its kernel. */
GRAPH_TEST(graphs, faults_are_reported)
{
    for (int i = 0; i < 6; i++) {
        const int32_t at[] = { 4, 0, i == 5 ? 7 : 3 };
        weft_index_select(weft_zeros(w, WEFT_SHAPE(5, 2)), weft_ints(w, at, WEFT_SHAPE(3)));
        weft_clear(w);
    }
    OK(w);
    weft_synchronize(w);
    FAILS(w, WEFT_EARG, "index 7 at place 2 of an earlier gather; 0 .. 4 is expected");
}
Test(graphs, crashed_kernel_loses_the_device)
{
    weft *w = open_graphs(true);
    net n = trained(w, 4);
    weft_synchronize(w);
    setenv("WEFT_EMU_FAIL", "update_each", 1);
    train_few(&n);
    weft_synchronize(w);
    unsetenv("WEFT_EMU_FAIL");
    cr_assert(strstr(weft_error_message(w), "an illegal memory access was encountered"), "%s",
              weft_error_message(w));
    weft_recover(w);
    cr_assert(!weft_ok(w), "a lost device stays lost");
    CLEAN_FAILED(w);
}
Test(graphs, log_counts_graphs)
{
    setenv("WEFT_LOG", "1", 1);
    listen_to_stderr();
    weft *w = open_graphs(true);
    trained(w, 6);
    CLEAN(w);
    const char *log = stop_listening();
    cr_assert(strstr(log, "3 graphs were sent, 1 of them had to be made"), "%s", log);
}
