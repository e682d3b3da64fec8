/* Shared by the C tests: checks that print their location if they fail, and a key for sessions. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                         \
    do {                                                                                                         \
        if (!(condition)) {                                                                                      \
            fprintf(stderr, "%s:%d: %s\n  last error: %s\n", __FILE__, __LINE__, #condition,                     \
                    eq_last_error_message());                                                                    \
            exit(1);                                                                                             \
        }                                                                                                        \
    } while (0)

#define CHECK_CODE(code, call) check_code(__FILE__, __LINE__, #call, code, (int)(call))

static inline void check_code(const char *file, int line, const char *call, int wanted, int found) {
    if (wanted != found) {
        fprintf(stderr, "%s:%d: %s is %s (%d), not %s\n  last error: %s\n", file, line, call, eq_error_name(found), found,
                eq_error_name(wanted), eq_last_error_message());
        exit(1);
    }
}

/* Whether the message of the last error contains the text `words`. */
#define SAYS(words) (strstr(eq_last_error_message(), words) != NULL)

#define KEY "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

#endif
