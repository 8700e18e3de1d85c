//! The URL that opens a pull request, for forges that are known by their host name.

use url::Url;

/// The page that opens a pull request from `branch` into `base`; `None`: the host is not a known forge.
///
/// ```
/// use expedite::report::pull_request::build_url;
/// assert_eq!(
///     build_url("git@github.com:acme/gitops.git", "main", "promote/podinfo").as_deref(),
///     Some("https://github.com/acme/gitops/compare/main...promote/podinfo?expand=1")
/// );
/// assert_eq!(build_url("/srv/gitops.git", "main", "x"), None);
/// ```
#[must_use]
pub fn build_url(repository: &str, base: &str, branch: &str) -> Option<String> {
    let (host, path) = parse_host_and_path(repository)?;
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    if !path.contains('/') || path.contains(['?', '#', '%', ' ']) {
        return None;
    }
    let is = |name: &str| host.split('.').any(|part| part == name);
    let mut page = Url::parse(&format!("https://{host}/{path}")).ok()?;
    if is("gitlab") {
        page = extend_path(page, &["-", "merge_requests", "new"])?;
        page.query_pairs_mut()
            .append_pair("merge_request[source_branch]", branch)
            .append_pair("merge_request[target_branch]", base);
    } else if is("bitbucket") {
        page = extend_path(page, &["pull-requests", "new"])?;
        page.query_pairs_mut().append_pair("source", branch).append_pair("dest", base);
    } else if is("github") || is("codeberg") || is("gitea") || is("forgejo") {
        let range = format!("{base}...{branch}");
        let parts: Vec<&str> = ["compare"].into_iter().chain(range.split('/')).collect();
        page = extend_path(page, &parts)?;
        if is("github") {
            page.set_query(Some("expand=1"));
        }
    } else {
        return None;
    }
    Some(page.into())
}

fn extend_path(mut page: Url, parts: &[&str]) -> Option<Url> {
    page.path_segments_mut().ok()?.extend(parts);
    Some(page)
}

/// Of `https://…`, `ssh://…` or `user@host:path`; a port is that of git, not of the pages, and left out but for
/// https.
fn parse_host_and_path(repository: &str) -> Option<(String, String)> {
    if let Some((scheme, _)) = repository.split_once("://") {
        let parsed = Url::parse(repository).ok()?;
        let host = parsed.host_str()?;
        let host = match (scheme, parsed.port()) {
            ("http" | "https", Some(port)) => format!("{host}:{port}"),
            _ => host.to_owned(),
        };
        return matches!(scheme, "http" | "https" | "ssh")
            .then(|| (host, parsed.path().replacen("/~/", "/", 1)));
    }
    let (host, path) = repository.split_once(':')?;
    let host = host.rsplit('@').next()?;
    (!host.contains('/') && !host.is_empty()).then(|| (host.to_owned(), path.to_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn forges_are_known_by_their_hosts() {
        for (repository, page) in [
            ("https://github.com/acme/gitops", "https://github.com/acme/gitops/compare/main...a/b?expand=1"),
            (
                "https://github.acme.example/o/r.git",
                "https://github.acme.example/o/r/compare/main...a/b?expand=1",
            ),
            (
                "ssh://git@gitlab.acme.example:2222/group/sub/r.git",
                "https://gitlab.acme.example/group/sub/r/-/merge_requests/new?merge_request%5Bsource_branch%5D=a%2Fb&merge_request%5Btarget_branch%5D=main",
            ),
            ("https://codeberg.org/o/r.git/", "https://codeberg.org/o/r/compare/main...a/b"),
            (
                "https://gitea.acme.example:3000/o/r.git",
                "https://gitea.acme.example:3000/o/r/compare/main...a/b",
            ),
            (
                "git@bitbucket.org:o/r.git",
                "https://bitbucket.org/o/r/pull-requests/new?source=a%2Fb&dest=main",
            ),
            ("ssh://git@github.com/~/o/r.git", "https://github.com/o/r/compare/main...a/b?expand=1"),
        ] {
            assert_eq!(build_url(repository, "main", "a/b").as_deref(), Some(page), "{repository}");
        }
        for other in [
            "/srv/github/a/b.git",
            "../gitops.git",
            "https://git.acme.example/o/r.git",
            "https://github.com/r",
            "https://mygithub.example/o/r",
            "file:///github.com/o/r",
            "",
        ] {
            assert_eq!(build_url(other, "main", "a/b"), None, "{other}");
        }
    }

    #[test]
    fn a_branch_says_nothing_but_its_name() {
        let page = build_url("https://github.com/o/r", "main", "a?expand=0#x y").unwrap();
        assert_eq!(page, "https://github.com/o/r/compare/main...a%3Fexpand=0%23x%20y?expand=1");
    }
}
