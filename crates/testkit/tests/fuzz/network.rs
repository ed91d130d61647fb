//! What a sandbox sends to its gate, and what nameservers answer it.

use sandtable_egress::agent::{self, AgentRequest, Signed};
use sandtable_egress::dns::stub::{self, Family};
use sandtable_egress::dns::{Pool, Question, answer};
use sandtable_egress::http::{Body, HeadReader, RequestHead, normal_path};
use sandtable_egress::plan::{GatePlan, Settings, Surroundings, Written, compile};
use sandtable_egress::rule::{Action, Rule};
use sandtable_egress::socks::{self, Step};
use sandtable_egress::tls::{HelloReader, ServerReader};
use sandtable_testkit::fuzz::fuzz;

#[test]
fn questions_of_a_sandbox() {
    let plain = b"\xab\xcd\x01\x20\0\x01\0\0\0\0\0\0\x06github\x03com\0\0\x01\0\x01".to_vec();
    let mut options = plain.clone();
    options[11] = 1;
    options.extend(b"\0\0\x29\x10\0\0\0\x80\0\0\x03\x01\x02\x03");
    let pointer =
        b"\xab\xcd\x01\0\0\x01\0\0\0\0\0\0\x011\x010\x0264\x0228\x07in-addr\x04arpa\0\0\x0c\0\x01".to_vec();
    fuzz("dns question", &[plain, options, pointer], |bytes| {
        let mut pool = Pool::new("28.64.0.0/12".parse().unwrap(), 100).unwrap();
        match Question::read(bytes) {
            Ok(question) => {
                let message = answer(&question, &mut pool).encode(&question);
                assert_eq!(message[..2], bytes[..2]);
                assert!(message.len() < 1232 && message[2] & 0x80 != 0);
            }
            Err(refusal) => drop(refusal.encode()),
        }
    });
}

#[test]
fn answers_of_nameservers() {
    let question = b"\x12\x34\x81\x80\0\x01\0\x02\0\0\0\0\x01a\x07example\0\0\x01\0\x01";
    let records = b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x08\x01b\x03cdn\xc0\x0e\x01b\x03cdn\xc0\x0e\0\x01\0\x01\0\0\0\x3c\0\x04\x5d\xb8\xd8\x22";
    let name = "a.example".parse().unwrap();
    fuzz("dns answer", &[[&question[..], records].concat()], |bytes| {
        if let Ok(found) = stub::read(bytes, 0x1234, &name, Family::V4) {
            assert!(found.addresses.len() <= 16 && found.addresses.iter().all(std::net::IpAddr::is_ipv4));
        }
    });
}

/// With a name, protocols and padding.
fn client_hello() -> Vec<u8> {
    let extensions =
        b"\0\0\0\x0f\0\x0d\0\0\x0aexample.eu\0\x10\0\x0e\0\x0c\x02h2\x08http/1.1\0\x15\0\x03\0\0\0";
    let mut body = [&b"\x03\x03"[..], &[7; 32], b"\0\0\x02\x13\x01\x01\0"].concat();
    body.extend(u16::try_from(extensions.len()).unwrap().to_be_bytes());
    body.extend(extensions);
    let length = u8::try_from(body.len()).unwrap();
    [&[22, 3, 1, 0, length + 4, 1, 0, 0, length][..], &body].concat()
}

#[test]
fn first_messages_of_tls() {
    assert!(HelloReader::default().read(&client_hello()).unwrap().is_ok());
    let server = [&b"\x16\x03\x03\0\x30\x02\0\0\x2c\x03\x03"[..], &[9; 32], b"\0\x13\x01\0\0\0"].concat();
    fuzz("client hello", &[client_hello(), server], |bytes| {
        let whole = HelloReader::default().read(bytes);
        let mut reader = HelloReader::default();
        let in_pieces = (0..=bytes.len()).find_map(|end| reader.read(&bytes[..end]));
        assert_eq!(in_pieces, whole, "what arrives in pieces is read like the whole");
        let _answer = ServerReader::default().read(bytes);
    });
}

#[test]
fn requests_of_http() {
    let get =
        b"GET http://a.org/b?c HTTP/1.1\r\nHost: a.org\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
            .to_vec();
    let post = b"POST /a%20b HTTP/1.1\r\nHost: a.org:80\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".to_vec();
    let connect = b"CONNECT [::1]:443 HTTP/1.1\r\nHost: x.org\r\nContent-Length: 3\r\n\r\nabc".to_vec();
    fuzz("request head", &[get, post, connect], |bytes| {
        let Some(Ok(end)) = HeadReader::default().end(bytes, 1 << 16) else { return };
        let Ok(head) = RequestHead::read(&bytes[..end]) else { return };
        let forwarded = head.forward("/");
        assert!(!forwarded.windows(4).rev().skip(1).any(|part| part == b"\r\n\r\n"), "one head only");
        let mut body: Body = head.body;
        if let Ok(passed) = body.pass(&bytes[end..]) {
            assert!(passed <= bytes.len() - end);
        }
    });
}

#[test]
fn paths_of_requests() {
    fuzz("path", &[b"/a/%41%2e%2e/b;c?d=%2f".to_vec(), b"/repos/me/x%20y".to_vec()], |bytes| {
        let Ok(text) = str::from_utf8(bytes) else { return };
        if let Some((path, _)) = normal_path(text) {
            assert_eq!(normal_path(&path), Some((path.clone(), "")));
        }
    });
}

#[test]
fn requests_of_socks() {
    let named = b"\x05\x01\0\x03\x0agithub.com\x01\xbb".to_vec();
    fuzz("socks", &[named, vec![5, 1, 0, 1, 127, 0, 0, 1, 0, 80], vec![5, 2, 0, 2]], |bytes| {
        for used in [
            match socks::greeting(bytes) {
                Step::Done(_, used) => used,
                _ => 0,
            },
            match socks::request(bytes) {
                Step::Done(_, used) => used,
                _ => 0,
            },
        ] {
            assert!(used <= bytes.len());
        }
    });
}

#[test]
fn rules_and_plans_of_the_network() {
    let samples =
        ["*.example.org:80-90", "ssh://git@github.com", "tcp://[fd00::/8]:22", ".x.org", "10.0.0.0/8:*"];
    fuzz("rule", &samples.map(|text| text.as_bytes().to_vec()), |bytes| {
        let Ok(text) = str::from_utf8(bytes) else { return };
        for action in [Action::Allow, Action::Deny] {
            drop(Rule::parse(text, action, "fuzz"));
        }
    });
    let allow = samples.map(|text| Written::new(text, "fuzz")).to_vec();
    let plan = compile(&Settings { allow, ..Settings::default() }, &Surroundings::default()).unwrap();
    fuzz("gate plan", &[plan.to_json().into_bytes()], |bytes| {
        let Ok(text) = str::from_utf8(bytes) else { return };
        if let Ok(plan) = GatePlan::from_json(text) {
            assert_eq!(GatePlan::from_json(&plan.to_json()).unwrap(), plan);
        }
    });
}

#[test]
fn messages_to_an_ssh_agent() {
    let string = |bytes: &[u8]| [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat();
    let framed = |message: &[u8]| string(message);
    let login = [string(&[7; 32]), vec![50], string(b"git"), string(b"ssh-connection"), string(b"publickey")]
        .concat();
    let login = [login, vec![1], string(b"ssh-ed25519"), string(b"key")].concat();
    let message =
        [&b"SSHSIG"[..], &string(b"git"), &string(b""), &string(b"sha256"), &string(&[1; 32])].concat();
    let sign = |data: &[u8]| framed(&[vec![13], string(b"key"), string(data), vec![0; 4]].concat());
    let bind = [
        vec![27],
        string(b"session-bind@openssh.com"),
        string(b"host"),
        string(&[7; 32]),
        string(b"s"),
        vec![0],
    ]
    .concat();
    let seeds = [framed(&[11]), sign(&login), sign(&message), framed(&bind)];
    for seed in &seeds {
        assert!(agent::request(agent::frame(seed).unwrap().unwrap().0).is_ok());
    }
    fuzz("ssh-agent", &seeds, |bytes| {
        let Some(Ok((message, used))) = agent::frame(bytes) else { return };
        assert!(used <= bytes.len() && message.len() + 4 == used);
        if let Ok(AgentRequest::Sign { data, .. }) = agent::request(message) {
            let _signed = Signed::read(&data);
        }
        if let Some(keys) = agent::identities(message) {
            let again = agent::identities_answer(&keys);
            assert_eq!(again[4..], *message, "what is read whole is written the same");
        }
    });
}
