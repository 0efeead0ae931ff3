//! A view as it is handed to readers: with its renderings, each made when first asked for.
//!
//! However many clients ask at once, a view is rendered once per format, and clients share the
//! bytes. A view that nobody asks for is never rendered.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use bytes::Bytes;

use crate::{
    export::{
        negotiate::Format,
        page,
        text::{self, Metrics},
    },
    model::view::View,
};

/// A view and its renderings.
pub struct Published {
    view: Arc<View>,
    at: Instant,
    keeps: Duration,
    metrics: Metrics,
    openmetrics: OnceLock<Result<Bytes, fmt::Error>>,
    prometheus: OnceLock<Result<Bytes, fmt::Error>>,
    page: OnceLock<Bytes>,
}

impl Published {
    /// The view as published at `at`, good for as long as it `keeps`, to be rendered with these
    /// metrics.
    #[must_use]
    pub const fn new(view: Arc<View>, at: Instant, keeps: Duration, metrics: Metrics) -> Self {
        Self {
            view,
            at,
            keeps,
            metrics,
            openmetrics: OnceLock::new(),
            prometheus: OnceLock::new(),
            page: OnceLock::new(),
        }
    }

    /// The view itself.
    #[must_use]
    pub const fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// The view's age, if that is more than it keeps. This clock only goes forward, unlike the
    /// view's own time.
    #[must_use]
    pub fn overdue(&self, now: Instant) -> Option<Duration> {
        let age = now.saturating_duration_since(self.at);
        (age > self.keeps).then_some(age)
    }

    /// The metrics in this format.
    ///
    /// # Errors
    /// The metrics cannot be written; see [`text::openmetrics`].
    pub fn metrics(&self, format: Format) -> Result<Bytes, fmt::Error> {
        match format {
            Format::OpenMetrics => self.openmetrics.get_or_init(|| self.openmetrics()).clone(),
            Format::Prometheus => self.prometheus.get_or_init(|| self.prometheus()).clone(),
        }
    }

    /// The page for people.
    #[must_use]
    pub fn page(&self) -> Bytes {
        self.page
            .get_or_init(|| page::page(&self.view).into())
            .clone()
    }

    fn openmetrics(&self) -> Result<Bytes, fmt::Error> {
        text::openmetrics(&self.view, self.metrics).map(Bytes::from)
    }

    /// Reads the OpenMetrics text if there is one, but keeps none: as a rule all clients ask for
    /// the same format, and for thousands of cgroups a text is megabytes.
    fn prometheus(&self) -> Result<Bytes, fmt::Error> {
        let rendered = match self.openmetrics.get() {
            Some(openmetrics) => openmetrics.clone()?,
            None => self.openmetrics()?,
        };
        let openmetrics = std::str::from_utf8(&rendered).map_err(|_| fmt::Error)?;
        Ok(text::prometheus(openmetrics).into())
    }
}

impl fmt::Debug for Published {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Published")
            .field("tick", &self.view.tick)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering::SeqCst},
        thread,
    };

    use super::*;
    use crate::export::{
        metric::{Kind, Metric, Series},
        page::sample,
    };

    static READ: AtomicUsize = AtomicUsize::new(0);
    const COUNTED: Metric = Metric {
        name: "tlbd_reads_total",
        kind: Kind::Counter,
        help: "Times that this metric was read",
        labels: &[],
        read: |_, series| {
            READ.fetch_add(1, SeqCst);
            thread::sleep(std::time::Duration::from_millis(20));
            series.count(&[], 1);
        },
    };
    const WRONG: Metric = Metric {
        name: "tlbd_wrong",
        kind: Kind::Gauge,
        help: "One label too many",
        labels: &[],
        read: |_: &View, series: &mut Series<'_>| series.count(&["more"], 1),
    };

    fn published(metrics: Metrics) -> Published {
        Published::new(
            Arc::new(sample::empty()),
            Instant::now(),
            Duration::MAX,
            metrics,
        )
    }

    #[test]
    fn a_hundred_readers_at_once_cost_one_rendering() {
        let published = published(&[&[&COUNTED]]);
        let texts: Vec<_> = thread::scope(|scope| {
            let readers: Vec<_> = (0..100)
                .map(|_| scope.spawn(|| published.metrics(Format::OpenMetrics).unwrap()))
                .collect();
            readers
                .into_iter()
                .map(|reader| reader.join().unwrap())
                .collect()
        });
        published.metrics(Format::Prometheus).unwrap();
        assert_eq!(READ.load(SeqCst), 1);
        assert!(texts.iter().all(|text| text.as_ptr() == texts[0].as_ptr()));
    }

    #[test]
    fn the_older_format_is_made_from_the_same_series() {
        const UP: Metric = Metric {
            name: "tlbd_runs_total",
            kind: Kind::Counter,
            help: "Runs",
            labels: &[],
            read: |_, series| series.count(&[], 7),
        };
        let published = published(&[&[&UP]]);
        let prometheus = published.metrics(Format::Prometheus).unwrap();
        assert_eq!(
            prometheus,
            "# HELP tlbd_runs_total Runs\n# TYPE tlbd_runs_total counter\ntlbd_runs_total 7\n"
        );
    }

    #[test]
    fn metrics_that_cannot_be_written_are_an_error_in_either_format() {
        let published = published(&[&[&WRONG]]);
        assert!(published.metrics(Format::OpenMetrics).is_err());
        assert!(published.metrics(Format::Prometheus).is_err());
        assert!(published.page().starts_with(b"<!DOCTYPE html>"));
    }
}
