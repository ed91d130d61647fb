use super::super::message::{
    AgentRequest, FAILURE, FrameError, frame, identities, identities_answer, request,
};
use super::*;

fn string(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).expect("short").to_be_bytes()[..], bytes].concat()
}

const SESSION: &[u8] = &[7; 32];
const KEY: &[u8] = b"the user's key";
const HOST_KEY: &[u8] = b"the host's key";

/// What a client signs to log in; the host's key only with the newer method.
fn login(session: &[u8], user: &str, host_key: Option<&[u8]>) -> Vec<u8> {
    let method: &[u8] =
        if host_key.is_some() { b"publickey-hostbound-v00@openssh.com" } else { b"publickey" };
    let mut data = [string(session), vec![50], string(user.as_bytes()), string(b"ssh-connection")].concat();
    data.extend([string(method), vec![1], string(b"ssh-ed25519"), string(KEY)].concat());
    data.extend(host_key.map(string).unwrap_or_default());
    data
}

fn message(namespace: &str) -> Vec<u8> {
    [b"SSHSIG".to_vec(), string(namespace.as_bytes()), string(b""), string(b"sha512"), string(&[1; 64])]
        .concat()
}

fn policy() -> AgentPolicy {
    let host = AllowedHost {
        name: "github.com".to_owned(),
        user: Some("git".to_owned()),
        keys: vec![b"an older key".to_vec(), HOST_KEY.to_vec()],
    };
    AgentPolicy { keys: vec![KEY.to_vec()], hosts: vec![host], namespaces: vec!["git".to_owned()] }
}

fn bind(host_key: &[u8]) -> Bind {
    Bind {
        host_key: host_key.to_vec(),
        session: SESSION.to_vec(),
        signature: b"sound".to_vec(),
        is_forwarding: false,
    }
}

/// Stands for the check of the signature.
fn verify(bind: &Bind) -> bool {
    bind.signature == b"sound"
}

fn bound() -> AgentSession {
    let mut session = AgentSession::default();
    assert!(session.bind(bind(HOST_KEY), verify));
    session
}

fn ask(session: &AgentSession, data: &[u8]) -> Result<Purpose, SignDenial> {
    session.sign(&policy(), KEY, data)
}

#[test]
fn a_login_is_signed_at_the_host_that_the_connection_leads_to() {
    let expected = Ok(Purpose::Login { host: "github.com".to_owned(), user: "git".to_owned() });
    assert_eq!(ask(&bound(), &login(SESSION, "git", Some(HOST_KEY))), expected);
    assert_eq!(ask(&bound(), &login(SESSION, "git", None)), expected);
}

#[test]
fn a_login_anywhere_else_is_not() {
    let data = login(SESSION, "git", Some(HOST_KEY));
    assert_eq!(ask(&AgentSession::default(), &data), Err(SignDenial::Unbound));
    assert_eq!(ask(&bound(), &login(&[8; 32], "git", Some(HOST_KEY))), Err(SignDenial::OtherSession));
    assert_eq!(ask(&bound(), &login(SESSION, "git", Some(b"another"))), Err(SignDenial::OtherHost));
    assert_eq!(
        ask(&bound(), &login(SESSION, "root", Some(HOST_KEY))),
        Err(SignDenial::Host("root".to_owned()))
    );
    let mut elsewhere = AgentSession::default();
    assert!(elsewhere.bind(bind(b"another"), verify));
    assert_eq!(ask(&elsewhere, &login(SESSION, "git", None)), Err(SignDenial::Host("git".to_owned())));
    let other_key = AgentPolicy { keys: vec![KEY.to_vec(), b"second".to_vec()], ..policy() };
    assert_eq!(bound().sign(&other_key, b"second", &data), Err(SignDenial::OtherKey));
    assert_eq!(bound().sign(&policy(), b"hidden", &data), Err(SignDenial::Key));
}

#[test]
fn a_bind_that_is_forged_forwarded_or_a_second_one_ends_all_logins() {
    let data = login(SESSION, "git", Some(HOST_KEY));
    let forged = Bind { signature: b"forged".to_vec(), ..bind(HOST_KEY) };
    let forwarding = Bind { is_forwarding: true, ..bind(HOST_KEY) };
    for bad in [forged, forwarding] {
        let mut session = AgentSession::default();
        assert!(!session.bind(bad.clone(), verify));
        assert!(!session.bind(bind(HOST_KEY), verify), "not even after a sound one");
        assert_eq!(ask(&session, &data), Err(SignDenial::Forwarded));
    }
    let mut twice = bound();
    assert!(!twice.bind(bind(HOST_KEY), verify));
    assert_eq!(ask(&twice, &data), Err(SignDenial::Forwarded));
}

#[test]
fn messages_are_signed_for_allowed_namespaces() {
    let session = AgentSession::default();
    assert_eq!(ask(&session, &message("git")), Ok(Purpose::Message { namespace: "git".to_owned() }));
    assert_eq!(ask(&session, &message("file")), Err(SignDenial::Namespace("file".to_owned())));
}

#[test]
fn data_of_another_kind_is_never_signed() {
    let sound = login(SESSION, "git", Some(HOST_KEY));
    let without_signature = {
        let mut data = login(SESSION, "git", None);
        let at = data.windows(11).position(|part| part == b"ssh-ed25519").expect("it is there");
        data[at - 5] = 0;
        data
    };
    let long_digest =
        [&b"SSHSIG"[..], &string(b"git"), &string(b""), &string(b"sha256"), &string(&[1; 64])].concat();
    let reserved =
        [&b"SSHSIG"[..], &string(b"git"), &string(b"x"), &string(b"sha512"), &string(&[1; 64])].concat();
    for data in [
        &b""[..],
        b"random data",
        &[0; 64],
        &[&sound[..], b"x"].concat(),
        &[&message("git")[..], b"x"].concat(),
        &without_signature,
        &long_digest,
        &reserved,
        &message(""),
        &message("git\n"),
        &login(SESSION, "g\0it", None),
        &login(&[7; 3], "git", None),
    ] {
        assert_eq!(ask(&bound(), data), Err(SignDenial::Data), "{}", data.escape_ascii());
    }
    for end in 0..sound.len() {
        assert_eq!(ask(&bound(), &sound[..end]), Err(SignDenial::Data), "{end}");
    }
}

#[test]
fn only_three_requests_are_read() {
    let sign = [vec![13], string(KEY), string(b"data"), vec![0, 0, 0, 2]].concat();
    let expected = AgentRequest::Sign { key: KEY.to_vec(), data: b"data".to_vec(), flags: 2 };
    assert_eq!(request(&sign), Ok(expected));
    assert_eq!(request(&[11]), Ok(AgentRequest::Identities));
    let extension = |name: &[u8]| {
        [vec![27], string(name), string(HOST_KEY), string(SESSION), string(b"sound"), vec![0]].concat()
    };
    assert_eq!(request(&extension(b"session-bind@openssh.com")), Ok(AgentRequest::Bind(bind(HOST_KEY))));
    assert_eq!(request(&extension(b"query")), Err(FrameError::Extension));
    // Add, remove, remove all, smart cards, lock, unlock, and their constrained and older forms.
    for kind in [1, 3, 7, 8, 9, 17, 18, 19, 20, 21, 22, 23, 25, 26, 0, 255] {
        assert_eq!(request(&[kind]), Err(FrameError::Type(kind)));
    }
    for message in [&[11, 0][..], &sign[..sign.len() - 1], &[&sign[..], &[0]].concat(), &[27]] {
        assert!(request(message).is_err(), "{message:?}");
    }
    let mut odd = extension(b"session-bind@openssh.com");
    *odd.last_mut().expect("a byte") = 2;
    assert_eq!(request(&odd), Err(FrameError::Malformed), "neither true nor false");
}

#[test]
fn frames_have_a_length_that_is_believed_only_within_bounds() {
    assert_eq!(frame(&FAILURE), Some(Ok((&[5][..], 5))));
    assert_eq!(frame(&[0, 0, 0, 2, 1]), None);
    assert_eq!(frame(&[0, 0]), None);
    for length in [0_u32, 256 * 1024 + 1, 1 << 30, u32::MAX] {
        assert_eq!(frame(&length.to_be_bytes()), Some(Err(FrameError::Length)), "{length}");
    }
}

#[test]
fn a_sandbox_sees_the_keys_that_it_may_use() {
    let keys: Vec<AgentKey> = [KEY, b"hidden"]
        .map(|blob| AgentKey { blob: blob.to_vec(), comment: b"a comment".to_vec() })
        .to_vec();
    let all = identities_answer(&keys);
    assert_eq!(identities(&all[4..]), Some(keys.clone()));
    let seen = identities_answer(policy().visible(&keys));
    assert_eq!(identities(&seen[4..]), Some(keys[..1].to_vec()));
    assert_eq!(identities(&[12, 0xff, 0xff, 0xff, 0xff]), None);
    assert_eq!(identities(&[&all[4..], &[0]].concat()), None);
}
