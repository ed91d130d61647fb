//! Compiles the system call filter, so that a start reads and parses nothing.

#[path = "src/inside/seccomp/compile.rs"]
#[expect(unreachable_pub, dead_code, reason = "shared with the crate, whose tests use all of it")]
mod compile;

use std::env;
use std::fmt::Write as _;
use std::path::Path;
use std::str::FromStr as _;

use compile::{AUDIT_ARCH_AARCH64, AUDIT_ARCH_X86_64, Policy, Scope, Word};

#[expect(clippy::disallowed_methods, reason = "a build script is told everything by its environment")]
fn main() {
    let source = "src/inside/seccomp/seccomp.toml";
    println!("cargo::rerun-if-changed={source}");
    println!("cargo::rerun-if-changed=src/inside/seccomp/compile.rs");
    let text = std::fs::read_to_string(source).expect("the policy is readable");
    let architecture = env::var("CARGO_CFG_TARGET_ARCH").expect("set by cargo");
    let out = env::var_os("OUT_DIR").expect("set by cargo");
    for (name, scope) in [("filter.rs", None), ("filter_writable_host.rs", Some(Scope::WritableHost))] {
        let policy: Policy = toml::from_str(&text).expect("the policy is well-formed");
        let program = program(&policy.of(scope), &architecture);
        std::fs::write(Path::new(&out).join(name), rust(&program)).expect("the output directory is writable");
    }
}

fn program(policy: &Policy, architecture: &str) -> Vec<Word> {
    let x86_64 = |name: &str| {
        syscalls::x86_64::Sysno::from_str(name).ok().and_then(|call| u32::try_from(call.id()).ok())
    };
    let aarch64 = |name: &str| {
        syscalls::aarch64::Sysno::from_str(name).ok().and_then(|call| u32::try_from(call.id()).ok())
    };
    let compiled = match architecture {
        "x86_64" => compile::compile(policy, AUDIT_ARCH_X86_64, &x86_64),
        "aarch64" => compile::compile(policy, AUDIT_ARCH_AARCH64, &aarch64),
        other => panic!("no system call numbers for {other}"),
    };
    compiled.expect("the policy compiles")
}

fn rust(program: &[Word]) -> String {
    let mut text = String::from("&[\n");
    for (code, jt, jf, k) in program {
        let (high, low) = (k >> 16, k & 0xffff);
        writeln!(text, "    Instruction {{ code: {code}, jt: {jt}, jf: {jf}, k: 0x{high:04x}_{low:04x} }},")
            .expect("writing to memory");
    }
    text.push_str("]\n");
    text
}
