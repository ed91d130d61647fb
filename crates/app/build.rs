//! Makes the table of profiles quick to read.

#[path = "../sandbox/policy/build.rs"]
mod policy;

fn main() {
    policy::convert("src/config");
}
