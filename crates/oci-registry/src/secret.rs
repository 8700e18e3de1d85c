//! Text that is never shown.

use std::fmt;

/// A password or token. Its Debug prints stars; nothing else prints it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RegistrySecret(String);

impl RegistrySecret {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// For the one place that sends it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for RegistrySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_prints_stars() {
        assert_eq!(format!("{:?}", Some(RegistrySecret::new("hunter2"))), "Some(***)");
    }
}
