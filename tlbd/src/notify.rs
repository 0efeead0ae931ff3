//! What the service manager is told (`sd_notify(3)`); nothing where there is none.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::Interval;

use crate::model::view::View;

/// The first view is there.
pub(crate) fn ready() {
    tell(&[NotifyState::Ready]);
}

/// The configuration is being read again.
pub(crate) fn reloading() {
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        tell(&[NotifyState::Reloading, now]);
    }
}

/// The end begins.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// All is well.
pub(crate) fn alive() {
    tell(&[NotifyState::Watchdog]);
}

/// A service manager that does not listen is no concern of the daemon's.
fn tell(state: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(state);
}

/// How it goes.
pub(crate) fn status(view: &View) {
    let down: Vec<_> = view
        .collectors
        .iter()
        .filter(|row| !row.up)
        .map(|row| row.collector)
        .collect();
    let state = if down.is_empty() {
        "all collectors up".into()
    } else {
        format!("down: {}", down.join(", "))
    };
    let status = format!(
        "{} cgroups, {} functions; {state}",
        view.cgroups.len(),
        view.functions.len()
    );
    tell(&[NotifyState::Status(&status)]);
}

/// Ticks at half the service manager's watchdog time, if it has one.
pub(crate) fn watchdog() -> Option<Interval> {
    let time = sd_notify::watchdog_enabled()?;
    Some(tokio::time::interval(
        (time / 2).max(Duration::from_millis(1)),
    ))
}

/// Waits for the next of these ticks; forever where there is no watchdog.
pub(crate) async fn next(interval: &mut Option<Interval>) {
    match interval {
        Some(interval) => {
            interval.tick().await;
        }
        None => std::future::pending().await,
    }
}
