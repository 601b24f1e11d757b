/* One line for each <family>.c whose kernels Python can find. */
#define FB_FAMILIES \
    X(arithmetic) \
    X(extrema) \
    X(moments) \
    X(reduction) \
    X(scan) \
    X(sort) \
    X(unique)
