//! Answers HTTP from the last published view, and does no I/O but its sockets'.
//!
//! `/metrics` for Prometheus, `/` for people, `/healthz` and `/readyz` for supervisors. Clients
//! are taken as hostile: heads are bounded in size and time, connections in number and lifetime,
//! and no request body is read. What is in a view, and how it is rendered, is [`Published`]'s.

use std::{
    convert::Infallible,
    fmt,
    future::{Future, ready},
    io,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    header::{self, HeaderName, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{Instant, sleep, timeout},
};

use crate::export::{negotiate::Format, published::Published};

/// Largest request head in bytes; a larger one is answered 431.
const HEAD_MAX: usize = 16 << 10;
/// How long to wait after a failed accept: without it, a lack of file descriptors would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Least time between two complaints about accept.
const COMPLAINT_PAUSE: Duration = Duration::from_secs(1);
/// The methods that every path has.
const ALLOWED: &str = "GET, HEAD";
const TEXT: &str = "text/plain; charset=utf-8";

type Reply = Response<Full<Bytes>>;

/// What clients may take, and how old a view may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time for the first view to come; without one after it the daemon is not healthy.
    pub first_view: Duration,
    /// Connections at once; more wait to be accepted.
    pub connections: u16,
    /// Time for a request's head to arrive. A connection without a request ends after it too.
    pub head: Duration,
    /// Age of a connection at which it takes no more requests; it then has `grace` left.
    pub lifetime: Duration,
    /// Time for responses under way to finish, at the end of a connection or of the server.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            first_view: Duration::from_secs(30),
            connections: 128,
            head: Duration::from_secs(5),
            lifetime: Duration::from_secs(60),
            grace: Duration::from_secs(1),
        }
    }
}

/// Serves the last of `views` until `stop` is done; then finishes the responses under way within
/// `limits.grace`, and returns.
///
/// Needs a runtime with I/O and time. Nothing that a client does ends it, and neither does a
/// failure to accept, which is said on standard error.
pub async fn serve(
    listener: TcpListener,
    views: watch::Receiver<Option<Arc<Published>>>,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    let site = Arc::new(Site {
        views,
        limits,
        start: Instant::now(),
    });
    let places = u32::from(limits.connections.max(1));
    let free = Arc::new(Semaphore::new(places as usize));
    let (closing, closed) = watch::channel(());
    let (mut stop, mut complaints) = (pin!(stop), Complaints::default());
    loop {
        let next = async {
            let place = Arc::clone(&free).acquire_owned().await.ok()?;
            let stream = accepted(|| listener.accept(), &mut complaints).await.0;
            Some((stream, place))
        };
        let Some((stream, place)) = (tokio::select! {
            biased;
            () = &mut stop => None,
            next = next => next,
        }) else {
            break;
        };
        tokio::spawn(connection(Arc::clone(&site), stream, closed.clone(), place));
    }
    drop((listener, closing));
    // A connection that outlives its grace is cut, so there is nothing to do about a timeout.
    let _ = timeout(limits.grace, free.acquire_many(places)).await;
}

/// What `accept` gives, however often it fails before.
async fn accepted<T, F: Future<Output = io::Result<T>>>(
    mut accept: impl FnMut() -> F,
    complaints: &mut Complaints,
) -> T {
    loop {
        match accept().await {
            Ok(connection) => return connection,
            Err(error) => {
                if complaints.is_due(Instant::now()) {
                    eprintln!(
                        "tlbd: cannot accept a connection: {error}; clients wait until it can"
                    );
                }
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// When standard error last heard of a failed accept.
#[derive(Default)]
struct Complaints {
    last: Option<Instant>,
}

impl Complaints {
    fn is_due(&mut self, now: Instant) -> bool {
        let due = self
            .last
            .is_none_or(|last| now.duration_since(last) >= COMPLAINT_PAUSE);
        if due {
            self.last = Some(now);
        }
        due
    }
}

/// Serves one client; ends when it goes, when its time is over, or soon after `closed` is.
async fn connection(
    site: Arc<Site>,
    stream: TcpStream,
    mut closed: watch::Receiver<()>,
    _place: OwnedSemaphorePermit,
) {
    let limits = site.limits;
    // Without it a response's last segment may wait for an acknowledgement.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| ready(Ok::<_, Infallible>(site.answer(&request))));
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .max_buf_size(HEAD_MAX)
            .serve_connection(TokioIo::new(stream), service)
    );
    tokio::select! {
        // How a client ends its connection is its own affair.
        _ = connection.as_mut() => return,
        // Nothing is ever sent: this is the server's end of the channel going away.
        _ = closed.changed() => {}
        () = sleep(limits.lifetime) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(limits.grace, connection).await;
}

/// What all connections share.
struct Site {
    views: watch::Receiver<Option<Arc<Published>>>,
    limits: Limits,
    start: Instant,
}

impl Site {
    fn answer<B>(&self, request: &Request<B>) -> Reply {
        let view: fn(&Self, &Request<B>) -> Reply = match request.uri().path() {
            "/" => Self::page,
            "/metrics" => Self::metrics,
            "/healthz" => |site, _| site.health(Instant::now()),
            "/readyz" => Self::readiness,
            _ => {
                return plain(
                    StatusCode::NOT_FOUND,
                    "not found: see /, /metrics, /healthz, /readyz",
                );
            }
        };
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let refusal = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD");
            return with(refusal, header::ALLOW, ALLOWED);
        }
        view(self, request)
    }

    fn page<B>(&self, _: &Request<B>) -> Reply {
        let Some(published) = self.published() else {
            return no_view();
        };
        let reply = reply(StatusCode::OK, "text/html; charset=utf-8", published.page());
        let policy = "default-src 'none'; style-src 'unsafe-inline'";
        with(reply, header::CONTENT_SECURITY_POLICY, policy)
    }

    fn metrics<B>(&self, request: &Request<B>) -> Reply {
        let Some(published) = self.published() else {
            return no_view();
        };
        // Series are to stop where they are no longer measured, not to freeze.
        if let Some(age) = published.overdue(Instant::now().into()) {
            return late("no new view", age);
        }
        let accept = request.headers().get_all(header::ACCEPT).iter();
        let accept: Vec<_> = accept.filter_map(|value| value.to_str().ok()).collect();
        let format = Format::accepted(&accept.join(","));
        match published.metrics(format) {
            Ok(text) => reply(StatusCode::OK, format.content_type(), text),
            Err(fmt::Error) => plain(
                StatusCode::INTERNAL_SERVER_ERROR,
                "a metric does not have the labels it declares: please report this bug",
            ),
        }
    }

    fn health(&self, now: Instant) -> Reply {
        if let Some(published) = self.published() {
            return match published.overdue(now.into()) {
                None => plain(StatusCode::OK, "ok"),
                Some(age) => late("no new view", age),
            };
        }
        let age = now.saturating_duration_since(self.start);
        if age <= self.limits.first_view {
            return plain(StatusCode::OK, "ok");
        }
        late("no view since the start", age)
    }

    fn readiness<B>(&self, _: &Request<B>) -> Reply {
        if self.views.borrow().is_some() {
            plain(StatusCode::OK, "ready")
        } else {
            no_view()
        }
    }

    fn published(&self) -> Option<Arc<Published>> {
        self.views.borrow().clone()
    }
}

/// There is no view, or none that is good, for this long.
fn late(what: &str, age: Duration) -> Reply {
    let told = format!("{what} for {:.1} s", age.as_secs_f64());
    plain(StatusCode::SERVICE_UNAVAILABLE, told)
}

fn no_view() -> Reply {
    plain(
        StatusCode::SERVICE_UNAVAILABLE,
        "tlbd is starting: there is no view yet",
    )
}

/// A line of text.
fn plain(status: StatusCode, line: impl Into<String>) -> Reply {
    reply(status, TEXT, (line.into() + "\n").into())
}

fn reply(status: StatusCode, content_type: &'static str, body: Bytes) -> Reply {
    let mut reply = Response::new(Full::new(body));
    *reply.status_mut() = status;
    let reply = with(reply, header::CONTENT_TYPE, content_type);
    let reply = with(reply, header::CACHE_CONTROL, "no-store");
    with(reply, header::X_CONTENT_TYPE_OPTIONS, "nosniff")
}

fn with(mut reply: Reply, name: HeaderName, value: &'static str) -> Reply {
    reply
        .headers_mut()
        .insert(name, HeaderValue::from_static(value));
    reply
}

#[cfg(test)]
mod tests;
