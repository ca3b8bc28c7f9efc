/*
One time step of the Keras model ${model}, in C99 and C++.

Made by keras_rin ${version} with Keras ${keras} on ${backend}.

x[${inputs}]: ${x}.
y[${outputs}]: ${y}. It must not overlap x.
${notes}
Within a namespace of C++, include its headers before the namespace.

Flash: ${flash} bytes for the ${weights} weights, and the code.
RAM: ${ram} bytes for each ${name}_state; ${stack} bytes of stack in a step.

Example:

    #include "${name}.h"
    static ${name}_state state;
    static ${x_type} x[${name}_inputs];
    static ${y_type} y[${name}_outputs];
    ${name}_reset(&state);
    while (read_input(x)) { ${name}_step(&state, x, y); use_output(y); }
*/

#ifndef ${private}_H
#define ${private}_H
${before}
enum { ${name}_inputs = ${inputs}, ${name}_outputs = ${outputs} };

/* The hidden states: one for each stream. */
typedef struct {
${states}
} ${name}_state;

${constants}
${functions}
/* Sets the hidden states to 0, as before the first step of a sequence. */
static inline void ${name}_reset(${name}_state *state)
{
    unsigned char *byte = (unsigned char *)state;
    for (unsigned i = 0; i < sizeof *state; i++)
        byte[i] = 0;
}

/* Reads one time step x, updates the hidden states and writes y. */
static inline void ${name}_step(${name}_state *state, const ${x_type} x[],
        ${y_type} y[])
{
${memory}
${step}
}

${after}
#endif
