/* env.c - `weft env`: reports the build, this machine, its libraries, and the variables that weft reads. */
#include <dlfcn.h>
#include <hdf5.h>
#include <locale.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zlib.h>
#include "tools/weights/arrays.h"

extern char **environ;
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#define LIBC "<glibc>, glibc %s\n", gnu_get_libc_version()
#else
#define LIBC "<libc>, %s\n", "another C library"
#endif

static void report(const char *key, const char *value)
{
    char form[64];
    snprintf(form, sizeof form, "<%s>%-16s %%s\n", key, key);
    emit(form, value);
}

static void report_machine(void)
{
    struct utsname u;
    char name[256];
    cpu_model(name, sizeof name);
    if (!uname(&u))
        emit("<system>system           %s <release>%s <machine>%s", u.sysname, u.release, u.machine);
    emit(LIBC);
    emit("<cpu>cpu              %s<cores>, %d core(s)<MiB>, %d MiB of memory\n",
         name, (int64_t)sysconf(_SC_NPROCESSORS_ONLN),
         (int64_t)sysconf(_SC_PHYS_PAGES) / 1024 * (sysconf(_SC_PAGESIZE) / 1024));
}

static void report_libraries(void)
{
    static const char *const libraries[][2] = { /* the first two are plug-ins of weft */
        { "Open MPI", "libweft_openmpi.so" }, { "MPICH", "libweft_mpich.so" },
        { "NCCL", "libnccl.so.2" }, { "OpenBLAS", "libopenblas.so.0" } };
    unsigned major = 0, minor = 0, release = 0;
    for (int i = 0; i < 4; i++) {
        const char *file = libraries[i][1];
        char reason[512] = "";
        bool found = i < 2 ? weft__open_plugin(file, NULL, reason, sizeof reason) :
                             dlopen(file, RTLD_LAZY | RTLD_LOCAL);
        report(libraries[i][0], found ? file : i < 2 ? reason : dlerror());
    }
    char text[64];
    H5get_libversion(&major, &minor, &release);
    snprintf(text, sizeof text, "%u.%u.%u", major, minor, release);
    report("HDF5", text);
    report("zlib", zlibVersion());
    const char *locale = setlocale(LC_ALL, "");
    report("locale", locale ? locale : "not installed");
}

static void report_variables(void)
{
    static const char *const beginnings[] = { "WEFT_", "OPENBLAS_", "OMP_", "CUDA_VISIBLE_DEVICES", "NCCL_",
        "OMPI_COMM_WORLD_", "PMI_", "PMIX_RANK", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_CPU_BIND",
        "XDG_CACHE_HOME" };
    emit("<variables>[");
    for (char **v = environ; *v; v++)
        for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
            if (!strncmp(*v, beginnings[i], strlen(beginnings[i])))
                emit("%s\n", *v);
    emit("]");
}

static void env(char **unused)
{
    (void)unused;
    weft *w = weft_open(NULL), *gpu = weft_open(&(weft_opts){ .device = WEFT_CUDA });
    emit("{");
    report("weft", weft_version());
    report("weft_real", sizeof(weft_real) == 4 ? "float" : "double");
    report("compiler", COMPILER);
    report_machine();
    report("device", weft_ok(w) ? weft_device_name(w) : weft_error_message(w));
    emit("<threads>threads          %d\n", (int64_t)weft_threads(w));
    report("CUDA", weft_ok(gpu) ? weft_device_name(gpu) : weft_error_message(gpu));
    report_libraries();
    report_variables();
    emit("}");
    weft_close(gpu);
    weft_close(w);
}

WEIGHTS(env, 0, 0, 0, "reports build, machine and libraries, for a bug report", "[--json]",
    "Prints version and compiler; CPU, device, threads; plug-ins, or the reason why one is not used;\n"
    "versions of libraries; variables of weft and of launchers. Add it to each bug report.\n",
    OPTION_JSON);
