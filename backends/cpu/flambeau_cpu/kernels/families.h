/* One line for each <family>.c whose kernels Python can find. */
#define FB_FAMILIES \
    X(activation) \
    X(arithmetic) \
    X(convolution) \
    X(comparison) \
    X(conversion) \
    X(creation) \
    X(extrema) \
    X(indexing) \
    X(joining) \
    X(linalg) \
    X(masking) \
    X(moments) \
    X(pooling) \
    X(random) \
    X(reduction) \
    X(sampling) \
    X(scan) \
    X(sort) \
    X(special) \
    X(ternary) \
    X(unary) \
    X(unique)
