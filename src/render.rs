//! Plan → files. Knows nothing of who asked.
