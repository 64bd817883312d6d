/* test_blas_choice.c - tests when OpenBLAS is the default, and the file that keeps its time. */
#include <glob.h>
#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../check.h"
#include "core/inside.h"

/* Returns the text of the one file below XDG_CACHE_HOME/weft; "" without one. path: room for its name. */
static const char *cached(const char *folder, char path[300])
{
    static char text[600];
    glob_t found;
    snprintf(path, 300, "%s/weft/gemm-*", folder);
    int none = glob(path, 0, NULL, &found);
    *text = *path = 0;
    if (!none) {
        cr_assert_eq(found.gl_pathc, 1);
        snprintf(path, 300, "%s", found.gl_pathv[0]);
        FILE *file = fopen(path, "r");
        text[fread(text, 1, sizeof text - 1, file)] = 0;
        fclose(file);
    }
    globfree(&found);
    return text;
}

/* Returns whether a context with generic kernels would use OpenBLAS. */
static bool is_chosen(void)
{
    weft *w = weft_open(&(weft_opts){ .threads = 1 });
    const weft__kernels *own = w->dev.k;
    w->dev.k = &weft__generic;
    bool chosen = weft__faster_blas(&w->dev);
    w->dev.k = own;
    weft_close(w);
    return chosen;
}

static bool has_openblas(void)
{
    char reason[200], name[160];
    return weft__open_blas("openblas", name, reason, sizeof reason);
}

static void write_text(const char *path, const char *subject, const char *ratio)
{
    FILE *file = fopen(path, "w");
    fprintf(file, "%s\n%s\n", subject, ratio);
    fclose(file);
}

static const char *new_folder(void)
{
    static char folder[PATH_MAX + 32];
    snprintf(folder, sizeof folder, "%s/weft-cache-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : P_tmpdir);
    cr_assert_not_null(mkdtemp(folder));
    setenv("XDG_CACHE_HOME", folder, 1);
    return folder;
}

Test(blas_choice, times_once_and_keeps_the_ratio)
{
    char path[300];
    const char *folder = new_folder();
    bool faster = is_chosen();
    const char *text = cached(folder, path), *second = strchr(text, '\n');
    if (!has_openblas()) {
        cr_assert(!faster && !*text);
        return;
    }
    cr_assert(second && !strncmp(text, "weft gemm 1: float", 18), "%s", text);
    cr_assert_eq(faster, strtod(second, NULL) >= 1.3, "%s", text);
    cr_assert_eq(is_chosen(), faster, "asked again");
}

/* Returns whether a new process chooses OpenBLAS. */
static bool chosen_by_a_child(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(is_chosen());
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

Test(blas_choice, believes_a_file_of_this_openblas_only)
{
    static const struct { const char *ratio; bool chosen; } files[] = {
        { "9.00", true }, { "1.30", true }, { "1.29", false }, { "0.10", false }
    };
    char path[300], subject[600];
    const char *folder = new_folder();
    bool measured = chosen_by_a_child();
    snprintf(subject, sizeof subject, "%s", cached(folder, path));
    if (!*subject)
        cr_skip_test("OpenBLAS is not installed");
    *strchr(subject, '\n') = 0;
    for (int i = 0; i < COUNT(files); i++) {
        write_text(path, subject, files[i].ratio);
        cr_assert_eq(chosen_by_a_child(), files[i].chosen, "%s", files[i].ratio);
    }
    write_text(path, "weft gemm 1: another", measured ? "0.10" : "9.00");
    cr_assert_eq(chosen_by_a_child(), measured, "of another OpenBLAS");
    setenv("WEFT_CACHE", "off", 1);
    write_text(path, subject, "9.00");
    cr_assert(!chosen_by_a_child(), "WEFT_CACHE=off");
}

Test(blas_choice, is_for_generic_kernels_without_a_request)
{
    weft *w = weft_open(&(weft_opts){ .threads = 1 });
    if (strcmp(weft_device_name(w), "generic"))
        cr_assert_null(w->dev.blas);
    weft_close(w);
    setenv("WEFT_ISA", "generic", 1);
    w = weft_open(&(weft_opts){ .threads = 1 });
    cr_assert_null(w->dev.blas, "WEFT_ISA is for tests, which compare bits");
    weft_close(w);
}
