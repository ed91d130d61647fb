//! From `seccomp.toml` to a program for the kernel. Used by the build script, and by the tests, which run
//! the program in a small interpreter.
//!
//! The numbers of all calls are cut into intervals with one answer each, in ascending order: the program
//! compares the number with the end of one interval after the other. Calls whose arguments matter have a
//! block of their own behind the intervals.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    pub allow: Vec<Allow>,
    pub deny: Vec<Deny>,
    pub deny_when: Vec<DenyWhen>,
}

/// Calls that are let through.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allow {
    pub reason: String,
    pub calls: Vec<String>,
}

/// Calls that answer an error.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deny {
    pub reason: String,
    pub errno: String,
    pub calls: Vec<String>,
}

/// An allowed call that answers an error when all tests hold.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DenyWhen {
    pub reason: String,
    pub call: String,
    pub errno: String,
    pub all: Vec<Test>,
    /// For some sandboxes only.
    #[serde(default)]
    pub only: Option<Scope>,
}

/// Sandboxes that have a rule of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// A directory of the host can be written in them.
    WritableHost,
}

impl Policy {
    /// The rules for sandboxes that `scope` names, or for all others.
    #[must_use]
    pub fn of(mut self, scope: Option<Scope>) -> Self {
        self.deny_when.retain(|rule| rule.only.is_none() || rule.only == scope);
        self
    }
}

/// One test of the low 32 bits of an argument.
#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Test {
    Equals { argument: u32, equals: u32 },
    Differs { argument: u32, differs: u32 },
    AnyBit { argument: u32, any_bit: u32 },
    Above { argument: u32, above: u32 },
}

/// One instruction: code, jump if true, jump if false, constant.
pub type Word = (u16, u8, u8, u32);

/// The architecture as `seccomp_data` names it.
pub const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
pub const AUDIT_ARCH_AARCH64: u32 = 0xc000_00b7;

const LOAD: u16 = 0x20;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER: u16 = 0x25;
const JUMP_SET: u16 = 0x45;
const RETURN: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;
const NO_SUCH_CALL: u32 = 38;
const KILL_PROCESS: u32 = 0x8000_0000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Return(u32),
    Block(usize),
}

/// Compiles `policy` for one architecture, whose numbers `number` gives.
pub fn compile(
    policy: &Policy,
    arch: u32,
    number: &dyn Fn(&str) -> Option<u32>,
) -> Result<Vec<Word>, String> {
    let answers = answers(policy, number)?;
    let (blocks, intervals) = (blocks(policy)?, intervals(&answers));
    let mut program =
        vec![(LOAD, 0, 0, 4), (JUMP_EQUAL, 1, 0, arch), (RETURN, 0, 0, KILL_PROCESS), (LOAD, 0, 0, 0)];
    let mut offsets = Vec::new();
    let mut offset = program.len() + 2 * intervals.len();
    for (_, words) in &blocks {
        offsets.push(offset);
        offset += words.len();
    }
    for (last, answer) in intervals {
        program.push((JUMP_GREATER, 1, 0, last));
        program.push(match answer {
            Answer::Return(value) => (RETURN, 0, 0, value),
            Answer::Block(index) => {
                let distance = offsets[index] - program.len() - 1;
                (JUMP, 0, 0, u32::try_from(distance).map_err(|error| error.to_string())?)
            }
        });
    }
    program.extend(blocks.into_iter().flat_map(|(_, words)| words));
    if program.len() > 4096 {
        Err("the filter is longer than the kernel takes".to_owned())
    } else {
        Ok(program)
    }
}

/// What each call of the policy answers.
fn answers(policy: &Policy, number: &dyn Fn(&str) -> Option<u32>) -> Result<BTreeMap<u32, Answer>, String> {
    let mut answers = BTreeMap::new();
    let mut add = |name: &String, answer: Answer| match number(name) {
        Some(number) if answers.insert(number, answer).is_some() => Err(format!("`{name}` stands twice")),
        _ => Ok(()),
    };
    let guarded = guarded_calls(policy);
    for name in policy.allow.iter().flat_map(|group| &group.calls) {
        let block = guarded.iter().position(|call| *call == name);
        add(name, block.map_or(Answer::Return(ALLOW), Answer::Block))?;
    }
    for group in &policy.deny {
        let answer = Answer::Return(ERRNO | errno(&group.errno)?);
        group.calls.iter().try_for_each(|name| add(name, answer))?;
    }
    Ok(answers)
}

/// Neighbouring numbers with one answer, ascending, without gaps; the last reaches to the end.
fn intervals(answers: &BTreeMap<u32, Answer>) -> Vec<(u32, Answer)> {
    let unknown = Answer::Return(ERRNO | NO_SUCH_CALL);
    let mut intervals: Vec<(u32, Answer)> = Vec::new();
    let mut next = 0;
    let mut extend = |last: u32, answer: Answer| match intervals.last_mut() {
        Some((end, same)) if *same == answer => *end = last,
        _ => intervals.push((last, answer)),
    };
    for (number, answer) in answers {
        if *number > next {
            extend(number - 1, unknown);
        }
        extend(*number, *answer);
        next = number + 1;
    }
    extend(u32::MAX, unknown);
    intervals
}

/// The argument tests of each guarded call, ending in a return.
fn blocks(policy: &Policy) -> Result<Vec<(&str, Vec<Word>)>, String> {
    let block = |call: &'_ str| -> Result<Vec<Word>, String> {
        let mut words = Vec::new();
        for rule in policy.deny_when.iter().filter(|rule| rule.call == call) {
            let tests = rule.all.len();
            for (index, test) in rule.all.iter().enumerate() {
                // A test that does not hold leaves the rule: over the remaining tests and the return.
                let rest = u8::try_from(2 * (tests - index - 1) + 1).map_err(|error| error.to_string())?;
                words.extend(test_words(test, rest));
            }
            words.push((RETURN, 0, 0, ERRNO | errno(&rule.errno)?));
        }
        words.push((RETURN, 0, 0, ALLOW));
        Ok(words)
    };
    guarded_calls(policy).into_iter().map(|call| Ok((call, block(call)?))).collect()
}

fn test_words(test: &Test, leave: u8) -> [Word; 2] {
    let load = |argument: u32| (LOAD, 0, 0, 16 + 8 * argument);
    match *test {
        Test::Equals { argument, equals } => [load(argument), (JUMP_EQUAL, 0, leave, equals)],
        Test::Differs { argument, differs } => [load(argument), (JUMP_EQUAL, leave, 0, differs)],
        Test::AnyBit { argument, any_bit } => [load(argument), (JUMP_SET, 0, leave, any_bit)],
        Test::Above { argument, above } => [load(argument), (JUMP_GREATER, 0, leave, above)],
    }
}

fn guarded_calls(policy: &Policy) -> Vec<&str> {
    let mut calls: Vec<&str> = policy.deny_when.iter().map(|rule| rule.call.as_str()).collect();
    calls.sort_unstable();
    calls.dedup();
    calls
}

fn errno(name: &str) -> Result<u32, String> {
    match name {
        "EPERM" => Ok(1),
        "EINVAL" => Ok(22),
        "ENOSYS" => Ok(NO_SUCH_CALL),
        "EPROTONOSUPPORT" => Ok(93),
        "EAFNOSUPPORT" => Ok(97),
        other => Err(format!("`{other}` is not an error this policy uses")),
    }
}
