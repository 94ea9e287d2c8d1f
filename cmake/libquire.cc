// The shared library is made of the static ones; this file is only there because a target needs one.
