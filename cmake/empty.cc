// A shared library needs one source of its own; all of libtreadle's code comes from the archives linked into it.
