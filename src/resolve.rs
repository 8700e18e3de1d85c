//! World → one Case per Order, or that Order's input error. Pure.
