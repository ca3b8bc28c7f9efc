
#ifndef ${name}_HOLD
/* The equal answers in a row after which one is given. */
#define ${name}_HOLD $hold

/* The answer that is held: one for each stream, of zeros at first. */
typedef struct {
    int answer, last, count;
} ${name}_held;

/* What is given after this answer of a step. */
static inline int ${name}_hold(${name}_held *held, int answer)
{
    if (!held->count)
        held->answer = answer;
    if (answer != held->last)
        held->count = 0;
    held->last = answer;
    if (held->count < ${name}_HOLD)
        held->count++;
    if (held->count == ${name}_HOLD)
        held->answer = answer;
    return held->answer;
}
#endif
