#include "execute/queue_order.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "ranks/numbers.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

const std::string kSeeded = "seeded";

}  // namespace

QueueOrder queue_order_from(const std::string& text) {
  if (text == "listed") return {.kind = QueueOrder::Kind::listed};
  if (text == "early") return {.kind = QueueOrder::Kind::early};
  if (text == "late") return {.kind = QueueOrder::Kind::late};
  if (text == kSeeded) return {.kind = QueueOrder::Kind::seeded};
  if (text.starts_with(kSeeded + "=")) {
    QueueOrder order{.kind = QueueOrder::Kind::seeded};
    const char* begin = text.data() + kSeeded.size() + 1;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(begin, end, order.seed);
    if (error == std::errc{} && stop == end) return order;
    refuse("--order", text, "has no seed", "seeded=N, N a whole number");
  }
  const std::vector<std::string> words = {"early", "late", kSeeded, "listed"};
  throw InputError({.where = "--order",
                    .value = text,
                    .problem = "is no order of queues",
                    .allowed = "early, late, seeded, seeded=N or listed",
                    .nearest = nearest(text, words)});
}

std::string text_of(const QueueOrder& order) {
  switch (order.kind) {
    case QueueOrder::Kind::listed:
      return "listed";
    case QueueOrder::Kind::early:
      return "early";
    case QueueOrder::Kind::late:
      return "late";
    case QueueOrder::Kind::seeded:
      return kSeeded + "=" + std::to_string(order.seed);
  }
  return "";
}

namespace execute {

std::array<Stream, kStreamCount> queues_in_order(QueueOrder::Kind kind) {
  std::array<Stream, kStreamCount> queues = {Stream::communication, Stream::to_host,
                                             Stream::from_host, Stream::compute};
  if (kind == QueueOrder::Kind::late) std::ranges::reverse(queues);
  return queues;
}

DrawnOrder::DrawnOrder(std::uint64_t seed, int ranks) : seed_(seed) {
  for (int r = 0; r < ranks; ++r) {
    for (int s = 0; s < kStreamCount; ++s) queues_.push_back({r, static_cast<Stream>(s)});
  }
  for (std::size_t last = queues_.size() - 1; last > 0; --last) {
    std::swap(queues_[last], queues_[draw(last + 1)]);
  }
}

std::uint64_t DrawnOrder::draw(std::uint64_t below) {
  return ranks::mixed(seed_ ^ ranks::mixed(++drawn_)) % below;
}

void DrawnOrder::begin_step(std::size_t instructions) {
  done_ = 0;
  for (std::uint64_t& moment : moments_) moment = draw(instructions + 1);
}

void DrawnOrder::went_on(std::size_t place) {
  ++done_;
  if (std::ranges::find(moments_, done_) == moments_.end()) return;
  const auto one = queues_.begin() + static_cast<std::ptrdiff_t>(place);
  std::rotate(one, one + 1, queues_.end());
}

}  // namespace execute
}  // namespace placet
