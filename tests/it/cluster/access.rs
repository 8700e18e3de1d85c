//! Who asks: kubeconfigs, contexts, credential plugins, service accounts, proxies.

use super::*;
use crate::support::authority::Authority;
use crate::support::stubserver::{Answer, Stub, ours, page};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;

fn stub() -> Stub {
    Stub::start(|request| match request.path.strip_prefix("/apis/delivery.kokumi.dev/v1alpha1") {
        Some("") => Answer::Json(200, ours()),
        Some("/orders") => page(&[order("shop", "podinfo")], ""),
        Some(_) => page(&[], ""),
        None => Answer::Text(404, "404 page not found".into()),
    })
}

/// A kubeconfig for the stub with one user.
fn kubeconfig(stub: &Stub, user: &Value) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "one",
        "clusters": [{"name": "c", "cluster": {"server": stub.url()}}],
        "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": user}],
    })
    .to_string()
}

fn said(access: &ClusterAccess, context: Option<&str>) -> Result<World, String> {
    let runtime = runtime();
    let connection = runtime.block_on(access.open_connection(context)).map_err(|f| {
        let hints = f.hints.join("; ");
        format!("{f} | {hints}")
    })?;
    Ok(read(&ClusterSource::new(connection, Selection::default()).fetch_all(&runtime)))
}

#[test]
fn a_credential_plugin_is_run_and_what_it_prints_is_never_shown() {
    let stub = stub();
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("plugin.sh");
    std::fs::write(
        &plugin,
        "#!/bin/sh\nif [ \"$1\" = fail ]; then echo s3cret; echo log in first >&2; exit 3; fi\n\
         echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"from-plugin\"}}'\n",
    )
    .unwrap();
    std::fs::set_permissions(&plugin, std::fs::Permissions::from_mode(0o755)).unwrap();
    let user = |args: &[&str]| {
        json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin.sh", "args": args,
            "interactiveMode": "Never"}})
    };
    let file = folder.path().join("config");
    std::fs::write(&file, kubeconfig(&stub, &user(&[]))).unwrap();
    let world = said(&access_by(&file), None).unwrap();
    assert_eq!((world.orders.len(), problems(&world)), (1, Vec::new()));
    assert!(stub.seen().iter().all(|r| r.authorization == "Bearer from-plugin"));

    std::fs::write(&file, kubeconfig(&stub, &user(&["fail"]))).unwrap();
    let all = match said(&access_by(&file), None) {
        Ok(world) => {
            assert!(!world.sources[0].whole);
            problems(&world).join("\n")
        }
        Err(text) => text,
    };
    assert!(all.contains("log in first"), "{all}");
    assert!(!all.contains("s3cret"), "{all}");
}

#[test]
fn a_context_that_is_not_there_is_named_beside_those_that_are() {
    let stub = stub();
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    std::fs::write(&first, kubeconfig(&stub, &json!({"token": "a"}))).unwrap();
    std::fs::write(&second, kubeconfig(&stub, &json!({"token": "b"})).replace("\"one\"", "\"two\"")).unwrap();
    let both = std::env::join_paths([&first, &second]).unwrap();
    let access = ClusterAccess { environment: Environment::new([("KUBECONFIG", both)]), ..access_by(&first) };
    assert_eq!(said(&access, Some("two")).unwrap().orders.len(), 1);
    let failure = said(&access, Some("three")).unwrap_err();
    assert!(
        failure.ends_with("/second: the kubeconfig: it has no context three | it has: one, two"),
        "{failure}"
    );
    std::fs::write(&second, "clusters: 5\n").unwrap();
    let failure = said(&access, Some("one")).unwrap_err();
    assert!(failure.contains("/second: the kubeconfig: "), "a broken file is no reason to go on: {failure}");
    let none = ClusterAccess { environment: Environment::default(), ..access_by(&first) };
    let failure = said(&none, None).unwrap_err();
    assert!(failure.contains("there is no kubeconfig"), "{failure}");
}

#[test]
fn a_pod_without_its_service_account_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let pod = [("KUBERNETES_SERVICE_HOST", "10.0.0.1"), ("KUBERNETES_SERVICE_PORT", "443")];
    let access = ClusterAccess {
        environment: Environment::new(pod),
        account: folder.path().to_owned(),
        ..access_by(&folder.path().join("none"))
    };
    let failure = said(&access, None).unwrap_err();
    assert!(failure.contains("the Pod's service account: ") && failure.contains("/token: "), "{failure}");
}

#[test]
fn init_writes_the_clusters_that_the_flags_name() {
    let place = harness::Place::new();
    place.git(&["init", "-q", "one"]);
    place
        .expedite(&["init", "--repo", "one", "--from-cluster", "--context", "prod", "--context", "argo"])
        .ok();
    let text = place.read("one/expedite.yaml");
    assert!(
        text.contains("sources:\n- cluster: {context: \"prod\"}\n- cluster: {context: \"argo\"}\n"),
        "{text}"
    );
    assert!(text.contains("\n  requireObservation: true "), "what nobody observed is held: {text}");
    // They are settings: reading them gets as far as the kubeconfig.
    let said = place.expedite(&["plan", "--repo", "one"]);
    said.exits(1);
    assert!(said.stderr.contains("cluster prod: there is no kubeconfig"), "{}", said.stderr);
    place.git(&["init", "-q", "two"]);
    place.expedite(&["init", "--repo", "two", "--from-cluster"]).ok();
    assert!(place.read("two/expedite.yaml").contains("sources:\n- cluster: {}\n"));
    let said = place.expedite(&["snapshot", "out", "--repo", "two", "--from", "two"]);
    said.exits(64);
    assert!(said.stderr.contains("no source is a cluster"), "{}", said.stderr);
}

/// A port on 127.0.0.1 where each connection is handed to `serve`.
fn listen(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = serve.clone();
            std::thread::spawn(move || serve(stream));
        }
    });
    port
}

/// What comes until an empty line, the end of a request without a body.
fn head(from: &mut impl std::io::Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") && from.read(&mut byte).is_ok_and(|n| n == 1) {
        bytes.push(byte[0]);
    }
    bytes
}

/// The stub, with TLS before it.
fn behind(authority: &Authority, stub: &Stub) -> u16 {
    let (config, plain) = (authority.server.clone(), stub.url().replace("http://", ""));
    listen(move |stream| {
        let session = rustls::ServerConnection::new(config.clone()).unwrap();
        let mut secure = rustls::StreamOwned::new(session, stream);
        let request = head(&mut secure);
        if request.is_empty() {
            return;
        }
        let mut inside = TcpStream::connect(&plain).unwrap();
        inside.write_all(&request).unwrap();
        let mut answer = Vec::new();
        inside.read_to_end(&mut answer).unwrap();
        let _ = secure.write_all(&answer);
        secure.conn.send_close_notify();
        let _ = secure.flush();
    })
}

#[test]
fn b41_a_private_authority_by_ssl_cert_file_and_a_proxy_that_wants_credentials() {
    let (authority, stub) = (Authority::new(), stub());
    let secure = behind(&authority, &stub);
    let place = || {
        let mut place = harness::Place::new();
        let server = format!("https://127.0.0.1:{secure}");
        place.write("config", kubeconfig(&stub, &json!({"token": "t"})).replace(&stub.url(), &server));
        place.set("KUBECONFIG", place.path("config").to_str().unwrap());
        place.write(
            "expedite.yaml",
            "sources: [{cluster: {}}]\nrepository: {url: ./gitops.git, create: true}\n",
        );
        place
    };
    let snapshot = |place: &harness::Place| {
        let _ = std::fs::remove_dir_all(place.path("out"));
        place.expedite(&["snapshot", "out", "--config", "expedite.yaml"])
    };
    let mut trusting = place();
    trusting.set("SSL_CERT_FILE", authority.ca_file().to_str().unwrap());
    snapshot(&trusting).ok();
    assert!(stub.seen().iter().any(|r| r.path.ends_with("/orders") && r.authorization == "Bearer t"));

    // Another authority, and a proxy that lets nobody through: told as what they are, and of which cluster.
    let asked = stub.seen().len();
    let (other, mut strange) = (Authority::new(), place());
    strange.set("SSL_CERT_FILE", other.ca_file().to_str().unwrap());
    let said = snapshot(&strange);
    said.exits(1);
    assert!(said.stderr.contains("cluster one") && said.stderr.contains("certificate"), "{}", said.stderr);

    let proxy = listen(|mut stream| {
        head(&mut stream);
        let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(refusal.as_bytes()).unwrap();
    });
    trusting.set("HTTPS_PROXY", &format!("http://127.0.0.1:{proxy}"));
    let said = snapshot(&trusting);
    said.exits(1);
    let wanted = "the proxy (HTTPS_PROXY, or proxy-url in the kubeconfig) requires credentials";
    assert!(said.stderr.contains("cluster one") && said.stderr.contains(wanted), "{}", said.stderr);
    assert_eq!(stub.seen().len(), asked, "neither got as far as the API server");
    // And one past which NO_PROXY leads.
    trusting.set("NO_PROXY", "127.0.0.1");
    snapshot(&trusting).ok();
}
