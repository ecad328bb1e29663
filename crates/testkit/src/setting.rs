//! How long a test is: `scripts/soak` sets more by environment variables, `make test` has what is given here.

use std::str::FromStr;

/// The variable's value, or what holds without it. Panics at a value that is none: a soak run must not be short unseen.
pub fn setting<T: FromStr>(name: &str, otherwise: T) -> T {
    match std::env::var(name) {
        Ok(value) => value.parse().unwrap_or_else(|_| panic!("{name}={value} is not a number")),
        Err(_) => otherwise,
    }
}
