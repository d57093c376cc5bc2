// The two exceptions of the project, and the check of our own assumptions.
//
// Three kinds of trouble are kept apart:
//   bad input    a file, a flag or a placement that cannot mean anything: throw InputError. It is
//                caught once, in main (exit status 2) and in the web handler.
//   a judgement  "does not fit", "gradients are reduced twice": a value (a list of findings), never
//                an exception.
//   our own bug  ensure(...) throws InternalError (exit status 3). It stays on in every build.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace placet {

/// What is wrong with an input, in parts, so that a caller can rephrase it or print it as JSON.
/// Parts that do not apply stay empty.
struct InputFault {
  std::string where;    // file and key path, or flag and character: "job.toml: batch.micro"
  std::string value;    // the offending text as it was written; empty when something is missing
  std::string problem;  // what is wrong with it, as the rest of a sentence: "is set twice"
  std::string allowed;  // what would be right: "a whole number from 1 to 64", "bf16, fp16 or fp32"
  std::string nearest;  // the nearest valid spelling (see nearest.h)
  std::string excerpt;  // lines shown below the message: the text with a caret under the place

  friend bool operator==(const InputFault&, const InputFault&) = default;
};

/// One line for people. Without a problem it says "is not known" where a nearest spelling exists,
/// "is not valid" otherwise, and "missing" where the value is empty.
///
///   {"--placement, character 6", "bacth", "", "a cut", "batch"}  gives
///   --placement, character 6: 'bacth' is not known; expected a cut; did you mean 'batch'?
std::string describe(const InputFault& fault);

/// The text on one line, with control characters and torn ones spelled out, and without the middle
/// where it is long: a name in a file must not move the cursor of the terminal that shows it, or
/// fill it.
std::string printable(const std::string& text);

/// Bad input. what() is describe(fault()).
class InputError : public std::runtime_error {
 public:
  explicit InputError(InputFault fault);

  const InputFault& fault() const noexcept { return fault_; }

 private:
  InputFault fault_;
};

/// An InputError of a figure that passes what whole numbers hold. The checker takes one of a scale
/// of a program for what it is, a wrong scale: there it ends as a judgement.
class OverflowError : public InputError {
 public:
  using InputError::InputError;
};

/// Throws the InputError of a fault that needs these parts alone.
[[noreturn]] void refuse(const std::string& where, const std::string& value,
                         const std::string& problem, const std::string& allowed = {});

/// A bug of ours. what() gives the assumption that failed, with file, line and function.
class InternalError : public std::logic_error {
 public:
  InternalError(std::string_view assumption, std::source_location location);
};

/// Ends the current request because our own reasoning failed. Also the last line of a function
/// whose exhaustive switch has returned in every case.
[[noreturn]] void fail_internally(std::string_view assumption,
                                  std::source_location location = std::source_location::current());

/// Checks an assumption that no input can break:
///   ensure(sent <= whole, "a device never sends more than the whole value");
/// The text states what was assumed. Costs one predictable branch; the text must not be built anew
/// at each call in code that runs often.
constexpr void ensure(bool holds, std::string_view assumption,
                      std::source_location location = std::source_location::current()) {
  if (!holds) [[unlikely]] {
    fail_internally(assumption, location);
  }
}

}  // namespace placet
