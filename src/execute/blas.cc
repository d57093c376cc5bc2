#include "execute/blas.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>

#include "units/error.h"

namespace placet::execute {
namespace {

/// In this order: those that are tuned, then the plain one of Debian's name.
constexpr std::array<const char*, 4> kLibraries = {"libopenblas.so.0", "libopenblas.so",
                                                   "libblis.so.4", "libblas.so.3"};

/// Null: the library has none of that name.
template <class Pointer>
Pointer symbol(void* library, const char* name) {
  return reinterpret_cast<Pointer>(dlsym(library, name));
}

Blas opened(const char* name) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {};
  Blas found{.library = name,
             .single = symbol<SingleProduct>(library, "cblas_sgemm"),
             .twice = symbol<DoubleProduct>(library, "cblas_dgemm")};
  if (found.single == nullptr || found.twice == nullptr) return {};
  for (const char* limit : {"openblas_set_num_threads", "bli_thread_set_num_threads"}) {
    const auto set_threads = symbol<void (*)(int)>(library, limit);
    if (set_threads != nullptr) set_threads(1);
  }
  return found;
}

/// OpenBLAS takes a processor that is newer than it for a very old one: the instructions that it
/// has are told instead.
void tell_instructions() {
#if defined(__x86_64__)
  constexpr const char* kVariable = "OPENBLAS_CORETYPE";
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    setenv(kVariable, "SkylakeX", 0);
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    setenv(kVariable, "Haswell", 0);
  }
#endif
}

Blas searched() {
  tell_instructions();
  const char* asked = std::getenv("PLACET_BLAS");
  if (asked != nullptr && std::string(asked) == "none") return {};
  if (asked != nullptr) {
    Blas found = opened(asked);
    if (!found.library.empty()) return found;
    throw InputError({.where = "PLACET_BLAS",
                      .value = asked,
                      .problem = "is no library of products of matrices that can be opened here",
                      .allowed = "the file of a BLAS with cblas_sgemm, or none"});
  }
  for (const char* name : kLibraries) {
    if (Blas found = opened(name); !found.library.empty()) return found;
  }
  return {};
}

}  // namespace

const Blas& blas() {
  static const Blas kFound = searched();
  return kFound;
}

}  // namespace placet::execute
