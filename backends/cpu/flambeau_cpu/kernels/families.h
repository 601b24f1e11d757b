/* One line for each <family>.c whose kernels Python can find. */
#define FB_FAMILIES \
    X(arithmetic) \
    X(convolution) \
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
    X(unique)
