// What exact sums cost: a contraction in canonical numbers beside a plain chain of binary32 sums.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "execute/kernel_run.h"
#include "program/kernel_text.h"

namespace placet::execute {
namespace {

constexpr std::int64_t kRows = 64;
constexpr std::int64_t kTerms = 512;
constexpr std::int64_t kColumns = 64;

float drawn(std::size_t k) { return static_cast<float>(k % 1000) / 512.0F - 1.0F; }

void plain_chain(benchmark::State& state) {
  std::vector<float> x(kRows * kTerms);
  std::vector<float> w(kColumns * kTerms);
  std::vector<float> y(kRows * kColumns);
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = drawn(k);
  for (std::size_t k = 0; k < w.size(); ++k) w[k] = drawn(7 * k);
  for (auto unused : state) {
    for (std::int64_t s = 0; s < kRows; ++s) {
      for (std::int64_t o = 0; o < kColumns; ++o) {
        float sum = 0;
        const float* a = x.data() + s * kTerms;
        const float* b = w.data() + o * kTerms;
        for (std::int64_t i = 0; i < kTerms; ++i) sum += a[i] * b[i];
        y[static_cast<std::size_t>(s * kColumns + o)] = sum;
      }
    }
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kRows * kTerms * kColumns);
}
BENCHMARK(plain_chain);

template <class Numbers>
void contraction(benchmark::State& state, const char* text) {
  using Stored = typename Numbers::Stored;
  const Kernel kernel = kernel_from(text);
  const KernelCode code = ranks::compile(kernel, {kRows, kTerms, kColumns}, ranks::Tables::none);
  std::vector<std::vector<Stored>> tensors;
  std::vector<Stored*> places;
  for (int t = 0; t < 3; ++t) {
    std::vector<Stored>& numbers = tensors.emplace_back(code.sizes[static_cast<std::size_t>(t)]);
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      if constexpr (std::is_same_v<Stored, Number>) {
        bool fits = true;
        numbers[k] = number_of_real(static_cast<double>(drawn(k)), fits);
      } else {
        numbers[k] = drawn(k);
      }
    }
  }
  for (std::vector<Stored>& numbers : tensors) places.push_back(numbers.data());
  const FunctionTable functions{Meanings{}};
  KernelRunner<Numbers> runner(functions);
  std::vector<Level> levels(3, 0);
  for (auto unused : state) {
    const bool fits = runner.run(code, places.data(), levels, {});
    benchmark::DoNotOptimize(fits);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kRows * kTerms * kColumns);
}

constexpr const char* kForward =
    "kernel k(x[s i], w[o i]) -> (y[s o]) {\n y[s o] = x[s i] * w[o i]\n}";
constexpr const char* kTurned =
    "kernel k(x[s i], w[i o]) -> (y[s o]) {\n y[s o] = x[s i] * w[i o]\n}";

void canonical(benchmark::State& state) { contraction<CanonicalNumbers>(state, kForward); }
BENCHMARK(canonical);
void canonical_turned(benchmark::State& state) { contraction<CanonicalNumbers>(state, kTurned); }
BENCHMARK(canonical_turned);
void single_numbers(benchmark::State& state) { contraction<PlainNumbers<float>>(state, kForward); }
BENCHMARK(single_numbers);

}  // namespace
}  // namespace placet::execute
