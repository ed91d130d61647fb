//! The whole product from outside: the rules of the source tree, the attacks, the command line, the life of
//! sandboxes, and what happens when a control cannot be enforced.

mod conformance;
