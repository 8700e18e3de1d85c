//! Files, expected head → Pushed | Unchanged | Moved | Refused. Knows nothing of what the files mean.
