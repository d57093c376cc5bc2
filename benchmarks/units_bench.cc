// What strong types and overflow checks cost: a sum of bytes beside the sum of the plain integers.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "units/quantity.h"

namespace placet {
namespace {

constexpr std::int64_t kTerms = 1000;

void sum_of_bytes(benchmark::State& state) {
  const std::vector<Bytes> terms(kTerms, mebibytes(3));
  for (auto unused : state) {
    Bytes total;
    for (const Bytes term : terms) total += term * count(2);
    benchmark::DoNotOptimize(total);
  }
  state.SetItemsProcessed(state.iterations() * kTerms);
}
BENCHMARK(sum_of_bytes);

void sum_of_integers(benchmark::State& state) {
  const std::vector<std::int64_t> terms(kTerms, 3 << 20);
  for (auto unused : state) {
    std::int64_t total = 0;
    for (const std::int64_t term : terms) total += term * 2;
    benchmark::DoNotOptimize(total);
  }
  state.SetItemsProcessed(state.iterations() * kTerms);
}
BENCHMARK(sum_of_integers);

}  // namespace
}  // namespace placet
