// What XLA calls for a kernel in a JAX program: it takes the call frame apart, and hands the
// addresses of all buffers to Python, where the driver of kernels is.

#include "xla/ffi/api/c_api.h"

#include <string.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// Runs program `call` on operands and results, in this order. 0, or what failed in `words`; 2 where
// the user has interrupted it.
typedef int (*Enter)(int64_t call, void** pointers, int64_t count, char* words, int64_t room);

Enter enter = nullptr;
void (*interrupt)() = nullptr;  // makes Python's main thread raise KeyboardInterrupt, when it can

const int64_t MOST = 512;    // operands and results
const int64_t ROOM = 16384;  // bytes of a message

XLA_FFI_Error* error(XLA_FFI_CallFrame* frame, XLA_FFI_Error_Code code, const char* message) {
  XLA_FFI_Error_Create_Args args;
  memset(&args, 0, sizeof(args));
  args.struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE;
  args.message = message;
  args.errc = code;
  return frame->api->XLA_FFI_Error_Create(&args);
}

// Whether XLA asks which version this is, and does not call.
bool asked(XLA_FFI_CallFrame* frame) {
  for (XLA_FFI_Extension_Base* e = frame->extension_start; e; e = e->next) {
    if (e->type == XLA_FFI_Extension_Metadata) {
      XLA_FFI_Metadata* said = reinterpret_cast<XLA_FFI_Metadata_Extension*>(e)->metadata;
      said->api_version.major_version = XLA_FFI_API_MAJOR;
      said->api_version.minor_version = XLA_FFI_API_MINOR;
      return true;
    }
  }
  return false;
}

const int64_t WIDTHS = 34;
// Bytes of an element by XLA's number of its type; 0 for those that kernels have not.
const int8_t WIDTH[WIDTHS] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 0, 0, 8, 2, 0, 16};

int64_t bytes_of(const XLA_FFI_Buffer* b) {
  int64_t n = b->dtype < WIDTHS ? WIDTH[b->dtype] : 0;
  for (int64_t d = 0; d < b->rank; ++d) n *= b->dims[d];
  return n;
}

int64_t scalar(XLA_FFI_CallFrame* frame, int64_t k) {
  return *static_cast<int64_t*>(static_cast<XLA_FFI_Scalar*>(frame->attrs.attrs[k])->value);
}

}  // namespace

EXPORT void eng_ffi_enter(void* f, void* g) {
  if (g) interrupt = reinterpret_cast<void (*)()>(g);
  __atomic_store_n(&enter, reinterpret_cast<Enter>(f), __ATOMIC_SEQ_CST);
}

// The handler. Attributes, by name: `call`, the program; `zero`, a bit for each result that has to
// be zero before it runs.
EXPORT XLA_FFI_Error* eng_ffi_call(XLA_FFI_CallFrame* frame) {
  if (asked(frame)) return nullptr;
  if (frame->attrs.size != 2 || frame->args.size + frame->rets.size > MOST)
    return error(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT, "not a call of a kernel");
  void* pointers[MOST];
  int64_t count = 0;
  for (int64_t k = 0; k < frame->args.size; ++k)
    pointers[count++] = static_cast<XLA_FFI_Buffer*>(frame->args.args[k])->data;
  int64_t zero = scalar(frame, 1);
  for (int64_t k = 0; k < frame->rets.size; ++k) {
    XLA_FFI_Buffer* b = static_cast<XLA_FFI_Buffer*>(frame->rets.rets[k]);
    pointers[count++] = b->data;
    if (k < 63 && (zero >> k & 1)) memset(b->data, 0, bytes_of(b));
  }
  Enter f = __atomic_load_n(&enter, __ATOMIC_SEQ_CST);
  if (!f) return error(frame, XLA_FFI_Error_Code_UNAVAILABLE, "Python has ended");
  char words[ROOM];
  words[0] = 0;
  int code = f(scalar(frame, 0), pointers, count, words, ROOM);
  if (code == 0) return nullptr;
  if (code == 2 && interrupt) interrupt();
  return error(frame, XLA_FFI_Error_Code_INTERNAL, words);
}

// ---- for handlers that are Python functions

EXPORT int eng_ffi_asked(XLA_FFI_CallFrame* frame) { return asked(frame); }

EXPORT XLA_FFI_Error* eng_ffi_error(XLA_FFI_CallFrame* frame, const char* message) {
  return error(frame, XLA_FFI_Error_Code_INTERNAL, message);
}

// Writes down a call in 64-bit words, and returns how many there are; no more than `room` are
// written. Counts of operands, results and attributes, the stage; then for each buffer its type,
// address, rank and extents; for each attribute its kind, type of element, the address and length
// of its name, and the address and count of its elements.
EXPORT int64_t eng_ffi_look(XLA_FFI_CallFrame* frame, int64_t* words, int64_t room) {
  int64_t n = 0;
  auto put = [&](int64_t v) {
    if (n < room) words[n] = v;
    ++n;
  };
  auto buffer = [&](void* given) {
    XLA_FFI_Buffer* b = static_cast<XLA_FFI_Buffer*>(given);
    put(b->dtype);
    put(reinterpret_cast<int64_t>(b->data));
    put(b->rank);
    for (int64_t d = 0; d < b->rank; ++d) put(b->dims[d]);
  };
  put(frame->args.size);
  put(frame->rets.size);
  put(frame->attrs.size);
  put(frame->stage);
  for (int64_t k = 0; k < frame->args.size; ++k) buffer(frame->args.args[k]);
  for (int64_t k = 0; k < frame->rets.size; ++k) buffer(frame->rets.rets[k]);
  for (int64_t k = 0; k < frame->attrs.size; ++k) {
    int64_t kind = frame->attrs.types[k], type = 0, at = 0, count = 1;
    void* given = frame->attrs.attrs[k];
    if (kind == XLA_FFI_AttrType_SCALAR) {
      XLA_FFI_Scalar* s = static_cast<XLA_FFI_Scalar*>(given);
      type = s->dtype, at = reinterpret_cast<int64_t>(s->value);
    } else if (kind == XLA_FFI_AttrType_ARRAY) {
      XLA_FFI_Array* a = static_cast<XLA_FFI_Array*>(given);
      type = a->dtype, at = reinterpret_cast<int64_t>(a->data), count = a->size;
    } else if (kind == XLA_FFI_AttrType_STRING) {
      XLA_FFI_ByteSpan* s = static_cast<XLA_FFI_ByteSpan*>(given);
      at = reinterpret_cast<int64_t>(s->ptr), count = s->len;
    }
    put(kind);
    put(type);
    put(reinterpret_cast<int64_t>(frame->attrs.names[k]->ptr));
    put(frame->attrs.names[k]->len);
    put(at);
    put(count);
  }
  return n;
}
