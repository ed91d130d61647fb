//! Giving up privileges: keyrings and the system call filter.

use rustix::io::Result;

use super::check;

/// Joins a new, empty session keyring, so that no key of the host's session can be asked for.
pub(crate) fn new_session_keyring() -> Result<i32> {
    const JOIN_SESSION_KEYRING: libc::c_int = 1;
    // SAFETY: a null name means an anonymous keyring; nothing is written to our memory.
    let id =
        unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, std::ptr::null::<libc::c_char>()) };
    check(id).map(|id| i32::try_from(id).unwrap_or(i32::MAX))
}

/// The serial number of the current session keyring.
pub(crate) fn session_keyring() -> Result<i32> {
    const GET_KEYRING_ID: libc::c_int = 0;
    const SESSION_KEYRING: libc::c_int = -3;
    // SAFETY: numbers only.
    let id = unsafe { libc::syscall(libc::SYS_keyctl, GET_KEYRING_ID, SESSION_KEYRING, 0) };
    check(id).map(|id| i32::try_from(id).unwrap_or(i32::MAX))
}

/// The version of the kernel's Landlock.
pub fn landlock_version() -> Result<u32> {
    const CREATE_RULESET_VERSION: libc::c_uint = 1;
    let nothing = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag the kernel reads no ruleset and makes none; it answers with a number.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0_usize, CREATE_RULESET_VERSION) };
    check(version).map(|version| u32::try_from(version).unwrap_or(u32::MAX))
}

/// One instruction of a classic BPF program, as the kernel reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Instruction {
    pub(crate) code: u16,
    pub(crate) jt: u8,
    pub(crate) jf: u8,
    pub(crate) k: u32,
}

/// Installs `program` as a system call filter for this thread and everything it starts.
pub(crate) fn install_filter(program: &[Instruction]) -> Result<()> {
    #[repr(C)]
    struct Program {
        length: libc::c_ushort,
        instructions: *const Instruction,
    }
    const SET_MODE_FILTER: libc::c_uint = 1;
    let length =
        libc::c_ushort::try_from(program.len()).expect("the filter has fewer than 4096 instructions");
    let program = Program { length, instructions: program.as_ptr() };
    // SAFETY: the kernel copies the program, whose length is right, before the call returns. `Program`
    // and `Instruction` are laid out as `sock_fprog` and `sock_filter`.
    check(unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, 0, &raw const program) }).map(drop)
}
