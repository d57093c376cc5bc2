// What updates move and multiply, optimizer by optimizer: bytes of each element by hand.
#include "derive/update_time.h"

#include <gtest/gtest.h>

#include "catalog/training_catalog.h"
#include "derive/small_cluster.h"
#include "derive/time.h"
#include "derive/traffic.h"

namespace placet {
namespace {

Dim of(std::int64_t size) { return {.index = Index::other, .size = size, .parts = size}; }

Optimizer optimizer(const std::string& name) {
  return load_optimizer(repository_data(), name, "test");
}

/// 800 elements on each of two devices at 1000 GB/s: bf16 parameters and gradients, fp32 master.
Job bare_job(const std::string& name, const std::string& placement = "dp=2:ddp") {
  Job job = written_job(bare_model(800, 1), placement, 1, 2);
  job.optimizer = optimizer(name);
  job.cluster = small_cluster(2);
  return job;
}

/// Bytes of a device's update at 1000 GB/s, per element of so many.
double bytes_per_element(const Job& job, double elements = 800) {
  return in_seconds(total_of(derive_time(job), TimeKind::update)) * 1e12 / elements;
}

// Master read and written 8, parameter written 2, gradient read 2; each fp32 moment 8, each in bf16
// 4, in 8 bits 2 and two constants of four blocks of 256: 64 bytes in all.
TEST(UpdateTime, EachOptimizerMovesItsOwnStates) {
  EXPECT_EQ(bytes_per_element(bare_job("none")), 0);
  EXPECT_NEAR(bytes_per_element(bare_job("sgd")), 12, 1e-9);
  EXPECT_NEAR(bytes_per_element(bare_job("momentum")), 20, 1e-9);
  EXPECT_NEAR(bytes_per_element(bare_job("lion")), 20, 1e-9);
  EXPECT_NEAR(bytes_per_element(bare_job("adamw")), 28, 1e-9);
  EXPECT_NEAR(bytes_per_element(bare_job("adamw-bf16")), 20, 1e-9);
  EXPECT_NEAR(bytes_per_element(bare_job("adam-8bit")), 16 + 64.0 / 800, 1e-9);
}

// Without a master: parameters read and written in their own format.
TEST(UpdateTime, FormatsOfTheJobCount) {
  Job job = bare_job("adamw");
  job.precision.gradients = Dtype::fp32;
  EXPECT_NEAR(bytes_per_element(job), 28 + 2, 1e-9);
  job.precision.parameters = Dtype::fp32;
  job.precision.master.reset();
  EXPECT_NEAR(bytes_per_element(job), 8 + 16 + 4, 1e-9);
  job.precision = {.master = std::nullopt};
  EXPECT_NEAR(bytes_per_element(job), 4 + 16 + 2, 1e-9);
}

// A matrix of 40 x 20 has 60 numbers of statistics, read and written: 480 bytes. The gradient is
// read three times, the master twice: 6 + 12 + 2 bytes an element.
TEST(UpdateTime, AdafactorReadsItsGradientsThrice) {
  const Job job = bare_job("adafactor");
  const Layout layout = lay_out(job, prepare(job));
  Parameter matrix = job.model.kinds[0].parameters[0];
  matrix.dims = {of(40), of(20)};
  EXPECT_NEAR(update_bytes(layout, matrix, layout.units[0].parameters[0]), 800 * 20 + 480, 1e-9);
}

// ZeRO-1: the half of the elements. A state that only rests in halves is updated whole.
TEST(UpdateTime, OwnersUpdateTheirParts) {
  EXPECT_NEAR(bytes_per_element(bare_job("adamw", "dp=2:zero1")), 28.0 / 2, 1e-9);
  EXPECT_NEAR(bytes_per_element(bare_job("adamw", "dp=2:batch(R,S*,S,R)")), 28, 1e-9);
}

// Nothing is written where parameters are made from the master when they are used.
TEST(UpdateTime, ParametersThatRestNowhereAreNotWritten) {
  EXPECT_NEAR(bytes_per_element(bare_job("adamw", "dp=2:batch(M,S,S,R)")), 26.0 / 2, 1e-9);
}

// Operation by operation AdamW reads and writes 20 fp32 numbers, SGD 3: no more than what it moves
// at least, with the copy in bf16. What the engine adds, and clipping, comes on top.
TEST(UpdateTime, EnginesAddTheirKernels) {
  Job job = bare_job("adamw");
  job.profile.timing.update_in_steps = true;
  EXPECT_NEAR(bytes_per_element(job), 80, 1e-9);
  job.profile.timing.update_extra_bytes = 6;
  EXPECT_NEAR(bytes_per_element(job), 86, 1e-9);
  job.clips_by_global_norm = true;
  job.profile.timing.clip_bytes = 4;
  EXPECT_NEAR(bytes_per_element(job), 90, 1e-9);
  job.optimizer = optimizer("sgd");
  EXPECT_NEAR(bytes_per_element(job), 12 + 10, 1e-9);
  job.optimizer = optimizer("none");
  EXPECT_EQ(bytes_per_element(job), 0);
}

// Arithmetic counts where it takes longer than memory: 16 operations of 800 elements at a sixteenth
// of 1.6 GFLOP/s, or of 16 FLOP/s: a rate has no least value.
TEST(UpdateTime, ArithmeticCountsWhereItIsLonger) {
  Job job = bare_job("adamw");
  DeviceRates& rates = job.cluster->groups.front().device.rates;
  rates.matmul[static_cast<std::size_t>(MatmulFormat::bf16)] = teraflops_per_second(1.6e-3);
  EXPECT_NEAR(in_seconds(total_of(derive_time(job), TimeKind::update)), 16 * 800 / 1e8, 1e-12);
  rates.matmul[static_cast<std::size_t>(MatmulFormat::bf16)] = teraflops_per_second(16e-12);
  EXPECT_NEAR(in_seconds(total_of(derive_time(job), TimeKind::update)), 16 * 800, 1e-6);
}

/// One matrix of 128 x 512 in the place of the model's tensor.
struct OneMatrix {
  explicit OneMatrix(const std::string& placement) : job(made(placement)) {}

  static Job made(const std::string& placement) {
    Job job = written_job(bare_model(128 * 512, 1), placement, 1, 2);
    job.model.kinds[0].parameters[0].dims = {of(512), of(128)};
    job.optimizer = optimizer("muon");
    job.cluster = small_cluster(2);
    return job;
  }

  Seconds products() const {
    const Layout layout = lay_out(job, prepare(job));
    return matrices_time(layout, job.model.kinds[0].parameters[0], layout.units[0].parameters[0],
                         job.cluster->groups.front().device.rates);
  }

  Job job;
};

// Ten multiprocessors at 50 TFLOP/s together, tiles of 128 x 128. X X^T is one tile of depth 512:
// 2 x 128 x 128 x 512 FLOPs at 5 TFLOP/s, 3.355 us. Its square and its product with X are one wave
// of depth 128, 0.839 us: less than the shortest kernel, 1 us. Five iterations.
TEST(UpdateTime, MuonMultipliesWholeMatrices) {
  const double iteration = 2.0 * 128 * 128 * 512 / 5e12 + 1e-6 + 1e-6;
  const OneMatrix whole("dp=2:ddp");
  EXPECT_NEAR(in_seconds(whole.products()), 5 * iteration, 1e-12);
  // One of two owners has half of all matrices.
  EXPECT_NEAR(in_seconds(OneMatrix("dp=2:zero1").products()), 5 * iteration / 2, 1e-12);
  // Momentum 8, master 8, parameter 2, gradient 2; the matrix itself in bf16 five times 10.
  EXPECT_NEAR(in_seconds(total_of(derive_time(whole.job), TimeKind::update)),
              5 * iteration + 128 * 512 * 30.0 / 1e12, 1e-12);
  OneMatrix adamw("dp=2:ddp");
  adamw.job.optimizer = optimizer("adamw");
  EXPECT_EQ(adamw.products(), Seconds());
}

// On the host what is streamed passes its link; the products take no less there than on the device.
TEST(UpdateTime, AHostMultipliesMatricesNoQuicker) {
  const OneMatrix away("dp=2:ddp+offload(optimizer)");
  const double link = in_bytes_per_second(away.job.cluster->groups.front().host_link);
  const double iteration = 2.0 * 128 * 128 * 512 / 5e12 + 1e-6 + 1e-6;
  EXPECT_NEAR(in_seconds(total_of(derive_time(away.job), TimeKind::update)),
              5 * iteration + 128 * 512 * 30.0 / link, 1e-12);
}

// Each of two tensor ranks puts the matrices together and orthogonalises them whole: its time does
// not fall, what it streams does. Embedding and head are updated as by AdamW.
TEST(UpdateTime, MatricesTornByTensorCutsAreUpdatedWhole) {
  const auto products = [](const std::string& placement) {
    Job job = written_job(build_model(wide_architecture(1)), placement, 8, 2);
    job.optimizer = optimizer("muon");
    job.cluster = small_cluster(2);
    const Layout layout = lay_out(job, prepare(job));
    const DeviceRates& rates = job.cluster->groups.front().device.rates;
    std::vector<Seconds> out;
    for (const LocalUnit& unit : layout.units) {
      const UnitKind& kind = job.model.kinds[static_cast<std::size_t>(unit.kind)];
      Seconds all;
      for (std::size_t p = 0; p < unit.parameters.size(); ++p) {
        all += matrices_time(layout, kind.parameters[p], unit.parameters[p], rates);
      }
      out.push_back(all);
    }
    return out;
  };
  const std::vector<Seconds> whole = products("dp=2:ddp");
  EXPECT_EQ(products("tp=2:tp"), whole);
  // Seven matrices of a block, each five times three kernels of 1 us.
  EXPECT_NEAR(in_seconds(whole[1]), 7 * 15e-6, 1e-12);
  EXPECT_EQ(whole[0], Seconds());
  EXPECT_EQ(whole[2], Seconds());
}

// Gradients joined into buckets and copied back: every element of the device, also of parameters
// that others update. Adam's 28 bytes of its half; one device alone reduces nothing.
TEST(UpdateTime, GradientsAreFlattenedWhoeverUpdatesThem) {
  Job job = bare_job("adamw", "dp=2:zero1");
  EXPECT_NEAR(bytes_per_element(job), 14, 1e-9);
  job.profile.timing.flattened_bytes = 8;
  EXPECT_NEAR(bytes_per_element(job), 14 + 8, 1e-9);
}

}  // namespace
}  // namespace placet
