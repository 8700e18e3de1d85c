//! Calls every stage; owns the two loops.
