//! Lets a request pass if it belongs to a session. All requests to the service pass through it, so none can be forgotten;
//! only a login has no session yet.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use binlogz_query_server::QueryConnection;
use futures_util::future::{Either, Ready, ready};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;

use crate::sessions::{FlightSessions, SESSION_ENDED};

const LOGIN: &str = "/arrow.flight.protocol.FlightService/Handshake";
const BEARER: &str = "bearer ";

/// A service that only sessions reach.
#[derive(Clone)]
pub(crate) struct SessionGuard<S> {
    inner: S,
    sessions: Arc<FlightSessions>,
}

impl<S> SessionGuard<S> {
    pub(crate) fn new(inner: S, sessions: Arc<FlightSessions>) -> Self {
        SessionGuard { inner, sessions }
    }
}

impl<S: NamedService> NamedService for SessionGuard<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for SessionGuard<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Either<S::Future, Ready<Result<Self::Response, Infallible>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        if request.uri().path() == LOGIN {
            return Either::Left(self.inner.call(request));
        }
        let header =
            request.headers().get(http::header::AUTHORIZATION).and_then(|header| header.to_str().ok());
        let token = header.and_then(|text| {
            let scheme = text.get(..BEARER.len())?;
            scheme.eq_ignore_ascii_case(BEARER).then(|| text.get(BEARER.len()..))?
        });
        let Some(session) = self.sessions.find(token) else {
            let what = match token {
                Some(_) => SESSION_ENDED,
                None => "log in first, with user and password",
            };
            return Either::Right(ready(Ok(Status::unauthenticated(what).into_http())));
        };
        if let Some(connection) = request.extensions().get::<Arc<QueryConnection>>() {
            connection.is_known_now();
        }
        request.extensions_mut().insert(session);
        Either::Left(self.inner.call(request))
    }
}
