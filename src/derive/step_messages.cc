#include "derive/step_messages.h"

namespace placet {
namespace {

/// The stream's way to the next stage: a message, and the gather that may follow it.
bool is_boundary(const CommunicationTerm& term) {
  return term.state == State::activations && term.unit.empty() &&
         (term.what == "boundary activations");
}

}  // namespace

StepMessages step_messages(const Layout& layout, const CommunicationClass& traffic,
                           MessageTimer& timer) {
  StepMessages out;
  const double m = static_cast<double>(layout.micro_batches);
  for (const CommunicationTerm& term : traffic.terms) {
    if (is_boundary(term)) {
      out.boundary += timer.call(term);
      continue;
    }
    if (term.state == State::activations &&
        (!term.unit.empty() || term.what == "boundary gradients"))
      continue;  // of a unit's values, or the way back, which takes as long
    const bool is_state = term.state == State::parameters || term.state == State::gradients;
    const Seconds all = timer.all(term) + (is_state ? timer.copies(term) : Seconds());
    switch (term.phase) {
      case Phase::forward:
        out.forward.add(term.axes, all / m);
        break;
      case Phase::backward:
        out.backward.add(term.axes, all / m);
        break;
      case Phase::reduce:
        out.reduce.add(term.axes, all);
        break;
      case Phase::update:
        (term.state == State::parameters ? out.update : out.scalars).add(term.axes, all);
        break;
    }
  }
  return out;
}

StepMessages step_messages(const Job& job, const Layout& layout,
                           const CommunicationClass& traffic) {
  MessageTimer timer(job);
  return step_messages(layout, traffic, timer);
}

}  // namespace placet
