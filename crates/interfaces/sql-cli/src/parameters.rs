//! `--param NAME=VALUE`: values that take the places of parameters in statements.

use binlogz_query::{Error, ParameterValues, ReadStatement};

/// The values of parameters.
///
/// # Errors
///
/// A parameter that has two.
pub(crate) fn values(parameters: &[(String, String)]) -> Result<ParameterValues, Error> {
    let mut values = ParameterValues::default();
    for (name, value) in parameters {
        if values.names().any(|known| known == name) {
            return Err(Error::Sql(format!("--param {name} is there twice")));
        }
        values.set_text(name, value);
    }
    Ok(values)
}

/// Refuses values that no statement asks for, and statements that ask for a value that is not there.
pub(crate) fn check(statements: &[ReadStatement], values: &ParameterValues) -> Result<(), Error> {
    let asked = |name: &str| statements.iter().flat_map(ReadStatement::parameters).any(|asked| asked == name);
    if let Some(name) = values.names().find(|name| !asked(name)) {
        return Err(Error::Sql(format!("--param {name}: no statement has ${name}")));
    }
    let has = |name: &String| values.names().any(|known| known == name);
    match statements.iter().flat_map(ReadStatement::parameters).find(|name| !has(name)) {
        Some(name) => {
            Err(Error::Sql(format!("parameter ${name} has no value, expected --param {name}=VALUE")))
        }
        None => Ok(()),
    }
}
