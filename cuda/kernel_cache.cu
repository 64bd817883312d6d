/* kernel_cache.cu - stores the results of recur_check.cu and recur_tune.cu for later programs, in
 * ${XDG_CACHE_HOME:-$HOME/.cache}/weft, one file of each for each kind of GPU, driver and build of the
 * plug-in. With another driver or plug-in everything is checked and timed again.
 *
 * A file has three lines: its format, its subject, and a letter for each choice or class of layers with a
 * checksum. A file that is unreadable, damaged or not the user's own is ignored. If writing fails, the next
 * program checks again, which takes milliseconds. rename replaces the file, so it is never read half written.
 * Of simultaneous programs, one may repeat the other's checks. WEFT_CACHE=off: no file. */
#ifndef WEFT_DOUBLE
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cuda/recur.h"

enum {
    PATH = 4096, LINE = 512,
    MOST = (int)CLASSES > (int)CHOICES ? (int)CLASSES : (int)CHOICES, WHOLE = MOST + 1024
};
static struct { bool loaded; char letter[MOST + 1]; } caches[MOST_GPUS][CACHES];
static const struct { const char *name, *letters; int n; } formats[CACHES] = {
    { "recur", ".+-", CHOICES }, { "timing", "." KIND_LETTERS, CLASSES }
};

/* ---- the subject of a file ---- */
/* Writes the linker's build-id of this plug-in in hexadecimal. */
static int note_build(struct dl_phdr_info *module, size_t, void *to)
{
    bool ours = false;
    for (int i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) &p = module->dlpi_phdr[i];
        const ElfW(Addr) from = module->dlpi_addr + p.p_vaddr, address = (ElfW(Addr))(uintptr_t)caches;
        ours = ours || (p.p_type == PT_LOAD && address >= from && address - from < p.p_memsz);
    }
    for (int i = 0; ours && i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) &p = module->dlpi_phdr[i];
        const char *next = (const char *)(module->dlpi_addr + p.p_vaddr), *end = next + p.p_memsz;
        while (p.p_type == PT_NOTE && next + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)next;
            const unsigned char *id =
                (const unsigned char *)next + sizeof *note + (note->n_namesz + 3) / 4 * 4;
            for (unsigned k = 0; note->n_type == NT_GNU_BUILD_ID && k < note->n_descsz && k < 20; k++)
                snprintf((char *)to + 2 * k, 3, "%02x", id[k]);
            next = (const char *)id + (note->n_descsz + 3) / 4 * 4;
        }
    }
    return ours;
}
/* Writes the version of the NVIDIA driver, if Linux reports it, and its CUDA version. */
static void note_driver(char *text, size_t size)
{
    int cuda = 0;
    const int file = open("/sys/module/nvidia/version", O_RDONLY | O_CLOEXEC);
    const ssize_t n = file < 0 ? 0 : read(file, text, size - 16);
    if (file >= 0)
        close(file);
    text[n > 0 ? n : 0] = 0;
    text[strcspn(text, "\n")] = 0;
    refused(cudaDriverGetVersion(&cuda));
    snprintf(text + strlen(text), size - strlen(text), " CUDA %d", cuda);
}
static bool describe(int index, char line[LINE]) /* false: this plug-in has no identity */
{
    char build[41] = "", driver[64] = "";
    cudaDeviceProp p;
    dl_iterate_phdr(note_build, build);
    note_driver(driver, sizeof driver);
    if (!*build || refused(cudaGetDeviceProperties(&p, index)))
        return false;
    snprintf(line, LINE,
             "%.96s, sm_%d%d, %d multiprocessors, %zu bytes of shared memory, driver %s, plug-in %s", p.name,
             p.major, p.minor, p.multiProcessorCount, p.sharedMemPerBlockOptin, driver, build);
    return true;
}

/* ---- the file ---- */
static uint64_t checksum(const char *text) { return hash_of(text, strlen(text)); }

bool cache_is_off()
{
    const char *off = secure_getenv("WEFT_CACHE");
    return off && !strcmp(off, "off");
}
static bool folder_of(char path[PATH], bool make)
{
    const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    const bool has_xdg = cache && *cache == '/';
    if (cache_is_off() || (!has_xdg && (!home || *home != '/')))
        return false;
    if (snprintf(path, PATH, "%s%s", has_xdg ? cache : home, has_xdg ? "" : "/.cache") >= PATH - 64)
        return false;
    if (make)
        mkdir(path, 0700);
    snprintf(path + strlen(path), 8, "/weft");
    if (make)
        mkdir(path, 0700);
    return true;
}
bool cache_folder(char *path, size_t size)
{
    char folder[PATH];
    if (!folder_of(folder, false))
        return false;
    snprintf(path, size, "%s", folder);
    return true;
}
static bool file_of(int index, cache_kind which, char path[PATH], char line[LINE], bool make)
{
    if (!folder_of(path, make) || !describe(index, line))
        return false;
    snprintf(path + strlen(path), 40, "/%s-%016llx", formats[which].name, (unsigned long long)checksum(line));
    return true;
}
static void write_whole(char whole[WHOLE], cache_kind which, const char *line, const char *letters)
{
    const int n = snprintf(whole, WHOLE, "weft %s 1\n%s\n%s ", formats[which].name, line, letters);
    snprintf(whole + n, WHOLE - (size_t)n, "%016llx\n", (unsigned long long)checksum(whole));
}
/* Reads a file that belongs to this user and is writable for this user only. */
static bool read_file(const char *path, cache_kind which, const char *line, char letters[MOST + 1])
{
    const int count = formats[which].n;
    char text[WHOLE], whole[WHOLE];
    struct stat s;
    const int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return false;
    const bool ours = !fstat(file, &s) && S_ISREG(s.st_mode) && s.st_uid == geteuid() && !(s.st_mode & 022) &&
                      s.st_size < WHOLE;
    const ssize_t n = ours ? read(file, text, WHOLE - 1) : -1;
    close(file);
    if (n < 0)
        return false;
    text[n] = 0;
    const char *second = strchr(text, '\n'), *third = second ? strchr(second + 1, '\n') : NULL;
    if (!third || strspn(third + 1, formats[which].letters) != (size_t)count)
        return false;
    memcpy(letters, third + 1, (size_t)count);
    write_whole(whole, which, line, letters);
    return !strcmp(whole, text);
}
static void write_file(const char *path, const char *whole)
{
    char temporary[PATH + 8];
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    const int file = mkostemp(temporary, O_CLOEXEC);
    if (file < 0)
        return;
    const ssize_t all = (ssize_t)strlen(whole), n = write(file, whole, (size_t)all);
    if (close(file) || n != all || rename(temporary, path))
        unlink(temporary);
}

/* ---- letters ---- */
const char *cached(const weft__device *d, cache_kind which)
{
    char path[PATH], line[LINE], read[MOST + 1] = "", *v = caches[d->index][which].letter;
    if (caches[d->index][which].loaded)
        return v;
    caches[d->index][which].loaded = true;
    memset(v, '.', (size_t)formats[which].n);
    if (file_of(d->index, which, path, line, false) && read_file(path, which, line, read))
        memcpy(v, read, (size_t)formats[which].n);
    return v;
}

void store_cached(const weft__device *d, cache_kind which, int number, char letter)
{
    char path[PATH], line[LINE], whole[WHOLE], stored[MOST + 1] = "";
    cached(d, which);
    char *v = caches[d->index][which].letter;
    v[number] = letter;
    if (!file_of(d->index, which, path, line, true))
        return;
    if (read_file(path, which, line, stored))    /* results that others have stored */
        for (int i = 0; i < formats[which].n; i++)
            if (v[i] == '.')
                v[i] = stored[i];
    write_whole(whole, which, line, v);
    write_file(path, whole);
}
#endif
