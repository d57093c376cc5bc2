#include "search/work_flow.h"

#include <algorithm>

#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr std::uint32_t kFromTheBeginning = 0;
constexpr std::uint32_t kForNobody = 1;
constexpr std::uint32_t kFirstCell = 2;

/// Works through the orders of all devices, each as far as its inputs are there.
class FlowLayout {
 public:
  explicit FlowLayout(const PipelineForm& form)
      : micro_batches_(form.micro_batches),
        cells_(static_cast<std::uint32_t>(pipeline_cells(form))),
        there_(kFirstCell + 2 * cells_, false) {
    there_[kFromTheBeginning] = true;
    for (std::int64_t d = 0; d < form.degree; ++d) {
      Device& device = devices_.emplace_back();
      device.order = work_of(form, d);
      device.first_chunk = chunks_;
      for (std::int64_t c = 0; c < form.schedule.chunks; ++c) {
        device.seats.push_back(seat_of(form, d, c));
      }
      chunks_ += static_cast<std::uint32_t>(device.seats.size());
    }
  }

  /// What a piece needs, makes and is as long as, by places.
  struct Places {
    std::uint32_t input = 0;
    std::uint32_t output = 0;
    std::uint32_t length = 0;
    std::size_t device = 0;
    bool receives = false;
    bool sends = false;
  };

  /// Calls take(places) for one piece after the other.
  template <class Take>
  void run(Take take) {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t d = 0; d < devices_.size(); ++d) {
        while (devices_[d].next < devices_[d].order.size() && start(d, take)) moved = true;
      }
    }
    for (const Device& device : devices_) {
      ensure(device.next == device.order.size(), "the order of work does not deadlock");
    }
  }

  std::size_t outputs() const { return there_.size(); }

 private:
  struct Device {
    std::vector<Work> order;
    std::vector<PipelineSeat> seats;  // by chunk
    std::uint32_t first_chunk = 0;
    std::size_t next = 0;
  };

  std::uint32_t forward(std::int64_t cell) const {
    return kFirstCell + static_cast<std::uint32_t>(cell);
  }
  std::uint32_t backward(std::int64_t cell) const { return forward(cell) + cells_; }

  std::uint32_t input_of(const PipelineSeat& seat, std::int64_t cell, Work::Kind kind) const {
    if (kind == Work::Kind::backward_weight) return kFromTheBeginning;
    if (kind == Work::Kind::forward) {
      return seat.receives(kind) ? forward(cell - micro_batches_) : kFromTheBeginning;
    }
    return seat.receives(kind) ? backward(cell + micro_batches_) : forward(cell);
  }

  std::uint32_t output_of(std::int64_t cell, Work::Kind kind) const {
    if (kind == Work::Kind::backward_weight) return kForNobody;
    return kind == Work::Kind::forward ? forward(cell) : backward(cell);
  }

  /// False: its input is not there yet.
  template <class Take>
  bool start(std::size_t d, Take& take) {
    Device& device = devices_[d];
    const Work& work = device.order[device.next];
    const PipelineSeat& seat = device.seats[at(work.chunk)];
    const std::int64_t cell = seat.first_cell + work.micro_batch;
    const std::uint32_t input = input_of(seat, cell, work.kind);
    if (!there_[input]) return false;
    const std::uint32_t output = output_of(cell, work.kind);
    const auto chunk = static_cast<std::uint32_t>(device.first_chunk + work.chunk);
    there_[output] = true;
    ++device.next;
    take(Places{.input = input,
                .output = output,
                .length = 4 * chunk + static_cast<std::uint32_t>(work.kind),
                .device = d,
                .receives = seat.receives(work.kind),
                .sends = seat.sends(work.kind)});
    return true;
  }

  std::int64_t micro_batches_;
  std::uint32_t cells_;
  std::vector<bool> there_;  // by output
  std::vector<Device> devices_;
  std::uint32_t chunks_ = 0;
};

}  // namespace

WorkFlow::WorkFlow(const PipelineForm& form) : clocks_(at(form.degree), 0) {
  FlowLayout layout(form);
  done_.resize(layout.outputs(), 0);
  layout.run([&](const FlowLayout::Places& own) {
    pieces_.push_back({.input = own.input,
                       .output = own.output,
                       .length = own.length,
                       .device = static_cast<std::uint16_t>(own.device),
                       .receives = static_cast<std::uint8_t>(own.receives ? 1 : 0),
                       .sends = static_cast<std::uint8_t>(own.sends ? 1 : 0)});
  });
}

double WorkFlow::seconds(const std::vector<PieceLengths>& chunks, const FlowMessages& messages,
                         const std::vector<double>& after) {
  const std::array<double, 2> on_its_way = {0, messages.time};
  const std::array<double, 2> held_up = {0, messages.sender_waits ? messages.time : 0};
  std::ranges::fill(clocks_, 0.0);
  const double* lengths = chunks.front().data();
  for (const Piece& piece : pieces_) {
    double& clock = clocks_[piece.device];
    clock =
        std::max(clock, done_[piece.input] + on_its_way[piece.receives]) + lengths[piece.length];
    done_[piece.output] = clock;
    clock += held_up[piece.sends];
  }
  for (std::size_t d = 0; d < after.size(); ++d) clocks_[d] += after[d];
  return std::ranges::max(clocks_);
}

}  // namespace placet
