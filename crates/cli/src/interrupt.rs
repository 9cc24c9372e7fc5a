//! Ctrl-C and SIGTERM: the first asks the run to end, the second ends the process.

use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::terminal::Terminal;

/// Watches for signals until the process ends. The token is cancelled by the
/// first one, where something durable may be under way; else that one ends the
/// process.
pub(crate) fn watch(terminal: Terminal, is_durable: bool) -> CancellationToken {
    let token = CancellationToken::new();
    let cancelled = token.clone();
    tokio::spawn(async move {
        let Ok(mut signals) = Signals::new() else { return };
        signals.next().await;
        if is_durable {
            cancelled.cancel();
            terminal.talk("\nfinishing what is durable; press Ctrl-C again to stop at once\n");
            signals.next().await;
        }
        std::process::exit(Exit::Interrupted.code().into());
    });
    token
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
