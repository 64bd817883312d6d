/* nearest.h - suggests the name that a misspelt word most likely means. */
#ifndef WEFT_CORE_NEAREST_H
#define WEFT_CORE_NEAREST_H

/* Returns the name with the smallest edit distance to `word`, or NULL if every distance exceeds half the
 * length of `word`. name(i, user) returns the i-th name, and NULL after the last. */
const char *weft__nearest(const char *word, const char *(*name)(int i, const void *user), const void *user);
#endif
