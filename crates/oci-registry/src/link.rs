//! The `Link` header of a paged list (RFC 8288), and where a next page may be.

use url::Url;

/// The target of the first `rel="next"` among all `Link` headers of an answer. A header may carry several
/// links; `rel` may be quoted or not, and hold several words.
#[must_use]
pub fn find_next_link<'a>(headers: impl IntoIterator<Item = &'a str>) -> Option<String> {
    headers.into_iter().find_map(find_next_in)
}

fn find_next_in(header: &str) -> Option<String> {
    let mut rest = header;
    loop {
        let open = rest.find('<')?;
        let close = open + rest[open..].find('>')?;
        let target = &rest[open + 1..close];
        let (parameters, after) = parse_parameters(&rest[close + 1..]);
        let is_next = parameters.iter().any(|(name, value)| {
            name.eq_ignore_ascii_case("rel")
                && value.split_ascii_whitespace().any(|r| r.eq_ignore_ascii_case("next"))
        });
        if is_next {
            return Some(target.to_owned());
        }
        rest = after;
    }
}

/// The parameters up to the comma that ends this link, and the rest after it. A comma inside quotes does not end a link.
fn parse_parameters(text: &str) -> (Vec<(String, String)>, &str) {
    let mut pieces = vec![String::new()];
    let mut quoted = false;
    let mut end = text.len();
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => {
                escaped = false;
                push_char(&mut pieces, c);
            }
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ',' if !quoted => {
                end = at;
                break;
            }
            ';' if !quoted => pieces.push(String::new()),
            _ => push_char(&mut pieces, c),
        }
    }
    let named = pieces.iter().filter_map(|piece| {
        let (name, value) = piece.split_once('=')?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    });
    (named.collect(), &text[end..])
}

fn push_char(pieces: &mut [String], c: char) {
    if let Some(last) = pieces.last_mut() {
        last.push(c);
    }
}

/// Whether two URLs have the same scheme, host and port. Credentials and lists are never used for another origin.
pub(crate) fn is_same_origin(a: &Url, b: &Url) -> bool {
    a.scheme() == b.scheme()
        && a.host_str() == b.host_str()
        && a.port_or_known_default() == b.port_or_known_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn case_42_every_way_to_write_a_next_link() {
        for header in [
            r#"</v2/a/referrers/x?n=2>; rel="next""#,
            r"</v2/a/referrers/x?n=2>;rel=next",
            r#"</v2/a/referrers/x?n=2>; title="a, b; <c>"; REL="prev Next""#,
            r#"</first>; rel="first", </v2/a/referrers/x?n=2>; rel="next""#,
            r#"</first>; title="x\"y, z"; rel=first,</v2/a/referrers/x?n=2>;rel="next",</z>;rel="last""#,
        ] {
            assert_eq!(find_next_link([header]).as_deref(), Some("/v2/a/referrers/x?n=2"), "{header}");
        }
        assert_eq!(find_next_link([r#"</a>; rel="first""#, r#"</b>; rel="next""#]).as_deref(), Some("/b"));
    }

    #[test]
    fn what_is_no_next_link() {
        for header in [
            "",
            "nonsense",
            "<",
            "<>",
            "</a",
            r#"</a>; rel="previous""#,
            "</a>; title=next",
            r#"</a>; rel="nextone""#,
        ] {
            assert_eq!(find_next_link([header]), None, "{header}");
        }
    }

    #[test]
    fn default_ports_are_the_same_origin() {
        let url = |t: &str| Url::parse(t).unwrap();
        assert!(is_same_origin(&url("https://r.example/a"), &url("https://r.example:443/b")));
        assert!(!is_same_origin(&url("https://r.example/a"), &url("http://r.example/a")));
        assert!(!is_same_origin(&url("https://r.example/a"), &url("https://r.example:444/a")));
        assert!(!is_same_origin(&url("https://r.example/a"), &url("https://r.example.evil/a")));
    }
}
