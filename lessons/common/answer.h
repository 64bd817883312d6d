/* answer.h - calls of the student's functions, which run in a process of their own.
 *
 * The program forks, and both processes run the same check. Only the child loads the answer: it
 * calls the student's functions and sends their results to the parent, which reads them where the
 * child calls. The parent alone compares the results and prints the verdict, so an answer cannot
 * change it. A lesson's calls.c has one function for each that the student writes. */
#ifndef WEFT_LESSON_ANSWER
#define WEFT_LESSON_ANSWER
#include <stdbool.h>
#include <stddef.h>

/* Returns whether this process has the answer. */
bool answer_here(void);
/* Returns the student's function of that name; NULL in the process without the answer. */
void *answer_function(const char *name);

/* ---- a call: call_begins, its arrays, ANSWER, its value ---- */
/* Begins a call. The name of the function is for messages. */
void call_begins(const char *function);
/* Returns the array to pass to the student's function: n numbers of `size` bytes that it reads,
 * or that it writes. Its memory ends after n numbers, or there are guard numbers around it. */
const void *call_reads(const char *name, const void *from, int n, size_t size);
void *call_writes(const char *name, void *to, int n, size_t size);
#define READS(x, n) call_reads(#x, x, n, sizeof *(x))
#define WRITES(x, n) call_writes(#x, x, n, sizeof *(x))
/* Makes the call, in which `answer` is the student's function of that name, and ends it. */
#define ANSWER(name, call)                                 \
    do {                                                   \
        __typeof__(name) *answer = answer_function(#name); \
        answer_paint();                                    \
        if (answer)                                        \
            call;                                          \
        call_ends();                                       \
    } while (0)
/* Fills the stack below with a pattern, so that variables that nobody has set hold it. */
void answer_paint(void);
/* Ends the call: writes outside of the arrays get a hint; copies the arrays that were written to
 * their places, in both processes. */
void call_ends(void);
/* Makes data in the process without the answer what it is in the one with it. */
void share(void *data, size_t bytes);
/* Returns the number that the answer gave, in both processes. */
double shared(double value);

/* Sets the hint for an answer that crashes from now on; NULL: none. */
void hint_of_crash(const char *hint);

/* ---- for lesson.c ---- */
/* What the program runs. Both processes run the check; the child alone shows and draws. Only a
 * program that draws may write files. */
typedef enum { ANSWER_CHECKED, ANSWER_SHOWN, ANSWER_DRAWN } answer_job;
/* Forks and returns in both processes. file: the compiled answer; prints: the file that takes what
 * the answer prints. */
void answer_start(answer_job job, const char *file, const char *prints);
/* Selects how arrays are passed: exactly as long as they are, so that the address sanitizer finds
 * each access outside of them; or in the place where the check has them. */
void answer_exact(bool exact);
/* Prints the verdict and ends the program; ends the child and all processes that it started. In the
 * child: sends the verdict, which is never "right", to the parent. */
_Noreturn void answer_verdict(const char *text);
/* Ends the program after the check: "right", unless the answer did something that it may not. */
_Noreturn void answer_finish(void);

/* fence.c: what the process with the answer may ask of the system. Returns false if this system
 * cannot restrict it. */
bool fence_exists(void);
/* Before the answer is loaded, and after it. on_call gets the names of refused requests. */
void fence_before(bool may_write, void (*refused)(const char *what));
void fence_after(bool may_write);
#endif
