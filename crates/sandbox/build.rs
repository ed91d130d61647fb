//! Makes the policy of `resolve` and `merge` quick to read.

#[path = "policy/build.rs"]
mod policy;

fn main() {
    policy::convert("src/resolve");
    policy::convert("src/merge");
}
