/* test_file_write.c - tests writing a checkpoint to a folder that also contains files, links and pipes of the
 * user, with other writers of the same path, readers of private files, and a limit on file size. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include "checkpoint.h"

/* The library's openat: the mode that a file is created with, and a file system without nameless files. */
static mode_t made_with;
static bool only_named;
static bool is_nameless(int flags) { return (flags & O_TMPFILE) == O_TMPFILE; }
int openat(int folder_, const char *name, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = flags & O_CREAT || is_nameless(flags) ? va_arg(list, mode_t) : 0;
    va_end(list);
    struct stat s;
    if (only_named && is_nameless(flags))
        return errno = EOPNOTSUPP, -1;
    int file = (int)syscall(SYS_openat, folder_, name, flags, mode);
    if (file >= 0 && (flags & O_CREAT || is_nameless(flags)) && !fstat(file, &s))
        made_with = s.st_mode & 0777;
    return file;
}
int open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = flags & O_CREAT || is_nameless(flags) ? va_arg(list, mode_t) : 0;
    va_end(list);
    return openat(AT_FDCWD, path, flags, mode);
}
static bool die_at_the_limit;
ssize_t write(int file, const void *bytes_, size_t n)
{
    ssize_t done = syscall(SYS_write, file, bytes_, n);
    if (done < 0 && errno == EFBIG && die_at_the_limit)
        raise(SIGKILL);
    return done;
}

static void make_old(void)                       /* makes every file in the folder two minutes older */
{
    struct timespec then[2] = { { time(NULL) - 120, 0 }, { time(NULL) - 120, 0 } };
    DIR *d = opendir(folder);
    for (struct dirent *e; (e = readdir(d)); )
        cr_assert_eq(utimensat(dirfd(d), e->d_name, then, AT_SYMLINK_NOFOLLOW), 0, "%s", e->d_name);
    closedir(d);
}

static weft_status saves(const char *path, const model *k) { return weft_save(path, k->m, k->o, NULL, 0); }
static mode_t mode_of(const char *path)
{
    struct stat s;
    cr_assert_eq(stat(path, &s), 0, "%s", path);
    return s.st_mode & 0777;
}
/* A save changes only its own path, for files of any name and age. */
FILE_TEST(file_write, user_files_are_never_removed)
{
    static const char *const name[] = { "a.h5.tmp.backup",  "a.h5.tmp.123456", "a.h5.tmp.",
                                        "a.h5.tmp.folder",  ".weft-tmp-1",     ".weft-tmp-0123456789abcdef",
                                        ".a.h5.weft-tmp",   "a.h5.tmp.pipe00", "a.h5.tmp.link00",
                                        "a.h5~" };
    model a = model_in(w);
    struct stat s;
    for (int i = 0; i < COUNT(name); i++) {
        const char *path = in_folder(name[i]);
        if (i == 3)
            cr_assert_eq(mkdir(path, 0700), 0);
        else if (i == 7)
            cr_assert_eq(mkfifo(path, 0600), 0);
        else if (i == 8)
            cr_assert_eq(symlink("a.h5.tmp.123456", path), 0);
        else
            write_bytes(path, "precious", 8);
    }
    for (int round = 0; round < 2; round++) {
        only_named = round == 1;
        make_old();
        DOES(saves(in_folder("a.h5"), &a));
        DOES(weft_write_file(in_folder("a.h5"), "x", 1));
        for (int i = 0; i < COUNT(name); i++)
            cr_assert_eq(lstat(in_folder(name[i]), &s), 0, "%s is gone", name[i]);
        cr_assert_eq(files_in_folder(), COUNT(name) + 1);
    }
    only_named = false;
    cr_assert_eq(rmdir(in_folder(name[3])), 0);
}

/* A process that is killed while it writes leaves nothing, where the file system has nameless files. */
FILE_TEST(file_write, killed_writer_leaves_no_file)
{
    model a = model_new(1);
    const char *path = in_folder("a.h5");
    DOES(saves(path, &a));
    pid_t child = fork();
    if (!child) {
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 1000, RLIM_INFINITY });
        die_at_the_limit = true;
        _exit(saves(path, &a) ? 1 : 0);
    }
    cr_assert_eq(ended(child), 256 + SIGKILL);
    cr_assert_eq(files_in_folder(), 1);
    DOES(weft_load(path, a.m, a.o, NULL, 0));
    CLEAN(a.w);
}

FILE_TEST(file_write, longest_name_can_be_written)
{
    char name[256];
    memset(name, 'n', 255), name[255] = 0;
    for (int round = 0; round < 2; round++) {
        only_named = round == 1;
        char path[400];
        snprintf(path, sizeof path, "%s", in_folder(""));
        strcat(path, name);
        DOES(weft_write_file(path, "x", 1));
        cr_assert_eq(files_in_folder(), 1);
        strcat(path, "n");
        REFUSES(weft_write_file(path, "x", 1), WEFT_EIO, "File name too long");
        cr_assert_eq(files_in_folder(), 1);
    }
    only_named = false;
}

FILE_TEST(file_write, new_file_has_its_mode_before_its_data)
{
    static const struct {
        mode_t mask, mode;
    } new_[] = { { 0022, 0644 }, { 0027, 0640 }, { 0077, 0600 }, { 0, 0666 } };
    model a = model_in(w);
    const char *path = in_folder("a.h5");
    for (int i = 0; i < COUNT(new_); i++) {
        only_named = i == 1;
        umask(new_[i].mask);
        DOES(saves(path, &a));
        cr_assert(made_with == 0600 && mode_of(path) == new_[i].mode, "umask %o: created with %o, then %o",
                  new_[i].mask, made_with, mode_of(path));
        cr_assert_eq(umask(0022), new_[i].mask);
        cr_assert(chmod(path, 0604) == 0);
        DOES(saves(path, &a));
        cr_assert(made_with == 0600 && mode_of(path) == 0604);
        cr_assert_eq(unlink(path), 0);
    }
}

Test(file_write, keeps_owner_and_group)
{
    enum { NOBODY = 65534, GROUP = 4321 };
    if (geteuid()) {
        puts("skipped: owners of files, which root alone gives away");
        return;
    }
    model a = model_new(1);
    const char *path = in_folder("a.h5"), *other = in_folder("other.h5");
    struct stat s;
    DOES(saves(path, &a));
    cr_assert(chmod(path, 0600) == 0 && chown(path, NOBODY, GROUP) == 0);
    DOES(saves(path, &a));
    cr_assert(stat(path, &s) == 0 && s.st_uid == NOBODY && s.st_gid == GROUP && (s.st_mode & 0777) == 0600);
    DOES(saves(other, &a));
    cr_assert(chmod(other, 0664) == 0 && chown(other, 0, GROUP) == 0 && chmod(folder, 0777) == 0);
    pid_t child = fork();
    if (!child)
        _exit(setgid(NOBODY) || setuid(NOBODY) || saves(other, &a) ? 1 : 0);
    cr_assert_eq(ended(child), 0);
    cr_assert(stat(other, &s) == 0 && s.st_uid == NOBODY && s.st_gid == NOBODY && (s.st_mode & 0777) == 0644,
              "mode %o of group %u", s.st_mode, s.st_gid);
    CLEAN(a.w);
    end_folder();
}

FILE_TEST(file_write, links_are_followed)
{
    model a = model_in(w);
    char below[200], loop[200], file[200];
    snprintf(below, sizeof below, "%s", in_folder("below"));
    snprintf(file, sizeof file, "%s", in_folder("file"));
    snprintf(loop, sizeof loop, "%s", in_folder("loop"));
    const char *first = in_folder("first"), *second = in_folder("below/second");
    struct stat s;
    cr_assert(mkdir(below, 0700) == 0 && symlink("below/second", first) == 0 &&
              symlink("../file", second) == 0 && symlink("loop", loop) == 0);
    for (int i = 0; i < 2; i++) {                /* nothing is there at first */
        DOES(saves(first, &a));
        cr_assert(lstat(first, &s) == 0 && S_ISLNK(s.st_mode) && lstat(second, &s) == 0 &&
                  S_ISLNK(s.st_mode) && lstat(file, &s) == 0 && S_ISREG(s.st_mode));
    }
    REFUSES(saves(loop, &a), WEFT_EIO, "Too many levels of symbolic links");
    cr_assert(unlink(file) == 0 && symlink(file, loop) != 0 && unlink(loop) == 0 && symlink(file, loop) == 0);
    DOES(saves(loop, &a));                       /* an absolute one */
    cr_assert(lstat(loop, &s) == 0 && S_ISLNK(s.st_mode) && lstat(file, &s) == 0 && S_ISREG(s.st_mode));
    cr_assert(unlink(second) == 0 && rmdir(below) == 0);
}

/* ---- a limit of the file's size ---- */
static bool is_pending(void)
{
    sigset_t set;
    return sigpending(&set) == 0 && sigismember(&set, SIGXFSZ);
}
static int saves_beyond(rlim_t limit, const char *path, const model *k, bool before)
{
    sigset_t set, then;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    if (before)
        pthread_sigmask(SIG_BLOCK, &set, NULL), raise(SIGXFSZ);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){ limit, RLIM_INFINITY });
    if (saves(path, k) != WEFT_EIO || !strstr(weft_file_message(), "File too large"))
        return 1;
    pthread_sigmask(SIG_SETMASK, NULL, &then);
    return is_pending() != before || sigismember(&then, SIGXFSZ) != before ? 2 : 0;
}

FILE_TEST(file_write, size_limit_gives_an_error)
{
    /* One thread: the child of a fork hangs if another thread was inside a sanitizer's malloc. */
    model a = model_new(1);
    const char *path = in_folder("a.h5"), *copy = in_folder("copy");
    DOES(saves(path, &a));
    DOES(saves(copy, &a));
    train(&a, 1);
    content b = read_bytes(path);
    for (size_t limit = 0, before = 0; limit < b.n; limit += b.n / 7, before = !before) {
        pid_t child = fork();
        if (!child)
            _exit(saves_beyond(limit, path, &a, before));
        cr_assert_eq(ended(child), 0, "%s", before ? "with one that was pending" : "with none pending");
        cr_assert(equal_files(path, copy) && files_in_folder() == 2);
    }
    CLEAN(a.w);
}

static void line(weft_journal *j, double n, const char *text)
{
    weft_journal_number(j, "n", n);
    weft_journal_text(j, "text", text);
    weft_journal_line_end(j);
}
static int writes_lines(const char *path)
{
    static char big[5000];
    memset(big, 'x', sizeof big - 1);
    weft_journal *j;
    cr_assert_eq(weft_journal_open(path, false, &j), WEFT_OK);
    line(j, 1, "good");
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 1000, RLIM_INFINITY });
    for (int i = 0; i < 2; i++) {
        line(j, 2, big);                         /* the first is cut, the second is missing */
        if (!strstr(weft_file_message(), "cannot be written: File too large"))
            return 1;
    }
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
    line(j, 3, "good again");
    line(j, 4, "and again");
    weft_journal_close(j);
    return 0;
}

FILE_TEST(file_write, cut_journal_line_affects_no_other)
{
    const char *path = in_folder("log");
    pid_t child = fork();
    if (!child)
        _exit(writes_lines(path));
    cr_assert_eq(ended(child), 0);
    content b = read_bytes(path);
    b.at[b.n] = 0;
    const char *text = (const char *)b.at,
               *last = "x\n{\"n\": 3, \"text\": \"good again\"}\n{\"n\": 4, \"text\": \"and again\"}\n";
    cr_assert(!strncmp(text, "{\"n\": 1, \"text\": \"good\"}\n{\"n\": 2", 31));
    cr_assert_str_eq(text + b.n - strlen(last), last);
}

/* ---- writers of one path ---- */
static int saves_often(const char *path, const model *k, int times)
{
    model back = model_new(3);
    for (int i = 0; i < times; i++)
        if (saves(path, k) || weft_load(path, back.m, back.o, NULL, 0))
            return printf("%s\n", weft_file_message()), fflush(stdout), 1;
    return 0;
}

/* As the first process of a container of its own, if that is allowed. */
static int contained(const char *path, const model *k, int times)
{
    pid_t child = unshare(CLONE_NEWPID) ? -1 : fork();
    if (child)
        return child < 0 ? saves_often(path, k, times) : ended(child);
    _exit(saves_often(path, k, times));
}

FILE_TEST(file_write, two_writers_leave_a_whole_file)
{
    model a = model_new(1), b = model_new(2), c = model_new(3);
    const model *one[] = { &a, &b };
    const char *path = in_folder("a.h5");
    train(&b, 1);
    uint32_t states[] = { state_of(&a), state_of(&b) };
    pid_t child[2];
    DOES(saves(path, &a));
    for (int i = 0; i < 2; i++)
        if (!(child[i] = fork()))
            _exit(contained(path, one[i], rounds(40, 400)));
    for (int i = 0; i < rounds(60, 600); i++) {
        DOES(weft_load(path, c.m, c.o, NULL, 0));
        uint32_t s = state_of(&c);
        cr_assert(s == states[0] || s == states[1]);
    }
    cr_assert_eq(ended(child[0]) + ended(child[1]), 0);
    cr_assert_eq(files_in_folder(), 1);
    CLEAN(a.w);
    CLEAN(b.w);
    CLEAN(c.w);
}

/* ---- a small stack ---- */
static void *saves_and_loads(void *k_)
{
    const model *k = k_;
    weft_load_report report;
    const char *path = in_folder("a.h5"), *dict = in_folder("dict.h5");
    bool good = saves(path, k) == WEFT_OK && weft_load(path, k->m, k->o, NULL, 0) == WEFT_OK &&
                weft_load_matching(path, k->m, &report) == WEFT_OK &&
                weft_save_weights(dict, k->m) == WEFT_OK &&
                weft_load_weights(dict, k->m, NULL, NULL) == WEFT_OK;
    return good ? k_ : NULL;
}

FILE_TEST(file_write, stack_of_64_kb_is_enough)
{
    model k = model_in(w);
    pthread_attr_t small;
    pthread_t t;
    void *good;
    in_folder("");
    pthread_attr_init(&small);
    /* whose frames are larger */
    cr_assert_eq(pthread_attr_setstacksize(&small, CHECK_SANITIZED ? 1 << 20 : 1 << 16), 0);
    cr_assert_eq(pthread_create(&t, &small, saves_and_loads, &k), 0);
    pthread_join(t, &good);
    cr_assert(good, "%s", weft_file_message());
}

/* ---- a file of the program's own ---- */
static void holds(const char *path, const char *text)
{
    content b = read_bytes(path);
    cr_assert_str_eq((char *)b.at, text);
}

FILE_TEST(file_write, program_bytes_are_written_whole_or_not_at_all)
{
    const char *path = in_folder("page");
    DOES(weft_write_file(path, "one\n", 4));
    holds(path, "one\n");
    DOES(weft_write_file(path, NULL, 0));
    holds(path, "");
    DOES(weft_write_file(path, "a longer one", 8));
    holds(path, "a longer");
    REFUSES(weft_write_file(path, NULL, 3), WEFT_EARG, "expected 3 bytes");
    REFUSES(weft_write_file(in_folder("no/page"), "x", 1), WEFT_EIO, "no/page");
    REFUSES(weft_write_file(NULL, "x", 1), WEFT_EARG, "path is NULL or empty");
    holds(path, "a longer");
}
