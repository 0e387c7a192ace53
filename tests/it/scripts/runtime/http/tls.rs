//! TLS: trusted certificates, and errors for others.
//!
//! `tls/cert.pem` is a self-signed certificate for `localhost` and 127.0.0.1, valid until 2126. Its key is not secret.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, Stream, crypto};

use super::*;

/// Starts a server that calls `serve` for each connection. Returns its address.
fn listening_with(serve: impl Fn(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
    address
}

/// Starts a TLS server that responds with `secure` and stores what it receives.
fn secure(received: &Arc<Mutex<Vec<u8>>>) -> SocketAddr {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("tls/cert.pem")).unwrap();
    let key = PrivateKeyDer::try_from(&include_bytes!("tls/key.der")[..]).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let (config, received) = (Arc::new(config), Arc::clone(received));
    listening_with(move |mut socket| {
        let mut connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut stream = Stream::new(&mut connection, &mut socket);
        let mut byte = [0];
        while !received.lock().unwrap().ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
            received.lock().unwrap().push(byte[0]);
        }
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 6\r\n\r\nsecure");
        stream.conn.send_close_notify();
        let _ = stream.flush();
    })
}

#[test]
fn an_untrusted_certificate_is_refused() {
    let received = Arc::default();
    let plain = listening_with(|mut socket| {
        let _ = socket.read(&mut [0; 512]);
        let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let unknown = "TLS: invalid peer certificate: UnknownIssuer; check that this machine trusts the server's certificate";
    for (address, expected) in [(secure(&received), unknown), (plain, "check that the server supports https")]
    {
        let error = run_with_grants(&["127.0.0.1:*"], &format!("https://{address}/"), "return http.get(url)")
            .unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Script, "{error}");
        assert!(error.message.contains(expected), "{error}");
        assert!(error.message.contains(&format!("http.get: https://{address}/: TLS: ")), "{error}");
    }
    assert!(received.lock().unwrap().is_empty());
}

/// Scripts trust the certificates that the machine trusts. Here `SSL_CERT_FILE` sets one certificate.
#[cfg(target_os = "linux")]
#[test]
fn a_trusted_certificate_is_accepted_for_its_host_name() {
    let received = Arc::default();
    let port = secure(&received).port();
    let project = Project::empty();
    project.write(
        "specs/tools.eld",
        format!(
            "(deftool :name \"ask\" :description \"Ask.\" :args () :allow (:net [\"localhost:{port}\"]))"
        ),
    );
    project.write(
        "scripts/ask.lua",
        format!("return function() return http.get('https://localhost:{port}/x').body end"),
    );
    let certificate =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/scripts/runtime/http/tls/cert.pem");
    let output = project
        .command(&["call", "ask", "{}", "--trust"])
        .env("SSL_CERT_FILE", certificate)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "\"secure\"", "{output:?}");
    let received = String::from_utf8(received.lock().unwrap().clone()).unwrap();
    assert!(received.starts_with("GET /x HTTP/1.1\r\n"), "{received}");
    assert!(received.contains(&format!("host: localhost:{port}\r\n")), "{received}");
}
