#!/usr/bin/env bash
# test_lessons.sh    tests the course: answers that crash, loop, write files, cheat or do not compile; a class; a student's folder; the
# package for students. For all lessons the solutions, starts, wrong answers, numbers and pictures.
set -u
case ${V:-} in asan) echo "lessons are of doubles: V=dasan checks them"; exit 0 ;; esac
lesson() { B=$library bash "$root/lessons/lesson.sh" "$@"; }
. "$(dirname "$0")/script.sh"
library=$build; [ -n "${V:-}" ] || library=$build/double
check "all lessons" eval '[ "${V:-}" = "" ] || export WEFT_ISA=generic; lesson all >all.out || { cat all.out; false; }'
[ "${V:-}" != double ] || { finish "the lessons"; exit; }

# ---- invalid answers to lesson 2, within a time limit that is enough for a correct one
export SECONDS_EACH=2
mkdir -p class/right
cp "$root/lessons/02_rnn_by_hand/solution.c" class/right/02.c
answer() {                              # NAME CODE: CODE is the body of step
    mkdir -p "class/$1"
    { printf '#include <%s.h>\n' signal stdio stdlib string unistd
      printf 'long syscall(long, ...);\n#include <sys/syscall.h>\n#include "lesson.h"\n'
      printf 'void step(const rnn *r, const double *x, const double *b, double *h)\n{\n    (void)r, (void)x, (void)b, (void)h;\n    %s\n}\n' "$2"
      printf 'void run(const rnn *r, int n, const double *x, double *h) { (void)r, (void)n, (void)x, (void)h; }\n'; } >"class/$1/02.c"
}
gets() {                                # NAME VERDICT CODE: the verdict that an answer gets
    answer "$1" "$3"
    check "$1" exits 1 "^lesson 02: $2" lesson run 2 "class/$1/02.c"
}
check "a right one" exits 0 '^lesson 02: right$' lesson run 2 class/right/02.c
check "its numbers are shown" grep -q 'by hand and by weft: the same' output
check "its picture is drawn" cmp 02.svg "$root/lessons/02_rnn_by_hand/picture.svg"
gets crash     'it crashes in step (r->I = [0-9]*, r->H = [0-9]*): signal 11' '*(volatile int *)1 = 1;'
gets abort     'it crashes in step (r->I = [0-9]*, r->H = [0-9]*): signal 6' 'abort();'
gets loop      'it does not end within 0.25 s: a call of step (r->I = ' 'for (volatile int i = 0;; i = 0) ;'
gets sleep     'it does not end within 2 s' 'for (;;) sleep(9);'
gets prints    'it prints more than a megabyte' 'for (;;) puts("again and again");'
gets writes    'it writes files' 'FILE *f = fopen("x", "w"); if (f) { fputs("hello", f); fclose(f); }'
gets touches   'it writes files' 'FILE *f = fopen("x", "w"); if (f) fclose(f);'
gets reads     'it crashes in step (.*): .*: it reads memory outside of an array' 'double *a = calloc(3, sizeof *a); volatile int k = 3; h[0] = a[k];'
gets garbage   'it does not compile: 02.c:[0-9:]* error: ' 'return "a" * 2;'
gets nothing   'it does not compile: .*undefined' '} void stop(void); void also(void) { stop();'
gets main      'it does not compile: .*multiple definition' '} int main(void) { return 0;'
gets leaves    'it exits with status 0 before the end of the check' 'exit(0);'
gets leaves3   'it exits with status 3 before the end of the check' '_exit(3);'
gets claims    'it exits with status 0 before the end of the check' 'puts("right"); exit(0);'
gets hints     'it exits with status 1 before the end of the check' 'puts("hint: all is well"); exit(1);'
gets chatters  'hint: ' 'printf("right"); fflush(stdout);'
SECONDS_EACH=20 gets memory 'it needs too much memory' 'while (malloc(1 << 28)) ;'
gets huge      'it needs too much memory' 'char *volatile p = malloc((size_t)1 << 62); if (p) p[0] = 1;'
gets forks     'it starts another process' 'for (;;) fork();'
gets shell     'it starts another process' 'if (system("ls")) exit(1);'
gets leftover  'it starts another process' 'if (!syscall(SYS_fork)) sleep(600); exit(0);'
gets daemon    'it starts another process' 'if (!syscall(SYS_fork)) { setsid(); sleep(600); } exit(0);'
mkdir class/empty && sed 's/sum = n ? add_logs/if (steps == 0 \&\& n == 0) abort();\n    sum = n ? add_logs/' "$root/lessons/14_ctc/solution.c" >class/empty/14.c
check "a crash in one case" exits 1 '^lesson 14: it crashes in log_probability (steps = 0, classes = [0-9]*, n = 0, labels = none): signal 6' lesson run 14 class/empty/14.c
ends_shown='__attribute__((constructor)) static void ends(int n, char **argument) { if (n > 1 && argument[1][0] == 115) _exit(3); }'
mkdir class/fails && { printf '#include <unistd.h>\n'; cat class/right/02.c; echo "$ends_shown"; } >class/fails/02.c
check "a right one whose program fails" exits 1 '^lesson 02: its program fails: it exits with status 3' lesson run 2 class/fails/02.c
mkdir class/undefined && { cat class/right/02.c; echo 'static volatile int most = 2147483647; __attribute__((constructor)) static void adds(void) { most++; }'; } >class/undefined/02.c
check "undefined behaviour" exits 1 '^lesson 02: it has undefined behaviour: 02.c:.*signed integer overflow' lesson run 2 class/undefined/02.c
long_shown='#include <time.h>
__attribute__((constructor)) static void waits(int n, char **argument) { while (n > 1 && argument[1][0] == 115 && clock() < 3 * CLOCKS_PER_SEC) ; }'
mkdir class/long && { cat class/right/02.c; echo "$long_shown"; } >class/long/02.c
check "a right one whose program takes 3 s" exits 0 '^lesson 02: right$' lesson run 2 class/long/02.c
gets failshint 'hint: step leaves h at zero' "} $ends_shown void also(void); void also(void) {"
check "no process of theirs remains" eval '! readlink /proc/[0-9]*/exe 2>/dev/null | grep "^${TMPDIR:-/tmp}/.*/02/program"'
check "no file of theirs is left here" eval '[ "$(ls)" = "$(printf "%s\n" 02.svg all.out class err out output)" ]'

# ---- a class of four: one right, one of two, one wrong, one without files
mkdir -p three/{anna,"bo b",cem,dora}
cp class/right/02.c three/anna; cp class/right/02.c "three/bo b"
cp class/claims/02.c "three/bo b/99.c"                  # no such lesson
sed 's/h\[j\] = tanh(sum);/h[j] = sum;/' class/right/02.c >three/cem/02.c
cp class/right/02.c three/cem/2.c; cp class/right/02.c three/cem/02.C; cp class/right/02.c three/cem/lesson07.c
ln -s "$PWD/class/right/02.c" three/cem/03.c
check "a class is graded" exits 0 '^grade: 4 students, 3 answers, 2 right; three/grades.csv, .json, .xml$' lesson grade three
check "a file of another name is reported" grep -qx "cem/lesson07.c: not graded: an answer of lesson 7 is called 07.c" output
check "a row of its table" grep -qx 'cem *- wrong name? *-  *-  *- name? *-  *-  *-  *-  *-  *-  *- *0' output
cat >want.csv <<'END'
student,01,02,03,04,05,06,07,08,09,10,11,12,13,14,right
"anna","-","right","-","-","-","-","-","-","-","-","-","-","-","-",1
"bo b","-","right","-","-","-","-","-","-","-","-","-","-","-","-",1
"cem","-","NO_TANH","wrong-name","-","-","-","wrong-name","-","-","-","-","-","-","-",0
"dora","-","-","-","-","-","-","-","-","-","-","-","-","-","-",0
END
check "its CSV" cmp three/grades.csv want.csv
sed 's/, "seconds": [0-9.]*//' three/grades.json >json
cat >want.json <<'END'
[
{"student": "anna", "lesson": "02", "file": "02.c", "right": true, "hint": null, "verdict": "right"},
{"student": "bo b", "lesson": "02", "file": "02.c", "right": true, "hint": null, "verdict": "right"},
{"student": "bo b", "lesson": null, "file": "99.c", "right": false, "hint": "wrong-name", "verdict": "not graded: answers are called 01.c .. 14.c"},
{"student": "cem", "lesson": "02", "file": "02.c", "right": false, "hint": "NO_TANH", "verdict": "hint: the sum is right, but tanh of it is missing"},
{"student": "cem", "lesson": "02", "file": "02.C", "right": false, "hint": "wrong-name", "verdict": "not graded: an answer of lesson 2 is called 02.c"},
{"student": "cem", "lesson": "02", "file": "2.c", "right": false, "hint": "wrong-name", "verdict": "not graded: an answer of lesson 2 is called 02.c"},
{"student": "cem", "lesson": "03", "file": "03.c", "right": false, "hint": "wrong-name", "verdict": "not graded: it is a link"},
{"student": "cem", "lesson": "07", "file": "lesson07.c", "right": false, "hint": "wrong-name", "verdict": "not graded: an answer of lesson 7 is called 07.c"}
]
END
check "its JSON" eval 'diff <(sed "s/,$//" json | sort) <(sed "s/,$//" want.json | sort) && python3 -m json.tool three/grades.json >json'
check "its XML" python3 -c 'import xml.etree.ElementTree as t; s = t.parse("three/grades.xml").getroot(); assert s.get("failures") == "6" and len(s.findall("*/failure")) == 6'
check "no such class" exits 2 'gone is not a folder' lesson grade gone
check "a class without answers" exits 0 '^grade: 0 students, 0 answers, 0 right' eval 'mkdir none && lesson grade none'

# ---- all lessons of two students: each answer gets the verdict that it was made for
if [ -z "${V:-}" ]; then
    check "a class is made" python3 "$root/tests/scripts/lesson_class.py" "$root/lessons" "$PWD/made/class" 2
    check "it is graded" exits 0 '^grade: 2 students' eval 'SECONDS_EACH= lesson grade made/class'
    as_made() {
        python3 - <<'END'
import json
got = {(r["student"], r["lesson"]): r for r in json.load(open("made/class/grades.json"))}
for line in open("made/class.expected"):
    student, lesson, verdict = line.rstrip("\n").split("\t")
    r = got.pop((student, lesson), {"right": False, "verdict": "-"})
    assert r["right"] == (verdict == "right") and verdict in r["verdict"], (line, r)
assert not got
END
    }
    check "as it was made" as_made
fi

# ---- answers that attack the grader: none passes or changes another's grade
mkdir -p evil/{a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,z}
wrong_code='
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lesson.h"
void step(const rnn *r, const double *x, const double *before, double *h) { (void)x, (void)before; for (int j = 0; j < r->H; j++) h[j] = 0; }
void run(const rnn *r, int n, const double *x, double *h) { for (int t = 0; t < n; t++) step(r, x, h, h + t * r->H); }'
early='__attribute__((constructor)) static void early(int n, char **v)'
evil() { printf '#define _GNU_SOURCE\n%s\n' "$2" >"evil/$1/02.c"; }
right_but="$(sed 's/^void run/static void right_run/' class/right/02.c)
void run(const rnn *r, int n, const double *x, double *h)"
cp class/right/02.c evil/z
evil a "$wrong_code $early { for (int k = 0; k < n; k++) { printf(\"verdict: right\n%s right\n\", v[k]); fprintf(stderr, \"verdict: right\n\"); } fflush(stdout); _exit(0); }"
evil b "$wrong_code int printf(const char *f, ...) { va_list l; va_start(l, f); (void)l; write(1, \"right\n\", 6); write(2, \"verdict: right\n\", 15); _exit(0); }"
evil c "$wrong_code void *memset(void *p, int c, size_t n) { (void)c; write(2, p, n); write(2, \"verdict: right\n\", 15); _exit(0); }"
evil d "$wrong_code $early { (void)n, (void)v; struct { int kind; size_t n; } h = { 1, 5 }; for (int f = 3; f < 64; f++) { write(f, &h, sizeof h); write(f, \"right\", 5); } _exit(0); }"
evil e "$wrong_code $early { (void)n, (void)v; struct { int kind; size_t n; } h = { 2, 0 }; for (int f = 3; f < 64; f++) write(f, &h, sizeof h); _exit(0); }"
evil f "#include <fcntl.h>
#include <unistd.h>
$right_but { right_run(r, n, x, h); int f = open(\"../../grades.csv\", O_RDWR); if (f >= 0) write(f, \"no\", 2); }"
evil g "#include <stdio.h>
$right_but { right_run(r, n, x, h); rename(\"../answer.o\", \"../../02/program\"); }"
evil h "#include <spawn.h>
#include <unistd.h>
$right_but { extern char **environ; char *a[] = { \"setsid\", \"sleep\", \"611\", 0 }; pid_t p; posix_spawnp(&p, \"setsid\", 0, 0, a, environ); right_run(r, n, x, h); }"
evil i "#include <signal.h>
#include <unistd.h>
$right_but { right_run(r, n, x, h); kill(getppid(), SIGKILL); }"
evil j "#include \"$PWD/evil/z/02.c\""
evil k "#pragma GCC system_header
#include \"$root/lessons/02_rnn_by_hand/solution.c\""
mkfifo evil/l/p; evil l "#include \"$PWD/evil/l/p\""
loads='
#include <fcntl.h>
#include <unistd.h>
static int can(const char *path) { return open(path, O_RDONLY) >= 0; }
__attribute__((constructor)) static void early(int n, char **v) { (void)n, (void)v;'
evil m '__asm__(".incbin \"/etc/passwd\"");'
evil n '#include "/etc/passwd"'
evil o "$right_but { right_run(r, n, x, h); } $loads if (can(\"/etc/passwd\")) _exit(41); }"
evil p "$right_but { right_run(r, n, x, h); } $loads if (can(\"$PWD/evil/z/02.c\") || can(\"$root/lessons/02_rnn_by_hand/solution.c\")) _exit(42); }"
evil q "#include <sys/ptrace.h>
$right_but { right_run(r, n, x, h); if (ptrace(PTRACE_ATTACH, getppid(), 0, 0) == 0) _exit(43); }"
evil r "#include <sys/socket.h>
$right_but { right_run(r, n, x, h); socket(AF_INET, SOCK_STREAM, 0); }"
evil s "#include <setjmp.h>
#include <unistd.h>
$right_but { jmp_buf b; if (!setjmp(b)) longjmp(b, 1); right_run(r, n, x, h); for (int f = 3; f < 64; f++) dup2(1, f); }"
evil t "$wrong_code $early { (void)n, (void)v; unsigned long a, b; char line[200]; FILE *f = fopen(\"/proc/self/maps\", \"r\"); while (f && fgets(line, sizeof line, f)) if (sscanf(line, \"%lx-%lx rw\", &a, &b) == 2) _exit(44); }"
evil u "$right_but { right_run(r, n, x, h); } $loads if (access(\"/proc/1/status\", 0) == 0 && can(\"/proc/1/environ\")) _exit(45); }"
check "attacks are graded" exits 0 '^grade: 22 students, 22 answers, [1-5] right; ' lesson grade evil
is_right() { grep -q "^{\"student\": \"$1\", .*\"right\": true" evil/grades.json; }
grep -q 'no Landlock' output || for student in o p q u z; do check "$student gets nothing, and is right" is_right $student; done
expect() { check "$1: $2" grep -q "^{\"student\": \"$1\", .*\"right\": false, .*\"verdict\": \"$2" evil/grades.json; }
expect m 'it does not compile'
expect n "it includes a file that is not the lesson's: passwd"
expect r 'it opens a network connection'
expect s 'it sends unexpected data\|it exits with status'
expect t 'hint: '
for student in a b c; do expect $student '\(it exits with status\|hint: \)'; done
expect d 'it sends a verdict of its own'
expect e 'it sends unexpected data'
expect f 'it writes files'
expect g 'it writes files'
expect h 'it starts another process'
expect i 'it sends signals'
expect j "it includes a file that is not the lesson's: 02.c"
expect k "it includes a file that is not the lesson's: solution.c"
expect l "it includes a file that is not the lesson's: p"
check "no process of theirs remains" eval '! pgrep -f "sleep 611"'
rm -r evil/[a-iln-y]
check "a kernel without Landlock and namespaces is reported" exits 0 'not prevented: .*no Landlock' eval 'LESSON_WITHOUT=landlock,namespaces lesson grade evil 2>&1'
for student in j m; do expect $student "it includes a file that is not the lesson's: "; done

# ---- numbers that contradict expected.txt, though the check passes
{ sed 's/^void run/static void right_run/' class/right/02.c; echo 'void run(const rnn *r, int n, const double *x, double *h) { right_run(r, n, x, h); if (r->H == 2 && r->I == 3) h[0] += 0.01; }'; } >numbers.c
check "other numbers than expected.txt" exits 1 "^lesson 02: the check passes, but the lesson's program does not print this line" lesson run 2 numbers.c
{ sed 's/h\[j\] = tanh(sum);/h[j] = tanh(sum); printf("unit %d ", j);/; 1a #include <stdio.h>' class/right/02.c; } >debug.c
check "an answer may print" exits 0 '^lesson 02: right$' lesson run 2 debug.c
check "its output is shown" grep -q '^unit 0 unit 1' output

# ---- a package for teachers, and one for students
check "solutions" exits 0 '^solutions of the lessons' lesson solutions for_teachers
check "of all lessons, with checks and wrong answers" eval 'for f in solution.c check.c wrong.txt; do [ "$(ls for_teachers/[0-9]*/$f | wc -l)" = 14 ] || { echo $f; false; break; }; done'
check "and the answers to the questions" cmp for_teachers/answers.md "$root/lessons/answers.md"
check "an answer for each question, with right numbers" exits 0 '^71 questions of 14 lessons' python3 "$root/tests/scripts/lesson_answers.py" "$root/lessons"
check "one of them is right" exits 0 '^lesson 02: right' lesson run 2 for_teachers/02_rnn_by_hand/solution.c
check "a package" exits 0 '^lessons without solutions' lesson package package
check "has no solution, wrong answer or check" eval '! find package -name "solution.c" -o -name "wrong*" -o -name check.c -o -name "hints*" -o -name "answers*" | grep .'
check "has all that a lesson needs" eval 'for f in lesson.md lesson.h start.c show.c expected.txt picture.svg check.o; do [ "$(ls package/[0-9]*/$f | wc -l)" = 14 ] || { echo $f; false; break; }; done'

# ---- a custom course
check "a lesson is begun" exits 0 'fill in a course/02.c' lesson start 2 "a course"
check "with the file of the package" cmp "a course/02.c" package/02_rnn_by_hand/start.c
check "make checks it, and shows the first hint" exits 2 'lesson 02: hint: step leaves h at zero' env B="$library" make -C "a course" 02
check "an existing file stays" exits 1 'exists already' eval 'echo mine >"a course/02.c"; lesson start 2 "a course"'
check "as it is" grep -qx mine "a course/02.c"
mkdir own && echo 'all: ; echo mine' >own/Makefile
check "the student's Makefile stays" exits 1 'has another Makefile' lesson start 2 own
check "as it is, and nothing beside it" eval '[ "$(ls own)" = Makefile ] && grep -q mine own/Makefile'
check "an unknown number of a lesson" exits 2 'there is no lesson 77; there are: ' lesson start 77 x
check "a word for a lesson" exits 2 'there is no lesson two' lesson start two x
check "no folder" exits 1 'a folder is expected' lesson start 2
check "a missing file" exits 2 'gone.c' lesson run 2 gone.c
check "no argument" exits 2 'lesson.sh start N DIR' lesson
finish "the lessons"
