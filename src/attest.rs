//! Records: bodies (pure), signing, attaching (idempotent).
