/* The functions of C's math.h that a network with gates calls. */
float expf(float x);
float tanhf(float x);
