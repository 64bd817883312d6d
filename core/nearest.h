/* nearest.h - suggests the name that a misspelt word most likely means. */
#ifndef WEFT_CORE_NEAREST_H
#define WEFT_CORE_NEAREST_H

/* Returns the name with the fewest edits from `word`, or NULL if every name needs more than half as many
 * edits as `word` has letters. name(i, of) returns the i-th name, and NULL after the last. */
const char *weft__nearest(const char *word, const char *(*name)(int i, const void *of), const void *of);
#endif
