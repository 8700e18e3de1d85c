//! Reading `WWW-Authenticate` (RFC 9110, 11.6.1): several challenges, in one header or in several.

/// A challenge of a registry that we can answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Challenge {
    /// A token from `realm`.
    Bearer {
        /// The token endpoint's URL, as written.
        realm: String,
        /// The name under which the endpoint knows the registry.
        service: Option<String>,
        /// What the token should allow.
        scope: Option<String>,
    },
    /// User and password with every request.
    Basic,
}

/// The challenge to answer: Bearer before Basic; `None`: neither is there.
#[must_use]
pub fn choose_challenge<'a>(headers: impl IntoIterator<Item = &'a str>) -> Option<Challenge> {
    let all: Vec<Challenge> = headers.into_iter().flat_map(parse_challenges).collect();
    let bearer = all.iter().position(|c| matches!(c, Challenge::Bearer { .. }));
    all.into_iter().nth(bearer.unwrap_or(0))
}

/// Every Bearer (with a realm) and Basic challenge of one header.
fn parse_challenges(header: &str) -> Vec<Challenge> {
    let mut found = Vec::new();
    let mut current: Option<(String, Vec<(String, String)>)> = None;
    for item in split_items(header) {
        // `scheme`, `scheme name=value`, or `name=value` of the challenge before.
        let (scheme, parameter) = match item.split_once(char::is_whitespace) {
            Some((scheme, rest)) if !scheme.contains('=') => (Some(scheme), rest.trim()),
            _ if item.contains('=') => (None, item.as_str()),
            _ => (Some(item.as_str()), ""),
        };
        if let Some(scheme) = scheme {
            found.extend(current.take().and_then(make_challenge));
            current = Some((scheme.to_ascii_lowercase(), Vec::new()));
        }
        if let (Some((_, parameters)), Some((name, value))) = (&mut current, parameter.split_once('=')) {
            parameters.push((name.trim().to_ascii_lowercase(), unquote_value(value.trim())));
        }
    }
    found.extend(current.and_then(make_challenge));
    found
}

fn make_challenge((scheme, parameters): (String, Vec<(String, String)>)) -> Option<Challenge> {
    let get = |name: &str| parameters.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
    match scheme.as_str() {
        "bearer" => {
            Some(Challenge::Bearer { realm: get("realm")?, service: get("service"), scope: get("scope") })
        }
        "basic" => Some(Challenge::Basic),
        _ => None,
    }
}

/// The parts between commas; commas inside quotes divide nothing.
fn split_items(header: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let (mut quoted, mut escaped) = (false, false);
    for c in header.chars() {
        match c {
            ',' if !quoted => {
                items.push(String::new());
                continue;
            }
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = quoted && c == '\\' && !escaped;
        if let Some(last) = items.last_mut() {
            last.push(c);
        }
    }
    items.into_iter().map(|i| i.trim().to_owned()).filter(|i| !i.is_empty()).collect()
}

fn unquote_value(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"') else { return value.to_owned() };
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let mut text = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        text.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn bearer(realm: &str, service: Option<&str>, scope: Option<&str>) -> Option<Challenge> {
        let own = |t: Option<&str>| t.map(str::to_owned);
        Some(Challenge::Bearer { realm: realm.into(), service: own(service), scope: own(scope) })
    }

    #[test]
    fn challenges_as_registries_write_them() {
        let header = r#"Bearer realm="https://auth.example/token",service="r.example",scope="repository:a/b:pull,push",error="invalid_token""#;
        assert_eq!(
            choose_challenge([header]),
            bearer("https://auth.example/token", Some("r.example"), Some("repository:a/b:pull,push"))
        );
        assert_eq!(choose_challenge([r#"bearer Realm = "x" , Service=y"#]), bearer("x", Some("y"), None));
        assert_eq!(choose_challenge([r#"BASIC realm="say \"hi\", you""#]), Some(Challenge::Basic));
        assert_eq!(choose_challenge(["Basic"]), Some(Challenge::Basic));
        assert_eq!(choose_challenge([r#"Bearer realm="a\"b\\c""#]), bearer(r#"a"b\c"#, None, None));
    }

    #[test]
    fn bearer_is_chosen_among_several() {
        let one = r#"Negotiate, Basic realm="r", Bearer realm="x",service="s""#;
        assert_eq!(choose_challenge([one]), bearer("x", Some("s"), None));
        assert_eq!(choose_challenge([r#"Basic realm="r""#, r#"Bearer realm="x""#]), bearer("x", None, None));
        assert_eq!(choose_challenge([r#"Bearer scope="no realm", Basic realm="r""#]), Some(Challenge::Basic));
    }

    #[test]
    fn what_cannot_be_answered_is_nothing() {
        for header in [
            "",
            ",",
            "Negotiate",
            "Digest realm=\"x\", nonce=\"y\"",
            "Bearer",
            "Bearer service=x",
            "=",
            "\"",
            "Bearer realm",
        ] {
            assert_eq!(choose_challenge([header]), None, "{header}");
        }
        assert_eq!(choose_challenge([]), None);
    }
}
