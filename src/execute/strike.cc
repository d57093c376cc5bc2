#include "execute/strike.h"

#include <chrono>
#include <csignal>
#include <thread>

#include "units/error.h"

namespace placet::execute {

void strike_process(const RankFault& fault) {
  switch (fault.kind) {
    case RankFault::Kind::kill:
      std::raise(SIGKILL);
      return;
    case RankFault::Kind::stall:
      std::raise(SIGSTOP);
      return;
    case RankFault::Kind::fail:
      throw InputError(
          {.where = "rank " + std::to_string(fault.rank),
           .problem = "failed in step " + std::to_string(fault.step) + ", as asked for"});
    case RankFault::Kind::slow:
      std::this_thread::sleep_for(std::chrono::duration<double>(fault.seconds));
      return;
    case RankFault::Kind::corrupt:
      return;
  }
}

}  // namespace placet::execute
