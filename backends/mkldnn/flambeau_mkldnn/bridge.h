// An operation: a primitive of oneDNN with its tensors, for one number of threads.  It may run in several threads at once.
typedef struct fm_operation fm_operation;

enum fm_kind {
    FM_CONVOLUTION, FM_CONVOLUTION_INPUT, FM_CONVOLUTION_WEIGHT, FM_MATMUL, FM_AVERAGE, FM_AVERAGE_BACKWARD,
    FM_BATCH_NORM_GIVEN, FM_LAYER_NORM, FM_SOFTMAX_BACKWARD, FM_LOG_SOFTMAX_BACKWARD,
};

// What a tensor is to an operation.
enum fm_part {
    FM_SOURCE, FM_WEIGHTS, FM_BIAS, FM_RESULT, FM_MEAN, FM_VARIANCE, FM_SCALE, FM_SHIFT,
    FM_GRAD_SOURCE, FM_GRAD_WEIGHTS, FM_GRAD_RESULT,
};

// How a tensor may be handled, added up.
enum fm_manner {
    FM_ANY = 1,    // oneDNN chooses the layout that it computes in
    FM_WRITTEN = 2,
    FM_KEPT = 4,   // in oneDNN's layout it may be given to fm_run
};

// tensors: how many, then of each: part, manner, dtype (0: float32, 1: bfloat16), dimensions, sizes, strides.
// numbers: what the kind takes; see the kinds in bridge.c.  NULL with a status of oneDNN if there is no such primitive.
fm_operation *fm_new(int kind, const int64_t *tensors, const int64_t *numbers, double epsilon, int threads, int *status);
void fm_free(fm_operation *operation);

// Bytes of working memory that a run needs, and of the FM_KEPT tensor in oneDNN's layout (0 if it is used as it is).
int64_t fm_scratch(const fm_operation *operation);
int64_t fm_kept(const fm_operation *operation);
// A text that tells the kernel chosen and whether layouts are changed.
const char *fm_name(const fm_operation *operation);

// Change the FM_KEPT tensor's layout.  0, or a status of oneDNN.
int fm_keep(const fm_operation *operation, uintptr_t from, uintptr_t to);
// memory: of each tensor, in the order of fm_new; kept: what fm_keep wrote, or NULL.  0, or a status of oneDNN.
int fm_run(const fm_operation *operation, const uintptr_t *memory, uintptr_t kept, uintptr_t scratch);

// A number that tells the contents of memory: any change of one 8-byte word changes it, others but for one in 2**64.
uint64_t fm_fingerprint(uintptr_t memory, int64_t bytes);

void fm_set_threads(int threads);
int fm_get_threads(void);
// Whether this machine computes in bfloat16.
int fm_has_bfloat16(void);
const char *fm_version(void);
