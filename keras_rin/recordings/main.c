/*
Reads a table with a header, and prints the class of each row.

    cc -o main main.c -lm
    ./main LOG.csv          or ./main < LOG.csv

On a device, x comes from the sensor, in the counts of count().
*/
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "$name.h"

#ifndef PRINT
#define PRINT(answer) puts(answer < 0 ? "unknown" : classes[answer])
#endif
#define SEPARATOR $separator
#define DECIMAL $decimal

static const char *const classes[] = {$classes};
static const char *const channels[] = {$channels};
/* A count is (value - offset) / unit. */
static const double offset[] = {$offset};
static const double unit[] = {$unit};
static char line[1 << 16];
static long number;

static void fail(const char *problem, const char *name)
{
    fprintf(stderr, "line %ld: %s%s\n", number, problem, name);
    exit(1);
}

/* The next line that is not empty, or 0. */
static int read_line(FILE *file)
{
    do {
        if (!fgets(line, sizeof line, file))
            return 0;
        number++;
        size_t length = strlen(line);
        if (length + 1 == sizeof line)
            fail("it is too long", "");
        while (length && (line[length - 1] == '\n' || line[length - 1] == '\r'))
            line[--length] = 0;
    } while (!*line);
    return 1;
}

/* Ends a cell, without quotation marks, and returns the rest or 0. */
static char *end_cell(char *cell)
{
    char *to = cell;
    int is_quoted = 0;
    for (; *cell && (is_quoted || *cell != SEPARATOR); cell++) {
        if (*cell != '"')
            *to++ = *cell;
        else if (is_quoted && cell[1] == '"')
            *to++ = *cell++;
        else
            is_quoted = !is_quoted;
    }
    char *rest = *cell ? cell + 1 : 0;
    *to = 0;
    return rest;
}

static double value_of(char *cell, const char *name)
{
    for (char *mark = cell; *mark; mark++)
        if (*mark == DECIMAL)
            *mark = '.';
    char *end;
    double value = strtod(cell, &end);
    while (*end == ' ')
        end++;
    if (end == cell || *end || !isfinite(value))
        fail("no number in column ", name);
    return value;
}

static int16_t count(double value, int channel)
{
    value = floor((value - offset[channel]) / unit[channel] + 0.5);
    return (int16_t)(value > 32767 ? 32767 : value < -32768 ? -32768 : value);
}

int main(int arguments, char **argument)
{
    FILE *file = arguments > 1 ? fopen(argument[1], "r") : stdin;
    int column[${name}_inputs], columns = 0;
    if (!file || !read_line(file))
        fail("no header", "");
    for (int i = 0; i < ${name}_inputs; i++)
        column[i] = -1;
    for (char *cell = line, *rest; cell; cell = rest, columns++) {
        if (columns == 0 && !strncmp(cell, "\xEF\xBB\xBF", 3))
            cell += 3;
        rest = end_cell(cell);
        for (int i = 0; i < ${name}_inputs; i++)
            if (!strcmp(cell, channels[i]))
                column[i] = columns;
    }
    for (int i = 0; i < ${name}_inputs; i++)
        if (column[i] < 0)
            fail("no column ", channels[i]);
    static ${name}_state state;
    static ${name}_follower follower;
    static int16_t x[${name}_inputs];
    static int32_t y[${name}_outputs];
    ${name}_reset(&state);
    while (read_line(file)) {
        int cells = 0;
        for (char *cell = line, *rest; cell; cell = rest, cells++) {
            rest = end_cell(cell);
            for (int i = 0; i < ${name}_inputs; i++)
                if (column[i] == cells)
                    x[i] = count(value_of(cell, channels[i]), i);
        }
        if (cells != columns)
            fail("another number of cells than in the header", "");
        ${name}_step(&state, x, y);
        const int answer = ${name}_follow(&follower, y);
        PRINT(answer);
    }
    return 0;
}
