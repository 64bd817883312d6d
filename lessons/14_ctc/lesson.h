/* Lesson 14: the functions that you write. */
#ifndef WEFT_LESSON_14
#define WEFT_LESSON_14

/* The class that stands for "no label here". */
enum { BLANK = 0 };

/* Writes the labels of a path, path [steps], to out and returns their number. First,
 * equal neighbours become one. Then the blanks go. */
int collapse(int steps, const int *path, int *out);

/* Returns the logarithm of the probability of labels [n]: of the sum over all paths of
 * `steps` classes that collapse to them. score [steps, classes] has the logarithm of
 * each class's probability at each step; it may be -INFINITY. Labels are not BLANK. If
 * no path collapses to the labels, the result is -INFINITY. Without steps only n = 0 is
 * possible, with probability 1. The probability can be far below the smallest double.
 */
double log_probability(int steps, int classes, const double *score, int n,
                       const int *labels);

/* Writes the most probable of these paths to path [steps] and returns the logarithm of
 * its probability. If that is -INFINITY, path stays as it is. No two paths have the
 * same probability. */
double best_path(int steps, int classes, const double *score, int n, const int *labels,
                 int *path);
#endif
