//! The words of conditions and votes, each defined once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }
        impl $name {
            /// All words, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The word as it is written.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant)),+ }
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.pad(self.as_str()) }
        }
    };
}

words!(
    /// Reasons of condition Ready (`docs/design/promotion.md#serving-status`).
    Ready {
        /// Nothing deployed yet.
        Pending,
        /// Nothing deployed yet and this Order's objects are wrong.
        InvalidInput,
        /// Health Degraded or Missing, or the sync failed, of this digest.
        Degraded,
        /// A cluster is held.
        OptInRequired,
        /// Pinned, not yet healthy on every Ready Cluster.
        Deploying,
        /// No observation was given.
        NotObserved,
        /// Healthy with this digest on every Ready Cluster.
        Deployed,
    }
);

impl Ready {
    /// The condition's status.
    #[must_use]
    pub fn status(self) -> &'static str {
        match self {
            Self::Pending | Self::Deploying | Self::NotObserved => "Unknown",
            Self::InvalidInput | Self::Degraded | Self::OptInRequired => "False",
            Self::Deployed => "True",
        }
    }
}

words!(
    /// Reasons of condition Approved.
    Approved {
        /// No policy applies.
        ApprovalNotRequired,
        /// Votes are missing.
        AwaitingApprovals,
        /// An eligible Reject.
        ChangesRequested,
        /// Enough votes; the seal is not attached yet.
        SealingApprovals,
        /// Sealed.
        Approved,
    }
);

impl Approved {
    /// The condition's status.
    #[must_use]
    pub fn status(self) -> &'static str {
        match self {
            Self::ApprovalNotRequired | Self::Approved => "True",
            Self::AwaitingApprovals | Self::ChangesRequested => "False",
            Self::SealingApprovals => "Unknown",
        }
    }
}

words!(
    /// Reasons of condition Verified.
    Verified {
        /// Artifact, signature and provenance are proven.
        SignaturesVerified,
        /// Nothing there.
        SignatureMissing,
        /// Something there that does not prove it.
        SignatureInvalid,
        /// An index, no or two tar layers, nothing at the top.
        ArtifactInvalid,
        /// The Kitchen has no usable key.
        SigningKeyNotReady,
        /// 401 or 403 after authentication.
        RegistryUnauthorized,
        /// 429.
        RegistryRateLimited,
        /// No connection, no answer.
        RegistryUnreachable,
        /// Any other fault of the registry, integrity included.
        RegistryError,
        /// The pinned digest is not there.
        ArtifactNotFound,
        /// Nothing to verify yet.
        NotVerified,
    }
);

impl Verified {
    /// The condition's status.
    #[must_use]
    pub fn status(self) -> &'static str {
        match self {
            Self::SignaturesVerified => "True",
            Self::SignatureMissing
            | Self::SignatureInvalid
            | Self::ArtifactInvalid
            | Self::SigningKeyNotReady
            | Self::ArtifactNotFound => "False",
            Self::RegistryUnauthorized
            | Self::RegistryRateLimited
            | Self::RegistryUnreachable
            | Self::RegistryError
            | Self::NotVerified => "Unknown",
        }
    }

    /// Whether this says that the registry could not be read (exit 1), not that evidence is lacking.
    #[must_use]
    pub fn is_unread(self) -> bool {
        match self {
            Self::RegistryUnauthorized
            | Self::RegistryRateLimited
            | Self::RegistryUnreachable
            | Self::RegistryError => true,
            Self::SignaturesVerified
            | Self::SignatureMissing
            | Self::SignatureInvalid
            | Self::ArtifactInvalid
            | Self::SigningKeyNotReady
            | Self::ArtifactNotFound
            | Self::NotVerified => false,
        }
    }
}

words!(
    /// What became of a vote.
    Vote {
        /// It counts.
        Counted,
        /// A newer one of the same approver counts.
        Superseded,
        /// Not in an allowed group, or not a known approver.
        NotEligible,
        /// It names another digest (or uid).
        DigestMismatch,
        /// It names a Preparation that is not there.
        PreparationNotFound,
        /// Cast after the seal.
        SubmittedAfterSeal,
        /// `approvalTrust: Signed`, and no signature.
        SignatureMissing,
        /// Its signature is not by a key of that approver.
        SignatureInvalid,
    }
);

words!(
    /// How a history entry ended.
    Ended {
        /// Another Preparation was promoted.
        Superseded,
        /// Its health was lost.
        Degraded,
    }
);
