/* The network of network.h as a module for JavaScript, which writes x, calls
step, and reads y and the hidden states in the module's memory. */
#include "network.h"

#define EXPORT(name) __attribute__((export_name(#name)))

static network_state state;
static float x[network_inputs], y[network_outputs];

EXPORT(x) float *address_of_x(void) { return x; }
EXPORT(y) float *address_of_y(void) { return y; }
EXPORT(states) network_state *address_of_states(void) { return &state; }
EXPORT(units) int number_of_units(void) { return sizeof state / sizeof(float); }
EXPORT(reset) void reset(void) { network_reset(&state); }
EXPORT(step) void step(void) { network_step(&state, x, y); }
