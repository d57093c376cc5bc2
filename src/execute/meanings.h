// What the function names of a program compute on real numbers (docs/theory.md §6.11). A program
// says that entries go through `act`; that it is a GELU, and at which rate parameters are stepped,
// is an input of the run. Names without a meaning are refused, never guessed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "execute/corpus.h"
#include "execute/elementary.h"
#include "program/program.h"

namespace placet {

/// Values made from model and training. All that has no model behind it has the default of the
/// paper or program that made it known (docs/theory.md §6.11).
struct Meanings {
  enum class Activation : std::uint8_t { gelu, gelu_tanh, silu, relu, relu_squared };
  enum class Update : std::uint8_t { adam, momentum, signs, sgd };

  Activation activation = Activation::gelu_tanh;
  double norm_epsilon = 1e-5;
  double rotary_base = 10000;
  bool rotary_pairs = false;     // entries 2i and 2i+1 turn together; else i and i + half
  bool scales_attention = true;  // scores by 1/sqrt(size of a head)
  double score_cap = 50;         // of attention: cap tanh(score / cap); arXiv:2408.00118, section 2
  double logit_cap = 30;         // of the head's logits; the same
  double dropout = 0.1;
  bool routes_among_chosen = true;  // weights of chosen experts add up to one
  double balance_weight = 0.01;
  double prediction_weight = 0.3;
  double clip = 1;  // of the gradient's norm

  std::vector<Update> updates;  // by rule of the reference
  double learning_rate = 1e-3;
  double first_decay = 0.9;
  double second_decay = 0.999;
  double update_epsilon = 1e-8;
  double weight_decay = 0.01;
  bool steps_by_sign = false;  // momentum gives the direction alone
  double loss_scale = 65536;
  std::int64_t scale_interval = 2000;  // steps without overflow after which it doubles

  std::uint64_t seed = 1;
  std::shared_ptr<const Corpus> corpus;  // of the samples; null: they are drawn
};

/// The words under which a user changes them: "activation=silu", "learning-rate=3e-4". Throws
/// InputError for other words and values.
void set_meaning(Meanings& meanings, const std::string& words);
/// All of them as words with their values, in a fixed order.
std::vector<std::string> words_of(const Meanings& meanings);

/// What can be told from the program itself: updates by the names of the optimizer's states.
/// Throws InputError where they are of no optimizer that is known here.
void read_updates(Meanings& meanings, const Reference& reference);

namespace execute {

/// The functions that have a meaning. Those of vectors see several numbers of each operand.
enum class Function : std::uint8_t {
  act,
  silu,
  sigmoid,
  power,
  entry,
  normal,
  power_of_head,
  normal_of_head,
  log,
  inverse,
  ratio,
  identity,
  exp,
  exp_dot,
  attention_scale,
  exp_seen,
  exp_shift,
  capped,
  onehot,
  position,
  rotation,
  kept,
  chosen,
  route,
  affinity,
  convolution,
  selective_scan,
  head_scan,
  delta_rule,
  channel_delta_rule,
  linear_attention,
  moment,
  direction,   // of a step, from momentum and gradient
  orthogonal,  // a matrix with its singular values near one
  stepped,
  limited,
  nonfinite,
  rescaled,
  counted,
  unless,
  balance_weight,
  compressed,  // what a fault does to a message: fewer bits, or some entries lost
  masked,
  prediction_weight
};

/// A function of a program with its meaning.
struct MeantFunction {
  std::string name;
  Function function = Function::act;
  std::int64_t number = 0;  // of choices, of the state, of the rule, of heads or entries of one
  int rule = 0;
  int derivative = -1;
};

/// Throws InputError for a function without a meaning, with its kernel.
MeantFunction meant(const std::string& function, const std::string& kernel);

/// What a function may depend on beside its operands.
struct FunctionPlace {
  std::array<std::int64_t, 8> positions{};  // where the entry stands, by position of the function
  std::array<std::int64_t, 8> sizes{};      // how long those dims are
  std::array<std::int64_t, 8> given{};      // of vectors: how long the dims are that it gives
  double count = 1;                         // entries that a statistic was taken over
  std::int64_t step = 1;
  std::uint64_t draw = 0;  // what random numbers are drawn for
};

inline constexpr std::size_t kMostFunctionOperands = 8;

/// Throws InputError where a function has fewer operands or positions than its meaning speaks of,
/// more than there can be, or is a derivative that has no meaning.
void require_arguments(const Meanings& meanings, const MeantFunction& f, std::size_t operands,
                       std::size_t positions);

/// Entries of a function that follow each other, on numbers of a floating format.
template <class Real>
struct FunctionRow {
  std::size_t count = 0;
  std::size_t width = 0;                                      // operands
  std::array<const Real*, kMostFunctionOperands> operands{};  // `count` numbers each
  FunctionPlace place;                                        // of the first entry
  std::size_t positions = 0;
  std::array<std::int64_t, 8> ahead{};  // how much further the next entry stands, by position
};

/// The values of a function of numbers, or of its derivative, entry by entry, in their format.
void values_of(const Meanings& meanings, const MeantFunction& f, const FunctionRow<double>& row,
               double* values);
void values_of(const Meanings& meanings, const MeantFunction& f, const FunctionRow<float>& row,
               float* values);
/// exp(x) of `count` numbers where they stand.
void make_exponentials(double* x, std::size_t count);
void make_exponentials(float* x, std::size_t count);
/// Of one entry.
double value_of(const Meanings& meanings, const MeantFunction& f,
                const std::vector<double>& operands, const FunctionPlace& place);

/// A turn of heads by where an entry stands (2 or 3 positions).
double rotation_of(const Meanings& meanings, const FunctionPlace& place, std::size_t positions);

/// Whether it sees whole vectors.
bool sees_vectors(Function function);

/// The values of a function of vectors, one for each entry of the dims that it gives; of a
/// derivative one for each of these and each entry of the operand, in that order.
void values_of(const Meanings& meanings, const MeantFunction& f,
               const std::vector<std::vector<double>>& operands, const FunctionPlace& place,
               std::vector<double>& values);

}  // namespace execute
}  // namespace placet
