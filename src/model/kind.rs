//! The kinds of objects that are read.

use serde::Deserialize;
use std::fmt;

/// A kind of `delivery.kokumi.dev`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum Kind {
    /// An application and how it moves.
    Order,
    /// One rendering of an Order.
    Preparation,
    /// A vote.
    Approval,
    /// What is promoted and what is deployed.
    Serving,
    /// Where Orders deploy.
    Environment,
    /// An API server.
    Cluster,
    /// The keys and people that this installation trusts.
    Kitchen,
}

impl Kind {
    pub const ALL: [Self; 7] = [
        Self::Order,
        Self::Preparation,
        Self::Approval,
        Self::Serving,
        Self::Environment,
        Self::Cluster,
        Self::Kitchen,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Order => "Order",
            Self::Preparation => "Preparation",
            Self::Approval => "Approval",
            Self::Serving => "Serving",
            Self::Environment => "Environment",
            Self::Cluster => "Cluster",
            Self::Kitchen => "Kitchen",
        }
    }

    /// As an API server calls its list.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::Order => "orders",
            Self::Preparation => "preparations",
            Self::Approval => "approvals",
            Self::Serving => "servings",
            Self::Environment => "environments",
            Self::Cluster => "clusters",
            Self::Kitchen => "kitchens",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Whether an object of it must say a namespace (a Kitchen may).
    #[must_use]
    pub fn is_namespaced(self) -> bool {
        match self {
            Self::Order | Self::Preparation | Self::Approval | Self::Serving => true,
            Self::Environment | Self::Cluster | Self::Kitchen => false,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
