//! stdout for results, stderr for talk, and the bars between them.

use std::io::{IsTerminal, Write};

use indicatif::MultiProgress;

/// Where text goes.
#[derive(Clone)]
pub(crate) struct Terminal {
    bars: MultiProgress,
    draws_bars: bool,
    shows_results: bool,
    width: Option<u16>,
}

impl Terminal {
    /// The process's own terminal, or none.
    pub(crate) fn new(progress: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            bars: MultiProgress::new(),
            draws_bars: progress && !dumb && std::io::stderr().is_terminal(),
            shows_results: true,
            width: std::io::stdout().is_terminal().then(stdout_width).flatten(),
        }
    }

    /// The same without results: they are steps of something that has its own.
    pub(crate) fn without_results(self) -> Self {
        Self { shows_results: false, ..self }
    }

    /// Columns of the terminal that results are shown on; `None` where they go
    /// to a file or a program.
    pub(crate) fn width(&self) -> Option<u16> {
        self.width
    }

    /// The bars, where they are wanted and can be drawn.
    pub(crate) fn bars(&self) -> Option<&MultiProgress> {
        self.draws_bars.then_some(&self.bars)
    }

    /// Writes a result. A reader that has gone is no error: it has seen enough.
    pub(crate) fn result(&self, text: &str) {
        if !self.shows_results {
            return;
        }
        self.bars.suspend(|| {
            let mut stdout = std::io::stdout().lock();
            let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        });
    }

    /// Writes talk.
    pub(crate) fn talk(&self, text: &str) {
        self.bars.suspend(|| {
            let _ = std::io::stderr().lock().write_all(text.as_bytes());
        });
    }
}

fn stdout_width() -> Option<u16> {
    comfy_table::Table::new().width()
}

/// Lines of the log go between the bars, not through them.
impl Write for Terminal {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        // Nobody can be told that nobody can be told.
        self.bars.suspend(|| {
            let _ = std::io::stderr().lock().write_all(text);
        });
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
