//! Plan, outcomes → text, through the writer handed in.
