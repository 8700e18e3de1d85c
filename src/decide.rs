//! Cases, Verdicts, now → Plan. Pure.
