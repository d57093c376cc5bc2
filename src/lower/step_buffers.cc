// Buffers that all units know: the stream between them, what a micro-batch brings.
#include "lower/unit_passes.h"

#include "units/at.h"

namespace placet {
namespace {

const BufferType kScalarType{.dtype = Dtype::fp32, .pieces = {{}}, .flat = {}};

}  // namespace

Spread stream_spread(Lowering& in) {
  Spread spread;
  for (std::size_t d = 0; d < in.model.dims.size(); ++d) {
    const Index index = in.model.indices[d];
    if (index != Index::sample && index != Index::token && index != Index::hidden) continue;
    const bool other =
        index == Index::hidden && in.model.dims[d].extent != in.job.model.figures.hidden;
    if (other) continue;
    spread.tensor.push_back(static_cast<int>(d));
    spread.by.push_back(in.layouts.division(static_cast<int>(d), Place::stream));
  }
  return spread;
}

BufferRef stream_buffer(Lowering& in, bool gradient, std::int64_t units_further) {
  const int family = in.writer.family(gradient ? "d.stream" : "stream",
                                      type_of(stream_spread(in), in.job.precision.compute),
                                      Indexing::unit_and_micro_batch);
  BufferRef ref = in.writer.here(family);
  ref.unit.offset = units_further;
  return ref;
}

BufferRef input_buffer(Lowering& in, int input) {
  const ReferenceInput& what = in.model.reference.inputs[at(input)];
  Spread spread{.tensor = what.dims, .by = {}, .partial = {}};
  for (int d : what.dims) spread.by.push_back(in.layouts.division(d, Place::parallel));
  const Dtype dtype = input == in.model.reference.weights ? Dtype::fp32 : Dtype::int64;
  return in.writer.here(in.writer.family(what.name, type_of(spread, dtype), Indexing::micro_batch));
}

BufferRef count_buffer(Lowering& in) {
  return {.family = in.writer.family("tokens", kScalarType, Indexing::none)};
}

BufferRef number_buffer(Lowering& in, std::size_t number) {
  return {.family =
              in.writer.family(in.model.reference.numbers.at(number), kScalarType, Indexing::none)};
}

BufferRef loss_buffer(Lowering& in) {
  return {.family = in.writer.family("loss", kScalarType, Indexing::none)};
}

}  // namespace placet
