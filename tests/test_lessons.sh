#!/usr/bin/env bash
# test_lessons.sh    what a course meets: answers that crash, loop, write, cheat or do not compile; a class; a folder of one's own. And of all
# lessons the solutions, starts, wrong answers, numbers and pictures: with the kernels that are best here, in doubles with the plain ones.
set -u
case ${V:-} in asan) echo "lessons are of doubles: V=dasan checks them"; exit 0 ;; esac
root=$(realpath "$(dirname "$0")/..")
case ${V:-} in '') library=$(realpath "${B:-build}")/double ;; *) library=$(realpath "$B") ;; esac
lesson() { B=$library bash "$root/lessons/lesson.sh" "$@"; }
. "$(dirname "$0")/script.sh"
check "all lessons" eval '[ "${V:-}" = "" ] || export WEFT_ISA=generic; lesson all >all.out || { cat all.out; false; }'
[ "${V:-}" != double ] || { finish "the lessons"; exit; }

# ---- answers that are none: of lesson 2; what is left of seconds is enough for a right one
export SECONDS_EACH=2
[ "${V:-}" != dasan ] || slow='\|it does not end'          # a sanitizer looks at memory now and then only
mkdir -p class/right
cp "$root/lessons/02_rnn_by_hand/solution.c" class/right/02.c
answer() {                              # NAME CODE: what step does
    mkdir -p "class/$1"
    { printf '#include <%s.h>\n' signal stdio stdlib string unistd
      printf 'long syscall(long, ...);\n#include <sys/syscall.h>\n#include "lesson.h"\n'
      printf 'void step(const rnn *r, const double *x, const double *b, double *h)\n{\n    (void)r, (void)x, (void)b, (void)h;\n    %s\n}\n' "$2"
      printf 'void run(const rnn *r, int n, const double *x, double *h) { (void)r, (void)n, (void)x, (void)h; }\n'; } >"class/$1/02.c"
}
gets() {                                # NAME VERDICT CODE: this is what it hears
    answer "$1" "$3"
    check "$1" says 1 "^lesson 02: $2" lesson run 2 "class/$1/02.c"
}
check "a right one" says 0 '^lesson 02: right$' lesson run 2 class/right/02.c
check "its numbers are shown" grep -q 'by hand and by weft: the same' said
check "its picture is drawn" cmp 02.svg "$root/lessons/02_rnn_by_hand/picture.svg"
gets crash     'it crashes: ' '*(volatile int *)1 = 1;'
gets abort     'it crashes: signal 6' 'abort();'
gets loop      'it does not end within 2 s' 'for (volatile int i = 0;; i = 0) ;'
gets sleep     'it does not end within 2 s' 'for (;;) sleep(9);'
gets prints    'it prints more than a megabyte' 'for (;;) puts("again and again");'
gets writes    'it writes files' 'FILE *f = fopen("x", "w"); if (f) { fputs("hello", f); fclose(f); }'
gets touches   'it writes files' 'FILE *f = fopen("x", "w"); if (f) fclose(f);'
gets garbage   'it does not compile: 02.c:[0-9:]* error: ' 'return "a" * 2;'
gets nothing   'it does not compile: .*undefined' '} void stop(void); void also(void) { stop();'
gets main      'it does not compile: .*multiple definition' '} int main(void) { return 0;'
gets leaves    'it ends by itself, with status 0, before the check' 'exit(0);'
gets leaves3   'it ends by itself, with status 3, before the check' '_exit(3);'
gets claims    'it ends by itself, with status 0, before the check' 'puts("right"); exit(0);'
gets hints     'it ends by itself, with status 1, before the check' 'puts("hint: all is well"); exit(1);'
gets chatters  'hint: ' 'printf("right"); fflush(stdout);'
gets memory    "it asks for more memory than there is${slow:-}" 'while (malloc(1 << 20)) ;'
gets huge      'it asks for more memory than there is' 'char *volatile p = malloc((size_t)1 << 62); if (p) p[0] = 1;'
gets forks     'it starts another process' 'for (;;) fork();'
gets shell     'it starts another process' 'if (system("ls")) exit(1);'
gets leftover  'it starts another process' 'if (!syscall(SYS_fork)) sleep(600); exit(0);'
gets daemon    'it starts another process' 'if (!syscall(SYS_fork)) { setsid(); sleep(600); } exit(0);'
ends_shown='__attribute__((constructor)) static void ends(int n, char **argument) { if (n > 1 && argument[1][0] == 115) _exit(3); }'
mkdir class/fails && { printf '#include <unistd.h>\n'; cat class/right/02.c; echo "$ends_shown"; } >class/fails/02.c
check "a right one whose program fails" says 1 '^lesson 02: its program failed$' lesson run 2 class/fails/02.c
long_shown='#include <time.h>
__attribute__((constructor)) static void waits(int n, char **argument) { while (n > 1 && argument[1][0] == 115 && clock() < 3 * CLOCKS_PER_SEC) ; }'
mkdir class/long && { cat class/right/02.c; echo "$long_shown"; } >class/long/02.c
check "a right one whose program takes 3 s" says 0 '^lesson 02: right$' lesson run 2 class/long/02.c
gets failshint 'hint: step leaves h at zero' "} $ends_shown void also(void); void also(void) {"
check "nothing of them runs on" eval '! readlink /proc/[0-9]*/exe 2>/dev/null | grep "^${TMPDIR:-/tmp}/.*/02\( (deleted)\)\{0,1\}$"'
check "no file of theirs is left here" eval '[ "$(ls)" = "$(printf "%s\n" 02.svg all.out class err out said)" ]'

# ---- a class of three: one right, one of two, one wrong
mkdir -p three/{anna,"bo b",cem}
cp class/right/02.c three/anna; cp class/right/02.c "three/bo b"
cp class/loop/02.c three/cem
cp class/claims/02.c "three/bo b/99.c"                  # no such lesson
cp "$root/lessons/02_rnn_by_hand/wrong_3.c" three/cem/02.c
check "a class is graded" says 0 '^grade: 3 students, 3 answers, 2 right; three/grades.csv$' lesson grade three
printf '%s\n' 'student,lesson,right,verdict' '"anna",02,yes,"right"' '"bo b",02,yes,"right"' '"cem",02,no,"hint: the sum is right, but tanh of it is missing"' >want.csv
check "its table" cmp three/grades.csv want.csv
check "no such class" says 2 'gone is no folder' lesson grade gone
check "a class without answers" says 0 '^grade: 0 students, 0 answers, 0 right' eval 'mkdir none && lesson grade none'

# ---- a course of one's own
check "a lesson is begun" says 0 '02.c is to be filled in' lesson start 2 "a course"
check "with the file of the tree" cmp "a course/02.c" "$root/lessons/02_rnn_by_hand/start.c"
check "make checks it, and shows the first hint" says 2 'lesson 02: hint: step leaves h at zero' env B="$library" make -C "a course" 02
check "what is there stays" says 1 'is there already' eval 'echo mine >"a course/02.c"; lesson start 2 "a course"'
check "as it is" grep -qx mine "a course/02.c"
mkdir own && echo 'all: ; echo mine' >own/Makefile
check "a Makefile of one's own stays" says 1 'has a Makefile of its own' lesson start 2 own
check "as it is, and nothing beside it" eval '[ "$(ls own)" = Makefile ] && grep -q mine own/Makefile'
check "no such lesson" says 2 'there is no lesson 77; there are: ' lesson start 77 x
check "a word for a lesson" says 2 'there is no lesson two' lesson start two x
check "no folder" says 1 'a folder is expected' lesson start 2
check "no such file" says 2 'gone.c' lesson run 2 gone.c
check "nothing said" says 2 'lesson.sh start N DIR' lesson
finish "the lessons"
