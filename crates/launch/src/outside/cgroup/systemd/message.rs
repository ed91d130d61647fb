//! The one message that we send: the call `StartTransientUnit` of systemd's manager, as D-Bus writes it.
//! Everything is in the byte order of the machine that it is for, which is little-endian on all we run on.

/// What is asked for.
#[derive(Debug)]
pub(super) struct Request<'a> {
    /// The name of the scope.
    pub(super) unit: &'a str,
    /// Where it is counted; the manager's own choice if nobody says.
    pub(super) slice: Option<&'a str>,
}

/// The number of our call, which its answer repeats.
pub(super) const SERIAL: u32 = 1;

const CALL: u8 = 1;
const VERSION: u8 = 1;
/// The codes of what a header says.
const PATH: u8 = 1;
const INTERFACE: u8 = 2;
const MEMBER: u8 = 3;
const SIGNATURE: u8 = 8;

impl Request<'_> {
    /// The bytes of the whole message.
    pub(super) fn encoded(&self) -> Vec<u8> {
        let body = self.body();
        let mut message = Writer::default();
        for byte in [b'l', CALL, 0, VERSION] {
            message.0.push(byte);
        }
        message.number(u32::try_from(body.len()).expect("a name is short"));
        message.number(SERIAL);
        message.array(8, |fields| {
            fields.field(PATH, "o", "/org/freedesktop/systemd1");
            fields.field(INTERFACE, "s", "org.freedesktop.systemd1.Manager");
            fields.field(MEMBER, "s", "StartTransientUnit");
            fields.field(SIGNATURE, "g", "ssa(sv)a(sa(sv))");
        });
        message.align(8);
        message.0.extend(body);
        message.0
    }

    /// Name, mode, properties, and no further units.
    fn body(&self) -> Vec<u8> {
        let mut body = Writer::default();
        body.text(self.unit);
        // Should there be such a unit already, nothing of it is touched.
        body.text("fail");
        body.array(8, |properties| {
            properties.property("Description", "s", |value| value.text("a sandbox of Sandtable"));
            properties.property("Delegate", "b", |value| value.number(1));
            // Also when it failed, as after a kill for want of memory.
            properties.property("CollectMode", "s", |value| value.text("inactive-or-failed"));
            // Nought is whoever asks: the kernel tells systemd who that is, in its own numbers.
            properties.property("PIDs", "au", |value| value.array(4, |pids| pids.number(0)));
            if let Some(slice) = self.slice {
                properties.property("Slice", "s", |value| value.text(slice));
            }
        });
        body.array(8, |_| {});
        body.0
    }
}

/// Bytes with D-Bus's rules of alignment.
#[derive(Debug, Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }

    fn number(&mut self, number: u32) {
        self.align(4);
        self.0.extend(number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(u32::try_from(text.len()).expect("a name is short"));
        self.0.extend(text.as_bytes());
        self.0.push(0);
    }

    fn signature(&mut self, signature: &str) {
        self.0.push(u8::try_from(signature.len()).expect("a signature of ours is short"));
        self.0.extend(signature.as_bytes());
        self.0.push(0);
    }

    /// An array: its length counts from the first element on, the padding before that is left out.
    fn array(&mut self, alignment: usize, elements: impl FnOnce(&mut Self)) {
        self.number(0);
        let length_at = self.0.len() - 4;
        self.align(alignment);
        let start = self.0.len();
        elements(self);
        let length = u32::try_from(self.0.len() - start).expect("a message of ours is short");
        self.0[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// A field of the header.
    fn field(&mut self, code: u8, signature: &str, text: &str) {
        self.align(8);
        self.0.push(code);
        self.signature(signature);
        if signature == "g" { self.signature(text) } else { self.text(text) }
    }

    /// A property of a unit.
    fn property(&mut self, name: &str, signature: &str, value: impl FnOnce(&mut Self)) {
        self.align(8);
        self.text(name);
        self.signature(signature);
        value(self);
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::{Kind, Message};
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let request = Request { unit: "sandtable-a-1.scope", slice: Some("user-0.slice") };
        let bytes = request.encoded();
        let message = Message::read(&mut bytes.as_slice()).unwrap();
        assert_eq!(message.kind, Kind::Call);
        assert_eq!(message.member.as_deref(), Some("StartTransientUnit"));
        assert_eq!(message.signature, "ssa(sv)a(sa(sv))");
        let body = request.body();
        assert!(bytes.ends_with(&body) && bytes.len().is_multiple_of(4));
        assert_eq!(body[..4], 19_u32.to_le_bytes());
    }

    /// Every byte of a small one, laid out by hand from the rules of the specification.
    #[test]
    fn properties_lie_where_the_specification_puts_them() {
        let body = Request { unit: "a", slice: None }.body();
        let head = b"\x01\0\0\0a\0\0\0\x04\0\0\0fail\0\0\0\0";
        assert_eq!(body[..20], head[..20]);
        let length = u32::from_le_bytes(body[20..24].try_into().unwrap()) as usize;
        assert_eq!(body[24..44], *b"\x0b\0\0\0Description\0\x01s\0\0");
        assert_eq!(body.len(), 24 + length + (body.len() - 24 - length));
        assert_eq!(body[body.len() - 4..], [0; 4], "no further units");
        let pids = b"\x04\0\0\0PIDs\0\x02au\0\0\0\0\x04\0\0\0\0\0\0\0";
        let at = body.windows(8).position(|window| window == &pids[..8]).unwrap();
        assert_eq!(at % 8, 0);
        assert_eq!(body[at..at + 20], pids[..20]);
    }
}
