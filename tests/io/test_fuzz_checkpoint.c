/* test_fuzz_checkpoint.c - damaged files: each either fails to load, and then nothing has changed, or gives
 * exactly what was saved.
 *
 * Three kinds of file: a checkpoint; one whose seal was made right again after the damage, so that libhdf5
 * and the checks behind it see what the seal would have kept from them; and a state dict, which has no
 * checksums and may only do no harm. Batches run in children, so that a crash or a hang is one failed batch
 * that names its number; WEFT_FUZZ is the number of files of the first two kinds. */
#include <signal.h>
#include <sys/wait.h>
#include "checkpoint.h"

typedef enum { PLAIN, RESEALED, FOREIGN } kind;
typedef struct { int32_t ints[6]; char text[32]; double score; } extras;
static const extras said = { { 1, 2, 3, 4, 5, 6 }, "letters to phones", 0.25 };

static void reseal(bytes b)
{
    if (b.n < WEFT__SEAL)
        return;
    memset(b.at, 0, WEFT__SEAL);
    snprintf((char *)b.at, WEFT__SEAL, "weft checkpoint 1\nbytes %zu\ncrc32c %08x\nHDF5 begins at byte %d\n",
             b.n - WEFT__SEAL, (unsigned)weft__crc32c(0, b.at + WEFT__SEAL, b.n - WEFT__SEAL), WEFT__SEAL);
}

static void damage_once(bytes *b)
{
    size_t at = dice(b->n), to = dice(b->n), n = 1 + dice(dice(4) ? 16 : 600);
    n = n > b->n - at ? b->n - at : n;
    n = n > b->n - to ? b->n - to : n;
    switch (dice(8)) {
    case 0: case 1: b->at[at] ^= (unsigned char)(1u << dice(8)); return;
    case 2: b->at[at] = (unsigned char)dice(256); return;
    case 3: memset(b->at + at, dice(2) ? 0 : 255, n); return;
    case 4: memmove(b->at + at, b->at + to, n); return;
    case 5:                                      /* two blocks change places */
        for (size_t i = 0; i < n; i++) {
            unsigned char t = b->at[at + i];
            b->at[at + i] = b->at[to + i];
            b->at[to + i] = t;
        }
        return;
    case 6:                                      /* a field of the format: small, or as large as can be */
        for (size_t i = 0; i < 4 && at + i < b->n; i++)
            b->at[at + i] = dice(2) ? 255 : (unsigned char)dice(3);
        return;
    default: b->n = dice(3) ? b->n - dice(b->n < 64 ? b->n : 64) : at + 1; return;
    }
}

static bytes damaged(bytes good, kind k, uint64_t number)
{
    bytes b = { malloc(good.n), good.n };
    dice_seed(number * 3 + (uint64_t)k);
    memcpy(b.at, good.at, good.n);
    for (uint64_t i = 0, n = 1 + dice(3); i < n && b.n; i++)
        damage_once(&b);
    if (k == RESEALED)
        reseal(b);
    return b;
}

/* ---- one file ---- */
/* 0: refused, 1: as saved, 2: a silent change */
static int one(const model *k, const char *path, kind what, uint32_t good, uint32_t now)
{
    extras x = { { 0 }, "", 0 };
    weft_checkpoint_item items[] = { { "ints", WEFT_I32, x.ints, 6 },
                                     { "text", WEFT_TEXT, x.text, 32 },
                                     { "score", WEFT_F64, &x.score, 1 } };
    weft_status s = what == FOREIGN ? weft_load_state_dict(path, k->m, NULL) :
                                      weft_load(path, k->m, k->o, items, COUNT(items));
    uint32_t is = state_of(k);
    if (!weft_ok(k->w))
        return 2;
    if (s)
        return is == now && !x.ints[0] && !x.text[0] && !x.score && *weft_file_message() ? 0 : 2;
    return what == FOREIGN || (is == good && !memcmp(x.ints, said.ints, sizeof x.ints) &&
                               !strcmp(x.text, said.text) && x.score == said.score) ?
               1 :
               2;
}

/* in a child: the first bad file + 1, 0: none */
static int batch(const model *a, const model *b, bytes good, kind what, int from, int n)
{
    char name[40], keep[160];
    snprintf(name, sizeof name, "mutant_%d", (int)getpid());
    snprintf(keep, sizeof keep, "%s", in_folder("before"));
    const char *path = in_folder(name);
    uint32_t saved = state_of(a), now = state_of(b);
    int bad = 0;
    for (int i = from; i < from + n && !bad; i++) {
        bytes m = damaged(good, what, (uint64_t)i);
        write_bytes(path, m.at, m.n);
        free(m.at);
        int is = one(b, path, what, saved, now);
        bad = is == 2 ? i - from + 1 : 0;
        if (is == 1 && weft_load(keep, b->m, b->o, NULL, 0))     /* back to what differs from it */
            bad = i - from + 1;
        now = is == 1 ? state_of(b) : now;
    }
    unlink(path);
    return bad;
}

static void run_batches(const model *a, const model *b, bytes good, kind what, int count)
{
    enum { BATCH = 100 };
    static const char *const kinds[] = { "damaged checkpoint", "resealed checkpoint", "damaged state dict" };
    for (int from = 0; from < count; from += BATCH) {
        int n = count - from < BATCH ? count - from : BATCH, status;
        pid_t child = fork();
        if (!child) {
            alarm(CHECK_SANITIZED ? 200 : 60);
            _exit(batch(a, b, good, what, from, n));
        }
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert(WIFEXITED(status), "%s %d ..: %s", kinds[what], from,
                  WTERMSIG(status) == SIGALRM ? "hangs" : strsignal(WTERMSIG(status)));
        cr_assert_eq(WEXITSTATUS(status), 0, "%s %d: what was loaded is not what was saved", kinds[what],
                     from + WEXITSTATUS(status) - 1);
    }
}

Test(fuzz_checkpoint, damage_is_never_silent)
{
    const char *count = getenv("WEFT_FUZZ");
    int n = count ? atoi(count) : rounds(2000, 12000);
    const char *path = in_folder("good"), *dict = in_folder("dict");
    model a = model_new(1), b = model_new(2);
    train(&a, 2);
    extras x = said;
    weft_checkpoint_item items[] = { { "ints", WEFT_I32, x.ints, 6 },
                                     { "text", WEFT_TEXT, x.text, 32 },
                                     { "score", WEFT_F64, &x.score, 1 } };
    DOES(weft_save(path, a.m, a.o, items, COUNT(items)));
    DOES(weft_save_state_dict(dict, a.m));
    DOES(weft_save(in_folder("before"), b.m, b.o, NULL, 0));
    bytes good = read_bytes(path), plain = read_bytes(dict), same = damaged(good, PLAIN, 0);
    memcpy(same.at = realloc(same.at, good.n), good.at, good.n);
    reseal((bytes){ same.at, good.n });
    cr_assert(!memcmp(same.at, good.at, good.n), "the seal is not what this test takes it for");
    run_batches(&a, &b, good, PLAIN, n / 2);
    run_batches(&a, &b, good, RESEALED, n - n / 2);
    run_batches(&a, &b, plain, FOREIGN, n / 4);
    free(good.at);
    free(plain.at);
    free(same.at);
    CLEAN(a.w);
    CLEAN(b.w);
    end_folder();
}

/* Every single bit of the file, one at a time: refused, all of them. */
Test(fuzz_checkpoint, no_bit_flips_unseen)
{
    const char *path = in_folder("a.h5"), *bad = in_folder("bad");
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *x = weft_parameter(m, "x", WEFT_SHAPE(2), (weft_init){ WEFT_INIT_CONSTANT, 1, 0 });
    DOES(weft_save(path, m, NULL, NULL, 0));
    bytes b = read_bytes(path);
    weft_assign_values(x, (weft_real[]){ 5, 6 }, 2);
    for (size_t bit = 0; bit < 8 * b.n; bit += rounds(CHECK_SANITIZED ? 61 : 7, 1)) {
        b.at[bit / 8] ^= (unsigned char)(1u << bit % 8);
        write_bytes(bad, b.at, b.n);
        cr_assert_eq(weft_load(bad, m, NULL, NULL, 0), WEFT_EFORMAT, "bit %zu", bit);
        b.at[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    same_bits("x", numbers(x), ((weft_real[]){ 5, 6 }), 2);
    free(b.at);
    CLEAN(w);
    end_folder();
}
