#include "tokenizer/jinja/scopes.h"

namespace limpid::jinja {

void find_late_names(Template& parsed) { (void)parsed; }

}  // namespace limpid::jinja
