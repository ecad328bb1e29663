//! Chooses the source that a client reads.
//!
//! ```text
//! by the port       that a source listens on itself
//! by the account    that has a source
//! by the name       that a TLS client asks for: the name of a source, or its first label is
//! by the schema     that a client begins with: the name of a source
//! ```
//!
//! All names that a client gives must mean the same source. If there is only one source, a client need not name it.

use parking_lot::Mutex;
use std::sync::Arc;

use binlogz_wire::ServerError;

use crate::error::UNKNOWN_ERROR;
use crate::serve::SourceServer;

/// How many names an error lists.
const TOLD_MAX: usize = 20;

/// A source as clients see it.
#[derive(Clone)]
pub(crate) struct SourceRoute {
    /// Empty for the only one of a relay whose source has no name.
    pub(crate) name: String,
    /// The error says why it is not served.
    pub(crate) to: Result<Arc<SourceServer>, String>,
}

/// The routes to all sources.
#[derive(Default)]
pub(crate) struct Routes(Mutex<Arc<[SourceRoute]>>);

/// A client's hints about the source that it wants.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wishes<'a> {
    pub(crate) port: Option<&'a str>,
    pub(crate) account: Option<&'a str>,
    pub(crate) tls_name: Option<&'a str>,
    pub(crate) schema: Option<&'a str>,
}

impl Routes {
    pub(crate) fn set(&self, routes: Vec<SourceRoute>) {
        *self.0.lock() = routes.into();
    }

    pub(crate) fn all(&self) -> Arc<[SourceRoute]> {
        Arc::clone(&self.0.lock())
    }

    /// The source that a client wants, or the error that it gets instead.
    pub(crate) fn find(&self, wishes: Wishes<'_>) -> Result<Arc<SourceServer>, ServerError> {
        let routes = self.all();
        let route = choose(&routes, wishes, |route| &route.name)?;
        route.to.clone().map_err(|why| ServerError {
            code: 1053,
            sqlstate: Some(*b"08S01"),
            message: format!("the source {} is not served at present: {why}", route.name),
        })
    }
}

/// Chooses the source that a client's wishes name. Errs if two wishes name different sources, or a name means none.
fn choose<'r, R>(
    routes: &'r [R],
    wishes: Wishes<'_>,
    name: impl Fn(&'r R) -> &'r str,
) -> Result<&'r R, ServerError> {
    let refuse = |message| Err(ServerError { code: UNKNOWN_ERROR, sqlstate: Some(*b"HY000"), message });
    let find = |wanted: &str| routes.iter().find(|route| name(route).eq_ignore_ascii_case(wanted));
    let mut chosen: Option<(&str, &R)> = None;
    for (by, wanted, is_certain) in [
        ("port", wishes.port, true),
        ("account", wishes.account, true),
        ("TLS server name", wishes.tls_name.map(first_label), false),
        ("default schema", wishes.schema, false),
    ] {
        let Some(wanted) = wanted else { continue };
        match (find(wanted), chosen) {
            (None, _) if is_certain => {
                return refuse(format!(
                    "the source {wanted}, which the client's {by} means, is not here any more"
                ));
            }
            // Any other host name or schema means nothing.
            (None, _) => {}
            (Some(route), None) => chosen = Some((by, route)),
            (Some(route), Some((before, other))) if name(route) != name(other) => {
                return refuse(format!(
                    "the client wants the source {} by its {before} and {} by its {by}",
                    name(other),
                    name(route)
                ));
            }
            (Some(_), Some(_)) => {}
        }
    }
    match (chosen, routes) {
        (Some((_, route)), _) | (None, [route]) => Ok(route),
        (None, _) => {
            let mut names: Vec<&str> = routes.iter().take(TOLD_MAX).map(&name).collect();
            let more = format!("and {} more", routes.len().saturating_sub(TOLD_MAX));
            names.extend((routes.len() > TOLD_MAX).then_some(more.as_str()));
            let unknown = wishes.schema.map_or(String::new(), |schema| format!(" (none is called {schema})"));
            refuse(format!(
                "the relay has several sources and the client names none{unknown}: {}. Its account can have one, its \
                 default schema or TLS server name can be the name of one, and a source can have a port of its own",
                names.join(", ")
            ))
        }
    }
}

/// `orders` of `orders.relay.example.com`.
fn first_label(host: &str) -> &str {
    host.split('.').next().unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(routes: &[&'static str], wishes: Wishes<'_>) -> String {
        match choose(routes, wishes, |name| name) {
            Ok(name) => (*name).to_owned(),
            Err(error) => {
                assert_eq!(error.code, 1105);
                error.message
            }
        }
    }

    #[test]
    fn a_client_is_given_the_source_that_it_names() {
        let both = ["orders", "payments"];
        let none = Wishes::default();
        for wishes in [
            Wishes { port: Some("payments"), ..none },
            Wishes { account: Some("payments"), ..none },
            Wishes { account: Some("payments"), schema: Some("shop"), ..none },
            Wishes { tls_name: Some("payments"), ..none },
            Wishes { tls_name: Some("Payments.relay.example.com"), ..none },
            Wishes { tls_name: Some("relay.example.com"), schema: Some("PAYMENTS"), ..none },
            Wishes {
                account: Some("payments"),
                tls_name: Some("payments"),
                schema: Some("payments"),
                ..none
            },
        ] {
            assert_eq!(told(&both, wishes), "payments", "{wishes:?}");
        }
        assert_eq!(told(&["orders"], none), "orders");
        assert_eq!(told(&[""], Wishes { schema: Some("shop"), ..none }), "");
    }

    #[test]
    fn what_is_unclear_is_told_with_the_names() {
        let both = ["orders", "payments"];
        let none = Wishes::default();
        let said = told(&both, none);
        assert!(
            said.starts_with("the relay has several sources and the client names none: orders, payments. ")
        );
        let said = told(&both, Wishes { schema: Some("shop"), ..none });
        assert!(said.contains("names none (none is called shop): orders, payments. "), "{said}");
        assert_eq!(
            told(&both, Wishes { account: Some("orders"), schema: Some("payments"), ..none }),
            "the client wants the source orders by its account and payments by its default schema"
        );
        assert_eq!(
            told(&both, Wishes { account: Some("gone"), schema: Some("orders"), ..none }),
            "the source gone, which the client's account means, is not here any more"
        );
        let many: Vec<&'static str> = (0..25).map(|_| "s").collect();
        assert!(told(&many, none).contains("s, s, and 5 more. "));
    }
}
