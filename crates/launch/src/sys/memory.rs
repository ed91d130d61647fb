//! Forgetting what the supervisor was started with.

use std::ptr;

unsafe extern "C" {
    static mut environ: *mut *mut libc::c_char;
}

/// Overwrites the environment strings of this process with zeros, so that `/proc/PID/environ` shows none,
/// and empties the table. Must be called in a process with one thread; the environment is gone afterwards.
pub(crate) fn scrub_environment() {
    // SAFETY: one thread, so nobody else reads or changes the table. It is a null-terminated array of
    // C strings that the C library owns and that are writable (the start-up stack or the heap).
    unsafe {
        let table = environ;
        if table.is_null() {
            return;
        }
        let mut entry = table;
        while !(*entry).is_null() {
            zero(*entry);
            entry = entry.add(1);
        }
        *table = ptr::null_mut();
    }
}

/// Writes zeros over the start-up arguments of this process, which everyone can read in `/proc/PID/cmdline`.
pub(crate) fn scrub_arguments() {
    let Some((start, end)) = argument_range() else { return };
    let mut place = start as *mut u8;
    while (place as usize) < end {
        // SAFETY: the kernel names `start..end` as the bytes of the start-up arguments, which are on the
        // writable start-up stack of this process. The standard library copied what it hands out.
        unsafe { place.write_volatile(0) };
        place = place.wrapping_add(1);
    }
}

/// First and last address of the start-up arguments: fields 48 and 49 of `/proc/self/stat`.
fn argument_range() -> Option<(usize, usize)> {
    let status = fs_err::read_to_string("/proc/self/stat").ok()?;
    let after_name = status.rsplit_once(')')?.1;
    let mut fields = after_name.split_ascii_whitespace().skip(45);
    let first: usize = fields.next()?.parse().ok()?;
    let last: usize = fields.next()?.parse().ok()?;
    (first != 0 && first < last).then_some((first, last))
}

/// # Safety
/// `text` must point to a writable, null-terminated string.
unsafe fn zero(text: *mut libc::c_char) {
    let mut place = text;
    // SAFETY: the caller promises a writable string; the loop ends at its null byte.
    unsafe {
        while *place != 0 {
            place.write_volatile(0);
            place = place.add(1);
        }
    }
}
