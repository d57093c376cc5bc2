#include "catalog/device_rates.h"

#include <algorithm>
#include <array>

namespace placet {
namespace {

constexpr Range kGigabytes{0.01, 1'000'000};
constexpr std::array<std::string_view, kMatmulFormatCount> kFormats = {"bf16", "fp16", "fp8", "fp4",
                                                                       "fp32"};

// What devices reach for which nobody has measured it: the shares of those with figures.
constexpr double kShareOfPeak = 0.72;
constexpr double kShareOfBandwidth = 0.85;
constexpr double kFillDepth = 120;
constexpr double kUnaligned = 0.35;
constexpr double kKernelMicroseconds = 3;
constexpr double kMessageShare = 0.1;
constexpr std::int64_t kMultiprocessors = 100;

void suppose(std::vector<Fact>& facts, const std::string& key, double value,
             const std::string& why) {
  facts.push_back({.key = key,
                   .value = std::to_string(value),
                   .source = "supposed: " + why + " (docs/theory.md, section 7.2)"});
}

double figure_or(const std::optional<Reader>& compute, const char* key, Range range, double other,
                 std::vector<Fact>& facts) {
  if (compute) {
    if (const auto figure = compute->find(key)) return read_figure(*figure, range, facts);
  }
  suppose(facts, std::string("compute.") + key, other, "no figure of this device");
  return other;
}

void read_matmul(const Reader& file, const std::optional<Reader>& compute, Device& device,
                 std::vector<Fact>& facts) {
  const auto known = compute ? compute->find("matmul_tflops") : std::nullopt;
  if (known) known->allow({"bf16", "fp16", "fp8", "fp4", "fp32"});
  for (std::size_t f = 0; f < kFormats.size(); ++f) {
    const std::string format(kFormats[f]);
    if (const auto figure = known ? known->find(format) : std::nullopt) {
      device.rates.matmul[f] = teraflops_per_second(read_figure(*figure, kTeraflops, facts));
      continue;
    }
    const auto peak = file.at("peak_tflops").find(format);
    if (!peak) continue;
    const double reached = peak->at("value").number(kTeraflops) * kShareOfPeak;
    suppose(facts, "compute.matmul_tflops." + format, reached, "72 % of the peak");
    device.rates.matmul[f] = teraflops_per_second(reached);
  }
}

void read_tiles(const std::optional<Reader>& compute, DeviceRates& rates,
                std::vector<Fact>& facts) {
  const auto tiles = compute ? compute->find("tiles") : std::nullopt;
  if (!tiles) {
    rates.tiles = {{.rows = 128, .columns = 256}, {.rows = 256, .columns = 128}};
    return;
  }
  tiles->allow({"value", "source", "date"});
  for (const Reader& tile : tiles->at("value").items()) {
    tile.allow({"rows", "columns", "efficiency"});
    rates.tiles.push_back({.rows = tile.at("rows").whole({1, 4096}),
                           .columns = tile.at("columns").whole({1, 4096}),
                           .efficiency = tile.at("efficiency").number({0.01, 1})});
  }
  if (rates.tiles.empty()) tiles->at("value").fail("is empty", "at least one tile");
  facts.push_back({.key = tiles->path(),
                   .value = tiles->at("value").print(),
                   .source = tiles->at("source").text() + " (" + tiles->at("date").text() + ")"});
}

void read_epilogue(const std::optional<Reader>& compute, DeviceRates& rates,
                   std::vector<Fact>& facts) {
  const auto overlaps = compute ? compute->find("overlaps_epilogue") : std::nullopt;
  if (!overlaps) return;
  overlaps->allow({"value", "source", "date"});
  rates.overlaps_epilogue = overlaps->at("value").flag();
  facts.push_back(
      {.key = overlaps->path(),
       .value = overlaps->at("value").print(),
       .source = overlaps->at("source").text() + " (" + overlaps->at("date").text() + ")"});
}

// [[x, y], ...] with x rising.
Curve read_curve(const Reader& list, Range x, Range y) {
  Curve curve;
  for (const Reader& pair : list.items()) {
    const std::vector<Reader> numbers = pair.items();
    if (numbers.size() != 2) pair.fail("is no point", "[x, y]");
    const Curve::Point point{.x = numbers[0].number(x), .y = numbers[1].number(y)};
    if (!curve.points.empty() && point.x <= curve.points.back().x) {
      pair.fail("does not follow the point before it", "x rising");
    }
    curve.points.push_back(point);
  }
  if (curve.points.empty()) list.fail("is empty", "at least one point");
  return curve;
}

AttentionRates read_attention(const Reader& kernel, std::vector<Fact>& facts) {
  kernel.allow({"kernel", "kind", "heads", "source", "date"});
  AttentionRates rates{.kernel = kernel.at("kernel").text(), .heads = {}};
  for (const Reader& head : kernel.at("heads").items()) {
    head.allow({"size", "forward", "backward"});
    const std::int64_t size = head.at("size").whole({1, 1024});
    if (!rates.heads.empty() && size <= rates.heads.back().size) {
      head.at("size").fail("does not follow the size before it", "sizes rising");
    }
    rates.heads.push_back({.size = size,
                           .forward = read_curve(head.at("forward"), {1, 1e9}, kTeraflops),
                           .backward = read_curve(head.at("backward"), {1, 1e9}, kTeraflops)});
  }
  facts.push_back({.key = kernel.path() + "." + rates.kernel,
                   .value = kernel.at("heads").print(),
                   .source = kernel.at("kind").text() + ": " + kernel.at("source").text() + " (" +
                             kernel.at("date").text() + ")"});
  return rates;
}

}  // namespace

void read_rates(const Reader& device_file, Device& device, std::vector<Fact>& facts) {
  const auto compute = device_file.find("compute");
  if (compute) {
    compute->allow({"multiprocessors", "matmul_tflops", "tiles", "fill_depth", "unaligned",
                    "memory_gb_s", "kernel_us", "message_share", "overlaps_epilogue"});
  }
  DeviceRates& rates = device.rates;
  rates.multiprocessors = static_cast<std::int64_t>(
      figure_or(compute, "multiprocessors", {1, 10'000}, kMultiprocessors, facts));
  read_matmul(device_file, compute, device, facts);
  read_tiles(compute, rates, facts);
  rates.unaligned = figure_or(compute, "unaligned", {0.01, 1}, kUnaligned, facts);
  rates.fill_depth = figure_or(compute, "fill_depth", {0, 10'000}, kFillDepth, facts);
  read_epilogue(compute, rates, facts);
  rates.memory = gigabytes_per_second(
      figure_or(compute, "memory_gb_s", kGigabytes,
                in_bytes_per_second(device.memory_bandwidth) / 1e9 * kShareOfBandwidth, facts));
  rates.kernel =
      microseconds(figure_or(compute, "kernel_us", {0, 1000}, kKernelMicroseconds, facts));
  rates.message_share = figure_or(compute, "message_share", {0, 1}, kMessageShare, facts);
  if (const auto kernels = device_file.find("attention")) {
    for (const Reader& kernel : kernels->items()) {
      rates.attention.push_back(read_attention(kernel, facts));
    }
  }
}

std::vector<BusCurve> read_bus_curves(const Reader& link_file, std::vector<Fact>& facts) {
  std::vector<BusCurve> curves;
  const auto measured = link_file.find("all_reduce");
  if (!measured) return curves;
  measured->allow({"groups", "source", "date"});
  for (const Reader& group : measured->at("groups").items()) {
    group.allow({"devices", "bytes_and_gb_s"});
    const std::int64_t devices = group.at("devices").whole({2, 1'000'000});
    if (!curves.empty() && devices <= curves.back().group) {
      group.at("devices").fail("does not follow the group before it", "groups rising");
    }
    curves.push_back(
        {.group = devices,
         .gigabytes_per_second = read_curve(group.at("bytes_and_gb_s"), {1, 1e15}, kGigabytes)});
  }
  facts.push_back({.key = measured->path(),
                   .value = measured->at("groups").print(),
                   .source = "measured: " + measured->at("source").text() + " (" +
                             measured->at("date").text() + ")"});
  return curves;
}

}  // namespace placet
