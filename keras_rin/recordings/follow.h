
#ifndef ${name}_EVIDENCE
/* What the sum of another class has to gain for a change of the answer, and
what the largest has to lead by; else the answer is -1, unknown. */
#define ${name}_EVIDENCE $evidence
#define ${name}_LEAD $lead

/* Sums of the outputs: one for each stream, of zeros at first. */
typedef struct {
    int32_t sum[${name}_outputs];
} ${name}_follower;

/* The class of this step, which has the largest sum: none falls behind it by
more than the evidence. */
static inline int ${name}_follow(${name}_follower *follower, const int32_t y[])
{
    int32_t *sum = follower->sum;
    int largest = 0;
    for (int i = 1; i < ${name}_outputs; i++)
        if (sum[i] > sum[largest])
            largest = i;
    const int32_t most = sum[largest], least = most - ${name}_EVIDENCE;
    largest = 0;
    for (int i = 0; i < ${name}_outputs; i++) {
        sum[i] = (sum[i] < least ? least : sum[i]) - most + y[i];
        if (sum[i] > sum[largest])
            largest = i;
    }
    for (int i = 0; i < ${name}_outputs; i++)
        if (i != largest && sum[i] > sum[largest] - ${name}_LEAD)
            return -1;
    return largest;
}
#endif
