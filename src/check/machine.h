// Runs all classes of a program over values (docs/theory.md §6.5). Inside of check/.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "check/numbering.h"
#include "check/numbers_by_hash.h"
#include "check/periods.h"
#include "check/reference_values.h"
#include "check/segment.h"
#include "program/walk.h"
#include "units/hash.h"

namespace placet {

/// Where something was made: an instruction of a class.
struct Origin {
  int device_class = 0;
  const Instruction* instruction = nullptr;
  Arguments arguments;
  int step = 0;
  std::int64_t time = 0;  // instructions begun before it, by all classes; not told

  friend bool operator==(const Origin& a, const Origin& b) {
    return a.device_class == b.device_class && a.instruction == b.instruction &&
           a.arguments == b.arguments && a.step == b.step;
  }
};

/// Something that cannot be right whatever the values are: reading what was freed, collectives
/// that do not meet.
struct Breach {
  std::string what;
  Origin origin;
  Origin other;          // of two instructions that may meet, the one before
  bool follows = false;  // another breach is the cause
};

/// What happened to a sum of which parts are missing; null: nothing that is known.
struct SumPast {
  const Origin* maker = nullptr;    // what made it one of which parts are missing
  const Origin* message = nullptr;  // the last collective or message that it went through
};

/// What is noted beside values: where contents came from, for findings, and which buffers hold
/// another part than their types say; the latter; or nothing. Where not everything is noted, a
/// machine stops at the first breach.
enum class Tracing : std::uint8_t { on, labels, off };

/// What is known of the state that the first step finds: what the program says of it, or only that
/// parameters, states and numbers are the reference's.
enum class Beginning : std::uint8_t { said, any };

class Machine {
 public:
  /// What was worked out, by what it was worked out from: machines of programs that differ in their
  /// steps only may have one memory, if they have the same nodes.
  struct Memory;
  struct Options {
    Tracing tracing = Tracing::on;
    std::shared_ptr<Memory> memory;  // none: its own
    /// Whether a step knows of the one before only what is compared. Findings tell more of a value
    /// that is a step old if it is known.
    bool forgets = true;
    Beginning beginning = Beginning::said;
    /// Where parts of sums that a causal mask leaves nothing of are to be known as zero (masks.h):
    /// how many nodes the reference makes, in both steps, which are all there.
    std::optional<NodeId> masks_behind = {};
    /// The most incomplete parts that a right program's sums have.
    std::size_t most_parts = KernelCall{}.most_parts;
  };

  Machine(const Program& program, Nodes& nodes, Regions& regions, KernelValues& kernels,
          const Options& options);

  /// Puts the initial state in place.
  void begin(const ReferenceValues& reference);
  /// New samples, then one step of all classes.
  void run_step(const ReferenceValues& reference);

  /// Whether all classes have alive what they began with, in the shapes that these buffers had, and
  /// nothing else: another step of the same instructions finds what this one found.
  bool stands_as_begun();

  /// What a buffer of a class holds; none: it is not alive, or was never written.
  const Content* content_of(int device_class, const BufferRef& ref) const;
  /// Whether what a buffer holds, if it depends on a micro-batch, is of that of the buffer.
  bool is_of_its_micro_batch(int device_class, const BufferRef& ref) const;
  /// Whether a tensor that was zero when the step began, as in the first one, is so at its end; yes
  /// of the first step, which shows what the next begin with.
  bool keeps_zero(int device_class, const Initial& initial, std::size_t piece) const;
  /// Kernels and collectives that were worked out, and those that were known from an equal call.
  std::pair<std::int64_t, std::int64_t> calls() const { return {worked_out_, known_again_}; }
  /// Periods of all classes that were not run, as they do what the one before did.
  std::int64_t left_out() const { return left_out_; }
  /// The content that the type of a family's buffers stands for, without values.
  const Content& type_of(int family);

  const std::vector<Breach>& breaches() const { return breaches_; }
  /// The instruction that runs, or ran last.
  Origin begun_last() const { return here(standing_); }
  /// Whether some class did not come to the end of a step.
  bool is_stuck() const { return stuck_; }
  /// Buffers that hold another part than their type says, one for each family at most. No verdict
  /// rests on types.
  const std::vector<Breach>& labels() const { return labels_; }
  const Origin* origin_of(NodeId node) const;
  /// Where a node that the reference does not make began to be one: what it is made of, down to
  /// what is made of the reference's nodes only. Null: the reference makes it.
  const Origin* root_of(NodeId node) const;
  /// The first instruction after which a buffer had a node with this factor; null: none.
  const Origin* scaled_at(NodeId node, const Rational& factor) const;
  /// The first instruction after which a buffer had the node; null: none.
  const Origin* first_of(NodeId node) const;
  /// Where the content of a buffer began to be wrong: back through what it was made from, along
  /// what the reference does not make and what has that scale. Null: it was there in the beginning.
  const Origin* beginning_of(int device_class, const BufferRef& ref,
                             const std::optional<Rational>& scale) const;
  /// The past of the sum that makes the content of a buffer wrong, as it lacks the parts along the
  /// axes.
  SumPast past_of_sum(int device_class, const BufferRef& ref, const AxisList& axes) const;
  /// Where a scale began.
  struct ScaleBeginning {
    Origin origin;
    bool divides = false;  // what is made there stands below a fraction: it has one over the scale
  };
  /// Where a value began to have a scale of its own, back from where it has this one; where a
  /// collective gave it that, what made the value. None: it never has it.
  std::optional<ScaleBeginning> beginning_of_scale(NodeId node, const Rational& factor) const;

  /// A sum over micro-batches that counts one otherwise than the others, where that began.
  struct Uneven {
    Origin origin;
    std::int64_t micro_batch = 0;
    Rational factor;
  };
  /// Of what a buffer holds, or of what that was made from; none: all count alike.
  std::optional<Uneven> unevenness_of(int device_class, const BufferRef& ref) const;
  /// The first instruction that added up some of these values and no others, of those that went on
  /// to hold all of them. Null: no buffer ever held their sum.
  const Origin* mixing_of(const std::vector<NodeId>& terms) const;
  /// The copies and gathers through which a buffer got what it holds in the last step, the last one
  /// first.
  std::vector<Origin> movements_to(int device_class, const BufferRef& ref) const;
  /// Where what is added to sums began to be nothing; none: something always is.
  std::vector<Origin> beginnings_of_nothing() const;
  /// What wrote a buffer last in the last step, else what read it first; null: neither.
  const Origin* touch_of(int device_class, const BufferRef& ref) const;
  std::string describe(const Origin& origin) const;

 private:
  static constexpr std::size_t kMostBreaches = 20;
  static constexpr const char* kLeftBefore = "what the step before left";

  /// A content and its number: equal numbers are equal contents, whatever micro-batch they are of.
  struct Numbered {
    std::shared_ptr<const Content> content;
    int number = -1;
    std::int64_t micro_batch = -1;  // what the content's own says only whether it depends on one
  };
  /// What a sum was when a micro-batch was added that it took by only becoming longer.
  struct Longer {
    int number = -1;  // of the sum behind it
    int by = -1;      // of what was added
    std::int64_t micro_batch = -1;
  };
  struct Slot {
    bool alive = false;
    bool written = false;
    Numbered value;
    Longer longer;  // the last time
    Origin writer;  // last
    Origin reader;  // first of its step
  };
  /// The buffers of a class that are there, by number; places of those that end are used again.
  class Slots {
   public:
    Slots(Numbering numbering, std::size_t families)
        : numbering_(std::move(numbering)), places_(numbering_.size(), 0), count_(families, 0) {}

    Slot* find(const BufferRef& ref, const Arguments& a) {
      const std::uint32_t place = places_[numbering_.of(ref, a)];
      return place == 0 ? nullptr : &at_place(place);
    }
    const Slot* find(const BufferRef& ref, const Arguments& a) const {
      const std::uint32_t place = places_[numbering_.of(ref, a)];
      return place == 0 ? nullptr : &at_place(place);
    }
    /// Whether no buffer of the family is there.
    bool has_none(int family) const { return count(family) == 0; }
    std::size_t count(int family) const { return count_[static_cast<std::size_t>(family)]; }
    Slot& get(const BufferRef& ref, const Arguments& a);
    void erase(const BufferRef& ref, const Arguments& a);
    template <class Visit>
    void for_each(Visit visit) {
      for (const std::uint32_t place : places_) {
        if (place != 0) visit(at_place(place));
      }
    }

   private:
    static constexpr std::size_t kTogether = 32;  // slots in one piece of memory: they never move
    using Piece = std::array<Slot, kTogether>;

    Slot& at_place(std::uint32_t place) const {
      return (*pieces_[(place - 1) / kTogether])[(place - 1) % kTogether];
    }

    Numbering numbering_;
    std::vector<std::uint32_t> places_;  // by number, from 1; 0: none
    std::vector<std::uint32_t> count_;   // by family, how many are there
    std::vector<std::uint32_t> free_;
    std::vector<std::unique_ptr<Piece>> pieces_;
  };
  struct Runner {
    Repeating<SegmentOrInstruction> list;
    std::size_t next = 0;
    bool waits = false;
    const Instruction* instruction = nullptr;  // where it stands
    Arguments arguments;
    Slots slots;
    std::optional<Stretch> stretch = std::nullopt;  // of `list` that repeats itself
  };
  struct Message {
    std::vector<Numbered> contents;
    Origin origin;
  };
  /// What made a content first, from the contents with these numbers, and what is told by it.
  struct Made {
    Origin origin;
    std::vector<int> inputs;
    std::uint64_t hash = 0;
    std::shared_ptr<const Content> content;
    bool there = false;
    bool foreign = false;  // has what the reference does not make
    bool nothing = false;  // is zero
  };
  /// What a segment leaves of a buffer that it touches.
  struct Left {
    bool gone = false;
    bool written = false;
    Numbered value;
    const Instruction* writer = nullptr;
  };
  /// What a segment does to contents that its key tells: what is left of each buffer, and what is
  /// added to sums.
  struct Effect {
    bool repeats = false;  // it is the same for other arguments
    std::vector<Left> left;
    std::vector<std::pair<const Instruction*, Numbered>> added;
  };
  using Effects = std::unordered_map<std::vector<int>, Effect, IntsHash>;

  Slot& slot(int c, const BufferRef& ref, const Arguments& arguments);
  bool lacks_a_tensor(const Content& row, int piece) const;
  Numbered read(int c, const BufferRef& ref, const Arguments& arguments);
  void write(int c, const BufferRef& ref, const Arguments& arguments, const Numbered& value);
  void write(int c, const BufferRef& ref, const Arguments& arguments, Content content);
  Numbered with_piece(const BufferRef& ref, const Slot& old, const Numbered& value);
  Numbered replaced(const BufferRef& ref, Content all, const Numbered& value,
                    std::int64_t micro_batch);
  void note_making(int c, const Numbered& value);
  std::shared_ptr<const Content> lasting(const Numbered& value) const;
  void note_extended(int c, int number, int before, int source);
  const Made* making_of(int number) const;
  static bool do_the_same(const Instruction& a, const Instruction& b);
  bool has_twin(int device_class, const Instruction& i) const;
  int suspicion(int input, const std::optional<Rational>& scale) const;
  int number_of(int device_class, const BufferRef& ref) const;
  const Made* first_wrong(int device_class, const BufferRef& ref,
                          const std::optional<Rational>& scale) const;
  const Made* most_suspect_input(const Made& made, const std::optional<Rational>& scale) const;
  const Made* lacking_input(const Made& made, const AxisList& axes) const;
  const Made* first_of_terms(const std::vector<NodeId>& terms) const;
  const Made* unusual_input(const Made& made, NodeId node, const Rational& usual) const;
  const Made* scaled_input(const Made& made, const Rational& by) const;
  const Made* uneven_input(const Made& made) const;
  const Made& first_scaled(const Made& scaled, NodeId node, const Rational& factor) const;
  const Made& first_mixed(const Made& made) const;
  const Made* first_nothing(const Made* made) const;
  bool are_alike(int one, int other) const;
  std::optional<std::pair<int, int>> first_difference(const Made& a, const Made& b) const;
  const Origin* parting(int one, int other) const;
  bool is_foreign(const Content& content) const;
  Content typed(const BufferRef& ref, const std::vector<NodeId>& nodes);
  void look_at(int c, const BufferRef& ref, const Arguments& a, const Numbered& value);
  bool has_uneven_micro_batches(int family);
  bool has_uneven_micro_batches();
  bool has_even_room(const Content& type, int piece, const Content& given) const;
  std::int64_t even_length(const Tensor& t, std::size_t dim) const;
  bool has_type(const BufferRef& ref, const Content& content);
  bool is_odd_somewhere(int c, const Content& content) const;
  Numbered named_as_typed(int c, const BufferRef& ref, const Numbered& value);
  Numbered typed_alike(int c, const BufferRef& ref, const Numbered& value);
  void note_label(int c, const BufferRef& ref);
  void require_room(int c, const BufferRef& ref, const Numbered& value, std::int64_t mine);
  void note_scales(int c, const Numbered& value);
  void note_scale(int c, const Item& item, int number);
  Numbered numbered(Content content, std::int64_t micro_batch);
  Numbered interned(Content content, std::int64_t micro_batch);
  static Content whole_of(const Numbered& value);
  const PieceType& piece_of(const Instruction& i, std::size_t t) const;
  std::optional<std::int64_t> extent_of(const Instruction& i, int dim) const;
  KernelCall call_of(const Instruction& i, const Arguments& a) const;
  static std::optional<std::int64_t> common_micro_batch(const std::vector<Numbered>& values);
  std::optional<Splits> part_of(const Instruction& i, const std::vector<Numbered>& inputs,
                                int dim) const;
  bool see_masks(int c, KernelCall& call) const;
  bool has_one_length(const Instruction& i, const std::vector<Numbered>& inputs, int dim) const;
  void settle_compared(int c, const Instruction& i, const std::vector<Numbered>& inputs,
                       const std::pair<int, int>& dims, KernelCall& call) const;
  bool settle_positions(int c, const Instruction& i, const std::vector<Numbered>& inputs,
                        KernelCall& call) const;
  std::vector<Numbered> outputs_of(const KernelCall& call, const std::vector<Numbered>& inputs);
  std::vector<int> key_of_call(const Instruction& i, const Arguments& a,
                               const std::vector<Numbered>& inputs) const;
  bool takes_micro_batch(const Instruction& i) const;
  std::int64_t micro_batch_of(const Instruction& i, const Arguments& a);
  bool clear_empty(int c, Numbered& value);
  void require_rows_alike(int c, const std::vector<Numbered>& inputs);
  std::vector<Numbered> results_of(int c, const Instruction& i, const Arguments& a,
                                   const std::vector<Numbered>& inputs,
                                   const std::optional<std::int64_t>& micro_batch);
  Numbered of_another_micro_batch(const Numbered& output);
  Numbered worked_out(const Instruction& i, const Numbered& value);
  bool goes_on() const;
  void go_on();
  void forget_what_was_worked_out();
  Origin here(int c) const;
  void breach(int c, const std::string& what);
  Item odd_item(const Tensor& instead, const std::string& why, const Tensor* other = nullptr);
  void odd_content(Content& content, const std::string& why, const Content& other = {});

  void begin(int c, const Initial& initial, const ReferenceValues& reference);
  void bring(int c, const Initial& initial, const ReferenceValues& reference);
  void require_end();
  std::optional<Content> known_of(const Initial& initial, const Content& held);
  std::optional<Item> known_of(const Initial& initial, std::size_t piece, const Tensor& held);
  bool stands_as_begun(int c);
  void keep_what_is_known();
  void keep_what_is_known(int c);
  bool will_come(int c) const;
  bool will_send(int from, int to) const;
  template <class Accept>
  bool has_left(int c, Accept accept) const;
  bool advance(int c);
  void stand_at(int c, const Instruction& i, const Arguments& a);
  struct Cut;
  struct Held;
  void find_stretches();
  Passage passage_of(int c, const SegmentOrInstruction& s) const;
  std::optional<std::int64_t> shift_of_periods() const;
  void leave_out_periods();
  bool leave_out_after(const Cut& before, std::int64_t shift);
  bool bring_to(int c, std::size_t target, std::vector<bool>& waiting);
  bool bring_what_is_missing(int c, std::vector<bool>& waiting);
  bool stand_alike(const Cut& cut) const;
  Tracks touched_in(int c, std::size_t first, std::size_t last) const;
  std::optional<Cut> cut(std::int64_t shift);
  Held held(int c, const Track& track, std::int64_t micro_batch) const;
  std::vector<Elsewhere> elsewhere(int c, const Tracks& tracks, std::int64_t shift) const;
  std::int64_t periods_left(const Cut& cut) const;
  bool is_repeated(const Cut& before, const Periods& periods) const;
  bool is_repeated(int c, const Track& track, const std::vector<Held>& was,
                   const Periods& periods) const;
  bool is_extended(int c, const Track& track, std::int64_t by) const;
  bool have_messages_repeated(const Cut& before, std::int64_t shift) const;
  void leave_out(const Cut& cut, const Periods& periods);
  void leave_out(int c, const Track& track, const Periods& periods);
  static void rename(std::deque<Message>& queue, std::int64_t by);
  void extend_by(int c, const Track& track, std::int64_t by);
  void run(int c, const Segment& segment, const Arguments& a);
  std::optional<std::int64_t> key_of(int c, const Segment& segment, const Arguments& a,
                                     std::vector<int>& key);
  static std::int64_t add_to_key(const Slot* slot, bool needed, std::vector<int>& key);
  void leave(int c, const Touched& touched, const Left& left, const Arguments& a,
             std::int64_t micro_batch);
  Effect run_in_full(int c, const Segment& segment, const Arguments& a, std::int64_t micro_batch);
  bool note_left(int c, const Segment& segment, const Arguments& a, std::int64_t micro_batch,
                 Effect& effect);
  void repeat(int c, const Segment& segment, const Arguments& a, std::int64_t micro_batch,
              const Effect& effect);
  bool is_local(int c, const Instruction& i) const;
  void begin_buffer(int c, const BufferRef& ref, const Arguments& a);
  void end_buffer(int c, const BufferRef& ref, const Arguments& a);
  void clear(int c, const BufferRef& ref, const Arguments& a);
  void execute(int c, const Instruction& i, const Arguments& a);
  void call_kernel(int c, const Instruction& i, const Arguments& a);
  void tell_micro_batches_apart();
  void accumulate(int c, const Instruction& i, const Arguments& a);
  void accumulate(int c, const Instruction& i, const Arguments& a, const Numbered& source);
  bool extend_sum(int c, const Instruction& i, const Arguments& a, const Numbered& source);
  bool is_extended_by(const Slot& sum, const Numbered& source) const;
  void note_longer(int c, const BufferRef& ref, const Arguments& a);
  void note_otherwise(int c, const BufferRef& ref, const Arguments& a);
  static bool is_long(const Content& sum);
  Content sum_of(Content sum, Content source);
  void slice(int c, const Instruction& i, const Arguments& a);
  bool exchange(int c, const Instruction& i, const Arguments& a);
  bool receive(int c, const Instruction& i, const Arguments& a);
  void send(int c, const Instruction& i, const Arguments& a);

  std::int64_t standing(int c, int axis) const;
  std::int64_t taking_part(int c, int axis, const Instruction& i) const;
  bool splits(int c, int axis) const;
  bool stand_alike(int c, int d, int axis) const;
  bool joins(int c, int d, const Instruction& i) const;
  std::vector<int> members_of(int c, const Instruction& i) const;
  void require_group(int c, const std::vector<int>& members, const Instruction& i);
  int class_at(int c, int axis, std::int64_t coordinate) const;
  int find_class_at(int c, int axis, std::int64_t coordinate) const;
  int partner_of(int c, const Instruction& i);
  static bool meet(const Instruction& a, const Instruction& b);
  bool all_arrived(const std::vector<int>& members, const Instruction& i);
  std::vector<Content> read_together(const std::vector<int>& members, std::size_t input,
                                     const std::optional<std::size_t>& owner);
  void together(const std::vector<int>& members, const Instruction& i);
  struct Buffer {
    int device_class = 0;
    const BufferRef* ref = nullptr;
    std::int64_t micro_batch = 0;
  };
  static Buffer buffer_of(int c, const BufferRef& ref, const Arguments& a);
  bool are_as_large(const Buffer& one, const Buffer& other, const AxisList& apart);
  bool is_as_long_in(const Buffer& buffer, std::int64_t micro_batch);
  void require_room_between(int c, const Instruction& i, const Arguments& a);
  void require_sizes_alike(const std::vector<int>& members, std::size_t buffer);
  bool pass_on_one_by_one(const std::vector<int>& members, const Instruction& i,
                          std::vector<Content>& contents);
  void combine(const std::vector<int>& members, const Instruction& i, std::size_t input,
               std::vector<Content>& contents);
  void level_empty(const std::vector<int>& members, std::vector<Content>& contents) const;
  void level_empty(const std::vector<int>& members, std::size_t piece,
                   std::vector<Content>& contents) const;
  bool is_over_nothing(int c, const Share& share) const;
  void level_empty_sums(const std::vector<int>& members, const std::vector<std::size_t>& row,
                        std::vector<Content>& contents) const;
  const Origin* deviation(const std::vector<Content>& contents) const;
  const Origin* deviation(const Item& item, const Items& usual) const;
  const Origin* root_of(const Content& content) const;
  const Origin* odd_one(const std::vector<Content>& contents) const;
  const Origin* odd_scale(const Item& a, const Item& b) const;
  const Origin* odd_scale(const Content& a, const Content& b) const;
  void blame(const std::vector<Content>& contents, const Origin* origin);
  bool multiply(int c, const AxisList& axes, const Instruction& i, Content& content) const;
  void give(const AxisList& axes, Content& content);
  std::optional<std::size_t> owner_of(const std::vector<int>& members, const Instruction& i) const;
  void give_from(std::size_t owner, const std::vector<int>& members, const Instruction& i,
                 std::vector<Content>& contents);
  void hand_over(int axis, int from, int to, Content& content);
  bool is_own_along(const Content& content, int axis) const;
  void pass_on(const Instruction& i, Content& content);
  bool gather(int dim, const AxisList& axes, Content& content);
  void alone(int c, const Instruction& i, const Arguments& a);
  bool merge_along(int axis, const std::vector<int>& members, const Instruction& i,
                   std::vector<Content>& contents, std::vector<std::size_t>& left);
  double entries_of(const Content& content) const;
  const std::string& family_read(int c, std::size_t input) const;
  void reduce_across(const std::vector<int>& members, const Instruction& i, std::size_t input,
                     std::vector<Content>& contents);
  void sum_across(const std::vector<int>& members, const Instruction& i, const Origin* cause,
                  std::vector<Content>& contents);
  const Origin* writer_of_least(const std::vector<int>& members, std::size_t input,
                                const std::vector<Content>& contents);
  const Origin* writer_read_by(int c, std::size_t input) const;
  /// One of several that sums over fewer micro-batches than others, and over which, in words.
  struct Lacking {
    std::size_t member = 0;
    std::string text;
  };
  std::optional<Lacking> lacks_micro_batches(const std::vector<Content>& contents) const;
  Content collected(const Instruction& i, Content content);
  Content divided(const Instruction& i, Content content, std::int64_t shift);
  void close(Content& content, const AxisList& axes, Combine op);
  std::int64_t elements_of(const Content& content) const;
  void note_nodes(std::size_t before, int c, const Instruction& i, const Arguments& a);

  const Program& program_;
  Nodes& nodes_;
  Regions& regions_;
  KernelValues& kernels_;
  bool traces_ = true;
  bool labels_types_ = true;
  bool forgets_ = true;
  Beginning beginning_ = Beginning::said;
  std::optional<NodeId> masks_behind_;
  std::size_t most_parts_;
  std::vector<Runner> runners_;
  std::map<std::pair<int, int>, std::deque<Message>> messages_;  // from, to
  /// The class at a coordinate along an axis, as far as it was asked for.
  struct Peer {
    int axis = 0;
    std::int64_t coordinate = 0;
    int device_class = -1;
  };
  mutable std::vector<std::vector<Peer>> peers_;            // by class
  std::set<std::pair<const Initial*, std::size_t>> zeros_;  // when the step began
  std::unordered_map<NodeId, Origin> origins_;
  /// A factor that a node has had, with the instruction that first gave it.
  struct Scaled {
    Rational factor;
    Origin origin;
    int number = -1;  // of the content
  };
  std::unordered_map<NodeId, std::vector<Scaled>> scales_;
  std::vector<Made> makings_;  // by number
  /// Of so many of them the first by its terms: made when it is asked for.
  mutable std::unordered_map<std::uint64_t, std::size_t> by_terms_;
  mutable std::size_t sums_looked_through_ = 0;
  std::size_t foreign_from_ = 0;  // nodes from here on were made by the program in this step
  std::vector<int> reads_;        // numbers of what the instruction has read
  std::vector<int> nothings_;     // of contents that are zero and were added to a sum
  std::vector<int> met_;          // of what the members of a collective put in
  std::vector<Breach> breaches_;
  std::vector<Breach> labels_;
  std::unordered_set<int> scaled_;  // numbers of contents whose scales are noted
  /// By class, family, piece and, where that matters, micro-batch of two buffers: whether they are
  /// as large.
  std::unordered_map<std::vector<int>, bool, IntsHash> sizes_;
  /// By class, family, piece and number: whether a buffer has the room for a content.
  std::unordered_map<std::vector<int>, bool, IntsHash> rooms_;
  /// By the same: a content with the divisions of the buffer's type where these are the same parts.
  std::unordered_map<std::vector<int>, Numbered, IntsHash> named_as_typed_;
  std::vector<std::optional<Content>> types_;  // by family
  int step_ = 0;
  bool stuck_ = false;
  std::int64_t time_ = 0;  // instructions begun
  std::shared_ptr<Memory> memory_;
  std::unordered_map<const Instruction*, int> instructions_;
  /// By the axes of the mesh that split classes: these cut bodies in the same way.
  std::map<std::vector<bool>, Segments> segments_;
  std::unordered_map<const Segment*, Effects> effects_;
  std::vector<int> key_;                                        // of the segment that runs
  std::vector<std::pair<const Instruction*, Numbered>> added_;  // since the segment began
  bool is_own_ = false;             // some call since has made what holds for one class only
  bool names_micro_batch_ = false;  // what was done since has told micro-batches apart
  std::int64_t breached_ = 0;       // times
  int standing_ = 0;                // the class whose instruction runs
  std::int64_t named_ = 0;  // times that micro-batches were told apart and no sum became longer
  /// What was added to a sum since the last cut.
  struct Added {
    std::int64_t longer = 0;  // micro-batches, by each of which it only became longer
    bool otherwise = false;   // something else too
  };
  std::map<std::tuple<int, int, std::int64_t>, Added> added_to_;  // by class, family, unit
  bool watches_ = false;                                          // notes these
  std::int64_t left_out_ = 0;
  std::map<std::vector<std::int64_t>, Numbered> inputs_;
  std::int64_t worked_out_ = 0, known_again_ = 0;
};

struct Machine::Memory {
  /// A number for an instruction, the same for one that says the same.
  int number_of(const Instruction& i);

  int numbers = 0;                 // of contents
  std::vector<Numbered> contents;  // each once
  NumbersByHash places;            // of these, by hash
  /// By number, of those that have one for good.
  std::vector<std::shared_ptr<const Content>> interned;
  /// Results of calls by kernel or instruction and the numbers of what went in.
  std::unordered_map<std::vector<int>, std::vector<Numbered>, IntsHash> known;
  std::unordered_multimap<std::uint64_t, std::pair<Instruction, int>> instructions;  // by hash
};

}  // namespace placet
