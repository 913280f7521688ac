//! Which clients are connected: accepted, kept in slots, watched, and closed once their time is over.
use super::*;

impl HttpServer<'_> {
    /// The number of the connection in a slot, which no other one ever had.
    pub(super) fn id(&self, place: usize) -> u64 {
        u64::from(self.slots[place].generation) << 32 | place as u64
    }

    /// The slot of a connection; `None` if another one has it now.
    pub(super) fn slot(&mut self, id: u64) -> Option<&mut ConnectionSlot> {
        let slot = self.slots.get_mut((id & 0xffff_ffff) as usize)?;
        (u64::from(slot.generation) == id >> 32).then_some(slot)
    }

    /// Takes a connection out of its slot for `act`, and puts it back or closes it.
    pub(super) fn with_connection(
        &mut self,
        id: u64,
        act: impl FnOnce(&mut Self, &mut ServerConnection) -> Result<RequestOutcome>,
    ) -> Result<()> {
        let Some(slot) = self.slot(id) else { return Ok(()) };
        let Some(mut connection) = slot.connection.take() else { return Ok(()) };
        let before = connection.input.capacity();
        let fate = act(self, &mut connection)?;
        if connection.input.is_empty() && connection.input.capacity() > 1024 {
            connection.input = Vec::new();
        }
        self.input_bytes = self.input_bytes + connection.input.capacity() - before;
        if fate == RequestOutcome::Keep && self.input_bytes <= INPUT_BYTES_MAX {
            self.slots[(id & 0xffff_ffff) as usize].connection = Some(connection);
            return Ok(());
        }
        if fate == RequestOutcome::Keep {
            self.counters.out_of_memory += 1;
        }
        self.input_bytes -= connection.input.capacity();
        self.counters.open -= 1;
        self.free.push(id as u32);
        Ok(())
    }

    pub(super) fn accept(&mut self) -> Result<()> {
        loop {
            match self.listener.accept() {
                Ok((mut stream, _)) => {
                    self.counters.accepted += 1;
                    if self.counters.open >= self.settings.connections as u64 {
                        self.counters.refused += 1;
                        // Whoever is flooded cannot wait until a client reads.
                        let sent = stream.set_nonblocking(true).and_then(|()| stream.write(BUSY));
                        self.counters.sent_bytes += sent.unwrap_or(0) as u64;
                        continue;
                    }
                    if stream.set_nonblocking(true).is_err() || !self.add(stream) {
                        self.counters.accept_errors += 1;
                    }
                }
                Err(error) if is_wait(&error) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    // No descriptors, no memory: the listener would be readable all the time.
                    self.counters.accept_errors += 1;
                    if !matches!(
                        error.raw_os_error(),
                        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)
                    ) {
                        return Ok(());
                    }
                    self.accepts_from_ns = Some(self.now_ns + ACCEPT_PAUSE_NS);
                    return self.watch_listener(0);
                }
            }
        }
    }

    pub(super) fn watch_listener(&self, events: u32) -> Result<()> {
        let watched = self.epoll.change(self.listener.as_raw_fd(), events, LISTENER);
        watched.map_err(|error| ProbeError::os("epoll_ctl", &error))
    }

    /// Gives a connection a slot and watches it; false if the kernel cannot.
    pub(super) fn add(&mut self, stream: std::net::TcpStream) -> bool {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(ConnectionSlot::default());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[place as usize];
        slot.generation = slot.generation.wrapping_add(1);
        if self.epoll.add(stream.as_raw_fd(), READ, place).is_err() {
            self.free.push(place);
            return false;
        }
        let deadline_ns = self.now_ns + self.settings.request_timeout_ns;
        slot.connection = Some(Box::new(ServerConnection::new(stream, deadline_ns, READ)));
        self.counters.open += 1;
        self.counters.open_max = self.counters.open_max.max(self.counters.open);
        true
    }

    pub(super) fn watch(
        &self,
        id: u64,
        connection: &mut ServerConnection,
        events: u32,
    ) -> Result<RequestOutcome> {
        if connection.watched != events {
            connection.watched = events;
            let watched = self.epoll.change(connection.stream.as_raw_fd(), events, id as u32);
            watched.map_err(|error| ProbeError::os("epoll_ctl", &error))?;
        }
        Ok(RequestOutcome::Keep)
    }

    /// Closes some of the connections whose time is over.
    pub(super) fn sweep(&mut self) -> Result<()> {
        let now_ns = self.now_ns;
        self.next_sweep_ns = now_ns + SWEEP_NS;
        if self.accepts_from_ns.is_some_and(|from_ns| now_ns >= from_ns) {
            self.accepts_from_ns = None;
            self.watch_listener(READ)?;
        }
        for _ in 0..SWEEP_SLOTS.min(self.slots.len()) {
            self.sweep_slot = (self.sweep_slot + 1) % self.slots.len();
            let slot = &self.slots[self.sweep_slot];
            let late =
                slot.connection.as_ref().is_some_and(|connection| connection.deadline_ns < now_ns);
            if !late {
                continue;
            }
            let id = self.id(self.sweep_slot);
            self.with_connection(id, |server, connection| {
                let counters = &mut server.counters;
                if connection.is_sending() {
                    counters.send_timeouts += 1;
                } else if connection.pending.is_some() || !connection.input.is_empty() {
                    counters.request_timeouts += 1;
                } else if !connection.drains {
                    counters.idle_timeouts += 1;
                }
                Ok(RequestOutcome::Close)
            })?;
        }
        Ok(())
    }
}
