//! From the text of a pattern to its steps.

use super::bracket::{Slash, bracket};
use super::{Between, Case, NO_CHARACTER, Step, Syntax, Wildcard, units};

pub(super) fn compile(pattern: &[u8], syntax: Syntax, case: Case) -> Wildcard {
    let lower = pattern.to_ascii_lowercase();
    let pattern = if case == Case::Ignored { &lower } else { pattern };
    let (steps, unit): (_, fn(u32) -> Vec<u8>) = match syntax {
        Syntax::Star | Syntax::Name | Syntax::Path => (Some(plain(pattern, syntax)), character),
        Syntax::GitName => (git(pattern, Slash::Ordinary), byte),
        Syntax::GitPath => (git(pattern, Slash::Separates), byte),
    };
    let Some(mut steps) = steps else {
        return Wildcard { begins: Box::default(), ends: Box::default(), between: Between::Never, case };
    };
    let literal = |steps: &[Step]| -> Box<[u8]> {
        steps
            .iter()
            .flat_map(|step| if let Step::Unit(number) = step { unit(*number) } else { Vec::new() })
            .collect()
    };
    let is_wild = |step: &Step| !matches!(step, Step::Unit(_));
    // What may be passed over is passed over together with the slash behind it.
    let passed = steps.iter().rposition(|step| *step == Step::MayPass).map_or(0, |at| at + 3);
    let ends = steps.iter().rposition(is_wild).map_or(0, |at| (at + 1).max(passed));
    let ends = literal(&steps.split_off(ends));
    let rest = steps.split_off(steps.iter().position(is_wild).unwrap_or(steps.len()));
    let between = match (rest.as_slice(), syntax) {
        ([], _) => Between::Nothing,
        ([Step::Stars], _) => Between::Anything,
        (_, Syntax::GitName | Syntax::GitPath) => Between::Bytes(rest.into()),
        _ => Between::Characters(rest.into()),
    };
    Wildcard { begins: literal(&steps), ends, between, case }
}

fn byte(unit: u32) -> Vec<u8> {
    vec![u8::try_from(unit).expect("a unit of such a pattern is a byte")]
}

fn character(unit: u32) -> Vec<u8> {
    match char::from_u32(unit) {
        Some(character) => character.to_string().into_bytes(),
        None => byte(unit - NO_CHARACTER),
    }
}

fn plain(pattern: &[u8], syntax: Syntax) -> Vec<Step> {
    let mut steps = Vec::with_capacity(pattern.len());
    let mut rest = units(pattern).map(|unit| u8::try_from(unit).map_err(|_| unit)).peekable();
    while let Some(unit) = rest.next() {
        steps.push(match (unit, syntax) {
            (Ok(b'*'), Syntax::Path) if rest.next_if_eq(&Ok(b'*')).is_none() => Step::Star,
            (Ok(b'*'), _) => Step::Stars,
            (Ok(b'?'), Syntax::Path) => Step::OneFlat,
            (Ok(b'?'), Syntax::Name) => Step::One,
            (Ok(byte), _) => Step::Unit(byte.into()),
            (Err(unit), _) => Step::Unit(unit),
        });
    }
    steps
}

/// The steps of one of git's patterns; none if it is malformed.
pub(super) fn git(pattern: &[u8], slash: Slash) -> Option<Vec<Step>> {
    let mut steps = Vec::with_capacity(pattern.len());
    let mut at = 0;
    while let Some(byte) = pattern.get(at) {
        at += 1;
        match byte {
            b'?' => steps.push(Step::OneFlat),
            b'*' => {
                let first = at - 1;
                at += pattern[at..].iter().take_while(|byte| **byte == b'*').count();
                star(pattern, first..at, slash, &mut steps);
            }
            b'[' => {
                let (set, length) = bracket(&pattern[at..], slash)?;
                at += length;
                steps.push(Step::Set(Box::new(set)));
            }
            b'\\' => {
                steps.push(Step::Unit(u32::from(*pattern.get(at)?)));
                at += 1;
            }
            byte => steps.push(Step::Unit(u32::from(*byte))),
        }
    }
    Some(steps)
}

fn star(pattern: &[u8], stars: std::ops::Range<usize>, slash: Slash, steps: &mut Vec<Step>) {
    if slash == Slash::Ordinary {
        return steps.push(Step::Stars);
    }
    let after = &pattern[stars.end..];
    let begins = stars.start == 0 || pattern[stars.start - 1] == b'/';
    let ends = after.is_empty() || after.starts_with(b"/") || after.starts_with(b"\\/");
    if stars.len() == 1 || !begins || !ends {
        return steps.push(Step::Star);
    }
    if after.starts_with(b"/") {
        steps.push(Step::MayPass);
    }
    steps.push(Step::Stars);
}
