// Messages over shared rings, for one process of several.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "execute/communicator.h"
#include "execute/shared_rings.h"

namespace placet::execute {

class RingCommunicator : public Communicator {
 public:
  /// One of the ends of the rings. `watch` is called each time that it has waited a little; it may
  /// throw.
  RingCommunicator(int own, int ends, SharedRings& rings, std::function<void()> watch);

  std::optional<Bytes> receive(int from, const Label& label) override;
  void wait() override;

 protected:
  void transmit(int to, const Label& label, Bytes bytes) override;

 private:
  /// What stands before each message.
  struct Head {
    Label label;
    std::uint64_t size = 0;
  };
  /// A message that comes in bit by bit.
  struct Incoming {
    Head head;
    std::size_t head_bytes = 0;  // that have come
    Bytes bytes;
    std::size_t come = 0;
  };
  bool take_in();
  bool take_in(int from);
  bool take_more(int from, bool& some);
  void write(int to, const std::byte* bytes, std::size_t size);

  int own_;
  SharedRings& rings_;
  std::function<void()> watch_;
  std::vector<Incoming> incoming_;  // by sender
  std::map<std::pair<int, Label>, Bytes> come_;
  bool news_ = false;  // a message has come since this end last waited
};

}  // namespace placet::execute
