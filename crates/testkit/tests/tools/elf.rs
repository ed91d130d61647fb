//! A program for musl that says it needs relative relocations in the short form, which musl knows since 1.2.4.

const INTERPRETER: &[u8] = b"/lib/ld-musl-x86_64.so.1\0";
const STRINGS: &[u8] = b"\0libc.musl-x86_64.so.1\0";
/// Tags of the dynamic section.
const NEEDED: u64 = 1;
const RELR: u64 = 36;

/// The bytes of such a program. It has no code: nobody gets as far as running it.
pub(crate) fn musl_program() -> Vec<u8> {
    let dynamic: Vec<u8> =
        [[NEEDED, 1], [RELR, 0], [0, 0]].iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
    let parts: [(u32, u32, &[u8]); 2] = [(3, 0, STRINGS), (6, 1, &dynamic)];
    let mut body = padded(INTERPRETER);
    let mut table = vec![0; 64];
    for (kind, link, content) in parts {
        let at = 64 + 56 + body.len() as u64;
        body.extend(padded(content));
        table.extend([0_u32.to_le_bytes(), kind.to_le_bytes()].concat());
        table.extend(words(&[0, 0, at, content.len() as u64]));
        table.extend([link.to_le_bytes(), 0_u32.to_le_bytes()].concat());
        table.extend(words(&[8, if kind == 6 { 16 } else { 0 }]));
    }
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 62, 0, 1, 0, 0, 0];
    file.extend(words(&[0, 64, 64 + 56 + body.len() as u64]));
    file.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 64, 0, 3, 0, 1, 0]);
    file.extend([3_u32.to_le_bytes(), 4_u32.to_le_bytes()].concat());
    let length = INTERPRETER.len() as u64;
    file.extend(words(&[120, 0, 0, length, length, 1]));
    file.extend(body);
    file.extend(table);
    file
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(8), 0);
    padded
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
