//! First messages of TLS, sound and not.

/// A message with these extensions, in records of at most `size` bytes.
pub(crate) fn hello(extensions: &[Vec<u8>], size: usize) -> Vec<u8> {
    let all = extensions.concat();
    let mut body = [&[3, 3][..], &[9; 32], &[0], &[0, 2, 0x13, 1], &[1, 0]].concat();
    body.extend(length(&all));
    body.extend(all);
    let whole = u32::try_from(body.len()).unwrap().to_be_bytes();
    let message = [&[1][..], &whole[1..], &body].concat();
    let record = |part: &[u8]| [&[22, 3, 1][..], &length(part), part].concat();
    message.chunks(size).flat_map(record).collect()
}

pub(crate) fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &length(content), content].concat()
}

pub(crate) fn sni(name: &str) -> Vec<u8> {
    let entry = [&[0][..], &length(name.as_bytes()), name.as_bytes()].concat();
    extension(0, &[&length(&entry)[..], &entry].concat())
}

/// A server's request to begin again.
pub(crate) fn retry() -> Vec<u8> {
    let random = [
        0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
        0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
    ];
    let body = [&[3, 3][..], &random, &[0, 0x13, 1, 0, 0, 0]].concat();
    let message = [&[2, 0, 0, u8::try_from(body.len()).unwrap()][..], &body].concat();
    [&[22, 3, 3][..], &length(&message), &message].concat()
}

fn length(content: &[u8]) -> [u8; 2] {
    u16::try_from(content.len()).unwrap().to_be_bytes()
}
