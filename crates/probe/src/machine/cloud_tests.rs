//! Each provider's interface, imitated on the loopback.
use super::*;
use serde_json::{json, Value};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// Serves `(method and path, needed header, body)`; everything else gets 404. Gives the address
/// and the requests seen. The thread ends with the test process.
fn serve(
    routes: &'static [(&'static str, &'static str, &'static str)],
    extra: &'static str,
) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = Vec::new();
            let mut part = [0u8; 1024];
            while split(&request).is_none() {
                match stream.read(&mut part) {
                    Ok(count) if count > 0 => request.extend_from_slice(&part[..count]),
                    _ => break,
                }
            }
            let request = String::from_utf8_lossy(&request).into_owned();
            let line = request.lines().next().unwrap_or_default().to_owned();
            let line = line.trim_end_matches(" HTTP/1.1").to_owned();
            let response = routes
                .iter()
                .find(|(wanted, header, _)| *wanted == line && request.contains(header));
            let (status, body) =
                response.map_or(("404 Not Found", ""), |(_, _, body)| ("200 OK", *body));
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\n{extra}Content-Length: {length}\r\n\r\n{body}"
            );
            log.lock().unwrap().push(line);
        }
    });
    (address, seen)
}

fn section_from(address: SocketAddr) -> Value {
    Value::Object(ask(address).into_parts().0)
}

#[test]
fn ec2_is_asked_with_a_session_token() {
    const TOKEN: &str = "X-aws-ec2-metadata-token: t0ken\r\n";
    let (address, requests) = serve(
        &[
            ("PUT /latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds: 60", "t0ken"),
            ("GET /latest/meta-data/instance-type", TOKEN, "m5.large"),
            ("GET /latest/meta-data/placement/region", TOKEN, "eu-central-1"),
            ("GET /latest/meta-data/placement/availability-zone", TOKEN, "eu-central-1a"),
            ("GET /latest/meta-data/instance-id", TOKEN, "i-0123456789abcdef0"),
            ("GET /latest/meta-data/ami-id", TOKEN, "ami-1234"),
        ],
        "",
    );
    let cloud = section_from(address);
    assert_eq!(cloud["provider"], "ec2");
    assert_eq!(
        (&cloud["instance_type"], &cloud["zone"]),
        (&json!("m5.large"), &json!("eu-central-1a"))
    );
    assert_eq!((&cloud["region"], &cloud["image"]), (&json!("eu-central-1"), &json!("ami-1234")));
    assert_eq!(cloud["instance_id_hash"], hashed("i-0123456789abcdef0"));
    assert!(!cloud.to_string().contains("i-0123456789abcdef0"), "the identifier itself stays here");
    let seen = requests.lock().unwrap();
    for secret in ["iam", "security-credentials", "user-data", "service-accounts"] {
        assert!(!seen.iter().any(|line| line.contains(secret)), "{seen:?}");
    }
}

#[test]
fn google_gives_names_without_the_project() {
    const FLAVOR: &str = "Metadata-Flavor: Google\r\n";
    let (address, _) = serve(
        &[
            (
                "GET /computeMetadata/v1/instance/machine-type",
                FLAVOR,
                "projects/9/machineTypes/n2-standard-2",
            ),
            ("GET /computeMetadata/v1/instance/zone", FLAVOR, "projects/9/zones/europe-west1-b"),
            ("GET /computeMetadata/v1/instance/id", FLAVOR, "12345"),
            (
                "GET /computeMetadata/v1/instance/image",
                FLAVOR,
                "projects/debian-cloud/global/images/debian-12",
            ),
        ],
        "Metadata-Flavor: Google\r\n",
    );
    let cloud = section_from(address);
    assert_eq!(
        (&cloud["provider"], &cloud["instance_type"]),
        (&json!("google"), &json!("n2-standard-2"))
    );
    assert_eq!(
        (&cloud["region"], &cloud["zone"]),
        (&json!("europe-west1"), &json!("europe-west1-b"))
    );
    assert_eq!(cloud["image"], "debian-12");
}

#[test]
fn azure_is_asked_value_by_value_and_may_lack_a_zone() {
    const META: &str = "Metadata: true\r\n";
    let (address, _) = serve(
        &[
            (
                "GET /metadata/instance/compute/vmSize?api-version=2021-02-01&format=text",
                META,
                "Standard_D2s_v5",
            ),
            (
                "GET /metadata/instance/compute/location?api-version=2021-02-01&format=text",
                META,
                "westeurope",
            ),
            (
                "GET /metadata/instance/compute/vmId?api-version=2021-02-01&format=text",
                META,
                "aaaa-bbbb",
            ),
            (
                "GET /metadata/instance/compute/offer?api-version=2021-02-01&format=text",
                META,
                "debian-12",
            ),
            (
                "GET /metadata/instance/compute/sku?api-version=2021-02-01&format=text",
                META,
                "12-gen2",
            ),
        ],
        "",
    );
    let cloud = section_from(address);
    assert_eq!(
        (&cloud["provider"], &cloud["instance_type"]),
        (&json!("azure"), &json!("Standard_D2s_v5"))
    );
    assert!(cloud["zone"].is_null());
    assert_eq!(cloud["image"], "debian-12 12-gen2");
}

#[test]
fn somebody_else_at_the_address_is_no_cloud() {
    let (address, requests) = serve(&[("GET /", "", "hello")], "");
    let cloud = section_from(address);
    assert!(cloud["provider"].is_null() && cloud["asked"] == true);
    assert_eq!(requests.lock().unwrap().len(), 3, "each provider is asked one thing only");
}

#[test]
fn a_silent_or_missing_server_costs_little_time() {
    // Bound but never accepted from: the connection stands in the backlog and nothing is said.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    crate::trial::attempts::attempt("a silent server", || {
        let start_ns = clock::monotonic_ns();
        assert!(section_from(silent.local_addr().unwrap())["provider"].is_null());
        // Three providers of 300 ms each, and as much again for a busy machine.
        let took_ns = clock::monotonic_ns() - start_ns;
        crate::trial::attempts::holds(took_ns < LIMIT_NS * 6, format!("{took_ns} ns"))
    });
    let address = silent.local_addr().unwrap();
    drop(silent);
    let section = ask(address).into_parts();
    assert!(section.0["provider"].is_null());
    assert!(section.1[0]["reason"].as_str().unwrap().contains(NO_CONNECTION), "{:?}", section.1);
}

#[test]
fn values_that_are_no_plain_words_are_refused() {
    assert_eq!(value("m5.large\n"), Some("m5.large".to_owned()));
    for body in ["", "a\nb", "\u{1b}[31m", &"x".repeat(MAX_VALUE + 1)] {
        assert_eq!(value(body), None, "{body:?}");
    }
    assert!(answer(b"HTTP/1.1 302 Found\r\nLocation: http://x/\r\n\r\n").is_none());
}

#[test]
fn only_link_local_and_loopback_addresses_are_asked() {
    for text in ["169.254.169.254:80", "127.0.0.1:8080", "[fd00:ec2::254]:80", "[::1]:80"] {
        assert!(address(text).is_ok(), "{text}");
    }
    for text in ["8.8.8.8:80", "10.0.0.1:80", "metadata:80", "169.254.169.254", ""] {
        let error = address(text).unwrap_err();
        assert!(error.message.contains("must be a link-local or loopback"), "{text}");
    }
}
