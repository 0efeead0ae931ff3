//! `tlbd run`: wires sources, collectors and server; starts and stops them in order.
//!
//! Two threads do the work: this one runs tokio with the server and the signals, the other ticks
//! the engine and does all the reading. A view goes from one to the other through a watch.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{oneshot, watch},
};

use crate::{
    collector::{METRICS, engine::Engine, names},
    config::{Config, Flags},
    export::{http, published::Published},
    notify,
    source::{
        KernelEvents, Unavailable,
        bpf::{BpfEvents, Settings},
        capture::Captured,
        root::Root,
    },
};

/// The second view comes this soon, so that a first look at the page finds counts on it.
const FIRST_TICK: Duration = Duration::from_secs(1);
/// How long the engine may take to stop.
const STOP_WITHIN: Duration = Duration::from_millis(1200);

/// What the engine's thread is told.
enum Order {
    Reload(Config),
    Stop,
}

type Views = watch::Sender<Option<Arc<Published>>>;

/// The running kernel's events, or why there are none.
///
/// # Errors
/// If no program can be loaded.
pub fn host_events(config: &Config) -> Result<Box<dyn KernelEvents>, Unavailable> {
    let settings = Settings {
        sample_hz: config.sample_hz,
        tick_seconds: config.tick_seconds,
        stats: config.bpf_stats,
        most_keys: None,
    };
    Ok(Box::new(BpfEvents::open(settings)?))
}

/// The host to watch: this one, or a captured one.
struct Host {
    replay: Option<PathBuf>,
}

impl Host {
    fn root(&self) -> Root {
        self.replay
            .as_deref()
            .map_or_else(Root::host, Root::captured)
    }

    fn events(&self, config: &Config) -> Result<Box<dyn KernelEvents>, Unavailable> {
        match &self.replay {
            Some(folder) => Ok(Box::new(Captured::load(folder)?)),
            None => host_events(config),
        }
    }
}

/// Runs until a signal stops it.
///
/// # Errors
/// If the address cannot be listened on, the folder of a replay is not there, or a part of the
/// daemon ends by itself.
pub fn run(config: Config, flags: &Flags, replay: Option<PathBuf>) -> anyhow::Result<ExitCode> {
    if let Some(folder) = &replay {
        require_folder(folder)?;
    }
    let listener = listen(&config)?;
    let address = listener
        .local_addr()
        .context("asking for the address listened on")?;
    eprintln!("tlbd: listening on http://{address}/ (metrics at http://{address}/metrics)");
    let (views, view) = watch::channel(None);
    let (orders, received) = mpsc::channel();
    let (ended, engine_ended) = mpsc::channel();
    thread::Builder::new()
        .name("tlbd-tick".into())
        .spawn(move || {
            // Dropped last, also when the engine panics: it tells that this thread has ended.
            let _ended: Sender<()> = ended;
            drive(config, &Host { replay }, &received, &views);
        })
        .context("starting the tick thread")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    let outcome = runtime.block_on(serve(listener, view, flags, &orders));
    notify::stopping();
    let _ = orders.send(Order::Stop);
    // The engine takes the programs out of the kernel as it ends.
    let _ = engine_ended.recv_timeout(STOP_WITHIN);
    outcome.map(|()| ExitCode::SUCCESS)
}

fn require_folder(folder: &Path) -> anyhow::Result<()> {
    let is_folder = folder.is_dir();
    anyhow::ensure!(
        is_folder,
        "{} is not a folder: name one that `tlbd capture` wrote",
        folder.display()
    );
    Ok(())
}

fn listen(config: &Config) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(config.listen).with_context(|| {
        format!(
            "listening on {}: choose another address with --listen",
            config.listen
        )
    })?;
    listener
        .set_nonblocking(true)
        .context("preparing the listening socket")?;
    Ok(listener)
}

/// How long a view is good: beyond a few missed ticks the daemon is not healthy.
fn keeps(tick: Duration) -> Duration {
    tick * 3 + Duration::from_secs(10)
}

/// The engine's thread: ticks, publishes, obeys.
fn drive(config: Config, host: &Host, orders: &Receiver<Order>, views: &Views) {
    let mut tick = Duration::from_secs_f64(config.tick_seconds);
    let events = host.events(&config);
    let mut engine = Engine::open(config, host.root(), events);
    report(&engine);
    let mut next = Instant::now();
    let live = host.replay.is_none();
    loop {
        let view = engine.tick();
        notify::status(&view);
        let first = live && view.tick == 1;
        let published = Published::new(Arc::new(view), Instant::now(), keeps(tick), &METRICS);
        views.send_replace(Some(Arc::new(published)));
        next = due(next, if first { FIRST_TICK.min(tick) } else { tick });
        match orders.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Order::Reload(config)) => {
                tick = Duration::from_secs_f64(config.tick_seconds);
                engine = engine.reopen(config, |config| host.events(config));
                report(&engine);
                next = Instant::now();
                notify::ready();
            }
            Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The next tick's time; ticks that were missed are not made up for.
fn due(last: Instant, tick: Duration) -> Instant {
    (last + tick).max(Instant::now())
}

/// One line for each thing that is not measured, at start and after a reload.
fn report(engine: &Engine) {
    for (entry, reason) in engine.states() {
        if let Some(reason) = reason {
            eprintln!("tlbd: {} is off: {reason} ({})", entry.name, reason.mend());
        }
    }
}

/// Serves views until a signal or the end of the engine.
async fn serve(
    listener: TcpListener,
    mut view: watch::Receiver<Option<Arc<Published>>>,
    flags: &Flags,
    orders: &Sender<Order>,
) -> anyhow::Result<()> {
    let listener =
        tokio::net::TcpListener::from_std(listener).context("preparing the listening socket")?;
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async {
        let _ = stopped.await;
    };
    let mut server = tokio::spawn(http::serve(
        listener,
        view.clone(),
        http::Limits::default(),
        stopped,
    ));
    let handle = |kind| signal(kind).context("handling signals");
    let (mut terminate, mut interrupt) = (
        handle(SignalKind::terminate())?,
        handle(SignalKind::interrupt())?,
    );
    let mut hangup = handle(SignalKind::hangup())?;
    let mut ready = false;
    let mut watchdog = notify::watchdog();
    loop {
        tokio::select! {
            changed = view.changed() => {
                changed.context("the tick thread ended by itself; this is a bug in tlbd, please report it")?;
                if !std::mem::replace(&mut ready, true) {
                    notify::ready();
                }
            }
            () = notify::next(&mut watchdog) => {
                let fresh = view.borrow().as_ref().is_none_or(|view| view.overdue(Instant::now()).is_none());
                if fresh {
                    notify::alive();
                }
            }
            () = received(&mut hangup) => reload(flags, orders),
            () = received(&mut terminate) => break,
            () = received(&mut interrupt) => break,
            ended = &mut server => {
                ended.context("the HTTP server panicked")?;
                anyhow::bail!("the HTTP server ended by itself");
            }
        }
    }
    drop(stop);
    server.await.context("the HTTP server panicked")
}

async fn received(signal: &mut Signal) {
    if signal.recv().await.is_none() {
        std::future::pending::<()>().await;
    }
}

/// Reads the configuration again. A wrong one is reported and changes nothing.
fn reload(flags: &Flags, orders: &Sender<Order>) {
    match flags.load(&names()) {
        Ok(config) => {
            notify::reloading();
            eprintln!("tlbd: configuration read again; a new listen address takes a restart");
            let _ = orders.send(Order::Reload(config));
        }
        Err(error) => eprintln!("tlbd: configuration not changed: {error}"),
    }
}
