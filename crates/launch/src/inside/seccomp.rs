//! The system call filter. Its rules are `seccomp/seccomp.toml`, compiled when the crate is built.

#[cfg(test)]
#[path = "seccomp/compile.rs"]
#[expect(unreachable_pub, reason = "shared with the build script")]
mod compile;

use rustix::io::Result;
use sandtable_protocol::op::SetIds;

use crate::sys::privilege::{Instruction, install_filter};

const FILTER: &[Instruction] = include!(concat!(env!("OUT_DIR"), "/filter.rs"));
const FILTER_WRITABLE_HOST: &[Instruction] = include!(concat!(env!("OUT_DIR"), "/filter_writable_host.rs"));

/// Puts the filter in force for this thread and everything it starts.
pub(crate) fn install(set_ids: SetIds) -> Result<()> {
    install_filter(match set_ids {
        SetIds::Allowed => FILTER,
        SetIds::Refused => FILTER_WRITABLE_HOST,
    })
}

#[cfg(test)]
mod tests {
    use std::str::FromStr as _;

    use super::compile::{AUDIT_ARCH_AARCH64, AUDIT_ARCH_X86_64, Policy, Scope, Word, compile};

    const ALLOW: u32 = 0x7fff_0000;
    const EPERM: u32 = 0x0005_0001;
    const EINVAL: u32 = 0x0005_0016;
    const ENOSYS: u32 = 0x0005_0026;
    const EPROTONOSUPPORT: u32 = 0x0005_005d;
    const EAFNOSUPPORT: u32 = 0x0005_0061;

    fn policy() -> Policy {
        whole().of(None)
    }

    fn whole() -> Policy {
        toml::from_str(include_str!("seccomp/seccomp.toml")).expect("well-formed")
    }

    fn x86_64(name: &str) -> Option<u32> {
        syscalls::x86_64::Sysno::from_str(name).ok().and_then(|call| u32::try_from(call.id()).ok())
    }

    fn aarch64(name: &str) -> Option<u32> {
        syscalls::aarch64::Sysno::from_str(name).ok().and_then(|call| u32::try_from(call.id()).ok())
    }

    /// What the kernel would answer, by a reading of the program that shares nothing with the compiler.
    fn answer(program: &[Word], arch: u32, number: u32, arguments: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend(number.to_le_bytes());
        data.extend(arch.to_le_bytes());
        data.extend(0_u64.to_le_bytes());
        data.extend(arguments.iter().flat_map(|argument| argument.to_le_bytes()));
        let (mut at, mut accumulator) = (0_usize, 0_u32);
        loop {
            let (code, jt, jf, k) = program[at];
            at += 1;
            let mut jump = |taken: bool| at += usize::from(if taken { jt } else { jf });
            match code {
                0x20 => {
                    let start = k as usize;
                    let word = data[start..start + 4].try_into().expect("four bytes");
                    accumulator = u32::from_le_bytes(word);
                }
                0x05 => at += k as usize,
                0x15 => jump(accumulator == k),
                0x25 => jump(accumulator > k),
                0x45 => jump(accumulator & k != 0),
                0x06 => return k,
                other => panic!("instruction {other:#x}"),
            }
        }
    }

    fn ask(name: &str, arguments: [u64; 6]) -> u32 {
        ask_of(&policy(), name, arguments)
    }

    fn ask_of(policy: &Policy, name: &str, arguments: [u64; 6]) -> u32 {
        let program = compile(policy, AUDIT_ARCH_X86_64, &x86_64).expect("compiles");
        answer(&program, AUDIT_ARCH_X86_64, x86_64(name).expect("known"), arguments)
    }

    #[test]
    fn every_listed_call_answers_as_listed_on_both_architectures() {
        let policy = policy();
        let guarded: Vec<&str> = policy.deny_when.iter().map(|rule| rule.call.as_str()).collect();
        for (arch, number) in
            [(AUDIT_ARCH_X86_64, &x86_64 as &dyn Fn(&str) -> Option<u32>), (AUDIT_ARCH_AARCH64, &aarch64)]
        {
            let program = compile(&policy, arch, number).expect("compiles");
            for name in policy
                .allow
                .iter()
                .flat_map(|group| &group.calls)
                .filter(|name| !guarded.contains(&name.as_str()))
            {
                if let Some(number) = number(name) {
                    assert_eq!(answer(&program, arch, number, [0; 6]), ALLOW, "{name}");
                }
            }
            for group in &policy.deny {
                for number in group.calls.iter().filter_map(|name| number(name)) {
                    let expected = if group.errno == "ENOSYS" { ENOSYS } else { EPERM };
                    assert_eq!(answer(&program, arch, number, [0; 6]), expected);
                }
            }
        }
    }

    #[test]
    fn a_call_that_is_not_listed_does_not_exist() {
        let policy = policy();
        let listed: Vec<u32> = policy
            .allow
            .iter()
            .flat_map(|group| &group.calls)
            .chain(policy.deny.iter().flat_map(|group| &group.calls))
            .filter_map(|name| x86_64(name))
            .collect();
        let program = compile(&policy, AUDIT_ARCH_X86_64, &x86_64).expect("compiles");
        for number in
            (0..2048).chain([0x4000_0000, 0x4000_0001, u32::MAX]).filter(|number| !listed.contains(number))
        {
            assert_eq!(answer(&program, AUDIT_ARCH_X86_64, number, [0; 6]), ENOSYS, "{number}");
        }
    }

    #[test]
    fn another_architecture_is_killed() {
        let program = compile(&policy(), AUDIT_ARCH_X86_64, &x86_64).expect("compiles");
        assert_eq!(answer(&program, 0x4000_0003, 1, [0; 6]), 0x8000_0000);
    }

    #[test]
    fn arguments_are_judged_by_their_low_half() {
        let high = 0xdead_0000_0000_0000;
        assert_eq!(ask("ioctl", [0, 0x5401, 0, 0, 0, 0]), ALLOW);
        assert_eq!(ask("ioctl", [0, 0x5412, 0, 0, 0, 0]), EPERM);
        assert_eq!(ask("ioctl", [0, 0x5412 | high, 0, 0, 0, 0]), EPERM);
        assert_eq!(ask("ioctl", [0, 0x541c, 0, 0, 0, 0]), EPERM);
        assert_eq!(ask("clone", [0x0120_0011, 0, 0, 0, 0, 0]), ALLOW);
        assert_eq!(ask("clone", [0x1000_0011, 0, 0, 0, 0, 0]), EPERM);
        assert_eq!(ask("unshare", [0x0000_0400, 0, 0, 0, 0, 0]), ALLOW);
        assert_eq!(ask("unshare", [0x4000_0000, 0, 0, 0, 0, 0]), EPERM);
        assert_eq!(ask("personality", [0xffff_ffff, 0, 0, 0, 0, 0]), ALLOW);
        assert_eq!(ask("personality", [0x0400_0000, 0, 0, 0, 0, 0]), EPERM);
    }

    #[test]
    fn socket_families_are_few() {
        for family in 0..64_u64 {
            let expected = if [1, 2, 10, 16].contains(&family) { ALLOW } else { EAFNOSUPPORT };
            assert_eq!(ask("socket", [family, 1, 0, 0, 0, 0]), expected, "family {family}");
            let expected = if family == 1 { ALLOW } else { EAFNOSUPPORT };
            assert_eq!(ask("socketpair", [family, 1, 0, 0, 0, 0]), expected, "family {family}");
        }
        assert_eq!(ask("socket", [16, 3, 12, 0, 0, 0]), EPERM);
        for protocol in 0..300_u64 {
            let expected = if [0, 1, 6, 17, 58].contains(&protocol) { ALLOW } else { EPROTONOSUPPORT };
            for family in [2, 10] {
                assert_eq!(ask("socket", [family, 1, protocol, 0, 0, 0]), expected, "protocol {protocol}");
            }
        }
    }

    #[test]
    fn the_limits_of_pid_1_are_out_of_reach() {
        assert_eq!(ask("prlimit64", [0, 7, 0, 0, 0, 0]), ALLOW);
        assert_eq!(ask("prlimit64", [2, 7, 0, 0, 0, 0]), ALLOW);
        assert_eq!(ask("prlimit64", [1, 7, 0, 0, 0, 0]), EPERM);
        assert_eq!(ask("prlimit64", [0xdead_0000_0000_0001, 7, 0, 0, 0, 0]), EPERM);
    }

    #[test]
    fn nobody_holds_up_the_files_of_others() {
        for (command, expected) in
            [(0, ALLOW), (1024, EPERM), (1025, ALLOW), (1026, EPERM), (1030, ALLOW), (1038, ALLOW)]
        {
            assert_eq!(ask("fcntl", [3, command, 1, 0, 0, 0]), expected, "{command}");
        }
        // Delegations, and whatever a later kernel brings.
        for command in [1039, 1040, 1041, 2000, 0xffff_ffff] {
            assert_eq!(ask("fcntl", [3, command, 1, 0, 0, 0]), EINVAL, "{command}");
        }
    }

    #[test]
    fn set_id_bits_are_refused_where_a_directory_of_the_host_can_be_written() {
        let strict = whole().of(Some(Scope::WritableHost));
        let create = 0o101; // O_WRONLY | O_CREAT
        let unnamed = 0o20_200_001; // O_WRONLY | O_TMPFILE
        for bits in [0o4755, 0o2755, 0o6755] {
            let calls: [(&str, [u64; 6]); 9] = [
                ("chmod", [0, bits, 0, 0, 0, 0]),
                ("fchmod", [0, bits, 0, 0, 0, 0]),
                ("fchmodat", [0, 0, bits, 0, 0, 0]),
                ("fchmodat2", [0, 0, bits, 0, 0, 0]),
                ("creat", [0, bits, 0, 0, 0, 0]),
                ("open", [0, create, bits, 0, 0, 0]),
                ("openat", [0, 0, unnamed, bits, 0, 0]),
                ("mknod", [0, 0o100_000 | bits, 0, 0, 0, 0]),
                ("mknodat", [0, 0, 0o100_000 | bits, 0, 0, 0]),
            ];
            for (name, arguments) in calls {
                assert_eq!(ask_of(&strict, name, arguments), EPERM, "{name} {bits:o}");
                assert_eq!(ask(name, arguments), ALLOW, "{name} {bits:o}");
                let plain = arguments.map(|argument| argument & !0o6000);
                assert_eq!(ask_of(&strict, name, plain), ALLOW, "{name}");
            }
        }
        // Without a file that is made the mode is whatever the register held.
        assert_eq!(ask_of(&strict, "open", [0, 0, 0o4755, 0, 0, 0]), ALLOW);
        assert_eq!(ask_of(&strict, "openat2", [0; 6]), ENOSYS);
        assert_eq!(ask("openat2", [0; 6]), ALLOW);
    }

    #[test]
    fn every_rule_says_why_and_names_calls_that_exist() {
        let policy = whole();
        let reasons = policy.allow.iter().map(|group| &group.reason);
        let reasons = reasons.chain(policy.deny.iter().map(|group| &group.reason));
        let mut reasons = reasons.chain(policy.deny_when.iter().map(|rule| &rule.reason));
        assert!(reasons.all(|reason| reason.len() > 3));
        for rule in &policy.deny_when {
            assert!(policy.allow.iter().any(|group| group.calls.contains(&rule.call)), "{}", rule.call);
        }
        // Calls newer than the number table: they join the policy when the table knows them.
        let newer = ["file_getattr", "file_setattr", "open_tree_attr", "uretprobe", "umount"];
        for name in policy
            .allow
            .iter()
            .flat_map(|group| &group.calls)
            .chain(policy.deny.iter().flat_map(|group| &group.calls))
        {
            let known = x86_64(name).is_some() || aarch64(name).is_some() || newer.contains(&name.as_str());
            assert!(known, "{name} is in no table");
        }
    }
}
