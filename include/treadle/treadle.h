/* treadle's C interface.
 *
 * Handles are opaque. The caller of the function that creates a handle frees it with the function of its type; freeing
 * NULL does nothing. A function that can fail returns a treadle_status*. NULL means success. The caller frees any other
 * status; the outputs are then unchanged. No function throws, prints or aborts. Many threads may use a session at once.
 * One thread at a time may use any other handle, unless a comment says more.
 *
 * A function needs every pointer argument, with these exceptions: its comment says what NULL means; the argument is an
 * array whose count is 0; the argument is `options` that the function only reads, and NULL means the defaults; the
 * argument is a callback, and NULL means none; the argument is the `context` of a callback. When a needed argument is
 * NULL, a function that returns a status fails with TREADLE_INVALID_ARGUMENT and names the argument; any other function
 * does nothing, or returns 0, false, NULL or an empty text.
 *
 * A text that is returned as `const char*` belongs to the handle that it comes from. A `char*` belongs to the caller,
 * and the caller frees it with treadle_free(). All texts are UTF-8 and end with a zero byte.
 *
 * When memory runs out, a function fails with TREADLE_LIMIT, or returns NULL in place of a `char*`. The handles that it
 * was called with are unchanged and stay usable (docs/memory.md).
 */
#ifndef TREADLE_TREADLE_H_
#define TREADLE_TREADLE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define TREADLE_API __declspec(dllexport)
#else
#define TREADLE_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct treadle_status treadle_status;
typedef struct treadle_type treadle_type;
typedef struct treadle_value treadle_value;
typedef struct treadle_session treadle_session;
typedef struct treadle_options treadle_options;
typedef struct treadle_run_options treadle_run_options;
typedef struct treadle_stream treadle_stream;
typedef struct treadle_stream_options treadle_stream_options;
typedef struct treadle_pool treadle_pool;
typedef struct treadle_operator treadle_operator;
typedef struct treadle_node treadle_node;
typedef struct treadle_attribute treadle_attribute;
typedef struct treadle_inference treadle_inference;
typedef struct treadle_call treadle_call;

/* Characters that need not end with a zero byte. */
typedef struct treadle_text {
  const char* data;
  size_t size;
} treadle_text;

TREADLE_API const char* treadle_version(void);
TREADLE_API void treadle_free(void* memory);
/* Seeds random operators that have no seed attribute. Their numbers then also depend on the order in which they run.
 * Without a call, each process draws different numbers. */
TREADLE_API void treadle_set_seed(uint64_t seed);

/* ---- Status */

typedef enum treadle_code {
  TREADLE_OK = 0,
  TREADLE_INVALID_ARGUMENT = 1, /* an input, name or option given by the caller does not fit */
  TREADLE_INVALID_MODEL = 2,    /* the model breaks a rule of the specification */
  TREADLE_INVALID_FILE = 3,     /* the bytes are not a model, or a file has changed while it was open */
  TREADLE_NO_SUCH_FILE = 4,
  TREADLE_NOT_IMPLEMENTED = 5, /* an operator, version or type that treadle does not run */
  TREADLE_RUNTIME = 6,         /* data made an operator fail: index out of range, division by zero */
  TREADLE_LIMIT = 7,           /* a limit set by the caller, or one of the library's own, was reached */
  TREADLE_CANCELLED = 8,
  TREADLE_INTERNAL = 9,
  TREADLE_BUSY = 10 /* a stream that another thread is using */
} treadle_code;

TREADLE_API treadle_code treadle_status_code(const treadle_status* status); /* NULL: TREADLE_OK */
TREADLE_API const char* treadle_status_message(const treadle_status* status);
/* The place of the error: file, path through the bodies, iteration, operator. Empty if there is no place. */
TREADLE_API const char* treadle_status_place(const treadle_status* status);
TREADLE_API const char* treadle_status_text(const treadle_status* status); /* "<place>: <message>" */
TREADLE_API void treadle_status_free(treadle_status* status);
/* A status for functions of your own operators to return. Never NULL. TREADLE_OK counts as TREADLE_INTERNAL,
 * `message` NULL as "". */
TREADLE_API treadle_status* treadle_status_create(treadle_code code, const char* message);
TREADLE_API const char* treadle_code_name(treadle_code code);

/* ---- Types */

/* Element types are the numbers of ONNX's TensorProto.DataType: 1 is float, 7 is int64, ... In memory, 2-, 4- and 6-bit
 * elements take one byte each, signed ones with their sign extended. */
TREADLE_API const char* treadle_element_name(int element); /* "float"; NULL: no such type */
TREADLE_API size_t treadle_element_width(int element);     /* bytes in memory; 0 for strings */

typedef enum treadle_kind {
  TREADLE_NONE = 0, /* of a value: absent; of a type: unknown */
  TREADLE_TENSOR = 1,
  TREADLE_SEQUENCE = 2,
  TREADLE_OPTIONAL = 3,
  TREADLE_MAP = 4,
  TREADLE_SPARSE_TENSOR = 5 /* only of types */
} treadle_kind;

TREADLE_API treadle_kind treadle_type_kind(const treadle_type* type);
TREADLE_API int treadle_type_element(const treadle_type* type);  /* of a tensor, or of a map's keys; else 0 */
TREADLE_API int64_t treadle_type_rank(const treadle_type* type); /* -1: unknown */
TREADLE_API int64_t treadle_type_dim(const treadle_type* type, int64_t axis); /* -1: no known number */
/* The name or expression of a symbolic size, NULL if the size is a number or unknown. */
TREADLE_API char* treadle_type_symbol(const treadle_type* type, int64_t axis);
/* The element type of a sequence or optional, the value type of a map; NULL for other types. */
TREADLE_API const treadle_type* treadle_type_child(const treadle_type* type);
TREADLE_API char* treadle_type_name(const treadle_type* type); /* "seq(tensor(float))" */
TREADLE_API char* treadle_type_text(const treadle_type* type); /* with sizes: "tensor(float)[N,3]" */

/* ---- Values: tensors, sequences, optionals, maps. A handle refers to contents that several handles may share. */

TREADLE_API treadle_kind treadle_value_kind(const treadle_value* value);
TREADLE_API char* treadle_value_type_text(const treadle_value* value);
TREADLE_API treadle_status* treadle_value_copy(const treadle_value* value, treadle_value** copy); /* shares contents */
TREADLE_API treadle_status* treadle_value_clone(const treadle_value* value, treadle_value** clone); /* copies tensors */
TREADLE_API void treadle_value_free(treadle_value* value);

/* Tensors are contiguous and row-major. Memory is uninitialised; strings are empty. */
TREADLE_API treadle_status* treadle_tensor_create(int element, const int64_t* dims, size_t rank, treadle_value** out);
/* A tensor on memory of the caller, which must be aligned for its elements. When the last reference is gone,
 * `release(context)` is called, from any thread. It is not called if this function fails. `release` may be NULL. */
TREADLE_API treadle_status* treadle_tensor_borrow(int element, const int64_t* dims, size_t rank, void* data,
                                                  size_t bytes, bool writable, void (*release)(void* context),
                                                  void* context, treadle_value** out);
TREADLE_API treadle_status* treadle_tensor_from_texts(const int64_t* dims, size_t rank, const treadle_text* texts,
                                                      size_t count, treadle_value** out);

/* These return 0 or NULL for a value that is not a tensor. */
TREADLE_API int treadle_tensor_element(const treadle_value* tensor);
TREADLE_API size_t treadle_tensor_rank(const treadle_value* tensor);
TREADLE_API const int64_t* treadle_tensor_dims(const treadle_value* tensor);
TREADLE_API int64_t treadle_tensor_count(const treadle_value* tensor);
TREADLE_API size_t treadle_tensor_bytes(const treadle_value* tensor);
TREADLE_API const void* treadle_tensor_data(const treadle_value* tensor);
/* NULL also if the memory must not be written. Every handle that shares the memory sees the new contents. */
TREADLE_API void* treadle_tensor_mutable_data(treadle_value* tensor);
/* Whether no other handle, constant or input shares the memory, and it may be written. */
TREADLE_API bool treadle_tensor_is_exclusive(const treadle_value* tensor);
/* All elements of a tensor of numbers (not complex), converted. `out` needs room for treadle_tensor_count()
 * elements. */
TREADLE_API treadle_status* treadle_tensor_to_doubles(const treadle_value* tensor, double* out);
TREADLE_API treadle_text treadle_tensor_text(const treadle_value* tensor, int64_t index);

/* `element` is needed if there are no values. The handles stay the caller's; contents are shared. */
TREADLE_API treadle_status* treadle_sequence_create(const treadle_type* element, const treadle_value* const* values,
                                                    size_t count, treadle_value** out);
TREADLE_API size_t treadle_sequence_size(const treadle_value* sequence);
TREADLE_API treadle_status* treadle_sequence_at(const treadle_value* sequence, size_t index, treadle_value** out);

/* `value` NULL: an empty optional, for which `element` is needed. */
TREADLE_API treadle_status* treadle_optional_create(const treadle_type* element, const treadle_value* value,
                                                    treadle_value** out);
TREADLE_API bool treadle_optional_has_value(const treadle_value* optional);
TREADLE_API treadle_status* treadle_optional_get(const treadle_value* optional, treadle_value** out);

/* Keys (int64 or string) and values are 1-D tensors of equal length. */
TREADLE_API treadle_status* treadle_map_create(const treadle_value* keys, const treadle_value* values,
                                               treadle_value** out);
TREADLE_API treadle_status* treadle_map_keys(const treadle_value* map, treadle_value** out);
TREADLE_API treadle_status* treadle_map_values(const treadle_value* map, treadle_value** out);
/* Converts a sequence of maps with the same keys and numbers of one type (the output of ZipMap) to keys [K] and
 * values [N,K]. Both are NULL for any other value. */
TREADLE_API treadle_status* treadle_sequence_table(const treadle_value* sequence, treadle_value** keys,
                                                   treadle_value** values);

/* Values as protobuf: TensorProto, SequenceProto, OptionalProto or MapProto, according to `type` (NULL: a tensor).
 * `name` NULL: "". */
TREADLE_API treadle_status* treadle_value_from_pb(const void* bytes, size_t size, const treadle_type* type,
                                                  treadle_value** out);
TREADLE_API treadle_status* treadle_value_from_pb_file(const char* path, const treadle_type* type, treadle_value** out);
TREADLE_API treadle_status* treadle_value_to_pb(const treadle_value* value, const char* name, char** bytes,
                                                size_t* size);

/* ---- Options of a session */

TREADLE_API treadle_status* treadle_options_create(treadle_options** out);
TREADLE_API void treadle_options_free(treadle_options* options);
/* Keys: the options, with the values that each takes.
 *
 * "tier": program; or reference: the reference interpreter, node by node with baseline kernels. "threads": 0 means as
 * many as CPUs that the process may use. "optimize": 0, 1. "associative_math": 0; 1 allows another order of float sums
 * over time, so that linear recurrences run in blocks of steps.
 *
 * "weights": f32; f16 rounds the weights of RNN, LSTM, GRU and of products in loops to float16. "weight_files": map
 * reads weights in the model's files, which must not change while the session lives; copy copies them into memory when
 * the session is opened.
 *
 * "denormals": keep; flush: arithmetic of runs takes numbers nearer to 0 than any normal one for 0, in operands and
 * results, on every thread that computes; the mode of the calling thread is the same afterwards. keep leaves that mode
 * alone. Errors: TREADLE_NOT_IMPLEMENTED for flush on a processor other than x86-64 and 64-bit ARM.
 *
 * "jit": off, auto, always: when loops become native code; required: as always, and a loop that cannot be native code
 * is an error. "jit_iteration": no native code before this iteration. "jit_cache": a folder for native code that later
 * processes use; off; empty: TREADLE_JIT_CACHE, else the user's cache folder. "jit_cache_bytes": limit of that folder;
 * the least recently used files are deleted.
 *
 * "load_time_limit": seconds that loading may take, and each planning later on; 0: no limit. "load_memory_limit": the
 * same in bytes. "bounded_load": 1 (the default) bounds the folding of constants by the size of the model; 0: no bound.
 *
 * "loop_condition": ignored, obeyed: whether the body of a Loop without cond ends the Loop. By the specification the
 * condition is ignored; onnxruntime obeys it. "passes_off": names of rewrites to leave out, separated by commas; the
 * default is TREADLE_PASSES_OFF. "dump": a rewrite's name, or changes, for
 * treadle_session_dump_graph. */
TREADLE_API treadle_status* treadle_options_set(treadle_options* options, const char* key, const char* value);
/* Sets "load_time_limit" and "load_memory_limit". Zero or less: no limit. */
TREADLE_API void treadle_options_limit_load_time(treadle_options* options, double seconds);
TREADLE_API void treadle_options_limit_load_memory(treadle_options* options, size_t bytes);
/* True stops the opening of sessions with these options, and refuses later ones, until it is set to false. May be
 * called from any thread. */
TREADLE_API void treadle_options_cancel_load(treadle_options* options, bool cancel);
/* `interrupted` is called about every 5 ms on the thread that opens a session, or plans for it later. Returning true
 * stops that work. `context` must stay valid as long as there are sessions that were opened with these options. */
TREADLE_API void treadle_options_set_interrupt(treadle_options* options, bool (*interrupted)(void* context),
                                               void* context);
/* Fixes a symbolic size of the inputs. */
TREADLE_API treadle_status* treadle_options_set_dimension(treadle_options* options, const char* name, int64_t size);
/* The same for sizes with a denotation of the specification ("DATA_BATCH"), in any case of letters. */
TREADLE_API treadle_status* treadle_options_set_denoted_dimension(treadle_options* options, const char* denotation,
                                                                  int64_t size);

/* Replaces the contents of an initializer of the model by a tensor of the same type and sizes. The session copies
 * it; sessions with equal contents share one copy. */
TREADLE_API treadle_status* treadle_options_set_initializer(treadle_options* options, const char* name,
                                                            const treadle_value* tensor);
/* Bytes in place of a file of external data, by the file's name in the model. They must stay valid until the session
 * is open; the session copies them. */
TREADLE_API treadle_status* treadle_options_set_external_file(treadle_options* options, const char* location,
                                                              const void* bytes, size_t size);

/* ---- Sessions */

TREADLE_API treadle_status* treadle_session_open(const char* path, const treadle_options* options,
                                                 treadle_session** out);
/* `folder`: the folder of external data; NULL refuses external data. The bytes are copied. */
TREADLE_API treadle_status* treadle_session_from_bytes(const void* bytes, size_t size, const char* folder,
                                                       const treadle_options* options, treadle_session** out);
TREADLE_API void treadle_session_free(treadle_session* session);
/* Sets the option "threads" of a session that has not run yet, for a caller that learns the number after opening it. */
TREADLE_API void treadle_session_set_threads(treadle_session* session, int threads);
/* Options without effect on this model, each as a sentence; NULL past the last. */
TREADLE_API const char* treadle_session_remark(const treadle_session* session, size_t index);
/* Rules that the model breaks or leaves open, each as a sentence; NULL past the last. The model runs nevertheless. */
TREADLE_API const char* treadle_session_warning(const treadle_session* session, size_t index);

typedef enum treadle_role {
  TREADLE_INPUT = 0,
  TREADLE_OUTPUT = 1,
  TREADLE_OVERRIDABLE = 2 /* initialisers that a caller may replace */
} treadle_role;

TREADLE_API size_t treadle_session_count(const treadle_session* session, treadle_role role);
TREADLE_API const char* treadle_session_name(const treadle_session* session, treadle_role role, size_t index);
TREADLE_API const treadle_type* treadle_session_type(const treadle_session* session, treadle_role role, size_t index);

/* Texts about the model: "producer_name", "producer_version", "domain", "description", "graph_name",
 * "graph_description", "ir_version", "model_version"; NULL for any other field. */
TREADLE_API char* treadle_session_metadata(const treadle_session* session, const char* field);
TREADLE_API size_t treadle_session_property_count(const treadle_session* session);
TREADLE_API const char* treadle_session_property_key(const treadle_session* session, size_t index);
TREADLE_API const char* treadle_session_property_value(const treadle_session* session, size_t index);
TREADLE_API size_t treadle_session_opset_count(const treadle_session* session);
TREADLE_API const char* treadle_session_opset_domain(const treadle_session* session, size_t index);
TREADLE_API int64_t treadle_session_opset_version(const treadle_session* session, size_t index);

typedef struct treadle_counters {
  int64_t plans;
  int64_t runs;
  int64_t allocations_last_run; /* by the engine, without outputs */
  int64_t peak_bytes_last_run;  /* the arena, and the peak of tensors of run-time size */
  int64_t compilations;         /* loops that have become native code */
  int64_t cache_loads;          /* compiled loops whose code came from the cache */
} treadle_counters;
/* Writes the first `bytes` of the counters. Later versions may have more counters at the end; counters that the
 * library does not have become 0. */
TREADLE_API void treadle_session_read_counters(const treadle_session* session, treadle_counters* out, size_t bytes);
static inline treadle_counters treadle_session_counters(const treadle_session* session) {
  treadle_counters counters;
  treadle_session_read_counters(session, &counters, sizeof counters);
  return counters;
}
/* Blocks until the compile queue is empty. */
TREADLE_API void treadle_session_wait_compiled(const treadle_session* session);

/* Compiles all loops of the plans made so far, before it returns. Does nothing if "jit" is off. */
TREADLE_API void treadle_session_compile(const treadle_session* session);

/* A report on the loops: how each was rewritten, how it runs, what keeps it from running faster, and the time of an
 * iteration. It is about the plan for these inputs, which is run a few times to measure. Without inputs it is about
 * the newest plan or, before the first run, about a plan for the input types that the model declares. As text, or as
 * JSON. */
TREADLE_API treadle_status* treadle_session_explain(const treadle_session* session, const char* const* names,
                                                    const treadle_value* const* values, size_t count, bool json,
                                                    char** text);
#define TREADLE_EXPLAIN_ALL 1   /* list all rewrites, and every list in full */
#define TREADLE_EXPLAIN_ASCII 2 /* no character beyond ASCII, names of the model aside */
/* The text of treadle_session_explain in lines of at most `width` columns. `flags`: TREADLE_EXPLAIN_*. */
TREADLE_API treadle_status* treadle_session_explain_text(const treadle_session* session, const char* const* names,
                                                         const treadle_value* const* values, size_t count,
                                                         unsigned flags, size_t width, char** text);

/* Whether runs with inputs of these sizes keep real time, as treadle_stream_is_realtime says it of pushes. */
TREADLE_API bool treadle_session_is_realtime(const treadle_session* session, const char* const* names,
                                             const treadle_value* const* values, size_t count, char** why);

/* The serialised model after the rewrites of loading: functions inlined, constants folded. */
TREADLE_API treadle_status* treadle_session_optimized_model(const treadle_session* session, char** bytes, size_t* size);

/* The model as C: one source file and its header, which need no runtime. Sizes are fixed. `options`: texts
 *   "prefix=NAME"    begins all names that the header declares ("model")
 *   "dim=NAME=SIZE"  an open size, by the model's name for it or as input:axis
 *   "fma=0"          for processors without fused multiply-add; results equal those of kernels without it
 *   "libm=1"         operations for which the engine has no formula may call <math.h>
 *   "weights=FILE"   writes constants of 64 bytes and more to this file: the C takes its contents as an argument
 * `names` and `values`: inputs that always have these values, and are no inputs of the C. `source` includes
 * "<prefix>.h". Errors: TREADLE_NOT_IMPLEMENTED names every node that cannot be written, and why. */
TREADLE_API treadle_status* treadle_session_write_c(const treadle_session* session, const char* const* options,
                                                    size_t option_count, const char* const* names,
                                                    const treadle_value* const* values, size_t count, char** source,
                                                    char** header);

/* The names of rewrites, in the order in which they run; NULL past the last. */
TREADLE_API const char* treadle_pass_name(size_t index);
/* For people. The graph after the rewrites of loading or, with the option "dump", behind that rewrite in the last
 * planning; where that option is "changes", a line for each rewrite that has run: its name, whether it changed the
 * graph, and its time. And the program that is planned for these inputs. */
TREADLE_API treadle_status* treadle_session_dump_graph(const treadle_session* session, char** text);
TREADLE_API treadle_status* treadle_session_dump_plan(const treadle_session* session, const char* const* names,
                                                      const treadle_value* const* values, size_t count, char** text);

/* ---- Runs */

TREADLE_API treadle_status* treadle_run_options_create(treadle_run_options** out);
TREADLE_API void treadle_run_options_free(treadle_run_options* options);
/* Zero or less: no limit. */
TREADLE_API void treadle_run_options_limit_time(treadle_run_options* options, double seconds);
TREADLE_API void treadle_run_options_limit_iterations(treadle_run_options* options, int64_t iterations);
TREADLE_API void treadle_run_options_limit_memory(treadle_run_options* options, size_t bytes);
/* True stops runs with these options, and refuses later ones, until it is set to false. May be called from any
 * thread. */
TREADLE_API void treadle_run_options_cancel(treadle_run_options* options, bool cancel);
TREADLE_API bool treadle_run_options_is_cancelled(const treadle_run_options* options);
/* `interrupted` is called about every 5 ms on the thread that runs. Returning true cancels the run. */
TREADLE_API void treadle_run_options_set_interrupt(treadle_run_options* options, bool (*interrupted)(void* context),
                                                   void* context);

/* Progress of a run, in iterations of its outermost loops; inner loops, and nodes outside of loops, do not count. If
 * a stream's push or flush makes several runs, progress counts runs. Later versions add members at the end. */
typedef struct treadle_progress {
  int64_t done;
  int64_t total; /* -1: unknown, as for loops that end by a condition */
} treadle_progress;
/* `progress` is called about every 50 ms on the thread that runs, and once when a run has succeeded, with done equal
 * to total. Returning true cancels the run. */
TREADLE_API void treadle_run_options_set_progress(treadle_run_options* options,
                                                  bool (*progress)(void* context, const treadle_progress* progress),
                                                  void* context);

/* `begins` is called, possibly more than once, on the thread that runs, before a run plans, waits for another
 * thread, or is expected to take more than some 10 us. It is for callers that hold a lock and release it for long
 * work only. */
TREADLE_API void treadle_run_options_set_long_work(treadle_run_options* options, void (*begins)(void* context),
                                                   void* context);

/* Makes runs with these options, one at a time, count the iterations of each loop. The reference interpreter does
 * not count. */
TREADLE_API void treadle_run_options_count_iterations(treadle_run_options* options, bool count);
/* The counts of the last such run, also if the run has failed: a line for each loop, empty without loops; or JSON. */
TREADLE_API char* treadle_run_options_iterations(const treadle_run_options* options, bool json);

/* Runs the model. `names` and `values` are parallel; a value of NULL or TREADLE_NONE stands for an empty optional.
 * `output_names` NULL: all outputs. `outputs[i]`: NULL gets a new handle. If a handle holds a tensor of the right
 * type and sizes, the tensor is overwritten in place; other contents are replaced. On failure, handles that were
 * NULL stay NULL. */
TREADLE_API treadle_status* treadle_session_run(const treadle_session* session, const treadle_run_options* options,
                                                const char* const* names, const treadle_value* const* values,
                                                size_t count, const char* const* output_names, size_t output_count,
                                                treadle_value** outputs);

/* Binds the arguments of treadle_session_run for treadle_bound_run: runs read what the inputs hold at that time, and
 * write results into the handles of `outputs`. Handles have to live until treadle_bound_free, and so have `options`
 * (may be NULL). `outputs`: NULL gets a new handle, which is the caller's; a handle without a tensor of the type and
 * sizes that the model gives gets one, and its memory stays from run to run. No output may have memory of an input.
 * What the inputs hold is run meanwhile. Errors: as of a run. */
typedef struct treadle_bound treadle_bound;
TREADLE_API treadle_status* treadle_session_bind(const treadle_session* session, const treadle_run_options* options,
                                                 const char* const* names, const treadle_value* const* values,
                                                 size_t count, const char* const* output_names, size_t output_count,
                                                 treadle_value** outputs, treadle_bound** out);
/* A run with the bound arguments: results of treadle_session_run to the last bit, in the time that the arithmetic takes
 * and some 0.1 us. It keeps real time where runs do. It is an ordinary run in every way where a handle has other sizes
 * than at binding, or shares its memory with another handle, and always where treadle_bound_why says so. It does not
 * look whether the model's files have changed. Errors: as of a run; TREADLE_BUSY if another thread is running it. */
TREADLE_API treadle_status* treadle_bound_run(treadle_bound* bound);
/* Why runs take as long as those of treadle_session_run: sizes depend on data, say. "" if they do not. */
TREADLE_API const char* treadle_bound_why(const treadle_bound* bound);
TREADLE_API void treadle_bound_free(treadle_bound* bound);

/* ---- Profiles. The model is run once to warm up, then `runs` times instruction by instruction. Results are the
 * same, and these runs are slower than others. A node was interrupted in a run if it took more than twice its
 * fastest time plus half a millisecond; mostly another process had the processor. The table has each node's median
 * over the runs in which the node was not interrupted. The trace shows one run: among the runs without
 * interruptions, the one of median time. */

typedef struct treadle_profile treadle_profile;
TREADLE_API treadle_status* treadle_session_profile(const treadle_session* session, const treadle_run_options* options,
                                                    const char* const* names, const treadle_value* const* values,
                                                    size_t count, size_t runs, treadle_profile** out);
TREADLE_API void treadle_profile_free(treadle_profile* profile);
TREADLE_API char* treadle_profile_text(const treadle_profile* profile); /* a table by node */
/* The same in lines of at most `width` columns. `flags`: TREADLE_EXPLAIN_ASCII, or 0. */
TREADLE_API char* treadle_profile_table(const treadle_profile* profile, unsigned flags, size_t width);
TREADLE_API char* treadle_profile_json(const treadle_profile* profile); /* the same */
TREADLE_API char* treadle_profile_trace(
    const treadle_profile* profile); /* every node of every iteration: Chrome's format */

/* As treadle_session_run, and makes a profile of this run. The reference interpreter records nothing; its profile is
 * NULL. */
TREADLE_API treadle_status* treadle_session_run_recorded(const treadle_session* session,
                                                         const treadle_run_options* options, const char* const* names,
                                                         const treadle_value* const* values, size_t count,
                                                         const char* const* output_names, size_t output_count,
                                                         treadle_value** outputs, treadle_profile** profile);
/* A JSON array of the nodes that ran, as onnxruntime's profiler writes them. Times are microseconds since `origin_ns`
 * of the steady clock (CLOCK_MONOTONIC). */
TREADLE_API char* treadle_profile_kernels(const treadle_profile* profile, int64_t origin_ns);

/* ---- Traces: a run that is looked into. The model runs as it is written, without rewrites and native code, so results
 * may differ in the last digits from those of treadle_session_run, and the run is slower. The first trace of a session
 * loads the model a second time. Custom operators run as in any run. */

typedef struct treadle_trace_options treadle_trace_options;
TREADLE_API treadle_status* treadle_trace_options_create(treadle_trace_options** out);
TREADLE_API void treadle_trace_options_free(treadle_trace_options* options);
/* Watches a value of the model; may be called again. `values`: its path ("q", "/Scan_1:body/q"), its name in any body,
 * or a pattern of paths with "*". Behind it may stand "@" and iterations of the loops around the value: "@7",
 * "@0-9,20", "@::10" (every tenth), "@2/0-9" (outer loop first). Without any call all values are watched. */
TREADLE_API treadle_status* treadle_trace_options_watch(treadle_trace_options* options, const char* values);
/* Looks at every `every`th iteration of the innermost loop around a value only. */
TREADLE_API void treadle_trace_options_every(treadle_trace_options* options, int64_t every);
/* Whether to keep statistics of watched values (the default). */
TREADLE_API void treadle_trace_options_statistics(treadle_trace_options* options, bool statistics);
/* Finds where such numbers come from: "nan", "inf", "over=LIMIT", "denormal", "zero", or several with commas between
 * them. */
TREADLE_API treadle_status* treadle_trace_options_find(treadle_trace_options* options, const char* what);
/* Writes the node that made the first of them as a model of its own: `folder`/model.onnx, and its inputs and outputs in
 * `folder`/test_data_set_0, which `treadle test` repeats. The model is run a second time, up to that node. Model and
 * inputs may take 256 MB together. Text and JSON of the trace say what was saved, or why nothing was. */
TREADLE_API treadle_status* treadle_trace_options_save(treadle_trace_options* options, const char* folder);
/* Bytes of statistics; the default is 64 MB. A trace that is known to take more is refused before it runs. One that
 * turns out to take more, since only the run knows how many iterations it has, keeps fewer iterations
 * (treadle_trace_every). */
TREADLE_API void treadle_trace_options_limit_memory(treadle_trace_options* options, size_t bytes);

typedef struct treadle_seen {
  const char* name;          /* the path of the value */
  const int64_t* iterations; /* of the loops around it, the outermost first; -1: the same in all iterations */
  size_t depth;              /* the number of these loops */
  const treadle_value* value;
} treadle_seen;
/* `seen` is called with the contents of watched values, on the thread that runs. All that `seen` points to is valid
 * during the call. Returning true cancels the run. */
TREADLE_API void treadle_trace_options_set_listener(treadle_trace_options* options,
                                                    bool (*seen)(void* context, const treadle_seen* seen),
                                                    void* context);

typedef struct treadle_trace treadle_trace;
/* Runs the model as treadle_session_run does. `outputs`: one for each output of the session, or NULL. If the run fails,
 * `out` gets what was seen before; for errors before the run it is NULL. */
TREADLE_API treadle_status* treadle_session_trace(const treadle_session* session, const treadle_run_options* run,
                                                  const treadle_trace_options* options, const char* const* names,
                                                  const treadle_value* const* values, size_t count,
                                                  treadle_value** outputs, treadle_trace** out);
TREADLE_API void treadle_trace_free(treadle_trace* trace);
TREADLE_API size_t treadle_trace_count(const treadle_trace* trace); /* watched values */
TREADLE_API const char* treadle_trace_name(const treadle_trace* trace, size_t value);
/* Why there is nothing of the value; "" if there is. */
TREADLE_API const char* treadle_trace_missing(const treadle_trace* trace, size_t value);
TREADLE_API size_t treadle_trace_depth(const treadle_trace* trace, size_t value); /* loops around the value */
TREADLE_API size_t treadle_trace_samples(const treadle_trace* trace, size_t value);
/* Rows of `depth` numbers, one for each sample, as in treadle_seen. Valid as long as the trace. */
TREADLE_API const int64_t* treadle_trace_iterations(const treadle_trace* trace, size_t value);
typedef enum treadle_statistic {
  TREADLE_MINIMUM, /* of the numbers, infinities included; NaN if there are none */
  TREADLE_MAXIMUM,
  TREADLE_MEAN, /* of finite numbers */
  TREADLE_NORM, /* the root of the sum of their squares */
  TREADLE_NAN,  /* counts of elements */
  TREADLE_INF,
  TREADLE_ZERO
} treadle_statistic;
/* A number for each sample. */
TREADLE_API treadle_status* treadle_trace_column(const treadle_trace* trace, size_t value, treadle_statistic which,
                                                 double* out);
/* Samples are of every so many iterations: more than was asked for if they did not fit. */
TREADLE_API int64_t treadle_trace_every(const treadle_trace* trace);
/* How many places made what was to be found; the places that reached an output come first in text and JSON. */
TREADLE_API size_t treadle_trace_found(const treadle_trace* trace);
TREADLE_API char* treadle_trace_found_json(const treadle_trace* trace); /* null if nothing was to be found */
TREADLE_API char* treadle_trace_text(const treadle_trace* trace);
TREADLE_API char* treadle_trace_json(const treadle_trace* trace);

/* ---- Streams: a session that runs over a signal in pieces, and carries state from run to run. An input is a state,
 * cut along time, bound, or given with each push. An output is joined along its time axis if it has one, else
 * stacked along a new first axis. If sizes differ between runs, it is a sequence with one value per run. */

TREADLE_API treadle_status* treadle_stream_options_create(treadle_stream_options** out);
TREADLE_API void treadle_stream_options_free(treadle_stream_options* options);
/* The value of `output` becomes that of `input` in the next run. Other pairs are found by name and type, unless that
 * is turned off. */
TREADLE_API treadle_status* treadle_stream_options_pair(treadle_stream_options* options, const char* input,
                                                        const char* output);
TREADLE_API void treadle_stream_options_find_pairs(treadle_stream_options* options, bool find);
/* The first value of a state; the default is zeros. */
TREADLE_API treadle_status* treadle_stream_options_initial(treadle_stream_options* options, const char* input,
                                                           const treadle_value* value);
/* An input that is the same in every run. */
TREADLE_API treadle_status* treadle_stream_options_bind(treadle_stream_options* options, const char* input,
                                                        const treadle_value* value);
/* The time axis of an input, which is cut into chunks, or of an output, which is joined from chunks. */
TREADLE_API treadle_status* treadle_stream_options_time(treadle_stream_options* options, const char* name,
                                                        int64_t axis);
/* The same, as the axis whose size has this name in the model. */
TREADLE_API treadle_status* treadle_stream_options_time_symbol(treadle_stream_options* options, const char* name,
                                                               const char* symbol);
/* One run per `hop` samples, over [context + hop] samples. A hop of 0 means one run per push. With timed inputs and
 * a hop of 0, the model's own state along time is found and carried, so that all pushes and a flush together give
 * the result of one run over the whole signal. */
TREADLE_API void treadle_stream_options_hop(treadle_stream_options* options, int64_t hop, int64_t context);

TREADLE_API treadle_status* treadle_stream_create(treadle_session* session, const treadle_stream_options* options,
                                                  treadle_stream** out);
TREADLE_API void treadle_stream_free(treadle_stream* stream);
/* Outputs that are not states. */
TREADLE_API size_t treadle_stream_output_count(const treadle_stream* stream);
TREADLE_API const char* treadle_stream_output_name(const treadle_stream* stream, size_t index);
/* The axis along which the results of pushes are joined to the result of one push. -1: they are not; each push gives
 * the newest value. */
TREADLE_API int64_t treadle_stream_output_axis(const treadle_stream* stream, size_t index);
/* Plans pushes of these numbers of samples (none: of one hop) and compiles their loops, so that no push has to. The
 * stream does not change. Inputs that come with each push are taken to be zeros. */
TREADLE_API treadle_status* treadle_stream_warm(treadle_stream* stream, const int64_t* sizes, size_t count);
/* Whether pushes of `samples` samples (0: one hop) keep real time: with outputs handed in, a push like earlier ones
 * asks for no memory, takes no lock and makes no system call. If not, `*why` (`why` may be NULL) is the reason, with
 * the first node that breaks the promise, for the caller to free with treadle_free; else NULL. Plans pushes of this
 * size, and compiles nothing: warm the stream first. */
TREADLE_API bool treadle_stream_is_realtime(const treadle_stream* stream, int64_t samples, char** why);
/* The stream as C: a structure that is carried from push to push, and functions that begin it, push samples and take
 * the end of the signal. `options`: those of treadle_session_write_c, and
 *   "samples=N"  samples of each push; without, one hop
 *   "end=0"      leaves out the function for the end of the signal
 * Bound inputs and first values of states are those of the stream; what it carries now does not count. Errors: as of
 * treadle_session_write_c; TREADLE_INVALID_ARGUMENT for a number of samples that is no multiple of the hop. */
TREADLE_API treadle_status* treadle_stream_write_c(const treadle_stream* stream, const char* const* options,
                                                   size_t option_count, char** source, char** header);
/* `outputs`: one per output of the stream, as for treadle_session_run: NULL gets a new handle, and a tensor of the
 * right type and sizes is overwritten in place. `hops` (may be NULL): how many runs were made. If a push fails, the
 * stream does not change.
 *
 * After warm-up, a push of a size seen before, with the same outputs handed in, allocates nothing, takes no lock and
 * makes no system call. It needs a session with one thread, and a model whose sizes do not depend on data. If the
 * number of runs per push alternates between n and n + 1, there must have been a push of each kind. If another
 * thread is inside a function on the same stream, a call returns TREADLE_BUSY and changes nothing. */
TREADLE_API treadle_status* treadle_stream_push(treadle_stream* stream, const treadle_run_options* options,
                                                const char* const* names, const treadle_value* const* values,
                                                size_t count, treadle_value** outputs, size_t* hops);
/* Binds the arguments of treadle_stream_push for treadle_stream_step: steps push what the inputs hold at that time, and
 * write results into the handles of `outputs`. Handles have to live, in place, until treadle_stream_unbind, another
 * binding or the end of the stream, and so have `options` (may be NULL). `outputs`: NULL gets a new handle, which is
 * the caller's. A handle without a tensor of the type and sizes that a push has once the stream has settled gets one,
 * and its memory stays from step to step. No output may have memory of an input. What the inputs hold is pushed to a
 * copy of the stream meanwhile, which plans and compiles what steps need. A fork is not bound. Errors: as of a push;
 * then what was bound before stays bound. */
TREADLE_API treadle_status* treadle_stream_bind(treadle_stream* stream, const treadle_run_options* options,
                                                const char* const* names, const treadle_value* const* values,
                                                size_t count, treadle_value** outputs);
/* A push with the bound arguments, with the same results to the last bit and the same promise of real time, in the time
 * that its arithmetic takes and some 0.1 us. A step is an ordinary push in every way where the stream or a handle is
 * not as a step leaves it: the first one after a push of another size, a reset or a load, or while the stream begins;
 * and always where sizes depend on data, where inputs decide them or a branch, or where the samples of a step are no
 * whole number of hops. The text of the stream says which. Steps do not look whether the model's files have changed.
 * Errors: as of a push; TREADLE_INVALID_ARGUMENT if nothing is bound. */
TREADLE_API treadle_status* treadle_stream_step(treadle_stream* stream);
TREADLE_API treadle_status* treadle_stream_unbind(treadle_stream* stream);
/* Pads waiting samples with zeros to a whole hop and runs it. Without a hop, returns the frames at the end of the
 * signal; the stream can then only be reset. `names`: inputs that are neither cut, bound nor states. */
TREADLE_API treadle_status* treadle_stream_flush(treadle_stream* stream, const treadle_run_options* options,
                                                 const char* const* names, const treadle_value* const* values,
                                                 size_t count, treadle_value** outputs, size_t* hops);
TREADLE_API size_t treadle_stream_state_count(const treadle_stream* stream);
TREADLE_API const char* treadle_stream_state_name(const treadle_stream* stream, size_t index);
TREADLE_API treadle_status* treadle_stream_state_get(const treadle_stream* stream, size_t index, treadle_value** out);
TREADLE_API treadle_status* treadle_stream_state_set(treadle_stream* stream, const char* input,
                                                     const treadle_value* value);
TREADLE_API int64_t treadle_stream_pending(const treadle_stream* stream); /* samples that wait for a whole hop */
/* For a stream over time (timed inputs, no hop): how many samples it lags behind a run over all samples so far. */
TREADLE_API int64_t treadle_stream_delay(const treadle_stream* stream);
/* Whether a loop of the model has ended by its condition, so that no more frames come. */
TREADLE_API bool treadle_stream_done(const treadle_stream* stream);
TREADLE_API treadle_status* treadle_stream_reset(treadle_stream* stream);
TREADLE_API treadle_status* treadle_stream_fork(const treadle_stream* stream, treadle_stream** out);
TREADLE_API treadle_status* treadle_stream_save(const treadle_stream* stream, char** bytes, size_t* size);
/* Continues from a snapshot of treadle_stream_save. Errors: TREADLE_INVALID_ARGUMENT for a snapshot of a stream with
 * other options, or of a model with other weights; TREADLE_INVALID_FILE for bytes that are not a snapshot. */
TREADLE_API treadle_status* treadle_stream_load(treadle_stream* stream, const void* bytes, size_t size);
/* The same, and weights may differ: streams continue with a newer model. */
TREADLE_API treadle_status* treadle_stream_load_from_other_weights(treadle_stream* stream, const void* bytes,
                                                                   size_t size);
TREADLE_API char* treadle_stream_text(const treadle_stream* stream); /* pairs, axes, sizes; for people */

/* ---- Pools: many streams of one model, whose blocks run together as the entries of a batch. Each stream has a
 * batch of one. */

/* `options`: as for a stream. `capacity`: most streams in the pool. Only one thread at a time may use a pool; others
 * get TREADLE_BUSY. */
TREADLE_API treadle_status* treadle_pool_create(treadle_session* session, const treadle_stream_options* options,
                                                size_t capacity, treadle_pool** out);
TREADLE_API void treadle_pool_free(treadle_pool* pool);
TREADLE_API size_t treadle_pool_output_count(const treadle_pool* pool);
TREADLE_API const char* treadle_pool_output_name(const treadle_pool* pool, size_t index);
/* Pushes chunks of `streams` streams. A new id joins with its first chunk. `values`: for each stream in turn, one
 * per name. `outputs`: for each stream in turn, one new handle per output. If a push fails, no stream changes.
 * Errors: TREADLE_LIMIT if there is no room for new streams; TREADLE_INVALID_ARGUMENT for an id that comes twice, or
 * a chunk that does not fit, with its id. */
TREADLE_API treadle_status* treadle_pool_push(treadle_pool* pool, const treadle_run_options* options,
                                              const int64_t* ids, size_t streams, const char* const* names,
                                              size_t name_count, const treadle_value* const* values,
                                              treadle_value** outputs);
/* Pushes the same number of samples for each of `streams` streams. Each value has their entries along the model's
 * batch axis, in the order of `ids`, and so has each of `outputs` (one new handle per output). State is not copied
 * while the same streams come in the same order. `lengths`: NULL, or room for [streams, outputs] numbers: how much
 * of the output belongs to the stream, along the axis along which pushes are joined (1 if there is none); zeros fill
 * up the rest. Errors beside those of treadle_pool_push: TREADLE_INVALID_ARGUMENT if streams of this model run
 * alone, or with `lengths` NULL if results would have different sizes. */
TREADLE_API treadle_status* treadle_pool_push_batch(treadle_pool* pool, const treadle_run_options* options,
                                                    const int64_t* ids, size_t streams, const char* const* names,
                                                    const treadle_value* const* values, size_t name_count,
                                                    treadle_value** outputs, int64_t* lengths);
/* Flushes a stream, and removes it from the pool. Errors of this and all functions below: TREADLE_INVALID_ARGUMENT
 * for an id that is not in the pool. */
TREADLE_API treadle_status* treadle_pool_flush(treadle_pool* pool, const treadle_run_options* options, int64_t id,
                                               treadle_value** outputs);
TREADLE_API treadle_status* treadle_pool_leave(treadle_pool* pool, int64_t id);
/* A separate stream in the same state, to inspect or to save. */
TREADLE_API treadle_status* treadle_pool_fork(treadle_pool* pool, int64_t id, treadle_stream** out);
/* Adds a stream in the state of `stream`, which must have been made with the same options. Errors: TREADLE_LIMIT if
 * there is no room; TREADLE_INVALID_ARGUMENT for an id that is in the pool already, or a stream that does not fit. */
TREADLE_API treadle_status* treadle_pool_join(treadle_pool* pool, int64_t id, const treadle_stream* stream);
TREADLE_API bool treadle_pool_contains(const treadle_pool* pool, int64_t id);
/* Whether a loop of the model has ended by its condition for this stream. */
TREADLE_API bool treadle_pool_done(const treadle_pool* pool, int64_t id);
TREADLE_API size_t treadle_pool_size(const treadle_pool* pool);  /* streams in the pool */
TREADLE_API int64_t treadle_pool_runs(const treadle_pool* pool); /* runs so far, each for one or more streams */
/* Why each stream runs alone; empty if they run together. */
TREADLE_API const char* treadle_pool_why_single(const treadle_pool* pool);

/* Reads a file as models are read: a regular file, or a pipe with a writer, 2 GiB at most. Errors: devices, sockets
 * and folders. */
TREADLE_API treadle_status* treadle_file_read(const char* path, char** bytes, size_t* size);

/* ---- Models without running them, given by a path or, if that is NULL, by bytes. */

/* Checks a model, and reports all problems in the order of the model. Problems in the model are not an error of this
 * function; its error says that the file could not be read. `flags`: TREADLE_CHECK_*. */
#define TREADLE_CHECK_FULL 1           /* infer types as well, and compare them with the declared ones */
#define TREADLE_CHECK_CUSTOM_DOMAINS 2 /* an operator of an unknown domain is an error */
#define TREADLE_CHECK_ANY_OPSET 4      /* functions may import other versions of operators than the model */
#define TREADLE_CHECK_RUNS 8           /* try to make a session: treadle_report_refusal() */
typedef struct treadle_report treadle_report;
TREADLE_API treadle_status* treadle_model_check(const char* path, const void* bytes, size_t size, int flags,
                                                treadle_report** out);
TREADLE_API void treadle_report_free(treadle_report* report);
TREADLE_API size_t treadle_report_error_count(const treadle_report* report);
TREADLE_API size_t treadle_report_warning_count(const treadle_report* report);
/* With TREADLE_CHECK_RUNS: why a session refuses the model, "" if it does not. Without: NULL. */
TREADLE_API const char* treadle_report_refusal(const treadle_report* report);
/* With TREADLE_CHECK_RUNS: whether treadle will be much faster than an engine that runs loops node by node, and why, in
 * a line; "" if that is not known. Without: NULL. */
TREADLE_API const char* treadle_report_outlook(const treadle_report* report);
/* The number of listed problems; a very long list is cut off. */
TREADLE_API size_t treadle_report_size(const treadle_report* report);
TREADLE_API int treadle_report_is_error(const treadle_report* report, size_t index);
TREADLE_API const char* treadle_report_code(const treadle_report* report, size_t index); /* e.g. "name-unknown" */
/* The path through functions and bodies to the node; "" is the model. */
TREADLE_API const char* treadle_report_path(const treadle_report* report, size_t index);
TREADLE_API const char* treadle_report_message(const treadle_report* report, size_t index);
/* For people, with the lines of a model that is text. */
TREADLE_API char* treadle_report_text(const treadle_report* report, int colour);
TREADLE_API char* treadle_report_json(const treadle_report* report);
enum {
  TREADLE_INFER_TYPES = 1,       /* argument types must be allowed by the operators */
  TREADLE_INFER_LENIENT = 2,     /* a node that breaks a rule is no error: its outputs keep their declared types */
  TREADLE_INFER_NO_CONTENTS = 4, /* do not pass on contents of small integer tensors from node to node */
  TREADLE_INFER_AS_ONNX = 8,     /* conclude only as much as the onnx package's inference */
  TREADLE_INFER_RUNNABLE = 16    /* operators that treadle lacks are errors */
};
/* The model with the inferred types of its values; unknown sizes get names. `flags`: TREADLE_INFER_*. */
TREADLE_API treadle_status* treadle_model_infer(const char* path, const void* bytes, size_t size, unsigned flags,
                                                char** typed, size_t* typed_size);
/* The graph as a tree of bodies with the types of all values, for people. The model need not be able to run. */
TREADLE_API treadle_status* treadle_model_tree(const char* path, const void* bytes, size_t size, unsigned flags,
                                               char** text);
/* The model with inner values as further outputs, for any engine; functions are inlined. `names`, `values`: inputs of
 * the runs to come (may be none), whose sizes let more values be handed out. `wanted`: names of values ("q", in a body
 * "/Scan_1:body/q"); none: everything that nodes make. `json`: an array with an object for each value, in the order of
 * a run: "name", "node", "op", "type", "sizes", "inputs" (names of the node's inputs), "around" (loops and branches,
 * outermost first), "place" (positions of the nodes of "around", then of the node), "is_state" (a loop hands it to its
 * next iteration), and the numbers of outputs. "output" has rows, one for each iteration of the loops around, or a log,
 * a sequence with one tensor for each iteration; "log_at" is a sequence with the numbers of these iterations; "ran"
 * says for each row whether it was computed. "left_out": why a value has no output. */
TREADLE_API treadle_status* treadle_model_expose(const char* path, const void* bytes, size_t size,
                                                 const char* const* names, const treadle_value* const* values,
                                                 size_t count, const char* const* wanted, size_t wanted_count,
                                                 char** model, size_t* model_size, char** json);
/* A model of one node, with the constants that it reads; all other values that the node and its bodies read are its
 * inputs. `node`: a path, as in treadle_model_expose. `json`: an array with the name of the value that each input
 * stands for. */
TREADLE_API treadle_status* treadle_model_node(const char* path, const void* bytes, size_t size,
                                               const char* const* names, const treadle_value* const* values,
                                               size_t count, const char* node, char** model, size_t* model_size,
                                               char** json);

typedef enum treadle_verdict { TREADLE_PASSES = 0, TREADLE_FAILS = 1, TREADLE_STOP = 2 } treadle_verdict;
/* How far treadle_model_reduce is: the smallest model so far. Later versions add members at the end. */
typedef struct treadle_reduction {
  const char* step;    /* what is taken out of the model at hand: "nodes"; empty for the model as given */
  size_t attempts;     /* calls of `fails`, this one included */
  size_t nodes;        /* in all graphs and functions */
  size_t bodies;       /* branches, bodies of loops, and functions */
  size_t bytes;        /* of the serialised model */
  size_t data_tensors; /* tensors whose contents lie in files of the model's folder */
} treadle_reduction;
/* Makes a model smaller as long as it fails, and returns the smallest one found: without the outputs, nodes, functions,
 * branches, bodies, states, iterations, sizes and contents of tensors that the failure does not need. `fails` judges
 * the model as given first, then smaller ones, of which some do not load; it may end the search. It is called
 * `attempts` times at most, from `jobs` threads at once; the result does not depend on `jobs`. A model that does not
 * fail comes back as it is. `path` or `bytes`: a model, binary or text; `fails` gets binary ones. */
TREADLE_API treadle_status* treadle_model_reduce(const char* path, const void* bytes, size_t size,
                                                 treadle_verdict (*fails)(void* context, const void* candidate,
                                                                          size_t candidate_size,
                                                                          const treadle_reduction* so_far),
                                                 void* context, size_t attempts, size_t jobs, char** reduced,
                                                 size_t* reduced_size);

/* The model with fixed sizes of its inputs opened: each becomes a symbol, and nodes that hold the old size in a
 * constant follow where one meaning is certain. `sizes`: "frames:0=batch" for axis 0 of input frames. The error names
 * all nodes that stand in the way. `path` or `bytes`: a model, binary or text; `opened` is binary. `json`: "sizes"
 * (objects with "input", "axis", "symbol", and "size", which it had) and "changes" (a line for each node that changed).
 */
TREADLE_API treadle_status* treadle_model_open_sizes(const char* path, const void* bytes, size_t size,
                                                     const char* const* sizes, size_t count, char** opened,
                                                     size_t* opened_size, char** json);

/* ---- Models as ONNX text, which is accepted wherever a model is read. */

typedef enum treadle_part { TREADLE_MODEL = 0, TREADLE_GRAPH = 1, TREADLE_FUNCTION = 2, TREADLE_NODE = 3 } treadle_part;

TREADLE_API bool treadle_is_text(const void* bytes, size_t size); /* not a serialised model */
/* Parses the text of a part of a model, and serialises it. */
TREADLE_API treadle_status* treadle_text_parse(treadle_part part, const char* text, size_t size, char** bytes,
                                               size_t* bytes_size);
/* The text of a serialised part of a model. Tensors with more elements than `max_elements` are written without their
 * values; negative: no limit. */
TREADLE_API treadle_status* treadle_text_print(treadle_part part, const void* bytes, size_t size, int64_t max_elements,
                                               char** text, size_t* text_size);

/* ---- Operators of this build */

TREADLE_API size_t treadle_operator_count(void);
TREADLE_API const char* treadle_operator_name(size_t index);
TREADLE_API const char* treadle_operator_domain(size_t index); /* "" is ai.onnx */
TREADLE_API size_t treadle_operator_version_count(size_t index);
TREADLE_API int treadle_operator_version(size_t index, size_t version);
/* The operator with the name closest to a misspelt one; NULL if none is close. */
TREADLE_API const char* treadle_operator_like(const char* name);
/* An operator's effects, the tiers that run it, and for each version its inputs, outputs, attributes and types. JSON
 * has every version in full; the text, for people, has later versions as changes. */
TREADLE_API char* treadle_operator_json(size_t index);
TREADLE_API char* treadle_operator_text(size_t index);

/* ---- Your own operators (docs/howto/custom-operators.md)
 *
 * An operator is described, given its functions, and registered. Sessions that are opened later run its nodes, in
 * bodies, streams and every tier. The handles that its functions get are valid during the call, and so are copies by
 * treadle_value_copy; treadle_value_clone makes values that can be kept. Functions that can fail return NULL or a
 * status. The engine adds the place of the error: the path of the node, the iteration. */

typedef enum treadle_arity { TREADLE_SINGLE = 0, TREADLE_OPTIONAL_ARGUMENT = 1, TREADLE_VARIADIC = 2 } treadle_arity;

/* The functions of an operator. Several threads may call `compute` of one kernel at once. */
typedef struct treadle_operator_functions {
  size_t size; /* sizeof(treadle_operator_functions) */
  void* context;
  /* Makes the kernel of a node when a model is loaded. NULL: `context` is the kernel of every node. */
  treadle_status* (*make_kernel)(void* context, const treadle_node* node, void** kernel);
  void (*free_kernel)(void* kernel); /* may be NULL */
  /* Sets every output, by treadle_call_allocate or treadle_call_set. */
  treadle_status* (*compute)(void* kernel, treadle_call* call);
  /* Sets sizes of outputs that follow from those of the inputs. NULL: sizes are known only after a node has run. May
   * be called any number of times, with more or less known about the inputs. */
  treadle_status* (*infer)(void* kernel, treadle_inference* inference);
  void (*release)(void* context); /* called after the last call of the operator; may be NULL */
} treadle_operator_functions;

/* Version `since` of an operator, for models that import this version of the domain or a later one. `domain` NULL:
 * "", which is ai.onnx. */
TREADLE_API treadle_status* treadle_operator_create(const char* domain, const char* name, int since,
                                                    treadle_operator** out);
TREADLE_API void treadle_operator_free(treadle_operator* op);
/* Adds an input or output. `type`: "tensor(float)", "seq(tensor(int64))", ..., or NULL for any type. An output of
 * any type has the element type of the first input of any type, unless `infer` sets another. `name` may be NULL.
 * Only the last input or output may be variadic. */
TREADLE_API treadle_status* treadle_operator_input(treadle_operator* op, const char* name, const char* type,
                                                   treadle_arity arity);
TREADLE_API treadle_status* treadle_operator_output(treadle_operator* op, const char* name, const char* type,
                                                    treadle_arity arity);
/* Adds an attribute that nodes may have or, if `required`, must have. */
TREADLE_API treadle_status* treadle_operator_attribute(treadle_operator* op, const char* name, bool required);
/* Whether nodes may have other attributes as well; the default is true. */
TREADLE_API void treadle_operator_any_attributes(treadle_operator* op, bool any);
/* Whether the same inputs always give the same outputs and a run has no other effect. Then nodes whose inputs never
 * change are computed once, and nodes whose outputs are unused are left out. */
TREADLE_API void treadle_operator_pure(treadle_operator* op, bool pure);
TREADLE_API treadle_status* treadle_operator_set_functions(treadle_operator* op,
                                                           const treadle_operator_functions* functions);
/* Registers the operator for all sessions that are opened later, in place of one of the same domain and name. The
 * operator stays the caller's to free. Errors: TREADLE_INVALID_ARGUMENT if treadle has the operator itself. */
TREADLE_API treadle_status* treadle_operator_register(const treadle_operator* op);
/* Adds the operator to sessions with these options only, where it precedes treadle's own. */
TREADLE_API treadle_status* treadle_options_add_operator(treadle_options* options, const treadle_operator* op);

TREADLE_API treadle_text treadle_node_path(const treadle_node* node); /* "/encoder/Loop_3:body/Clip_7" */
TREADLE_API const char* treadle_node_operator(const treadle_node* node);
TREADLE_API const char* treadle_node_domain(const treadle_node* node);
TREADLE_API size_t treadle_node_input_count(const treadle_node* node); /* including inputs left out between others */
TREADLE_API size_t treadle_node_output_count(const treadle_node* node);
TREADLE_API size_t treadle_node_attribute_count(const treadle_node* node);
TREADLE_API const treadle_attribute* treadle_node_attribute_at(const treadle_node* node, size_t index);
TREADLE_API const treadle_attribute* treadle_node_attribute(const treadle_node* node, const char* name); /* or NULL */

TREADLE_API const char* treadle_attribute_name(const treadle_attribute* attribute);
/* AttributeProto.AttributeType: 1 float, 2 int, 3 string, 4 tensor, 6 floats, 7 ints, 8 strings, 9 tensors. */
TREADLE_API int treadle_attribute_kind(const treadle_attribute* attribute);
TREADLE_API size_t treadle_attribute_size(const treadle_attribute* attribute); /* of a list; 1 for other kinds */
/* An element of a list by index; index 0 for other kinds. 0 or an empty text if the attribute has another kind. */
TREADLE_API int64_t treadle_attribute_int(const treadle_attribute* attribute, size_t index);
TREADLE_API float treadle_attribute_float(const treadle_attribute* attribute, size_t index);
TREADLE_API treadle_text treadle_attribute_text(const treadle_attribute* attribute, size_t index);
TREADLE_API treadle_status* treadle_attribute_tensor(const treadle_attribute* attribute, size_t index,
                                                     treadle_value** out);

TREADLE_API const treadle_node* treadle_inference_node(const treadle_inference* inference);
/* NULL if the input is left out, or its type is unknown. */
TREADLE_API const treadle_type* treadle_inference_input(const treadle_inference* inference, size_t index);
/* Contents that are known before a run, else NULL. */
TREADLE_API const treadle_value* treadle_inference_contents(const treadle_inference* inference, size_t index);
/* Sets the output's type to a tensor with these sizes. A size is -1 if it is unknown, or if it has a name in
 * `symbols` (which may be NULL, as may each name). `element` 0: the known element type. */
TREADLE_API treadle_status* treadle_inference_set_output(treadle_inference* inference, size_t index, int element,
                                                         const int64_t* dims, const char* const* symbols, size_t rank);
/* Gives the output the element type and sizes of the input, as far as they are known. */
TREADLE_API treadle_status* treadle_inference_set_like(treadle_inference* inference, size_t output, size_t input);

TREADLE_API const treadle_node* treadle_call_node(const treadle_call* call);
/* NULL if the input is left out. */
TREADLE_API const treadle_value* treadle_call_input(const treadle_call* call, size_t index);
/* Makes output `index` a tensor of these sizes. The kernel writes its elements through
 * treadle_tensor_mutable_data(*tensor). The handle belongs to the call. `tensor` may be NULL. */
TREADLE_API treadle_status* treadle_call_allocate(treadle_call* call, size_t index, int element, const int64_t* dims,
                                                  size_t rank, treadle_value** tensor);
/* Makes output `index` share the contents of `value`. */
TREADLE_API treadle_status* treadle_call_set(treadle_call* call, size_t index, const treadle_value* value);

#ifdef __cplusplus
}
#endif

#endif /* TREADLE_TREADLE_H_ */
