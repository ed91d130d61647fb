//! System calls as an attacker would make them, each with fixed arguments.
//!
//! SAFETY discipline: a caller chooses a [`Call`] by name and nothing else, so no pointer or length ever
//! comes from outside this file. Every pointer is null or points to a static; every call is the smallest
//! step that tells whether the kernel would let the attack pass, and changes at most the calling process
//! (or a mount of its own namespace, which is taken back at once).

use std::os::fd::{AsRawFd, BorrowedFd};

use libc::c_long;

/// An attempt whose answer tells whether the kernel lets it pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    IoSetup,
    IoUringSetup,
    IoUringEnter,
    IoUringRegister,
    Bpf,
    PerfEventOpen,
    Userfaultfd,
    Keyctl,
    AddKey,
    RequestKey,
    KexecLoad,
    InitModule,
    FinitModule,
    FanotifyInit,
    Swapon,
    Reboot,
    Sethostname,
    Syslog,
    Setns,
    UnshareUser,
    UnshareNet,
    UnshareMount,
    UnsharePid,
    Clone3,
    MountTmpfs,
    MountProc,
    RemountProc,
    BindEtc,
    UmountProc,
    Fsopen,
    OpenTree,
    MoveMount,
    MountSetattr,
    PivotRoot,
    Chroot,
    OpenByHandle,
    PtraceInit,
    ReadInitMemory,
    MknodDevice,
    TrustedXattr,
    X32Getpid,
    Unknown,
}

type Arguments = [usize; 6];

impl Call {
    /// Makes the call: what the kernel returned, or its error number.
    pub(crate) fn attempt(self) -> Result<i64, i32> {
        let (number, arguments) = self.encoded();
        let answer = syscall(number, arguments);
        if answer.is_ok() {
            self.take_back();
        }
        answer
    }

    fn encoded(self) -> (c_long, Arguments) {
        self.encoded_mount().unwrap_or_else(|| self.encoded_other())
    }

    fn encoded_other(self) -> (c_long, Arguments) {
        let none = usize::MAX;
        match self {
            // Behind a null pointer nothing is made.
            Self::IoSetup => (libc::SYS_io_setup, [1, 0, 0, 0, 0, 0]),
            Self::IoUringSetup => (libc::SYS_io_uring_setup, [0; 6]),
            Self::IoUringEnter => (libc::SYS_io_uring_enter, [none, 0, 0, 0, 0, 0]),
            Self::IoUringRegister => (libc::SYS_io_uring_register, [none, 0, 0, 0, 0, 0]),
            Self::Bpf => (libc::SYS_bpf, [0; 6]),
            Self::PerfEventOpen => (libc::SYS_perf_event_open, [0, 0, none, none, 0, 0]),
            // Flags that no kernel knows: refused as invalid, but only after the permission check.
            Self::Userfaultfd => (libc::SYS_userfaultfd, [0x00ff_0000, 0, 0, 0, 0, 0]),
            Self::Keyctl => (libc::SYS_keyctl, [0, session_keyring(), 0, 0, 0, 0]),
            Self::AddKey => (libc::SYS_add_key, [0; 6]),
            Self::RequestKey => (libc::SYS_request_key, [0; 6]),
            Self::KexecLoad => (libc::SYS_kexec_load, [0, 0, 0, 0xff, 0, 0]),
            Self::InitModule => (libc::SYS_init_module, [0, 0, text(c""), 0, 0, 0]),
            Self::FinitModule => (libc::SYS_finit_module, [none, text(c""), 0, 0, 0, 0]),
            Self::FanotifyInit => (libc::SYS_fanotify_init, [0x4000_0000, 0, 0, 0, 0, 0]),
            Self::Swapon => (libc::SYS_swapon, [0; 6]),
            // Wrong magic numbers: never obeyed.
            Self::Reboot => (libc::SYS_reboot, [0; 6]),
            // A negative length: never obeyed.
            Self::Sethostname => (libc::SYS_sethostname, [0, none, 0, 0, 0, 0]),
            Self::Syslog => (libc::SYS_syslog, [10, 0, 0, 0, 0, 0]),
            Self::Setns => (libc::SYS_setns, [none, 0, 0, 0, 0, 0]),
            Self::UnshareUser => unshare(libc::CLONE_NEWUSER),
            Self::UnshareNet => unshare(libc::CLONE_NEWNET),
            Self::UnshareMount => unshare(libc::CLONE_NEWNS),
            Self::UnsharePid => unshare(libc::CLONE_NEWPID),
            Self::Clone3 => (libc::SYS_clone3, [0; 6]),
            Self::OpenByHandle => (libc::SYS_open_by_handle_at, [at_cwd(), handle(), 0, 0, 0, 0]),
            // Seize does not stop the process, and a tracer that ends lets it go.
            Self::PtraceInit => (libc::SYS_ptrace, [number(libc::PTRACE_SEIZE), 1, 0, 0, 0, 0]),
            Self::ReadInitMemory => (libc::SYS_process_vm_readv, [1, local(), 1, remote(), 1, 0]),
            Self::MknodDevice => {
                let mode = number(libc::S_IFCHR | 0o600);
                (libc::SYS_mknodat, [at_cwd(), text(c"probe-node"), mode, device(1, 3), 0, 0])
            }
            Self::TrustedXattr => {
                let name = text(c"trusted.overlay.redirect");
                (libc::SYS_setxattr, [text(c"."), name, text(c"/etc"), 4, 0, 0])
            }
            // Number 39 with the bit that marks the x32 table.
            Self::X32Getpid => (0x4000_0027, [0; 6]),
            _ => (1999, [0; 6]),
        }
    }

    fn encoded_mount(self) -> Option<(c_long, Arguments)> {
        let (none, empty_path) = (usize::MAX, 0x44);
        let tmp = text(c"/tmp");
        let bind = mask(libc::MS_BIND);
        Some(match self {
            Self::MountTmpfs => (libc::SYS_mount, [text(c"none"), tmp, text(c"tmpfs"), 0, 0, 0]),
            Self::MountProc => (libc::SYS_mount, [text(c"none"), tmp, text(c"proc"), 0, 0, 0]),
            Self::RemountProc => {
                (libc::SYS_mount, [0, text(c"/proc"), 0, bind | mask(libc::MS_REMOUNT), 0, 0])
            }
            Self::BindEtc => (libc::SYS_mount, [text(c"/etc"), tmp, 0, bind, 0, 0]),
            // The first call with `MNT_EXPIRE` only marks the mount and answers `EAGAIN`.
            Self::UmountProc => {
                (libc::SYS_umount2, [text(c"/proc"), number_of(libc::MNT_EXPIRE), 0, 0, 0, 0])
            }
            Self::Fsopen => (libc::SYS_fsopen, [text(c"tmpfs"), 0, 0, 0, 0, 0]),
            Self::OpenTree => (libc::SYS_open_tree, [at_cwd(), text(c"/"), 1, 0, 0, 0]),
            Self::MoveMount => (libc::SYS_move_mount, [none, text(c""), none, text(c""), empty_path, 0]),
            Self::MountSetattr => (libc::SYS_mount_setattr, [at_cwd(), text(c"/"), 0, zeros(), 32, 0]),
            Self::PivotRoot => (libc::SYS_pivot_root, [text(c"/"), text(c"/"), 0, 0, 0, 0]),
            Self::Chroot => (libc::SYS_chroot, [text(c"/"), 0, 0, 0, 0, 0]),
            _ => return None,
        })
    }

    /// Undoes what a call that passed has left in the mount table or the current directory.
    fn take_back(self) {
        let (call, arguments) = match self {
            Self::MountTmpfs | Self::MountProc | Self::BindEtc => {
                (libc::SYS_umount2, [text(c"/tmp"), number_of(libc::MNT_DETACH), 0, 0, 0, 0])
            }
            Self::MknodDevice => (libc::SYS_unlinkat, [at_cwd(), text(c"probe-node"), 0, 0, 0, 0]),
            Self::TrustedXattr => {
                (libc::SYS_removexattr, [text(c"."), text(c"trusted.overlay.redirect"), 0, 0, 0, 0])
            }
            _ => return,
        };
        // Best effort: the attempt has already been judged.
        syscall(call, arguments).ok();
    }
}

/// How a child that made one attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildEnd {
    Exited(i32),
    Signalled(i32),
    NotStarted(i32),
}

/// Makes a child in a new user namespace, which ends at once.
pub(crate) fn clone_into_user_namespace() -> ChildEnd {
    let flags = number_of(libc::CLONE_NEWUSER | libc::SIGCHLD);
    // Without a stack of its own the child goes on here, like after a fork.
    match syscall(libc::SYS_clone, [flags, 0, 0, 0, 0, 0]) {
        Err(errno) => ChildEnd::NotStarted(errno),
        Ok(0) => leave(0),
        Ok(child) => wait_for(child),
    }
}

/// Asks for the process id the way a 32-bit program does. In a child, because a filter may kill for it. The
/// child's exit status is 0 if the kernel answered with an id, else the error number.
#[cfg(target_arch = "x86_64")]
pub(crate) fn getpid_through_int80() -> ChildEnd {
    match syscall(libc::SYS_clone, [number_of(libc::SIGCHLD), 0, 0, 0, 0, 0]) {
        Err(errno) => ChildEnd::NotStarted(errno),
        Ok(0) => {
            let answer = int80(20);
            leave(if answer > 0 { 0 } else { -answer })
        }
        Ok(child) => wait_for(child),
    }
}

/// There is no such gate on other processors.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn getpid_through_int80() -> ChildEnd {
    ChildEnd::NotStarted(libc::ENOSYS)
}

/// Pushes one byte into the input of a terminal, as if it had been typed.
pub(crate) fn push_input(terminal: BorrowedFd<'_>) -> Result<i64, i32> {
    static BYTE: u8 = b'x';
    ioctl(terminal, libc::TIOCSTI, &BYTE)
}

/// Asks the console for its shift state, the most harmless of the `TIOCLINUX` functions.
pub(crate) fn console_shift_state(terminal: BorrowedFd<'_>) -> Result<i64, i32> {
    static FUNCTION: u8 = 6;
    ioctl(terminal, libc::TIOCLINUX, &FUNCTION)
}

/// Takes a lease on an open file and gives it back.
pub(crate) fn lease(file: BorrowedFd<'_>) -> Result<(), i32> {
    let descriptor = number_of(file.as_raw_fd());
    let set = |kind: i32| {
        let arguments = [descriptor, number_of(libc::F_SETLEASE), number_of(kind), 0, 0, 0];
        syscall(libc::SYS_fcntl, arguments).map(drop)
    };
    set(libc::F_RDLCK)?;
    // Best effort: it ends with this process at the latest.
    set(libc::F_UNLCK).ok();
    Ok(())
}

/// Asks for no notification about a directory, which takes the same permission as asking for some.
pub(crate) fn directory_notification(directory: BorrowedFd<'_>) -> Result<(), i32> {
    let arguments = [number_of(directory.as_raw_fd()), number_of(libc::F_NOTIFY), 0, 0, 0, 0];
    syscall(libc::SYS_fcntl, arguments).map(drop)
}

/// Opens a socket of a family and closes it again.
pub(crate) fn socket(family: i32, kind: i32, protocol: i32) -> Result<(), i32> {
    let descriptor =
        syscall(libc::SYS_socket, [number_of(family), number_of(kind), number_of(protocol), 0, 0, 0])?;
    syscall(libc::SYS_close, [usize::try_from(descriptor).unwrap_or(usize::MAX), 0, 0, 0, 0, 0]).map(drop)
}

/// Whether a signal could be sent to a process; none is.
pub(crate) fn signal_zero(process: i32) -> Result<(), i32> {
    syscall(libc::SYS_kill, [number_of(process), 0, 0, 0, 0, 0]).map(drop)
}

fn syscall(number: c_long, a: Arguments) -> Result<i64, i32> {
    // SAFETY: private, and every caller in this file passes numbers, null, or pointers to statics that are
    // long enough for the call; none of the calls unmaps or writes memory of this process, but for
    // `process_vm_readv` into a static made for it.
    let answer = unsafe { libc::syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]) };
    if answer < 0 { Err(errno()) } else { Ok(answer) }
}

fn ioctl(descriptor: BorrowedFd<'_>, request: libc::c_ulong, byte: &'static u8) -> Result<i64, i32> {
    // SAFETY: the descriptor is open for the length of the borrow; both requests read one byte for the
    // functions used here and write at most that one, which the kernel may refuse for a static.
    let answer = unsafe { libc::ioctl(descriptor.as_raw_fd(), request, std::ptr::from_ref(byte)) };
    if answer < 0 { Err(errno()) } else { Ok(answer.into()) }
}

#[cfg(target_arch = "x86_64")]
fn int80(call: i32) -> i32 {
    let answer: i32;
    // SAFETY: `getpid` of the 32-bit table takes no argument and touches no memory. The kernel clears r8 to
    // r11 on this gate.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inlateout("eax") call => answer,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    answer
}

fn leave(status: i32) -> ! {
    // SAFETY: ends this process without running anything else.
    unsafe { libc::_exit(status) }
}

fn wait_for(child: i64) -> ChildEnd {
    let child = i32::try_from(child).expect("a process id is an i32");
    let mut status = 0;
    // SAFETY: `status` outlives the call, and the child is ours.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    match waited {
        pid if pid != child => ChildEnd::NotStarted(errno()),
        _ if libc::WIFSIGNALED(status) => ChildEnd::Signalled(libc::WTERMSIG(status)),
        _ => ChildEnd::Exited(libc::WEXITSTATUS(status)),
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn unshare(flags: i32) -> (c_long, Arguments) {
    (libc::SYS_unshare, [number_of(flags), 0, 0, 0, 0, 0])
}

fn text(text: &'static std::ffi::CStr) -> usize {
    text.as_ptr().expose_provenance()
}

fn at_cwd() -> usize {
    number_of(libc::AT_FDCWD)
}

/// `KEY_SPEC_SESSION_KEYRING`.
fn session_keyring() -> usize {
    number_of(-3)
}

fn device(major: u32, minor: u32) -> usize {
    usize::try_from(libc::makedev(major, minor)).expect("a small device number")
}

fn number(value: u32) -> usize {
    value as usize
}

fn mask(value: libc::c_ulong) -> usize {
    usize::try_from(value).expect("flags fit a register")
}

/// A C `int` as it is passed in a register: with its sign.
fn number_of(value: i32) -> usize {
    (value as isize).cast_unsigned()
}

/// A `struct file_handle` with eight bytes that name nothing.
fn handle() -> usize {
    static HANDLE: [u32; 4] = [8, 1, 0, 0];
    HANDLE.as_ptr().expose_provenance()
}

/// A `struct mount_attr` that changes nothing.
fn zeros() -> usize {
    static ZEROS: [u64; 4] = [0; 4];
    ZEROS.as_ptr().expose_provenance()
}

static TARGET: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

/// A `struct iovec` of one byte of ours.
fn local() -> usize {
    static LOCAL: std::sync::OnceLock<[usize; 2]> = std::sync::OnceLock::new();
    LOCAL.get_or_init(|| [TARGET.as_ptr().expose_provenance(), 1]).as_ptr().expose_provenance()
}

/// A `struct iovec` of one byte at an address where nothing is mapped.
fn remote() -> usize {
    static REMOTE: [usize; 2] = [1, 1];
    REMOTE.as_ptr().expose_provenance()
}
