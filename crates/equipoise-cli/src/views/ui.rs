//! The terminal view: shows the open series in the terminal and redraws them ten times per second.
//!
//! The view is laid out line by line, without `ratatui::layout::Layout`, whose solver would make the machine code of
//! the view a tenth larger.

use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::widgets::{Sparkline, Widget as _};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::board::{Board, Series};
use super::lock;
use super::told::Way;

/// Whether the other end of a terminal or pipe is closed, for example because the user closed the terminal's window.
fn is_closed(terminal: &impl AsFd) -> bool {
    let mut states = [PollFd::new(terminal, PollFlags::empty())];
    poll(&mut states, Some(&Timespec::default())).is_ok()
        && states[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
}

/// A terminal that this program controls. The terminal is restored when this value is dropped, and when the program
/// panics.
#[derive(Debug)]
pub(super) struct Screenful {
    terminal: DefaultTerminal,
    /// The index of the first visible line in the list of series.
    first: usize,
    is_left: bool,
}

impl Screenful {
    /// Takes control of the terminal. Returns `None` if standard output is not a terminal, or if the terminal cannot be
    /// used.
    pub(super) fn open() -> Option<Self> {
        if !io::stdout().is_terminal() {
            return None;
        }
        // The call may have changed the terminal before it failed, so the terminal's settings are restored.
        let terminal = ratatui::try_init().map_err(|_| ratatui::try_restore()).ok()?;
        Some(Self { terminal, first: 0, is_left: false })
    }

    /// Handles pressed keys, then draws the state of the run. The state is locked while it is read, but not while the
    /// output is written to the terminal.
    pub(super) fn draw(&mut self, board: &Mutex<Board>) {
        // A read from a closed terminal would never return, so the loop checks the terminal before each read.
        while !is_closed(&io::stdout()) {
            if !event::poll(Duration::ZERO).is_ok_and(|is_there| is_there) {
                let first = self.first;
                let _ = self.terminal.draw(|frame| render(&lock(board), first, frame.area(), frame.buffer_mut()));
                return;
            }
            if let Ok(Event::Key(key)) = event::read() {
                let lines = lock(board).open.len();
                self.press(key, lines);
            }
        }
        self.is_left = true;
    }

    fn press(&mut self, key: KeyEvent, lines: usize) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        let page = 10;
        match key.code {
            KeyCode::Char('q') => self.is_left = true,
            // In raw mode, the terminal does not convert Ctrl-C to a signal, so the key is handled here.
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => self.is_left = true,
            KeyCode::Down | KeyCode::Char('j') => self.first += 1,
            KeyCode::Up | KeyCode::Char('k') => self.first = self.first.saturating_sub(1),
            KeyCode::PageDown => self.first += page,
            KeyCode::PageUp => self.first = self.first.saturating_sub(page),
            _ => {}
        }
        self.first = self.first.min(lines.saturating_sub(1));
    }

    /// Whether the user pressed a key that ends the run, or closed the terminal.
    pub(super) const fn is_left(&self) -> bool {
        self.is_left
    }
}

impl Drop for Screenful {
    fn drop(&mut self) {
        let _ = ratatui::try_restore();
    }
}

const HEAD: Style = Style::new().add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const ALARM: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
/// Height of the chart of the rate, in lines.
const PICTURE: u16 = 6;
/// Width of a series' name, and width of the small chart at the end of a series' line, both in columns.
const NAME: usize = 28;
const SMALL: u16 = 24;

/// Draws the state of the run.
fn render(board: &Board, first: usize, area: Rect, buffer: &mut Buffer) {
    let mut pen = Pen { buffer, area, line: area.y };
    let title =
        board.start.as_ref().map_or_else(String::new, |start| format!("equipoise {}: {}", start.command, start.title));
    pen.write(&title, HEAD);
    let going = Way::ALL.into_iter().filter_map(|way| {
        let total = board.sums.get(&way)?;
        let rate = megabits(board.rate_bps(way));
        Some(format!("{}: {} of {}, {} Mbit/s", way.name(), board.count(way), total.opened, rate.trim_start()))
    });
    let going: Vec<_> = going.collect();
    pen.write(&format!("{:.0} s   {}", board.at_s, going.join("   ")), Style::new());
    pen.line += 1;
    let (values, most) = (board.recent.last(usize::from(area.width)), board.recent.most());
    pen.write(
        &format!("Total rate, one column per second, at most {} Mbit/s", megabits(Some(most)).trim_start()),
        FAINT,
    );
    pen.picture(values, PICTURE);
    pen.line += 1;
    pen.write(&format!("{:NAME$}     rate  allowed    delay      p95   jitter     lost   Mbit/s and ms", "what"), HEAD);
    for series in board.open.values().skip(first) {
        if pen.line + 1 >= area.bottom() {
            break;
        }
        pen.series(series);
    }
    let hidden = if first > 0 { format!(", {first} above") } else { String::new() };
    pen.line = area.bottom().saturating_sub(1).max(pen.line);
    pen.write(&format!("q ends the run, arrows scroll{hidden}"), FAINT);
}

/// A buffer to draw into, and the next line to draw.
struct Pen<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    line: u16,
}

impl Pen<'_> {
    /// Writes a line of text, which is cut off at the edge of the terminal.
    fn write(&mut self, text: &str, style: Style) {
        if self.line < self.area.bottom() {
            self.buffer.set_stringn(self.area.x, self.line, text, usize::from(self.area.width), style);
        }
        self.line += 1;
    }

    /// Draws a chart that is `lines` terminal lines high, with the newest value at the right.
    fn picture(&mut self, values: impl Iterator<Item = f64>, lines: u16) {
        let height = lines.min(self.area.bottom().saturating_sub(self.line));
        let place = Rect { y: self.line, height, ..self.area };
        sparkline(values, place, self.buffer);
        self.line += lines;
    }

    fn series(&mut self, series: &Series) {
        let now = series.now;
        let lost = now.lost_share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0));
        let text = format!(
            "{:NAME$.NAME$} {:>8} {:>8} {:>8} {:>8} {:>8} {lost:>8}  ",
            series.open.name,
            megabits(Some(now.rate_bps)),
            megabits(now.allowed_bps),
            millis(now.delay_mean_s),
            millis(now.delay_p95_s),
            millis(now.jitter_s),
        );
        let stopped = series.stopped_by.map(|breaker| format!("stopped: {breaker}"));
        let style = if stopped.is_some() { ALARM } else { Style::new() };
        let used = text.chars().count() as u16;
        let line = self.line;
        self.write(&(text + stopped.as_deref().unwrap_or_default()), style);
        let room = self.area.width.saturating_sub(used).min(SMALL);
        if stopped.is_none() && room > 0 && line < self.area.bottom() {
            let place = Rect { x: self.area.x + used, y: line, width: room, height: 1 };
            sparkline(series.recent.last(usize::from(room)), place, self.buffer);
        }
    }
}

fn sparkline(values: impl Iterator<Item = f64>, place: Rect, buffer: &mut Buffer) {
    let values: Vec<u64> = values.map(|value| value.max(0.0) as u64).collect();
    Sparkline::default().data(values).style(Style::new().fg(Color::Blue)).render(place, buffer);
}

fn megabits(bps: Option<f64>) -> String {
    bps.map_or_else(|| "-".to_owned(), |bps| format!("{:.2}", bps / 1e6))
}

fn millis(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{:.2}", seconds * 1e3))
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::views::samples;

    fn drawn(board: &Board, first: usize, (width, height): (u16, u16)) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal of the test's");
        terminal.draw(|frame| render(board, first, frame.area(), frame.buffer_mut())).expect("drawn");
        terminal.backend().to_string()
    }

    /// If this test fails, the program never ends after the user closed the terminal's window.
    #[test]
    fn a_terminal_whose_other_end_is_closed_is_noticed() {
        let (reader, writer) = io::pipe().expect("a pipe");
        assert!(!is_closed(&writer));
        drop(reader);
        assert!(is_closed(&writer));
    }

    #[test]
    fn the_terminal_shows_what_goes_on_and_who_is_stopped() {
        let text = drawn(&samples::board(3), 0, (110, 24));
        for part in [
            "equipoise receive: receiving at [::]:5004",
            "received: 3 of 3, 3.00 Mbit/s",
            "192.0.2.2:5004",
            "6.00    12.00     1.00    1.0 %",
            "stopped: media timeout",
            "q ends the run",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    /// If this test fails, the program panics on a small terminal, or with more sessions than the terminal has lines.
    #[test]
    fn any_size_can_be_drawn_and_what_has_no_room_can_be_scrolled_to() {
        let board = samples::board(200);
        for size in [(1, 1), (10, 3), (40, 8), (80, 12), (300, 100)] {
            drawn(&board, 0, size);
        }
        drawn(&Board::default(), 5, (80, 24));
        let text = drawn(&board, 150, (110, 24));
        assert!(text.contains("192.0.2.150:5004") && !text.contains("192.0.2.2:5004"), "{text}");
        assert!(text.contains("150 above"), "{text}");
    }
}
