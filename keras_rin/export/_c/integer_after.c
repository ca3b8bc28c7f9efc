/* The index of the largest of the outputs. */
static inline int ${name}_answer(const int32_t y[])
{
    int largest = 0;
    for (int i = 1; i < ${name}_outputs; i++)
        largest = y[i] > y[largest] ? i : largest;
    return largest;
}
