//! Approval policies: the strictest of several, and whether one is weaker than another.

use crate::model::order::ApprovalPolicy;

/// The strictest of the Order's, the Environment's and the Preparation's policy: the largest number, and
/// the groups that all of them allow. A Preparation's policy without groups (older controllers wrote
/// none) restricts no groups. `None`: no approval is needed.
///
/// # Errors
/// A policy outside its bounds (1 to 32 approvals, 1 to 16 groups), or no group that all allow.
pub fn find_strictest(
    order: Option<&ApprovalPolicy>,
    environment: Option<&ApprovalPolicy>,
    preparation: Option<&ApprovalPolicy>,
) -> Result<Option<ApprovalPolicy>, String> {
    for (whose, policy) in [("Order", order), ("Environment", environment)] {
        let Some(policy) = policy else { continue };
        if !(1..=32).contains(&policy.required_approvals) {
            let found = policy.required_approvals;
            return Err(format!("the {whose}'s approvals.requiredApprovals is {found}; it must be 1 to 32"));
        }
        if !(1..=16).contains(&policy.allowed_groups.len()) {
            let found = policy.allowed_groups.len();
            return Err(format!(
                "the {whose}'s approvals.allowedGroups has {found} groups; it must have 1 to 16"
            ));
        }
    }
    let all: Vec<(&str, &ApprovalPolicy)> =
        [("Order", order), ("Environment", environment), ("Preparation", preparation)]
            .into_iter()
            .filter_map(|(whose, policy)| policy.map(|p| (whose, p)))
            .collect();
    let required_approvals = all.iter().map(|(_, p)| p.required_approvals).max().unwrap_or(0);
    if required_approvals == 0 {
        return Ok(None);
    }
    let limiting: Vec<_> = all.iter().filter(|(_, p)| !p.allowed_groups.is_empty()).collect();
    let mut allowed_groups: Vec<String> = match limiting.first() {
        None => Vec::new(),
        Some((_, first)) => first
            .allowed_groups
            .iter()
            .filter(|group| limiting.iter().all(|(_, p)| p.allowed_groups.contains(group)))
            .cloned()
            .collect(),
    };
    if allowed_groups.is_empty() && !limiting.is_empty() {
        let lists: Vec<String> =
            limiting.iter().map(|(whose, p)| format!("{whose}: {}", p.allowed_groups.join(", "))).collect();
        return Err(format!("no group may approve: the policies have none in common ({})", lists.join("; ")));
    }
    allowed_groups.sort();
    allowed_groups.dedup();
    Ok(Some(ApprovalPolicy { required_approvals, allowed_groups }))
}

/// Whether votes that met `old` also had to meet `today`: at least as many, from no other groups.
///
/// ```
/// use expedite::policy::gates::policy::is_as_strict;
/// use expedite::model::order::ApprovalPolicy;
/// let policy = |n, groups: &[&str]| ApprovalPolicy {
///     required_approvals: n,
///     allowed_groups: groups.iter().map(|g| g.to_string()).collect(),
/// };
/// assert!(is_as_strict(&policy(2, &["platform"]), &policy(1, &["platform", "shop"])));
/// assert!(!is_as_strict(&policy(1, &["platform"]), &policy(2, &["platform"])));
/// assert!(!is_as_strict(&policy(2, &["platform", "interns"]), &policy(2, &["platform"])));
/// assert!(!is_as_strict(&policy(2, &[]), &policy(2, &["platform"])), "the old votes came from any group");
/// ```
#[must_use]
pub fn is_as_strict(old: &ApprovalPolicy, today: &ApprovalPolicy) -> bool {
    let same_people = today.allowed_groups.is_empty()
        || (!old.allowed_groups.is_empty()
            && old.allowed_groups.iter().all(|group| today.allowed_groups.contains(group)));
    old.required_approvals >= today.required_approvals && same_people
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn policy(required_approvals: u32, groups: &[&str]) -> ApprovalPolicy {
        ApprovalPolicy {
            required_approvals,
            allowed_groups: groups.iter().map(|g| (*g).to_owned()).collect(),
        }
    }

    #[test]
    fn the_largest_number_and_the_groups_that_all_allow() {
        let order = policy(1, &["shop", "platform", "platform"]);
        let environment = policy(3, &["platform", "security", "shop"]);
        let preparation = policy(2, &["shop"]);
        assert_eq!(find_strictest(None, None, None), Ok(None));
        assert_eq!(find_strictest(Some(&order), None, None), Ok(Some(policy(1, &["platform", "shop"]))));
        assert_eq!(
            find_strictest(Some(&order), Some(&environment), None),
            Ok(Some(policy(3, &["platform", "shop"])))
        );
        assert_eq!(
            find_strictest(Some(&order), Some(&environment), Some(&preparation)),
            Ok(Some(policy(3, &["shop"])))
        );
    }

    #[test]
    fn a_preparation_of_an_older_controller_limits_no_groups() {
        assert_eq!(find_strictest(None, None, Some(&policy(2, &[]))), Ok(Some(policy(2, &[]))));
        assert_eq!(
            find_strictest(Some(&policy(1, &["a"])), None, Some(&policy(2, &[]))),
            Ok(Some(policy(2, &["a"])))
        );
        assert_eq!(find_strictest(None, None, Some(&policy(0, &[]))), Ok(None));
    }

    #[test]
    fn a_policy_that_cannot_be_met_is_an_error() {
        let why = find_strictest(Some(&policy(1, &["a"])), Some(&policy(1, &["b"])), None).unwrap_err();
        assert_eq!(why, "no group may approve: the policies have none in common (Order: a; Environment: b)");
        for wrong in [policy(0, &["a"]), policy(33, &["a"]), policy(1, &[])] {
            assert!(find_strictest(Some(&wrong), None, None).is_err(), "{wrong:?}");
            assert!(find_strictest(None, Some(&wrong), None).is_err(), "{wrong:?}");
        }
        let many: Vec<String> = (0..17).map(|n| format!("g{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(find_strictest(Some(&policy(1, &many)), None, None).is_err());
    }
}
