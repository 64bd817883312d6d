/* os.h - all calls of the operating system. No other file of the library includes a system header; lint
 * checks this. Functions that can fail set errno.
 *
 * os_posix.c and os_files.c hold what Linux and macOS share. os.c holds the rest for Linux, os_macos.c for
 * macOS. */
#ifndef WEFT_CORE_OS_H
#define WEFT_CORE_OS_H
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ==== os.c, os_macos.c ==== */
/* ---- processors ---- */
typedef struct weft__cpu_set { uint64_t bits[128]; } weft__cpu_set;
/* Sets the processors that a process may use; process 0 is this one. Returns false if they are unknown. */
bool  weft__affinity(int process, weft__cpu_set *);
/* Asks the system to let this process use the matrix tiles of x86-64. */
bool  weft__allow_tiles(void);

bool  weft__has_arm_bf16(void); /* whether this CPU has bfmmla */

/* ---- memory, environment ---- */
/* Returns memory for free(): on huge pages if it is large and the system has them. */
void *weft__allocate_pages(size_t bytes);
/* Returns a variable of the environment; NULL if it is not set or this process is set-user-id. */
const char *weft__variable(const char *name);
char **weft__environment(void); /* all variables; NULL if this process is set-user-id */
void  weft__random_bytes(void *bytes, size_t n); /* for names; not for secrets */

/* ---- files ---- */
/* Returns the path of the library that contains weft, or of the program if it is linked statically. The
 * caller frees it. NULL: unknown, or relative to the working directory. */
char *weft__own_path(void);
int   weft__open_folder(const char *path); /* to create files in it; -1: failure */
/* Creates a file without a name in a folder; -1: the system or this file system has no such files. */
int   weft__open_nameless(int folder);
/* Gives a nameless file a name. Returns whether it succeeded. */
bool  weft__name_file(int file, int folder, const char *name);
unsigned weft__umask(void); /* of this process, without a change of it; 077 if it is unknown */

/* ==== os_posix.c ==== */
int64_t weft__now(void); /* nanoseconds of a monotonic clock */
void  weft__yield(void);
int   weft__process(void);
int   weft__parent_process(void);
void  weft__host_name(char *name, size_t size);
bool  weft__same_letters(const char *a, const char *b); /* without regard to case */
bool  weft__matches(const char *pattern, const char *text); /* with * ? [..], as the shell */
/* Starts a thread that receives no signals. */
bool  weft__start_thread(pthread_t *, void *(*function)(void *), void *argument);
/* Returns whether the system grants that much memory now. */
bool  weft__has_memory(size_t bytes);

/* ---- dynamic libraries: never closed, because drivers do not support it ---- */
/* Returns NULL, with a reason, after a failure. */
void *weft__open_library(const char *file, char *reason, size_t size);
/* Sets a pointer to a function. Returns false if the library does not have it. */
bool  weft__find_function(void *library, const char *name, void *function);
/* Sets a variable of the environment until weft__unset, unless it is set or value is NULL. Returns whether it
 * was set. */
bool  weft__set_variable(const char *name, const char *value);
void  weft__unset_variable(const char *name);

/* ---- signals ---- */
/* Calls fn at SIGTERM and SIGUSR1, unless the program has a handler. */
void  weft__on_stop_signals(void (*fn)(int));
/* Ends the process after that many seconds, with the text on stderr if it is not NULL. weft__no_alarm ends
 * the alarm. */
void  weft__alarm(unsigned seconds, const char *text);
void  weft__no_alarm(void);

/* ---- the "C" locale: a decimal comma of the program's locale would break CSV, JSON and SVG output ---- */
/* Switches this thread to the "C" locale. Pass the result to weft__plain_locale_end. */
void  *weft__plain_locale(void);
void   weft__plain_locale_end(void *before);
/* Work like strtod and vsnprintf in the "C" locale: the decimal point is ".". */
double weft__plain_number(const char *text, char **end);
int    weft__plain_text(char *text, size_t size, const char *format, va_list list)
    __attribute__((format(printf, 3, 0)));
/* weft__plain_text with the arguments after `format` of this function. */
#define WEFT__PLAIN_TEXT(text, size, format)               \
    do {                                                   \
        va_list list;                                      \
        va_start(list, format);                            \
        weft__plain_text((text), (size), (format), list);  \
        va_end(list);                                      \
    } while (0)

/* ==== os_files.c ==== */
bool    weft__file_exists(const char *path);
void    weft__make_folder(const char *path); /* for this user only; it may exist */
/* Opens a file to read it, without waiting for the writer of a FIFO. Sets *size to -1 if it is not a regular
 * file. Returns -1 after a failure. */
int     weft__open_to_read(const char *path, int64_t *size);
/* Opens or creates a file to append to it. *cut: its last line has no end. */
int     weft__open_to_append(const char *path, bool empty, bool *cut);
/* Reads n bytes, or fewer at the end of the file. Returns their number; -1: failure. */
int64_t weft__read_at(int file, void *bytes, size_t n, int64_t offset);
/* Writes bytes and returns how many were written; if fewer than size, errno gives the reason. A limit of the
 * file size is an error like any other, and raises no signal. */
size_t  weft__write_all(int file, const void *bytes, size_t size);
void    weft__close_file(int file);
typedef struct weft__span { const void *bytes; size_t size; } weft__span;
/* NOT_SYNCED: written, but a power cut may undo it. After the others the old file is unchanged. */
typedef enum { WEFT__REPLACED, WEFT__NOT_WRITTEN, WEFT__NOT_REGULAR, WEFT__NOT_SYNCED } weft__replaced;
/* Writes n spans end to end as the file `path`, atomically. */
weft__replaced weft__replace_file(const char *path, const weft__span *spans, int n);
#endif
