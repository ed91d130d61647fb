//! The reader of the first TLS message against another one: where `rustls` accepts a message, ours reads the same name and
//! the same protocols, or refuses it. It never reads something else.

use std::io::Cursor;
use std::sync::Arc;

use proptest::prelude::*;
use rustls::pki_types::ServerName as RustlsName;
use rustls::server::Acceptor;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use sandtable_egress::tls::{ClientHello, HelloReader, ServerName};

/// What a client of `rustls` sends first.
fn hello(host: &str, protocols: &[&str]) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
    let name = RustlsName::try_from(host.to_owned()).expect("a name");
    let mut client = ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).expect("memory does not fail");
    bytes
}

/// What `rustls` as a server reads: the name and the protocols; `None` if it refuses or waits for more.
fn theirs(bytes: &[u8]) -> Option<(Option<String>, Vec<Vec<u8>>)> {
    let mut acceptor = Acceptor::default();
    let mut rest = Cursor::new(bytes);
    while usize::try_from(rest.position()).expect("short") < bytes.len() {
        acceptor.read_tls(&mut rest).ok()?;
        if let Some(accepted) = acceptor.accept().ok()? {
            let hello = accepted.client_hello();
            let protocols = hello.alpn().into_iter().flatten().map(<[u8]>::to_vec).collect();
            return Some((hello.server_name().map(str::to_ascii_lowercase), protocols));
        }
    }
    None
}

fn ours(bytes: &[u8]) -> Option<ClientHello> {
    HelloReader::default().read(bytes)?.ok()
}

fn name(hello: &ClientHello) -> Option<String> {
    match &hello.server_name {
        ServerName::Name(name) => Some(name.to_string()),
        ServerName::Missing | ServerName::Address => None,
    }
}

/// The message in records of other sizes.
fn split(bytes: &[u8], size: usize) -> Vec<u8> {
    let record = |part: &[u8]| {
        let length = u16::try_from(part.len()).expect("short").to_be_bytes();
        [&[22, 3, 1][..], &length, part].concat()
    };
    bytes[5..].chunks(size).flat_map(record).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn a_sound_message_is_read_as_rustls_reads_it(
        host in "[a-zA-Z][a-z0-9-]{0,10}[a-z]\\.(example|x--y)\\.org", h2 in any::<bool>(), size in 16_usize..600,
    ) {
        let bytes = split(&hello(&host, if h2 { &["h2", "http/1.1"] } else { &[] }), size);
        let (name_there, protocols) = theirs(&bytes).expect("rustls reads its own");
        let own = ours(&bytes).expect("a sound message");
        prop_assert_eq!(name(&own), name_there);
        prop_assert_eq!(own.protocols, protocols);
        prop_assert!(!own.has_encrypted_name);
    }

    #[test]
    fn a_broken_message_is_never_read_as_another_one(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..4),
    ) {
        let mut bytes = hello("allowed.example.org", &["h2", "http/1.1"]);
        for (at, byte, what) in changes {
            let at = at.index(bytes.len());
            match what {
                0 => bytes[at] = byte,
                1 => bytes[at] ^= 1 << (byte % 8),
                2 => drop(bytes.remove(at)),
                _ => bytes.insert(at, byte),
            }
        }
        if let (Some(own), Some((name_there, protocols))) = (ours(&bytes), theirs(&bytes)) {
            prop_assert_eq!(name(&own), name_there);
            prop_assert_eq!(own.protocols, protocols);
        }
    }
}

#[test]
fn an_address_as_a_name_is_no_name_for_either() {
    let mut bytes = hello("aa.example.org", &[]);
    let at = bytes.windows(14).position(|part| part == b"aa.example.org").expect("it is there");
    bytes[at..at + 14].copy_from_slice(b"127.000.000.01");
    assert_eq!(ours(&bytes).map(|it| it.server_name), Some(ServerName::Address));
    assert!(theirs(&bytes).is_none_or(|(name, _)| name.is_none()));
}
