//! How similar two names are, for "did you mean".

/// Number of edits (insert, delete, replace, swap two neighbours) between two names, ignoring case.
///
/// ```
/// use kube_yaml::spelling::count_edits;
/// assert_eq!(count_edits("promotoin", "promotion"), 1);
/// assert_eq!(count_edits("AutoDeploy", "autoDeploy"), 0);
/// ```
#[must_use]
pub fn count_edits(a: &str, b: &str) -> usize {
    strsim::osa_distance(&a.to_lowercase(), &b.to_lowercase())
}

/// The nearest of `known`, if it is similar enough to be the intended word: at most half of the word differs.
///
/// ```
/// use kube_yaml::spelling::find_nearest;
/// assert_eq!(find_nearest("aprovals", &["approvals", "checks"]), Some("approvals"));
/// assert_eq!(find_nearest("zzz", &["approvals", "checks"]), None);
/// ```
#[must_use]
pub fn find_nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let (edits, name) = known.iter().map(|k| (count_edits(word, k), *k)).min_by_key(|(edits, _)| *edits)?;
    (edits * 2 <= name.chars().count().max(2)).then_some(name)
}

/// The one of `known` that `word` is a misspelling of: within two edits, one for words of up to three letters
/// (any word of three letters is within two edits of most others).
///
/// ```
/// use kube_yaml::spelling::find_misspelt;
/// assert_eq!(find_misspelt("enviroment", &["environment"]), Some("environment"));
/// assert_eq!(find_misspelt("tag", &["oci"]), None);
/// ```
#[must_use]
pub fn find_misspelt<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let (edits, name) = known.iter().map(|k| (count_edits(word, k), *k)).min_by_key(|(edits, _)| *edits)?;
    let short = word.chars().count().min(name.chars().count()) <= 3;
    (edits <= if short { 1 } else { 2 }).then_some(name)
}
