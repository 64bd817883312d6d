/* comma.h - sets a locale with decimal commas. Few machines have one installed, so this file contains one in
 * glibc's format. */
#ifndef WEFT_TESTS_COMMA_H
#define WEFT_TESTS_COMMA_H
#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/check.h"

/* LC_NUMERIC as localedef writes it: decimal_point is ",", no thousands separator. */
static const unsigned char comma_numeric[] = {
    0x14, 0x11, 0x03, 0x20, 6,    0,   0,   0,   0x20, 0,   0,   0,   0x22, 0,   0,   0,   0x23, 0,   0, 0,
    0x24, 0,    0,    0,    0x28, 0,   0,   0,   0x2c, 0,   0,   0,   0x2c, 0,   0,   0,   0x2c, 0,   0, 0,
    0,    0,    0,    0,    'A',  'N', 'S', 'I', '_',  'X', '3', '.', '4',  '-', '1', '9', '6',  '8', 0
};

/* Switches the process to decimal commas until comma_end. */
UNUSED static void comma_begin(void)
{
    char folder[64], file[128];
    snprintf(folder, sizeof folder, "%s/weft_comma.XXXXXX", P_tmpdir);
    cr_assert(mkdtemp(folder) && setenv("LOCPATH", folder, 1) == 0);
    snprintf(file, sizeof file, "%s/comma", folder);
    cr_assert_eq(mkdir(file, 0700), 0);
    snprintf(file, sizeof file, "%s/comma/LC_NUMERIC", folder);
    FILE *f = fopen(file, "wb");
    cr_assert(f && fwrite(comma_numeric, 1, sizeof comma_numeric, f) == sizeof comma_numeric &&
              fclose(f) == 0);
    cr_assert(setlocale(LC_NUMERIC, "comma"), "glibc does not accept the locale of comma.h");
    unlink(file);
    *strrchr(file, '/') = 0;
    rmdir(file);
    rmdir(folder);
    char text[8];
    snprintf(text, sizeof text, "%g", 1.5);
    cr_assert_str_eq(text, "1,5");
}

UNUSED static void comma_end(void) { setlocale(LC_NUMERIC, "C"); }
#endif
