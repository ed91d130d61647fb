//! Makes the policy of `resolve` quick to read.

#[path = "policy/build.rs"]
mod policy;

fn main() {
    policy::convert("src/resolve");
}
