//! Plan → files. Knows nothing of who asked.

pub mod layout;
pub mod template;
pub mod context;
pub mod admit;
pub mod application;
pub mod status;
pub mod serving;
