// The one place where exceptions end and the exit status is set.
#include <csignal>
#include <exception>
#include <iostream>
#include <new>

#include "cli/program.h"
#include "units/error.h"

int main(int argc, char** argv) {
  // A reader that leaves early (head) is no fault of this call; writes to it then fail quietly.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return placet::run(argc, argv);
  } catch (const placet::InputError& error) {
    std::cerr << "placet: " << error.what() << std::endl;
    return placet::kWrongInput;
  } catch (const std::bad_alloc&) {
    std::cerr << "placet: out of memory" << std::endl;
    return placet::kOurFault;
  } catch (const std::exception& error) {
    std::cerr << "placet: this is a fault of placet itself: " << error.what() << std::endl;
    return placet::kOurFault;
  } catch (...) {
    std::cerr << "placet: this is a fault of placet itself, of unknown kind" << std::endl;
    return placet::kOurFault;
  }
}
