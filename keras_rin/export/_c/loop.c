static inline void $$${name}(${c_type} z[], int n${parameters})
{
    for (int i = 0; i < n; i++)
        z[i] = $$${name}_at(z[i]${arguments});
}
