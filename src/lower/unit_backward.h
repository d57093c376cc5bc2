// A unit backward: whole, or for its inputs and for its weights apart. Inside of lower/.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "lower/parameter_uses.h"
#include "lower/unit_applications.h"
#include "lower/unit_forward.h"
#include "lower/unit_values.h"

namespace placet {

class UnitBackward {
 public:
  UnitBackward(Lowering& in, const UnitApplications& applications, UnitValues& values,
               UnitForward& forward, ParameterUses& uses);

  /// The whole backward pass. `left`: what forward keeps, as it lies.
  void write(const std::map<int, std::vector<Held>>& left);
  /// The gradients of values alone, from the stream's to the stream's. What the gradients of
  /// parameters need stays for `write_weights`, which is written next.
  void write_inputs(const std::map<int, std::vector<Held>>& left);
  void write_weights();

 private:
  void begin(const std::map<int, std::vector<Held>>& left);
  void begin_gradients();
  void scale_loss(const BufferRef& seed);
  void finish_values(const std::set<int>& keep);
  void run(std::size_t b);
  void run_inputs(std::size_t b);
  /// Keeps the gradients that an application's weights need later.
  void carry(std::size_t b, const std::vector<AxisList>& passed);
  void run_weights(std::size_t b);
  std::vector<AxisList> gather_gradients(const Applied& a);
  void pass_gradients(std::size_t b);
  void drop_gradients_of(int application);
  std::vector<AxisList> with_partial_reads(const Applied& a,
                                           const std::vector<AxisList>& passed) const;
  void add_call(const Applied& a, const std::vector<AxisList>& passed,
                const std::vector<BufferRef>& incoming);
  void give_of_ring(const Applied& a, std::vector<Held> made);
  bool goes_back(const Applied& a, int v) const;
  Held gradient_made(const Applied& a, int v, const Spread& spread);
  std::vector<BufferRef> incoming_of(const Applied& a, const std::vector<AxisList>& passed);
  std::vector<int> last_read_at(const std::vector<Applied>& all, std::size_t b) const;
  void hand_back();

  Lowering& in_;
  Writer& w_;
  const UnitApplications& applications_;
  UnitValues& values_;
  UnitForward& forward_;
  ParameterUses& uses_;
  const ReferenceKind& kind_;
  std::set<int> weights_read_;  // values that gradients of parameters are made from
  bool weights_use_parameters_ = false;
  int last_to_stream_ = -1;  // the application that makes the last share of the stream's gradient
  std::map<int, std::vector<Held>> waiting_;          // those values between the two parts
  std::map<std::size_t, std::vector<Held>> carried_;  // gradients between them, by application
};

}  // namespace placet
