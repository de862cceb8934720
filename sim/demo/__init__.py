"""A whole cluster in one process and in real time: what `grovekeeper demo` runs."""
