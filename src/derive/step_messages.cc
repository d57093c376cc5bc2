#include "derive/step_messages.h"

namespace placet {

StepPlace place_in_step(const CommunicationTerm& term) {
  if (term.state == State::activations) {
    if (term.unit.empty() && term.what == "boundary activations") return StepPlace::boundary;
    if (!term.unit.empty() || term.what == "boundary gradients") return StepPlace::unit;
  }
  switch (term.phase) {
    case Phase::forward:
      return StepPlace::forward;
    case Phase::backward:
      return StepPlace::backward;
    case Phase::reduce:
      return StepPlace::reduce;
    case Phase::update:
      break;
  }
  return term.state == State::parameters ? StepPlace::update : StepPlace::scalars;
}

Seconds time_in_step(const CommunicationTerm& term, const GroupSet& devices, MessageTimer& timer) {
  const bool is_state = term.state == State::parameters || term.state == State::gradients;
  return timer.all(term, devices) + (is_state ? timer.copies(term, devices) : Seconds());
}

StepMessages step_messages(const Layout& layout, const CommunicationClass& traffic,
                           const GroupSet& devices, MessageTimer& timer) {
  StepMessages out;
  const double m = static_cast<double>(micro_batches_of_chunk(layout));
  for (const CommunicationTerm& term : traffic.terms) {
    switch (place_in_step(term)) {
      case StepPlace::boundary:
        out.boundary += timer.call(term, devices);
        break;
      case StepPlace::unit:
        break;
      case StepPlace::forward:
        out.forward.add(term.axes, time_in_step(term, devices, timer) / m);
        break;
      case StepPlace::backward:
        out.backward.add(term.axes, time_in_step(term, devices, timer) / m);
        break;
      case StepPlace::reduce:
        out.reduce.add(term.axes, time_in_step(term, devices, timer));
        break;
      case StepPlace::update:
        out.update.add(term.axes, time_in_step(term, devices, timer));
        break;
      case StepPlace::scalars:
        out.scalars.add(term.axes, time_in_step(term, devices, timer));
        break;
    }
  }
  return out;
}

}  // namespace placet
