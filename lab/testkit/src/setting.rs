//! How long a test is: `scripts/soak` sets more by environment variables, `make test` uses the values given
//! here.

use std::str::FromStr;

/// The variable's value, or the default. Panics at an invalid value: a soak run must not be short unnoticed.
pub fn setting<T: FromStr>(name: &str, otherwise: T) -> T {
    match std::env::var(name) {
        Ok(value) => value.parse().unwrap_or_else(|_| panic!("{name}={value} is not a number")),
        Err(_) => otherwise,
    }
}
