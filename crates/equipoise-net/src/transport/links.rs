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
/// The sockets are either fixed, or they follow the host's network interfaces. In the second case, each socket is bound
/// to an interface and to an address of this interface. If the socket were bound only to the address, the kernel would
/// choose the interface by the routing table. When the interface or its address changes, a new socket replaces the
/// old one.
#[derive(Debug)]
pub(crate) struct Links {
    clock: Clock,
    each: Vec<Link>,
    /// Index of the path whose socket is read next.
    turn: usize,
    changes: VecDeque<(PathId, PathChange)>,
    /// Watches the network interfaces; `None` if the sockets are fixed.
    watch: Option<Watch>,
    /// The counters of closed sockets.
    stats: SocketStats,
}

#[derive(Debug)]
struct Link {
    id: PathId,
    /// The socket of the path; `None` if the path cannot be used now.
    socket: Option<Socket>,
    place: Option<Place>,
    state: State,
}

/// The state of a path, as reported to the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unknown,
    Up,
    Down,
}

#[derive(Debug)]
struct Watch {
    paths: Paths,
    /// The class of service of all sockets.
    dscp: Dscp,
    news: InterfaceNews,
    next_look: Time,
    /// Whether all interfaces must be read at the next check, even if there is no notification.
    is_due: bool,
}

/// Time between two checks for changes of the interfaces and of the list of paths, unless a notification arrives
/// earlier. Our choice: short, because a check that finds no change needs only one system call.
const LOOK: Span = Span::from_millis(100);

impl Links {
    /// Uses `sockets` for the whole session, one for each path.
    pub(crate) fn fixed(sockets: Vec<Socket>) -> Self {
        let clock = sockets.first().map_or_else(Clock::new, |socket| socket.clock().clone());
        let ids = (0..).map(PathId);
        let link = |(id, socket)| Link { id, socket: Some(socket), place: None, state: State::Unknown };
        let each = ids.zip(sockets).map(link).collect();
        Self { clock, each, turn: 0, changes: VecDeque::new(), watch: None, stats: SocketStats::default() }
    }

    /// Prepares sockets that follow the network interfaces; [`look`](Self::look) opens them.
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

    /// If the kernel refused the last datagram on every path, returns the error on the first path.
    pub(super) fn refusal(&self) -> Option<io::Error> {
        let mut refusals = self.each.iter().filter_map(|link| link.socket.as_ref()).map(Socket::refusal);
        let first = refusals.next()?;
        first.filter(|_| refusals.all(|refusal| refusal.is_some()))
    }

    /// The paths that were last reported to the endpoint as usable.
    pub(super) fn in_use(&self) -> impl Iterator<Item = PathId> {
        self.each.iter().filter(|link| link.state == State::Up).map(|link| link.id)
    }

    /// The paths that have a socket.
    pub(super) fn with_socket(&self) -> impl Iterator<Item = PathId> {
        self.each.iter().filter(|link| link.socket.is_some()).map(|link| link.id)
    }

    /// The socket of a path; `None` if the path cannot be used now.
    pub(super) fn socket(&mut self, path: PathId) -> Option<&mut Socket> {
        self.each.iter_mut().find(|link| link.id == path)?.socket.as_mut()
    }

    /// Whether the paths may change, because they follow the host's network interfaces.
    pub(crate) const fn follows(&self) -> bool {
        self.watch.is_some()
    }

    /// Returns the next change of a path, in time order.
    pub(crate) fn change(&mut self) -> Option<(PathId, PathChange)> {
        self.changes.pop_front()
    }

    /// Records that a path can be used.
    pub(super) fn up(&mut self, path: PathId) {
        let link = self.each.iter_mut().find(|link| link.id == path && link.state != State::Up);
        if let Some(link) = link {
            link.state = State::Up;
            self.changes.push_back((path, PathChange::Up));
        }
    }

    /// Records that a path cannot be used any more, and requests another check of the network interfaces. Does nothing
    /// if the paths do not follow the network interfaces.
    pub(super) fn lose(&mut self, path: PathId) {
        let Some(watch) = &mut self.watch else { return };
        watch.is_due = true;
        if let Some(link) = self.each.iter_mut().find(|link| link.id == path) {
            link.lose(&mut self.stats, &mut self.changes);
        }
    }

    /// Reads one datagram. The next path is read when no datagram is waiting on the current path.
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
                // A socket that follows a network interface can be replaced, so its error does not end the session.
                Err(_) if self.watch.is_some() => self.lose(id),
                Err(error) => return Err(error),
            }
            self.turn = at + 1;
        }
        Ok(None)
    }

    /// Returns a path on which the peer is unreachable, according to an ICMP error since the last call.
    pub(super) fn take_unreachable(&mut self) -> Option<PathId> {
        let each = self.each.iter_mut();
        each.filter_map(|link| Some((link.id, link.socket.as_mut()?)))
            .find_map(|(id, socket)| socket.take_unreachable().then_some(id))
    }

    /// Waits until a datagram arrives on any path, a network interface changes, `wakeup` is readable, or the time is
    /// `until`. May return early. Returns whether a datagram can be read.
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

    /// When to call [`look`](Self::look); `None` if the sockets are fixed.
    pub(super) fn wake(&self) -> Option<Time> {
        self.watch.as_ref().map(|watch| watch.next_look)
    }

    /// If a check is due, checks for changes of the network interfaces and of the list of paths, and opens and closes
    /// sockets accordingly. Calls `opened` for each path that has a new socket.
    pub(super) fn look(&mut self, now: Time, mut opened: impl FnMut(PathId)) {
        let Self { clock, each: links, changes, watch, stats, .. } = self;
        let Some(watch) = watch.as_mut().filter(|watch| now >= watch.next_look) else { return };
        watch.next_look = now + LOOK;
        if !(watch.news.take() | watch.paths.take_changed() | std::mem::take(&mut watch.is_due)) {
            return;
        }
        let Ok(interfaces) = Interfaces::read() else {
            // If the interfaces cannot be read, the existing sockets stay in use, and the next check reads the
            // interfaces again.
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
                // Try again at the next check. A new IPv6 address cannot be used until the host has checked that no
                // other host uses it (RFC 4862, Sec. 5.4).
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
