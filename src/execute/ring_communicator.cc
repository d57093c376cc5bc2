#include "execute/ring_communicator.h"

#include <algorithm>
#include <array>
#include <utility>

#include "units/at.h"

namespace placet::execute {
namespace {

constexpr std::chrono::milliseconds kNap{50};

}  // namespace

RingCommunicator::RingCommunicator(int own, int ends, SharedRings& rings,
                                   std::function<void()> watch)
    : own_(own), rings_(rings), watch_(std::move(watch)), incoming_(at(ends)) {}

std::optional<Bytes> RingCommunicator::receive(int from, const Label& label) {
  auto found = come_.find({from, label});
  if (found == come_.end()) {
    take_in(from);
    found = come_.find({from, label});
  }
  if (found == come_.end()) return std::nullopt;
  Bytes bytes = std::move(found->second);
  come_.erase(found);
  return bytes;
}

void RingCommunicator::wait() {
  const std::uint32_t changes = rings_.changes(own_);
  const bool some = take_in();
  // A queue that asked before may wait for what another one has taken in since.
  const bool has_news = std::exchange(news_, false);
  if (!some && !has_news) rings_.sleep(own_, changes, kNap);
  watch_();
}

bool RingCommunicator::take_in() {
  bool some = false;
  for (std::size_t from = 0; from < incoming_.size(); ++from) {
    some = take_in(static_cast<int>(from)) || some;
  }
  return some;
}

/// All that one end has written. Gives whether there was something.
bool RingCommunicator::take_in(int from) {
  bool some = false;
  while (take_more(from, some)) {
    Incoming& one = incoming_[at(from)];
    come_.emplace(std::pair(from, one.head.label), std::move(one.bytes));
    one = {};
    news_ = true;
  }
  return some;
}

/// Goes on with the message that comes in. Gives whether it is whole; `some`: there was some of it.
bool RingCommunicator::take_more(int from, bool& some) {
  Incoming& one = incoming_[at(from)];
  const auto fill = [&](std::byte* bytes, std::size_t size, std::size_t& come) {
    while (come < size) {
      const std::size_t n = rings_.read(from, own_, bytes + come, size - come);
      if (n == 0) return false;
      some = true;
      come += n;
    }
    return true;
  };
  if (!fill(reinterpret_cast<std::byte*>(&one.head), sizeof(Head), one.head_bytes)) return false;
  one.bytes.resize(one.head.size);
  return fill(one.bytes.data(), one.bytes.size(), one.come);
}

void RingCommunicator::transmit(int to, const Label& label, Bytes bytes) {
  const Head head{.label = label, .size = bytes.size()};
  write(to, reinterpret_cast<const std::byte*>(&head), sizeof(head));
  write(to, bytes.data(), bytes.size());
}

/// What others write is taken in meanwhile: two that write to each other both get on.
void RingCommunicator::write(int to, const std::byte* bytes, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const std::uint32_t changes = rings_.changes(own_);
    const std::size_t n = rings_.write(own_, to, bytes + done, size - done);
    done += n;
    if (n > 0 || done == size) continue;
    if (!take_in()) rings_.sleep(own_, changes, kNap);
    watch_();
  }
}

}  // namespace placet::execute
