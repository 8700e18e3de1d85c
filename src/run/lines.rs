//! The files that messages name, as they were read: where a field is written is looked up only to print it.

use super::{Setup, SourcePlace};
use git_commits::Snapshot;

/// The bytes of a file that a message names, to find the line of a field.
pub fn read_named(setup: &Setup<'_>, snapshot: &Snapshot, file: &str) -> Option<Vec<u8>> {
    for source in &setup.sources {
        let root = match &source.place {
            SourcePlace::Folder(name, _) => name.clone(),
            SourcePlace::Commit(below) => below.name.clone(),
            SourcePlace::Repository => snapshot.name().to_owned(),
            SourcePlace::Cluster(_) | SourcePlace::Snapshot(_) => continue,
        };
        let Some(rest) = strip_root(&root, file) else { continue };
        let bytes = match &source.place {
            SourcePlace::Folder(_, path) if rest.is_empty() => std::fs::read(path).ok(),
            SourcePlace::Folder(_, path) => std::fs::read(path.join(rest)).ok(),
            SourcePlace::Commit(below) => below.read_file(rest).ok().flatten(),
            SourcePlace::Repository => snapshot.read_file(rest).ok().flatten(),
            SourcePlace::Cluster(_) | SourcePlace::Snapshot(_) => None,
        };
        if bytes.is_some() {
            return bytes;
        }
    }
    // A Serving is read from the repository whatever the sources are.
    file.starts_with("servings/").then(|| snapshot.read_file(file).ok().flatten()).flatten()
}

/// What is left of a file's name below the root that it was read from; empty: the root itself is the file. A root is a
/// whole name: `o` is not above `ob/c.yaml`.
fn strip_root<'f>(root: &str, file: &'f str) -> Option<&'f str> {
    let root = root.trim_end_matches('/');
    match file.strip_prefix(root)? {
        "" => Some(""),
        rest if root.is_empty() => Some(rest.trim_start_matches('/')),
        rest => rest.strip_prefix('/'),
    }
}

#[cfg(test)]
mod tests {
    use super::strip_root;

    #[test]
    fn a_root_is_above_its_own_files_only() {
        assert_eq!(strip_root("o", "o/c.yaml"), Some("c.yaml"));
        assert_eq!(strip_root("o/", "o/b/c.yaml"), Some("b/c.yaml"));
        assert_eq!(strip_root("o.yaml", "o.yaml"), Some(""));
        assert_eq!(strip_root("/srv/o", "/srv/o/c.yaml"), Some("c.yaml"));
        assert_eq!(strip_root("o", "ob/c.yaml"), None, "another folder that begins alike");
        assert_eq!(strip_root("o", "o.yaml"), None);
        assert_eq!(strip_root("", "servings/c.yaml"), Some("servings/c.yaml"));
        assert_eq!(strip_root("p", "o/c.yaml"), None);
    }
}
