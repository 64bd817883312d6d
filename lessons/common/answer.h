/* answer.h - calls of the student's functions, which run in a separate process.
 *
 * The program forks, and both processes run the same check. Only the child loads the answer. Where
 * the check calls a student's function, the child calls it and sends the results, and the parent
 * reads them. Only the parent compares the results and prints the verdict, so an answer cannot
 * change it. A lesson's calls.c has one function for each function that the student writes. */
#ifndef WEFT_LESSON_ANSWER
#define WEFT_LESSON_ANSWER
#include <stdbool.h>
#include <stddef.h>

/* Returns whether this process has the answer. */
bool answer_here(void);
/* Returns whether a call has changed a variable of the answer that is static or global and begins as 0. */
bool answer_keeps(void);
/* Returns the student's function of this name; NULL in the process without the answer. */
void *answer_function(const char *name);

/* ---- a call: CALL, its arrays, ANSWER, its value ---- */
/* Begins a call. Messages name the function and these numbers, at most seven. */
#define CALL(function, ...) call_begins(#function, #__VA_ARGS__, (const double[8]){ 0, __VA_ARGS__ })
void call_begins(const char *function, const char *names, const double *numbers);
/* Return the array to pass to the student's function: n numbers of `size` bytes that it reads, or
 * that it writes. Its memory ends after n numbers, or has guard numbers around it. Messages also show
 * the ints that it reads. */
const void *call_reads(const char *name, const void *from, int n, size_t size);
void *call_writes(const char *name, void *to, int n, size_t size);
#define READS(x, n) call_reads(#x, x, n, sizeof *(x))
#define WRITES(x, n) call_writes(#x, x, n, sizeof *(x))
/* Makes the call and ends it. Within `call`, `answer` is the student's function `name`. */
#define ANSWER(name, call)                                 \
    do {                                                   \
        __typeof__(name) *answer = answer_function(#name); \
        answer_paint();                                    \
        if (answer)                                        \
            call;                                          \
        call_ends();                                       \
    } while (0)
/* Also returns the student's number, in both processes. */
#define RETURN(name, call)            \
    do {                              \
        double value = 0;             \
        ANSWER(name, value = (call)); \
        return shared(value);         \
    } while (0)
/* Fills the stack below with a pattern, which uninitialised variables then hold. */
void answer_paint(void);
/* Tells that the answer allocates memory, which takes time. */
void call_allocates(void);
/* Ends the call. Copies the arrays that the student's function wrote to the check's arrays, in both
 * processes. A write outside of an array gets a hint. */
void call_ends(void);
/* Copies data from the process with the answer to the other one. */
void share(void *data, size_t bytes);
/* Returns the answer's number, in both processes. */
double shared(double value);

/* Sets the hint for an answer that crashes from now on; NULL: none. */
void hint_of_crash(const char *hint);

/* Calls work. Returns false if it crashes, which is then no mistake of the answer. */
bool answer_survives(void (*work)(void *data), void *data);

/* ---- for lesson.c ---- */
/* The program's job. Both processes run the check. Only the child shows and draws. Only a program
 * that draws may write files. */
typedef enum { ANSWER_CHECKED, ANSWER_SHOWN, ANSWER_DRAWN } answer_job;
/* Forks and returns in both processes. answer: the open file of the compiled answer. prints: the path for
 * the answer's own output. seconds: of processor time. */
void answer_start(answer_job job, int answer, const char *prints, int seconds);
/* Selects how arrays are passed. true: as copies that end exactly after n numbers, so that the
 * address sanitizer finds each access outside. false: arrays that are read are the check's own, and
 * arrays that are written are copies with guard numbers. */
void answer_exact(bool exact);
/* Prints the verdict, ends the child and all processes that it started, and ends the program. In the
 * child, sends the verdict, which is never "right", to the parent. */
_Noreturn void answer_verdict(const char *text);
/* Sets the name of the verdict that follows, in any form; otherwise its first words are the name. */
void answer_name(const char *name);
/* Ends the program after the check. The verdict is "right", unless the answer did something that is
 * not allowed. */
_Noreturn void answer_finish(void);

/* ---- fence.c: limits the system calls of the process with the answer ---- */
/* Returns whether to use a part of the fence. Tests name the unused parts in LESSON_WITHOUT. */
bool fence_wanted(const char *part);
/* Returns whether this system has seccomp. Without it no call is refused. */
bool fence_exists(void);
/* Returns the version of the kernel's Landlock; 0: none. */
int fence_landlock(void);
/* Lets this process read only the files below `reads`, and read and write those below `writes`: lists
 * that end with NULL. Refuses TCP and signals to others too, where Landlock can. Returns whether it does. */
#define FENCE_LIBRARIES "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache"
bool fence_files(const char *const *reads, const char *const *writes);
/* Call these before and after loading the answer. refused gets a text about a forbidden call. */
void fence_before(bool may_write, void (*refused)(const char *what));
void fence_after(bool may_write);
#endif
