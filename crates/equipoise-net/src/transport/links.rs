use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;

use equipoise::units::Span;
use equipoise_session::{PathChange, PathId};

use super::interfaces::{InterfaceNews, Interfaces, Place};
use super::paths::Paths;
use crate::socket::wait_any;
use crate::{Clock, Dscp, NetError, Received, Socket, SocketStats, Time, TimestampSource};

/// The sockets of a session, one for each path.
///
/// The sockets are fixed, or they follow the interfaces. A socket that follows is bound to an interface and to one of
/// its addresses: with the address alone, the kernel would choose the interface by its routes. It is bound again when
/// the interface or the address changes.
#[derive(Debug)]
pub(crate) struct Links {
    clock: Clock,
    each: Vec<Link>,
    /// Index of the socket to read next.
    turn: usize,
    changes: VecDeque<(PathId, PathChange)>,
    /// `None` if the sockets are fixed.
    watch: Option<Watch>,
    /// The counters of closed sockets.
    stats: SocketStats,
}

#[derive(Debug)]
struct Link {
    id: PathId,
    /// `None` while the path cannot be used.
    socket: Option<Socket>,
    place: Option<Place>,
    state: State,
}

/// The state of a path as the endpoint knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unknown,
    Up,
    Down,
}

#[derive(Debug)]
struct Watch {
    paths: Paths,
    /// The class of service of each socket.
    dscp: Dscp,
    news: InterfaceNews,
    next_look: Time,
    /// Whether the next check has to read all interfaces, even without a notification.
    is_due: bool,
}

/// Time between two checks for interface changes, if no notification ends a wait. Our choice: a check costs one system
/// call.
const LOOK: Span = Span::from_millis(100);

impl Links {
    /// Sockets that do not change.
    pub(crate) fn fixed(sockets: Vec<Socket>) -> Self {
        let clock = sockets.first().map_or_else(Clock::new, |socket| socket.clock().clone());
        let ids = (0..).map(PathId);
        let link = |(id, socket)| Link { id, socket: Some(socket), place: None, state: State::Unknown };
        let each = ids.zip(sockets).map(link).collect();
        Self { clock, each, turn: 0, changes: VecDeque::new(), watch: None, stats: SocketStats::default() }
    }

    /// Sockets that follow the interfaces; [`look`](Self::look) opens them.
    pub(crate) fn following(paths: Paths, dscp: Dscp, clock: &Clock) -> Result<Self, NetError> {
        let watch = Watch { paths, dscp, news: InterfaceNews::open()?, next_look: clock.now(), is_due: true };
        Ok(Self { clock: clock.clone(), watch: Some(watch), ..Self::fixed(Vec::new()) })
    }

    pub(crate) const fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn stats(&self) -> (SocketStats, TimestampSource) {
        let (mut stats, mut source) = (self.stats, TimestampSource::Kernel);
        for socket in self.each.iter().filter_map(|link| link.socket.as_ref()) {
            stats = stats.and(socket.stats());
            if socket.timestamps() == TimestampSource::UserSpace {
                source = TimestampSource::UserSpace;
            }
        }
        (stats, source)
    }

    /// Why the kernel refused the last datagram, if it did so on every path.
    pub(super) fn refusal(&self) -> Option<io::Error> {
        let mut refusals = self.each.iter().filter_map(|link| link.socket.as_ref()).map(Socket::refusal);
        let first = refusals.next()?;
        first.filter(|_| refusals.all(|refusal| refusal.is_some()))
    }

    /// The paths that are up.
    pub(super) fn in_use(&self) -> impl Iterator<Item = PathId> {
        self.each.iter().filter(|link| link.state == State::Up).map(|link| link.id)
    }

    /// The paths that have a socket.
    pub(super) fn with_socket(&self) -> impl Iterator<Item = PathId> {
        self.each.iter().filter(|link| link.socket.is_some()).map(|link| link.id)
    }

    /// The socket of a path; `None` while the path cannot be used.
    pub(super) fn socket(&mut self, path: PathId) -> Option<&mut Socket> {
        self.each.iter_mut().find(|link| link.id == path)?.socket.as_mut()
    }

    /// Whether the paths follow network interfaces, and may change.
    pub(crate) const fn follows(&self) -> bool {
        self.watch.is_some()
    }

    /// The next change of a path, in order of time.
    pub(crate) fn change(&mut self) -> Option<(PathId, PathChange)> {
        self.changes.pop_front()
    }

    /// Records that a path can be used from now on.
    pub(super) fn up(&mut self, path: PathId) {
        let link = self.each.iter_mut().find(|link| link.id == path && link.state != State::Up);
        if let Some(link) = link {
            link.state = State::Up;
            self.changes.push_back((path, PathChange::Up));
        }
    }

    /// Records that a path cannot be used any more; its interface is checked again.
    pub(super) fn lose(&mut self, path: PathId) {
        let Some(watch) = &mut self.watch else { return };
        watch.is_due = true;
        if let Some(link) = self.each.iter_mut().find(|link| link.id == path) {
            link.lose(&mut self.stats, &mut self.changes);
        }
    }

    /// Reads one datagram, from each path in turn.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<(PathId, Received)>, NetError> {
        for _ in 0..self.each.len() {
            let at = self.turn % self.each.len();
            let Some(Link { id, socket: Some(socket), .. }) = self.each.get_mut(at) else {
                self.turn = at + 1;
                continue;
            };
            let id = *id;
            match socket.recv(buffer) {
                Ok(Some(received)) => return Ok(Some((id, received))),
                Ok(None) => {}
                // A socket that follows an interface can be replaced.
                Err(_) if self.watch.is_some() => self.lose(id),
                Err(error) => return Err(error),
            }
            self.turn = at + 1;
        }
        Ok(None)
    }

    /// A path on which ICMP has reported since the last call that the peer is unreachable.
    pub(super) fn take_unreachable(&mut self) -> Option<PathId> {
        let each = self.each.iter_mut();
        each.filter_map(|link| Some((link.id, link.socket.as_mut()?)))
            .find_map(|(id, socket)| socket.take_unreachable().then_some(id))
    }

    /// Waits for a datagram on any path, for `wakeup`, or until the time `until`. Returns whether a datagram can be
    /// read.
    pub(crate) fn wait(&mut self, wakeup: Option<BorrowedFd<'_>>, until: Time) -> Result<bool, NetError> {
        let sockets = self.each.iter().filter_map(|link| link.socket.as_ref().map(Socket::as_fd));
        let news = self.watch.as_ref().map(|watch| watch.news.as_fd());
        let count = sockets.clone().count();
        let found = wait_any(sockets.chain(news).chain(wakeup), &self.clock, until)?;
        if let Some(watch) = self.watch.as_mut().filter(|_| found & 1 << count != 0) {
            watch.next_look = Time::ZERO;
        }
        Ok(found & ((1 << count) - 1) != 0)
    }

    /// When to call [`look`](Self::look).
    pub(super) fn wake(&self) -> Option<Time> {
        self.watch.as_ref().map(|watch| watch.next_look)
    }

    /// Checks for interface changes, if it is time, and opens and closes sockets accordingly. Calls `opened` for each
    /// path that has a new socket.
    pub(super) fn look(&mut self, now: Time, mut opened: impl FnMut(PathId)) {
        let Self { clock, each: links, changes, watch, stats, .. } = self;
        let Some(watch) = watch.as_mut().filter(|watch| now >= watch.next_look) else { return };
        watch.next_look = now + LOOK;
        if !(watch.news.take() | watch.paths.take_changed() | std::mem::take(&mut watch.is_due)) {
            return;
        }
        let Ok(interfaces) = Interfaces::read() else {
            // The present sockets stay in use.
            watch.is_due = true;
            return;
        };
        let wanted = watch.paths.list();
        links.retain_mut(|link| {
            let is_wanted = wanted.iter().any(|(id, _)| *id == link.id);
            if !is_wanted {
                link.lose(stats, changes);
                if link.state != State::Unknown {
                    changes.push_back((link.id, PathChange::Removed));
                }
            }
            is_wanted
        });
        for (id, via) in wanted {
            let at = links.iter().position(|link| link.id == id).unwrap_or_else(|| {
                links.push(Link { id, socket: None, place: None, state: State::Unknown });
                links.len() - 1
            });
            let link = &mut links[at];
            let place = interfaces.place(&via, watch.paths.peer(), link.place.as_ref());
            let place = place.ok().filter(|place| place.is_usable);
            if link.socket.is_some() && link.place == place {
                continue;
            }
            link.lose(stats, changes);
            let Some(place) = place else { continue };
            match Socket::bind_to_device(place.address, &place.device, clock) {
                Ok(mut socket) => {
                    socket.set_dscp(watch.dscp);
                    (link.socket, link.place) = (Some(socket), Some(place));
                    opened(id);
                }
                // An IPv6 address exists before it may be used (RFC 4862, Sec. 5.4).
                Err(_) => watch.is_due = true,
            }
        }
    }
}

impl Link {
    fn lose(&mut self, stats: &mut SocketStats, changes: &mut VecDeque<(PathId, PathChange)>) {
        if let Some(socket) = self.socket.take() {
            *stats = stats.and(socket.stats());
        }
        if self.state == State::Up {
            self.state = State::Down;
            changes.push_back((self.id, PathChange::Down));
        }
    }
}
