/* test_checkpoint_files.c - how checkpoints get to the disk: full disks, killed processes, links, many
 * threads. */
#include <hdf5.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "checkpoint.h"

static int ended(pid_t child)                    /* its exit status, 256 + the signal that killed it */
{
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

Test(checkpoint_files, a_full_disk_leaves_the_old_file)
{
    model a = model_new(1);
    const char *path = in_folder("a.h5"), *copy = in_folder("copy");
    DOES(weft_save(path, a.m, a.o, NULL, 0));
    DOES(weft_save(copy, a.m, a.o, NULL, 0));
    train(&a, 1);
    bytes b = read_bytes(path);
    for (size_t limit = 0; limit < b.n; limit += b.n / 7) {
        pid_t child = fork();
        if (!child) {
            setrlimit(RLIMIT_FSIZE, &(struct rlimit){ limit, limit });
            signal(SIGXFSZ, SIG_IGN);
            weft_status s = weft_save(path, a.m, a.o, NULL, 0);
            _exit(s == WEFT_EIO && strstr(weft_file_message(), "cannot be written") &&
                          H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL) == 0 ?
                      0 :
                      1);
        }
        cr_assert_eq(ended(child), 0);
        cr_assert(equal_files(path, copy) && files_in_folder() == 2);
    }
    free(b.at);
    CLEAN(a.w);
    end_folder();
}

/* A version, and a number of bytes, that go on to the end of the head and beyond. */
Test(checkpoint_files, a_head_without_an_end)
{
    model a = model_new(1);
    const char *path = in_folder("head");
    char text[2000];
    memset(text, '1', sizeof text);
    memcpy(text, "weft checkpoint ", 16);
    write_bytes(path, text, sizeof text);
    REFUSES(weft_load(path, a.m, a.o, NULL, 0), WEFT_EFORMAT, "version 111111111111111;");
    memcpy(text, "weft checkpoint 1\nbytes ", 24);
    write_bytes(path, text, sizeof text);
    REFUSES(weft_load(path, a.m, a.o, NULL, 0), WEFT_EFORMAT, "there were 18446744073709551615");
    CLEAN(a.w);
    end_folder();
}

Test(checkpoint_files, what_cannot_be_replaced_is_left_alone)
{
    model a = model_new(1);
    char deep[200];
    snprintf(deep, sizeof deep, "%s/no/such/folder", in_folder(""));
    REFUSES(weft_save(deep, a.m, NULL, NULL, 0), WEFT_EIO, "No such file");
    REFUSES(weft_save(folder, a.m, NULL, NULL, 0), WEFT_EIO, "not a regular file");
    REFUSES(weft_save("/dev/null", a.m, NULL, NULL, 0), WEFT_EIO, "not a regular file");
    const char *pipe_ = in_folder("pipe");
    cr_assert(mkfifo(pipe_, 0600) == 0);
    REFUSES(weft_save_state_dict(pipe_, a.m), WEFT_EIO, "not a regular file");
    char *longest = calloc(1, 6000);
    memset(longest, 'a', 5999);
    REFUSES(weft_save(longest, a.m, NULL, NULL, 0), WEFT_EIO, "too long");
    longest[300] = 0;
    REFUSES(weft_save(longest, a.m, NULL, NULL, 0), WEFT_EIO, "too long");
    free(longest);
    cr_assert_eq(files_in_folder(), 1);
    CLEAN(a.w);
    end_folder();
}

Test(checkpoint_files, a_link_stays_a_link_and_a_mode_a_mode)
{
    model a = model_new(1);
    const char *path = in_folder("a.h5"), *link_ = in_folder("link");
    struct stat s;
    DOES(weft_save(path, a.m, a.o, NULL, 0));
    cr_assert(chmod(path, 0640) == 0 && symlink("a.h5", link_) == 0);
    train(&a, 1);
    DOES(weft_save(link_, a.m, a.o, NULL, 0));
    cr_assert(lstat(link_, &s) == 0 && S_ISLNK(s.st_mode) && stat(path, &s) == 0 &&
              (s.st_mode & 0777) == 0640);
    uint32_t state = state_of(&a);
    train(&a, 1);
    DOES(weft_load(path, a.m, a.o, NULL, 0));
    cr_assert(state_of(&a) == state && files_in_folder() == 2);
    CLEAN(a.w);
    end_folder();
}

Test(checkpoint_files, a_killed_writer_leaves_one_of_both)
{
    model a = model_new(1), b = model_new(2), c = model_new(3);
    const char *path = in_folder("a.h5");
    train(&b, 1);
    uint32_t one = state_of(&a), two = state_of(&b);
    DOES(weft_save(path, a.m, a.o, NULL, 0));
    int seen[2] = { 0, 0 };
    int least = rounds(30, 300), kills = 0;
    /* on a busy machine it takes long to get that far */
    for (int i = 0; i < least || (!seen[1] && i < 20 * least); i++, kills++) {
        pid_t child = fork();
        if (!child)
            for (int k = 0;; k++) {
                const model *m = k % 2 ? &a : &b;
                if (weft_save(path, m->m, m->o, NULL, 0))
                    _exit(1);
            }
        usleep((useconds_t)dice(20000 * (1 + (uint64_t)i / 8)));
        kill(child, SIGKILL);
        cr_assert_eq(ended(child), 256 + SIGKILL);
        DOES(weft_load(path, c.m, c.o, NULL, 0));
        uint32_t is = state_of(&c);
        cr_assert(is == one || is == two);
        seen[is == two]++;
    }
    cr_assert(seen[1] > 0, "the second state was never written");
    /* A kill between the name and the rename leaves a file: 1 of 600 kills on a quiet machine, 2 of 30 on a
     * busy one. A writer that names its file first would leave one at most kills. */
    cr_assert(files_in_folder() <= 2 + kills / 4, "%d kills, %d files", kills, files_in_folder());
    CLEAN(a.w);
    CLEAN(b.w);
    CLEAN(c.w);
    end_folder();
}

/* Right checksums of numbers that no run can have are not enough. */
Test(checkpoint_files, impossible_counters_are_refused)
{
    static const uint64_t bad[] = { UINT64_MAX, (uint64_t)INT64_MAX, (uint64_t)INT64_MIN, INT64_MAX / 2 + 1 };
    model a = model_new(1), b = model_new(2);
    const char *path = in_folder("a.h5");
    train(&a, 1);
    train(&b, 2);
    weft_stream *s = weft_stream_of(a.w, "data");
    uint64_t count = s->count, draw = a.w->random.draw;
    uint32_t state = state_of(&b);
    for (int i = 0; i < COUNT(bad); i++) {
        a.w->random.draw = bad[i];
        DOES(weft_save(path, a.m, a.o, NULL, 0));
        REFUSES(weft_load(path, b.m, b.o, NULL, 0), WEFT_EFORMAT, "streams/draw is damaged");
        a.w->random.draw = draw, s->count = bad[i];
        DOES(weft_save(path, a.m, a.o, NULL, 0));
        REFUSES(weft_load(path, b.m, b.o, NULL, 0), WEFT_EFORMAT, "streams/0 is damaged");
        s->count = count;
        cr_assert_eq(state_of(&b), state);
    }
    DOES(weft_save(path, a.m, a.o, NULL, 0));
    DOES(weft_load(path, b.m, b.o, NULL, 0));
    cr_assert_eq(state_of(&a), state_of(&b));
    CLEAN(a.w);
    CLEAN(b.w);
    end_folder();
}

/* ---- threads, and the program's own use of HDF5 ---- */
static char shared_path[4][160];
static void *save_and_load(void *number)
{
    int n = *(int *)number;
    weft *w = weft_open(&(weft_opts){ .device = WEFT_CPU, .seed = (uint64_t)n, .threads = 1 });
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *x = weft_parameter(m, "x", WEFT_SHAPE(50), (weft_init){ WEFT_INIT_UNIFORM, 0, 1 });
    weft_real before[50], after[50], zeros[50] = { 0 };
    bool good = read_status(x, before, sizeof before) == WEFT_OK;
    for (int i = 0; i < 20 && good; i++) {
        good = weft_save(shared_path[n % 2], m, NULL, NULL, 0) == WEFT_OK &&
               weft_save(shared_path[2 + n % 2], m, NULL, NULL, 0) == WEFT_OK;
        weft_assign_values(x, zeros, 50);
        good = good && weft_load(shared_path[n % 2], m, NULL, NULL, 0) == WEFT_OK &&
               read_status(x, after, sizeof after) == WEFT_OK && !memcmp(before, after, sizeof after);
        good = good && weft_load("no such file", m, NULL, NULL, 0) == WEFT_ENOENT &&
               strstr(weft_file_message(), "no such file");
    }
    weft_close(w);
    return good ? number : NULL;
}

Test(checkpoint_files, many_threads_save_at_once)
{
    pthread_t t[2];
    int number[2] = { 0, 1 };
    for (int i = 0; i < 4; i++)                  /* 0, 1: a file each; 2, 3: the same one */
        snprintf(shared_path[i], sizeof *shared_path, "%s", in_folder(i == 0 ? "0" : i == 1 ? "1" : "both"));
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, save_and_load, &number[i]);
    for (int i = 0; i < 2; i++) {
        void *good;
        pthread_join(t[i], &good);
        cr_assert_not_null(good);
    }
    cr_assert_eq(files_in_folder(), 3);
    end_folder();
}

static herr_t loud(hid_t stack, void *user) { (void)stack; ++*(int *)user; return 0; }
Test(checkpoint_files, the_program_s_own_hdf5_is_left_alone)
{
    model a = model_new(1);
    int heard = 0;
    unsigned before = 0, after = 0;
    H5E_auto2_t fn;
    void *user;
    const char *path = in_folder("own"), *ours = in_folder("a.h5");
    H5PLget_loading_state(&before);
    H5Eset_auto2(H5E_DEFAULT, loud, &heard);
    hid_t own = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    DOES(weft_save(ours, a.m, NULL, NULL, 0));
    REFUSES(weft_load(ours, a.m, a.o, NULL, 0), WEFT_EFORMAT, "no optimiser");
    REFUSES(weft_load_state_dict(ours, a.m, NULL), WEFT_EFORMAT, "checkpoint");
    H5Eget_auto2(H5E_DEFAULT, &fn, &user);
    H5PLget_loading_state(&after);
    cr_assert(heard == 0 && fn == loud && user == &heard && before == after);
    cr_assert(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL) == 1 && H5Fclose(own) >= 0);
    CLEAN(a.w);
    end_folder();
}
