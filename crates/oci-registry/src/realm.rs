//! Where a token may be asked for. The registry names the place, so the place is not trusted: a registry
//! must not make us send credentials in the clear, or talk to hosts inside the network on its behalf.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::collections::HashSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use url::{Host, Url};

/// How far inside a network an address lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Depth {
    /// Anywhere on the internet.
    Public,
    /// Private networks (RFC 1918, RFC 6598, RFC 4193).
    Private,
    /// Loopback, link-local (where clouds keep their metadata), unspecified, multicast.
    Local,
}

/// Whom a client may talk to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reach {
    /// Anybody: the address comes from the settings.
    Any,
    /// Names that lead no deeper than this.
    UpTo(Depth),
}

/// How deep an address lies.
pub(crate) fn judge_depth(address: IpAddr) -> Depth {
    match address {
        IpAddr::V4(v4) => judge_depth_v4(v4),
        IpAddr::V6(v6) => match v6.to_ipv4_mapped().or_else(|| extract_embedded_v4(v6)) {
            Some(v4) => judge_depth_v4(v4),
            None if v6.is_loopback() || v6.is_unspecified() || v6.is_multicast() => Depth::Local,
            None if v6.is_unicast_link_local() => Depth::Local,
            None if v6.is_unique_local() => Depth::Private,
            None => Depth::Public,
        },
    }
}

/// NAT64's well-known prefix (RFC 6052) carries an IPv4 address.
fn extract_embedded_v4(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = v6.segments() else { return None };
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Some(Ipv4Addr::new(a, b, c, d))
}

fn judge_depth_v4(v4: Ipv4Addr) -> Depth {
    let [first, second, ..] = v4.octets();
    if v4.is_loopback() || v4.is_link_local() || v4.is_multicast() || v4.is_broadcast() || first == 0 {
        return Depth::Local;
    }
    let shared = first == 100 && (64..128).contains(&second);
    if v4.is_private() || shared { Depth::Private } else { Depth::Public }
}

/// Whether a token may be asked for at `realm` on behalf of the registry at `base`, which itself lies at
/// `registry`. The answer is the client to use.
///
/// # Errors
/// Says which rule it breaks.
pub(crate) fn check_realm(realm: &Url, base: &Url, registry: Depth) -> Result<Reach, &'static str> {
    match (realm.scheme(), base.scheme()) {
        ("https", _) | ("http", "http") => {}
        ("http", _) => return Err("the token realm is plain http, the registry is not"),
        _ => return Err("the token realm is not an https URL"),
    }
    if !realm.username().is_empty() || realm.password().is_some() {
        return Err("the token realm carries a user");
    }
    let own =
        realm.host_str() == base.host_str() && realm.port_or_known_default() == base.port_or_known_default();
    if own {
        return Ok(Reach::Any);
    }
    // A registry inside may name a neighbour; nobody may name this machine.
    let allowed = registry.min(Depth::Private);
    let literal = match realm.host() {
        Some(Host::Ipv4(v4)) => Some(judge_depth(v4.into())),
        Some(Host::Ipv6(v6)) => Some(judge_depth(v6.into())),
        Some(Host::Domain(name)) if is_localhost(name) => Some(Depth::Local),
        Some(Host::Domain(_)) => None,
        None => return Err("the token realm has no host"),
    };
    match literal {
        Some(deep) if deep > allowed => Err(REFUSED),
        Some(_) | None => Ok(Reach::UpTo(allowed)),
    }
}

const REFUSED: &str = "the token realm is a local or private address that is not the registry's own";

fn is_localhost(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

/// How deep a registry lies: of several addresses, the shallowest. One that cannot be resolved here (a proxy
/// does it) counts as public.
pub(crate) async fn resolve_depth(base: &Url) -> Depth {
    match base.host() {
        Some(Host::Ipv4(v4)) => judge_depth(v4.into()),
        Some(Host::Ipv6(v6)) => judge_depth(v6.into()),
        Some(Host::Domain(name)) => match tokio::net::lookup_host((name, 0)).await {
            Ok(addresses) => addresses.map(|a| judge_depth(a.ip())).min().unwrap_or(Depth::Public),
            Err(_) => Depth::Public,
        },
        None => Depth::Public,
    }
}

/// A name led deeper into the network than allowed.
#[derive(Debug)]
pub(crate) struct TooDeep;

impl fmt::Display for TooDeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REFUSED)
    }
}
impl std::error::Error for TooDeep {}

/// Resolves names, and refuses those that lead too deep: at the moment of connecting, so that a name cannot
/// change its mind in between.
#[derive(Debug)]
pub(crate) struct Guarded {
    pub depth: Depth,
    /// Proxies: named by the user, not by a registry.
    pub trusted: Arc<HashSet<String>>,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let (deepest, trusted) = (self.depth, self.trusted.contains(name.as_str()));
        Box::pin(async move {
            let addresses: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            if !trusted && addresses.iter().any(|a| judge_depth(a.ip()) > deepest) {
                return Err(TooDeep.into());
            }
            let addresses: Addrs = Box::new(addresses.into_iter());
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn ask(realm: &str, base: &str, registry: Depth) -> Result<Reach, &'static str> {
        check_realm(&Url::parse(realm).unwrap(), &Url::parse(base).unwrap(), registry)
    }

    #[test]
    fn a_realm_is_https_unless_the_registry_is_plain() {
        let public = Ok(Reach::UpTo(Depth::Public));
        assert_eq!(ask("https://auth.example/token", "https://r.example/", Depth::Public), public);
        assert_eq!(ask("http://auth.example/token", "http://r.example/", Depth::Public), public);
        for realm in [
            "http://auth.example/token",
            "http://r.example/token",
            "ftp://auth.example/",
            "https://u:p@auth.example/",
        ] {
            ask(realm, "https://r.example/", Depth::Public).unwrap_err();
        }
    }

    #[test]
    fn a_realm_leads_inside_only_to_the_registry_itself() {
        let inside = [
            "127.0.0.1",
            "127.1.2.3",
            "localhost",
            "a.localhost",
            "localhost.",
            "[::1]",
            "0.0.0.0",
            "169.254.169.254",
            "[fe80::1]",
            "[::ffff:127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "224.0.0.1",
        ];
        for host in inside {
            let realm = format!("https://{host}/token");
            ask(&realm, "https://r.example/", Depth::Public).unwrap_err();
            ask(&realm, "https://10.0.0.1/", Depth::Private).unwrap_err();
            ask(&realm, &format!("https://{host}:5000/"), Depth::Local).unwrap_err();
            assert_eq!(ask(&realm, &format!("https://{host}/"), Depth::Local), Ok(Reach::Any), "{host}");
        }
        for host in ["10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "[fd00::1]", "[::ffff:10.0.0.1]"]
        {
            let realm = format!("https://{host}/token");
            ask(&realm, "https://r.example/", Depth::Public).unwrap_err();
            assert_eq!(
                ask(&realm, "https://r.corp/", Depth::Private),
                Ok(Reach::UpTo(Depth::Private)),
                "{host}"
            );
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_inside_is_refused_when_it_is_resolved() {
        let guard = |depth, trusted: &[&str]| Guarded {
            depth,
            trusted: Arc::new(trusted.iter().map(|t| (*t).to_owned()).collect()),
        };
        let resolve =
            |g: Guarded| async move { g.resolve("localhost".parse().unwrap()).await.map(|a| a.count()) };
        assert!(resolve(guard(Depth::Public, &[])).await.unwrap_err().is::<TooDeep>());
        assert!(resolve(guard(Depth::Private, &[])).await.unwrap_err().is::<TooDeep>());
        assert!(resolve(guard(Depth::Public, &["localhost"])).await.unwrap() > 0);
    }
}
