/* treadle's C interface.
 *
 * Handles are opaque. Whoever creates one frees it with the function of its type; freeing NULL does nothing. A function
 * that can fail returns a treadle_status*: NULL is success, anything else must be freed and leaves the outputs as they
 * were. Nothing throws, prints or aborts. Sessions may be used by many threads at once; every other handle by one at a
 * time, unless a comment says more.
 *
 * Where an argument is NULL that a function needs, a function that returns a status fails with TREADLE_INVALID_ARGUMENT
 * and names the argument; any other function does nothing, or returns 0, false, NULL or a text of no bytes. A function
 * needs every pointer except where its comment says what NULL means, and except for three kinds: an array whose count
 * is 0; `options` that a function only reads, where NULL means the defaults; a callback, where NULL means none, and the
 * `context` that a callback is called with.
 *
 * Texts that are returned as `const char*` belong to the handle they come from; `char*` belong to the caller, who frees
 * them with treadle_free(). All texts are UTF-8 and end with a zero byte.
 *
 * Where memory runs out, a function fails with TREADLE_LIMIT, or returns NULL in place of a `char*`; what it was called
 * with stays as it was, and can be used on (docs/memory.md).
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
/* From here on, what random operators without a seed of their own give follows from this and from the order in which
 * they run; otherwise it is other numbers in every process. */
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
/* Where it happened: file, path through the bodies, iteration, operator. Empty when there is no place. */
TREADLE_API const char* treadle_status_place(const treadle_status* status);
TREADLE_API const char* treadle_status_text(const treadle_status* status); /* "<place>: <message>" */
TREADLE_API void treadle_status_free(treadle_status* status);
/* For functions of operators of your own. Never NULL; TREADLE_OK counts as TREADLE_INTERNAL. `message` NULL: "". */
TREADLE_API treadle_status* treadle_status_create(treadle_code code, const char* message);
TREADLE_API const char* treadle_code_name(treadle_code code);

/* ---- Types */

/* Element types are the numbers of ONNX's TensorProto.DataType: 1 is float, 7 is int64, ... In memory, 2-, 4- and 6-bit
 * elements take one byte each, signed ones with their sign extended. */
TREADLE_API const char* treadle_element_name(int element); /* "float"; NULL: there is no such type */
TREADLE_API size_t treadle_element_width(int element);     /* bytes in memory; 0 for strings */

typedef enum treadle_kind {
  TREADLE_NONE = 0, /* a value: absent; a type: unknown */
  TREADLE_TENSOR = 1,
  TREADLE_SEQUENCE = 2,
  TREADLE_OPTIONAL = 3,
  TREADLE_MAP = 4,
  TREADLE_SPARSE_TENSOR = 5 /* of types only */
} treadle_kind;

TREADLE_API treadle_kind treadle_type_kind(const treadle_type* type);
TREADLE_API int treadle_type_element(const treadle_type* type);  /* of a tensor; of the keys of a map; else 0 */
TREADLE_API int64_t treadle_type_rank(const treadle_type* type); /* -1: unknown */
TREADLE_API int64_t treadle_type_dim(const treadle_type* type, int64_t axis); /* -1: not a known number */
/* The name or expression of a symbolic size, NULL if the size is a number or unknown. */
TREADLE_API char* treadle_type_symbol(const treadle_type* type, int64_t axis);
/* Of a sequence or optional the element, of a map the values; NULL otherwise. */
TREADLE_API const treadle_type* treadle_type_child(const treadle_type* type);
TREADLE_API char* treadle_type_name(const treadle_type* type); /* "seq(tensor(float))" */
TREADLE_API char* treadle_type_text(const treadle_type* type); /* with sizes: "tensor(float)[N,3]" */

/* ---- Values: tensors, sequences, optionals, maps. A handle refers to contents that several handles may share. */

TREADLE_API treadle_kind treadle_value_kind(const treadle_value* value);
TREADLE_API char* treadle_value_type_text(const treadle_value* value);
TREADLE_API treadle_status* treadle_value_copy(const treadle_value* value, treadle_value** copy); /* shares contents */
TREADLE_API treadle_status* treadle_value_clone(const treadle_value* value, treadle_value** clone); /* copies tensors */
TREADLE_API void treadle_value_free(treadle_value* value);

/* Tensors are contiguous, row-major. Uninitialised memory; empty strings. */
TREADLE_API treadle_status* treadle_tensor_create(int element, const int64_t* dims, size_t rank, treadle_value** out);
/* Memory of the caller, at least as aligned as an element. `release(context)` is called when nothing refers to it any
 * more, from any thread; not when this function fails. It may be NULL. */
TREADLE_API treadle_status* treadle_tensor_borrow(int element, const int64_t* dims, size_t rank, void* data,
                                                  size_t bytes, bool writable, void (*release)(void* context),
                                                  void* context, treadle_value** out);
TREADLE_API treadle_status* treadle_tensor_from_texts(const int64_t* dims, size_t rank, const treadle_text* texts,
                                                      size_t count, treadle_value** out);

/* Of a value that is not a tensor these give 0 or NULL. */
TREADLE_API int treadle_tensor_element(const treadle_value* tensor);
TREADLE_API size_t treadle_tensor_rank(const treadle_value* tensor);
TREADLE_API const int64_t* treadle_tensor_dims(const treadle_value* tensor);
TREADLE_API int64_t treadle_tensor_count(const treadle_value* tensor);
TREADLE_API size_t treadle_tensor_bytes(const treadle_value* tensor);
TREADLE_API const void* treadle_tensor_data(const treadle_value* tensor);
/* NULL as well when the memory must not be written. Writing is seen through every handle that shares it. */
TREADLE_API void* treadle_tensor_mutable_data(treadle_value* tensor);
/* No other handle, constant or input shares the memory, and it may be written. */
TREADLE_API bool treadle_tensor_is_exclusive(const treadle_value* tensor);
/* All elements of a tensor of numbers (not complex), converted; `out` has room for treadle_tensor_count(). */
TREADLE_API treadle_status* treadle_tensor_to_doubles(const treadle_value* tensor, double* out);
TREADLE_API treadle_text treadle_tensor_text(const treadle_value* tensor, int64_t index);

/* `element`: needed when there are no elements. Handles are shared, not taken. */
TREADLE_API treadle_status* treadle_sequence_create(const treadle_type* element, const treadle_value* const* values,
                                                    size_t count, treadle_value** out);
TREADLE_API size_t treadle_sequence_size(const treadle_value* sequence);
TREADLE_API treadle_status* treadle_sequence_at(const treadle_value* sequence, size_t index, treadle_value** out);

/* `value` NULL: empty; then `element` is needed. */
TREADLE_API treadle_status* treadle_optional_create(const treadle_type* element, const treadle_value* value,
                                                    treadle_value** out);
TREADLE_API bool treadle_optional_has_value(const treadle_value* optional);
TREADLE_API treadle_status* treadle_optional_get(const treadle_value* optional, treadle_value** out);

/* Keys (int64 or string) and values are 1-D tensors of equal length. */
TREADLE_API treadle_status* treadle_map_create(const treadle_value* keys, const treadle_value* values,
                                               treadle_value** out);
TREADLE_API treadle_status* treadle_map_keys(const treadle_value* map, treadle_value** out);
TREADLE_API treadle_status* treadle_map_values(const treadle_value* map, treadle_value** out);
/* A sequence of maps from the same keys to numbers of one type (what ZipMap makes) as keys [K] and values [N,K]; both
 * NULL when it is anything else. */
TREADLE_API treadle_status* treadle_sequence_table(const treadle_value* sequence, treadle_value** keys,
                                                   treadle_value** values);

/* Values in protobuf: TensorProto, SequenceProto, OptionalProto or MapProto, as `type` says (NULL: a tensor). `name`
 * NULL: "". */
TREADLE_API treadle_status* treadle_value_from_pb(const void* bytes, size_t size, const treadle_type* type,
                                                  treadle_value** out);
TREADLE_API treadle_status* treadle_value_from_pb_file(const char* path, const treadle_type* type, treadle_value** out);
TREADLE_API treadle_status* treadle_value_to_pb(const treadle_value* value, const char* name, char** bytes,
                                                size_t* size);

/* ---- Options of a session */

TREADLE_API treadle_status* treadle_options_create(treadle_options** out);
TREADLE_API void treadle_options_free(treadle_options* options);
/* Keys: "tier" (program; reference: the reference interpreter, node by node with baseline kernels), "threads" (0: as
 * many as CPUs that the process may use), "optimize" (0, 1), "associative_math" (0, 1: sums of floats over time may be
 * put together in another order, so linear recurrences run in blocks of steps), "weights" (f32, f16: those of RNN,
 * LSTM, GRU and of products in loops are rounded to float16), "weight_files" (map, copy: whether weights are read in
 * the model's files, which must then stay as they are while the session lives, or are copied into memory when it is
 * opened), "jit" (off, auto, always: when loops become native code; required: as always, and a loop that is not is an
 * error), "jit_iteration" (no native code before this iteration), "jit_cache" (a folder in which native code is kept
 * for later processes; off; empty: TREADLE_JIT_CACHE, else the user's folder for such files), "jit_cache_bytes" (of all
 * that is kept there; what was not used for longest goes), "load_time_limit" (seconds that loading may take, and each
 * planning later on; 0: any), "load_memory_limit" (bytes, likewise), "bounded_load" (0, 1: what is computed from
 * constants beforehand is bounded by the size of the model; on, unless it is turned off), "loop_condition" (ignored,
 * obeyed: whether the body of a Loop without cond ends the Loop; the specification says that such a condition is
 * ignored, and onnxruntime obeys it), "passes_off" (rewrites that do not run, by name, with commas between them; left
 * alone: TREADLE_PASSES_OFF), "dump" (a rewrite's name, for
 * treadle_session_dump_graph). */
TREADLE_API treadle_status* treadle_options_set(treadle_options* options, const char* key, const char* value);
/* The same as numbers. Zero or less: no limit. */
TREADLE_API void treadle_options_limit_load_time(treadle_options* options, double seconds);
TREADLE_API void treadle_options_limit_load_memory(treadle_options* options, size_t bytes);
/* True stops the sessions that are being opened with these options, and refuses later ones, until it is set to false.
 * From any thread. */
TREADLE_API void treadle_options_cancel_load(treadle_options* options, bool cancel);
/* Asked about every 5 ms, from the thread that opens the session, or plans for it later; true stops that. For as long
 * as there are sessions that were opened with these options. */
TREADLE_API void treadle_options_set_interrupt(treadle_options* options, bool (*interrupted)(void* context),
                                               void* context);
/* Fixes a symbolic size of the inputs. */
TREADLE_API treadle_status* treadle_options_set_dimension(treadle_options* options, const char* name, int64_t size);
/* The same for sizes that the model denotes by a word of the specification ("DATA_BATCH"), in any case of letters. */
TREADLE_API treadle_status* treadle_options_set_denoted_dimension(treadle_options* options, const char* denotation,
                                                                  int64_t size);

/* The contents of an initializer of the model, in place of those in its file, of its type and sizes. The session copies
 * them, once for all sessions that have the same. */
TREADLE_API treadle_status* treadle_options_set_initializer(treadle_options* options, const char* name,
                                                            const treadle_value* tensor);
/* Bytes that stand for a file of external data, by what the model calls the file. They stay the caller's until the
 * session is open; the session copies them. */
TREADLE_API treadle_status* treadle_options_set_external_file(treadle_options* options, const char* location,
                                                              const void* bytes, size_t size);

/* ---- Sessions */

TREADLE_API treadle_status* treadle_session_open(const char* path, const treadle_options* options,
                                                 treadle_session** out);
/* `folder`: where external data is looked up; NULL refuses external data. The bytes are copied. */
TREADLE_API treadle_status* treadle_session_from_bytes(const void* bytes, size_t size, const char* folder,
                                                       const treadle_options* options, treadle_session** out);
TREADLE_API void treadle_session_free(treadle_session* session);
/* The option "threads" of a session that has not run yet, for a caller who learns the number after opening it. */
TREADLE_API void treadle_session_set_threads(treadle_session* session, int threads);
/* Options that were given and have no effect on this model, each as a sentence; NULL past the last. */
TREADLE_API const char* treadle_session_remark(const treadle_session* session, size_t index);
/* Rules that the model breaks, and what it leaves open, each as a sentence; NULL past the last. The model runs all the
 * same. */
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
  int64_t allocations_last_run; /* by the engine, outputs not included */
  int64_t peak_bytes_last_run;  /* the arena and what tensors of run-time size took at once */
  int64_t compilations;         /* loops that have become native code */
  int64_t cache_loads;          /* those of them whose code an earlier process had left */
} treadle_counters;
/* Writes the first `bytes` of the counters, or all: later versions may have more of them at the end. What the library
 * does not know of becomes 0. */
TREADLE_API void treadle_session_read_counters(const treadle_session* session, treadle_counters* out, size_t bytes);
static inline treadle_counters treadle_session_counters(const treadle_session* session) {
  treadle_counters counters;
  treadle_session_read_counters(session, &counters, sizeof counters);
  return counters;
}
/* Returns once nothing is being compiled in the background, nor waits for it. */
TREADLE_API void treadle_session_wait_compiled(const treadle_session* session);

/* Makes native code of all loops that are planned so far, now rather than when it would pay. Nothing where "jit" is
 * off.
 */
TREADLE_API void treadle_session_compile(const treadle_session* session);

/* What has become of the loops: how each was rewritten, how it runs, what stands in the way of more, and what an
 * iteration takes. Of the plan for these inputs, with which a few runs are made to measure what only runs know; without
 * inputs of the newest plan, or, before the first run, of a plan for what the model says. For people, or as JSON. */
TREADLE_API treadle_status* treadle_session_explain(const treadle_session* session, const char* const* names,
                                                    const treadle_value* const* values, size_t count, bool json,
                                                    char** text);

/* The model after the rewrites of loading, serialised: functions inlined, constants folded. */
TREADLE_API treadle_status* treadle_session_optimized_model(const treadle_session* session, char** bytes, size_t* size);

/* The name of a rewrite, in the order in which they run; NULL past the last. */
TREADLE_API const char* treadle_pass_name(size_t index);
/* For people: the graph after the rewrites of loading, or with the option "dump" as it was behind that rewrite when
 * inputs were planned for last; and the program that is planned for these inputs. */
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
/* True stops the runs that use these options, and refuses later ones, until it is set to false. From any thread. */
TREADLE_API void treadle_run_options_cancel(treadle_run_options* options, bool cancel);
TREADLE_API bool treadle_run_options_is_cancelled(const treadle_run_options* options);
/* Asked about every 5 ms, from the thread that runs; true cancels the run. */
TREADLE_API void treadle_run_options_set_interrupt(treadle_run_options* options, bool (*interrupted)(void* context),
                                                   void* context);

/* How far a run is, in iterations of its outermost loops: loops within loops are not counted, nor what runs outside of
 * them. Of a stream's push or flush that makes several runs: in runs. Later versions add members at the end. */
typedef struct treadle_progress {
  int64_t done;
  int64_t total; /* -1: not known, as of loops that end by a condition */
} treadle_progress;
/* Told about every 50 ms, from the thread that runs, and once when a run has succeeded, with as many done as there are;
 * true cancels the run. How fast a run goes is for the caller to measure. */
TREADLE_API void treadle_run_options_set_progress(treadle_run_options* options,
                                                  bool (*progress)(void* context, const treadle_progress* progress),
                                                  void* context);

/* `begins` is told, perhaps more than once, from the thread that runs, before a run plans, waits for another thread, or
 * is expected to take more than some 10 us: for callers who hold a lock that is not worth giving up for less. */
TREADLE_API void treadle_run_options_set_long_work(treadle_run_options* options, void (*begins)(void* context),
                                                   void* context);

/* Runs with these options, one at a time, count the iterations of each loop; not in the reference interpreter. */
TREADLE_API void treadle_run_options_count_iterations(treadle_run_options* options, bool count);
/* What the last such run has counted, also where the run has failed: a line for each loop, empty without loops; or as
 * JSON. */
TREADLE_API char* treadle_run_options_iterations(const treadle_run_options* options, bool json);

/* `names` and `values` are parallel; a value of NULL or TREADLE_NONE stands for an empty optional. `output_names` NULL:
 * all outputs. `outputs[i]`: NULL gets a new handle. A handle that holds a tensor of the right type and sizes is
 * written in place; any other content of it is replaced. On failure, handles that were NULL stay NULL. */
TREADLE_API treadle_status* treadle_session_run(const treadle_session* session, const treadle_run_options* options,
                                                const char* const* names, const treadle_value* const* values,
                                                size_t count, const char* const* output_names, size_t output_count,
                                                treadle_value** outputs);

/* ---- Where the time goes. The model is run once to warm up, then `runs` times instruction by instruction: the same
 * results, slower, and no run but these pays for it. A node was interrupted in
 * a run where it took more than twice its fastest time and half a millisecond: another process had the processor, as a
 * rule. The table has each node's median over the runs in which the node was not interrupted. The trace shows one run:
 * of the runs in which no node was interrupted, the one that took the median time. */

typedef struct treadle_profile treadle_profile;
TREADLE_API treadle_status* treadle_session_profile(const treadle_session* session, const treadle_run_options* options,
                                                    const char* const* names, const treadle_value* const* values,
                                                    size_t count, size_t runs, treadle_profile** out);
TREADLE_API void treadle_profile_free(treadle_profile* profile);
TREADLE_API char* treadle_profile_text(const treadle_profile* profile); /* a table by node */
TREADLE_API char* treadle_profile_json(const treadle_profile* profile); /* the same */
TREADLE_API char* treadle_profile_trace(
    const treadle_profile* profile); /* every node of every iteration: Chrome's format */

/* treadle_session_run, which also gives a profile of this run; NULL from the reference interpreter, which records
 * nothing. */
TREADLE_API treadle_status* treadle_session_run_recorded(const treadle_session* session,
                                                         const treadle_run_options* options, const char* const* names,
                                                         const treadle_value* const* values, size_t count,
                                                         const char* const* output_names, size_t output_count,
                                                         treadle_value** outputs, treadle_profile** profile);
/* A JSON array of the nodes that ran, as onnxruntime's profiler writes them. Times are microseconds since `origin_ns`
 * of the steady clock (CLOCK_MONOTONIC). */
TREADLE_API char* treadle_profile_kernels(const treadle_profile* profile, int64_t origin_ns);

/* ---- Streams: a session run over a signal that arrives in pieces, with the state that is carried from run to run.
 * Inputs are states, cut along time, bound, or given with each push. An output is joined along its time axis where it
 * has one, else stacked along a new first axis; a sequence of one value per run where sizes differ. */

TREADLE_API treadle_status* treadle_stream_options_create(treadle_stream_options** out);
TREADLE_API void treadle_stream_options_free(treadle_stream_options* options);
/* The value of `output` becomes that of `input` in the next run. Pairs not given are found by name and type, unless
 * that is turned off. */
TREADLE_API treadle_status* treadle_stream_options_pair(treadle_stream_options* options, const char* input,
                                                        const char* output);
TREADLE_API void treadle_stream_options_find_pairs(treadle_stream_options* options, bool find);
/* What a state begins with; zeros otherwise. */
TREADLE_API treadle_status* treadle_stream_options_initial(treadle_stream_options* options, const char* input,
                                                           const treadle_value* value);
/* An input that is the same in every run. */
TREADLE_API treadle_status* treadle_stream_options_bind(treadle_stream_options* options, const char* input,
                                                        const treadle_value* value);
/* Along which axis an input is cut into chunks, an output put together. */
TREADLE_API treadle_status* treadle_stream_options_time(treadle_stream_options* options, const char* name,
                                                        int64_t axis);
/* The axis whose size the model gives this name. */
TREADLE_API treadle_status* treadle_stream_options_time_symbol(treadle_stream_options* options, const char* name,
                                                               const char* symbol);
/* One run per `hop` samples over [context + hop] samples. A hop of 0: one run per push; with timed inputs, what the
 * model itself carries along time is found and carried as well, so that all pushes and a flush at the end give what one
 * run over the whole signal gives. */
TREADLE_API void treadle_stream_options_hop(treadle_stream_options* options, int64_t hop, int64_t context);

TREADLE_API treadle_status* treadle_stream_create(treadle_session* session, const treadle_stream_options* options,
                                                  treadle_stream** out);
TREADLE_API void treadle_stream_free(treadle_stream* stream);
/* Outputs that are not states. */
TREADLE_API size_t treadle_stream_output_count(const treadle_stream* stream);
TREADLE_API const char* treadle_stream_output_name(const treadle_stream* stream, size_t index);
/* The axis along which what pushes give for an output goes together to what one push of all would give. -1: it does
 * not; each push gives the newest value. */
TREADLE_API int64_t treadle_stream_output_axis(const treadle_stream* stream, size_t index);
/* Plans pushes of these numbers of samples (none: of one hop) and makes native code of their loops, so that no push has
 * to. The stream stays as it is. Inputs that come with each push are taken to be zeros. */
TREADLE_API treadle_status* treadle_stream_warm(treadle_stream* stream, const int64_t* sizes, size_t count);
/* `outputs`: one per output of the stream, as for treadle_session_run: NULL gets a new handle, a tensor of the right
 * type and sizes is written in place. `hops` (may be NULL): how many runs were made. When a push fails, the stream is
 * as it was before.
 *
 * Once the stream is warm and has begun, a push like those before (as many samples, the same outputs handed in)
 * allocates nothing, takes no lock and makes no system call, if the session has one thread and the model's values have
 * sizes that do not depend on data. The number of runs that a push makes may alternate between n and n + 1; then the
 * promise holds once there was a push of each kind. A call while another thread is in one of these functions with the
 * same stream gives TREADLE_BUSY and changes nothing. */
TREADLE_API treadle_status* treadle_stream_push(treadle_stream* stream, const treadle_run_options* options,
                                                const char* const* names, const treadle_value* const* values,
                                                size_t count, treadle_value** outputs, size_t* hops);
/* Pads what is left with zeros to a whole hop and runs it; without a hop, gives the frames that the end of the signal
 * brings, after which only reset goes on. `names`: inputs that are neither cut, bound nor states. */
TREADLE_API treadle_status* treadle_stream_flush(treadle_stream* stream, const treadle_run_options* options,
                                                 const char* const* names, const treadle_value* const* values,
                                                 size_t count, treadle_value** outputs, size_t* hops);
TREADLE_API size_t treadle_stream_state_count(const treadle_stream* stream);
TREADLE_API const char* treadle_stream_state_name(const treadle_stream* stream, size_t index);
TREADLE_API treadle_status* treadle_stream_state_get(const treadle_stream* stream, size_t index, treadle_value** out);
TREADLE_API treadle_status* treadle_stream_state_set(treadle_stream* stream, const char* input,
                                                     const treadle_value* value);
TREADLE_API int64_t treadle_stream_pending(const treadle_stream* stream); /* samples that wait for their hop */
/* Of a stream over time (timed inputs, no hop): samples by which it lags behind a run over all that has come. */
TREADLE_API int64_t treadle_stream_delay(const treadle_stream* stream);
/* Whether a loop of the model has ended by its condition, so that no more frames come. */
TREADLE_API bool treadle_stream_done(const treadle_stream* stream);
TREADLE_API treadle_status* treadle_stream_reset(treadle_stream* stream);
TREADLE_API treadle_status* treadle_stream_fork(const treadle_stream* stream, treadle_stream** out);
TREADLE_API treadle_status* treadle_stream_save(const treadle_stream* stream, char** bytes, size_t* size);
/* Goes on from what save gave. Errors: TREADLE_INVALID_ARGUMENT for a snapshot of a stream that was made otherwise, or
 * of a model with other weights; TREADLE_INVALID_FILE for bytes that are none. */
TREADLE_API treadle_status* treadle_stream_load(treadle_stream* stream, const void* bytes, size_t size);
/* The same, also where the weights are others: streams go on with a newer model. */
TREADLE_API treadle_status* treadle_stream_load_from_other_weights(treadle_stream* stream, const void* bytes,
                                                                   size_t size);
TREADLE_API char* treadle_stream_text(const treadle_stream* stream); /* pairs, axes, sizes; for people */

/* ---- Many streams of one model, whose blocks run together as the entries of a batch. Each has a batch of one. */

/* `options` as for a stream; room for `capacity` streams. One thread at a time: others get TREADLE_BUSY. */
TREADLE_API treadle_status* treadle_pool_create(treadle_session* session, const treadle_stream_options* options,
                                                size_t capacity, treadle_pool** out);
TREADLE_API void treadle_pool_free(treadle_pool* pool);
TREADLE_API size_t treadle_pool_output_count(const treadle_pool* pool);
TREADLE_API const char* treadle_pool_output_name(const treadle_pool* pool, size_t index);
/* Chunks of `streams` streams, which join with their first one; `values`: for each stream in turn, one per name.
 * `outputs`: for each stream in turn, one new handle per output. When a push fails, all streams are as they were.
 * Errors: TREADLE_LIMIT when there is no room for those that are new, TREADLE_INVALID_ARGUMENT for an id that comes
 * twice and a chunk that does not fit, named by its id. */
TREADLE_API treadle_status* treadle_pool_push(treadle_pool* pool, const treadle_run_options* options,
                                              const int64_t* ids, size_t streams, const char* const* names,
                                              size_t name_count, const treadle_value* const* values,
                                              treadle_value** outputs);
/* As many samples of each of `streams` streams: each value has their entries along the model's axis of the batch, in
 * the order of `ids`, and so has each of `outputs` (one new handle per output). Copies nothing that is carried while
 * the streams of the pool come together in the same order. `lengths`: NULL, or room for a number for each stream and
 * output, [streams, outputs]: how much of the output is the stream's own along the axis that pushes are joined along (1
 * where there is none); zeros fill it up. Errors, besides those above: TREADLE_INVALID_ARGUMENT where streams run on
 * their own, and with `lengths` NULL where they would give results of unlike sizes. */
TREADLE_API treadle_status* treadle_pool_push_batch(treadle_pool* pool, const treadle_run_options* options,
                                                    const int64_t* ids, size_t streams, const char* const* names,
                                                    const treadle_value* const* values, size_t name_count,
                                                    treadle_value** outputs, int64_t* lengths);
/* What the end of a stream's signal brings; the stream leaves. Errors of this and all below: TREADLE_INVALID_ARGUMENT
 * for an id that is not in the pool. */
TREADLE_API treadle_status* treadle_pool_flush(treadle_pool* pool, const treadle_run_options* options, int64_t id,
                                               treadle_value** outputs);
TREADLE_API treadle_status* treadle_pool_leave(treadle_pool* pool, int64_t id);
/* A stream of its own that goes on from where this one is, to look at it or to save it. */
TREADLE_API treadle_status* treadle_pool_fork(treadle_pool* pool, int64_t id, treadle_stream** out);
/* A stream that goes on in the pool from where `stream` is, which was made alike. Errors: TREADLE_LIMIT when there is
 * no room, TREADLE_INVALID_ARGUMENT for an id that is there already and a stream that does not fit. */
TREADLE_API treadle_status* treadle_pool_join(treadle_pool* pool, int64_t id, const treadle_stream* stream);
TREADLE_API bool treadle_pool_contains(const treadle_pool* pool, int64_t id);
/* Whether a loop of the model has ended by its condition for this stream. */
TREADLE_API bool treadle_pool_done(const treadle_pool* pool, int64_t id);
TREADLE_API size_t treadle_pool_size(const treadle_pool* pool);  /* streams that are in it */
TREADLE_API int64_t treadle_pool_runs(const treadle_pool* pool); /* runs made so far, each for one or more streams */
/* What makes every stream run on its own; empty when they run together. */
TREADLE_API const char* treadle_pool_why_single(const treadle_pool* pool);

/* The bytes of a file, as models are read: a regular file, or a pipe that something is written to, 2 GiB at most.
 * Devices, sockets and folders are refused. */
TREADLE_API treadle_status* treadle_file_read(const char* path, char** bytes, size_t* size);

/* ---- Models without running them: a path, or (path NULL) bytes. */

/* What is wrong or surprising about a model, all of it, in the order of the model. That there are problems is no error:
 * an error says that the file could not be read. `flags`: of TREADLE_CHECK_*. */
#define TREADLE_CHECK_FULL 1           /* infer types as well, and hold them against what is declared */
#define TREADLE_CHECK_CUSTOM_DOMAINS 2 /* an operator of an unknown domain is an error */
#define TREADLE_CHECK_ANY_OPSET 4      /* functions may import other versions of operators than the model */
#define TREADLE_CHECK_RUNS 8           /* try whether a session takes the model: treadle_report_refusal() */
typedef struct treadle_report treadle_report;
TREADLE_API treadle_status* treadle_model_check(const char* path, const void* bytes, size_t size, int flags,
                                                treadle_report** out);
TREADLE_API void treadle_report_free(treadle_report* report);
TREADLE_API size_t treadle_report_error_count(const treadle_report* report);
TREADLE_API size_t treadle_report_warning_count(const treadle_report* report);
/* With TREADLE_CHECK_RUNS: why no session takes the model, "" when one does. NULL without. */
TREADLE_API const char* treadle_report_refusal(const treadle_report* report);
/* Problems that are listed; of very many the first. */
TREADLE_API size_t treadle_report_size(const treadle_report* report);
TREADLE_API int treadle_report_is_error(const treadle_report* report, size_t index);
TREADLE_API const char* treadle_report_code(const treadle_report* report, size_t index); /* e.g. "name-unknown" */
/* Through functions and bodies to the node; "" is the model. */
TREADLE_API const char* treadle_report_path(const treadle_report* report, size_t index);
TREADLE_API const char* treadle_report_message(const treadle_report* report, size_t index);
/* For people, with the lines of a model that is text. */
TREADLE_API char* treadle_report_text(const treadle_report* report, int colour);
TREADLE_API char* treadle_report_json(const treadle_report* report);
enum {
  TREADLE_INFER_TYPES = 1,       /* argument types must be ones that the operators allow */
  TREADLE_INFER_LENIENT = 2,     /* a node that breaks a rule is no error: its outputs stay as they are declared */
  TREADLE_INFER_NO_CONTENTS = 4, /* do not carry contents of small integer tensors from node to node */
  TREADLE_INFER_AS_ONNX = 8,     /* conclude what the onnx package's inference concludes, not more */
  TREADLE_INFER_RUNNABLE = 16    /* operators that treadle lacks are errors */
};
/* The model with the types of its values written into it; sizes that nobody knows get names. `flags`: TREADLE_INFER_...
 */
TREADLE_API treadle_status* treadle_model_infer(const char* path, const void* bytes, size_t size, unsigned flags,
                                                char** typed, size_t* typed_size);
/* The graph as a tree of bodies with the types of all values, for people. Nothing has to be able to run. */
TREADLE_API treadle_status* treadle_model_tree(const char* path, const void* bytes, size_t size, unsigned flags,
                                               char** text);

/* ---- Models as ONNX text. Wherever a model is read, a text is read as well. */

typedef enum treadle_part { TREADLE_MODEL = 0, TREADLE_GRAPH = 1, TREADLE_FUNCTION = 2, TREADLE_NODE = 3 } treadle_part;

TREADLE_API bool treadle_is_text(const void* bytes, size_t size); /* rather than a serialised model */
/* The part of a model that a text says, serialised. */
TREADLE_API treadle_status* treadle_text_parse(treadle_part part, const char* text, size_t size, char** bytes,
                                               size_t* bytes_size);
/* The text of a serialised part of a model. Tensors of more elements than `max_elements` are written without their
 * values; negative: no limit. */
TREADLE_API treadle_status* treadle_text_print(treadle_part part, const void* bytes, size_t size, int64_t max_elements,
                                               char** text, size_t* text_size);

/* ---- Operators that this build knows */

TREADLE_API size_t treadle_operator_count(void);
TREADLE_API const char* treadle_operator_name(size_t index);
TREADLE_API const char* treadle_operator_domain(size_t index); /* "" is ai.onnx */
TREADLE_API size_t treadle_operator_version_count(size_t index);
TREADLE_API int treadle_operator_version(size_t index, size_t version);
/* The operator that a misspelt name is likely to mean; NULL when none is near. */
TREADLE_API const char* treadle_operator_like(const char* name);
/* Everything about an operator: effects, the tiers that run it, and per version its inputs, outputs, attributes and
 * types. JSON has every version whole; the text is for people, each version as what it changes. */
TREADLE_API char* treadle_operator_json(size_t index);
TREADLE_API char* treadle_operator_text(size_t index);

/* ---- Operators of your own (docs/howto/custom-operators.md)
 *
 * An operator is described, given its functions, and registered: sessions that are opened from then on run nodes of it,
 * in bodies, streams and every tier. The handles that its functions get are valid during the call, and so is what
 * treadle_value_copy makes of them: treadle_value_clone makes values to keep. Functions that can fail
 * return NULL or a status, whose place the engine adds: the path of the node, the iteration. */

typedef enum treadle_arity { TREADLE_SINGLE = 0, TREADLE_OPTIONAL_ARGUMENT = 1, TREADLE_VARIADIC = 2 } treadle_arity;

/* What an operator does. Several threads may call `compute` of one kernel at once. */
typedef struct treadle_operator_functions {
  size_t size; /* sizeof(treadle_operator_functions) */
  void* context;
  /* Makes the kernel of a node when a model is loaded; may be NULL: `context` is the kernel of every node. */
  treadle_status* (*make_kernel)(void* context, const treadle_node* node, void** kernel);
  void (*free_kernel)(void* kernel); /* may be NULL */
  /* Sets every output, by treadle_call_allocate or treadle_call_set. */
  treadle_status* (*compute)(void* kernel, treadle_call* call);
  /* Sets sizes of outputs, where they follow from those of the inputs; may be NULL: sizes are known once a node has
   * run. May be called any number of times, with more or less known of the inputs. */
  treadle_status* (*infer)(void* kernel, treadle_inference* inference);
  void (*release)(void* context); /* called when nobody calls the operator any more; may be NULL */
} treadle_operator_functions;

/* Version `since` of an operator; it is in force for models that import the domain in this version or a later one.
 * `domain` NULL: "", which is ai.onnx. */
TREADLE_API treadle_status* treadle_operator_create(const char* domain, const char* name, int since,
                                                    treadle_operator** out);
TREADLE_API void treadle_operator_free(treadle_operator* op);
/* The next input or output. `type`: "tensor(float)", "seq(tensor(int64))", ..., or NULL for any; outputs of any type
 * have the element type of the first input of any type, unless `infer` says another. `name` may be NULL. Only the last
 * one may be variadic. */
TREADLE_API treadle_status* treadle_operator_input(treadle_operator* op, const char* name, const char* type,
                                                   treadle_arity arity);
TREADLE_API treadle_status* treadle_operator_output(treadle_operator* op, const char* name, const char* type,
                                                    treadle_arity arity);
/* An attribute that nodes may have, or must have. */
TREADLE_API treadle_status* treadle_operator_attribute(treadle_operator* op, const char* name, bool required);
/* Whether nodes may have attributes of other names too; they may unless this says otherwise. */
TREADLE_API void treadle_operator_any_attributes(treadle_operator* op, bool any);
/* The same inputs give the same outputs, and a run has no other effect: nodes whose inputs never change are computed
 * once, and nodes whose outputs nobody uses are left out. */
TREADLE_API void treadle_operator_pure(treadle_operator* op, bool pure);
TREADLE_API treadle_status* treadle_operator_set_functions(treadle_operator* op,
                                                           const treadle_operator_functions* functions);
/* For all sessions that are opened from now on, in place of one of the same domain and name; the operator stays yours
 * to free. TREADLE_INVALID_ARGUMENT where treadle has the operator itself. */
TREADLE_API treadle_status* treadle_operator_register(const treadle_operator* op);
/* For sessions with these options alone, before one that treadle has itself. */
TREADLE_API treadle_status* treadle_options_add_operator(treadle_options* options, const treadle_operator* op);

TREADLE_API treadle_text treadle_node_path(const treadle_node* node); /* "/encoder/Loop_3:body/Clip_7" */
TREADLE_API const char* treadle_node_operator(const treadle_node* node);
TREADLE_API const char* treadle_node_domain(const treadle_node* node);
TREADLE_API size_t treadle_node_input_count(const treadle_node* node); /* with those left out between others */
TREADLE_API size_t treadle_node_output_count(const treadle_node* node);
TREADLE_API size_t treadle_node_attribute_count(const treadle_node* node);
TREADLE_API const treadle_attribute* treadle_node_attribute_at(const treadle_node* node, size_t index);
TREADLE_API const treadle_attribute* treadle_node_attribute(const treadle_node* node, const char* name); /* or NULL */

TREADLE_API const char* treadle_attribute_name(const treadle_attribute* attribute);
/* AttributeProto.AttributeType: 1 float, 2 int, 3 string, 4 tensor, 6 floats, 7 ints, 8 strings, 9 tensors. */
TREADLE_API int treadle_attribute_kind(const treadle_attribute* attribute);
TREADLE_API size_t treadle_attribute_size(const treadle_attribute* attribute); /* of a list; else 1 */
/* Elements of lists by index; of others index 0. 0 or an empty text where the kind is another one. */
TREADLE_API int64_t treadle_attribute_int(const treadle_attribute* attribute, size_t index);
TREADLE_API float treadle_attribute_float(const treadle_attribute* attribute, size_t index);
TREADLE_API treadle_text treadle_attribute_text(const treadle_attribute* attribute, size_t index);
TREADLE_API treadle_status* treadle_attribute_tensor(const treadle_attribute* attribute, size_t index,
                                                     treadle_value** out);

TREADLE_API const treadle_node* treadle_inference_node(const treadle_inference* inference);
/* NULL where the input is left out, or nothing is known of it. */
TREADLE_API const treadle_type* treadle_inference_input(const treadle_inference* inference, size_t index);
/* Contents that are known before a run; NULL else. */
TREADLE_API const treadle_value* treadle_inference_contents(const treadle_inference* inference, size_t index);
/* A tensor with these sizes: -1 for one that is not known, or that has a name in `symbols` (which may be NULL, as each
 * name may be). `element` 0: the element type that is known already. */
TREADLE_API treadle_status* treadle_inference_set_output(treadle_inference* inference, size_t index, int element,
                                                         const int64_t* dims, const char* const* symbols, size_t rank);
/* The output has element type and sizes of the input, as far as they are known. */
TREADLE_API treadle_status* treadle_inference_set_like(treadle_inference* inference, size_t output, size_t input);

TREADLE_API const treadle_node* treadle_call_node(const treadle_call* call);
/* NULL where the input is left out. */
TREADLE_API const treadle_value* treadle_call_input(const treadle_call* call, size_t index);
/* Makes output `index` a tensor of these sizes, to be written through treadle_tensor_mutable_data(*tensor); the handle
 * is the call's. `tensor` may be NULL. */
TREADLE_API treadle_status* treadle_call_allocate(treadle_call* call, size_t index, int element, const int64_t* dims,
                                                  size_t rank, treadle_value** tensor);
/* Makes output `index` refer to what `value` refers to. */
TREADLE_API treadle_status* treadle_call_set(treadle_call* call, size_t index, const treadle_value* value);

#ifdef __cplusplus
}
#endif

#endif /* TREADLE_TREADLE_H_ */
