//! The fair class of one host: on each processor a queue of the machines that are there, and for each
//! of them a queue of its virtual CPUs. Quotas stop a machine's part on a processor.
//!
//! A machine's weight is shared by the processors on which it wants to run, by the virtual CPUs that
//! want to run there. The kernel shares it by loads averaged over some 30 ms; here it is shared by
//! what wants to run at the moment.
use super::super::division::Divisor;
use super::super::host::Host;
use super::bandwidth::{Part, Pool};
use super::eevdf::Queue;
use super::LinuxSettings;
use crate::Nanos;

/// A machine's virtual CPUs on one processor.
#[derive(Clone, Debug)]
struct Group {
    vm: usize,
    home: usize,
    /// Number in the queue of its processor.
    number: usize,
    members: Vec<usize>,
    queue: Queue,
    wanting: usize,
    part: Part,
}

impl Group {
    /// One has left: an empty group goes to sleep too, out of its processor's queue. Returns its
    /// machine if the quota of that has something to hand out because of it.
    #[inline]
    fn left(&mut self, queue: &mut Queue, vms: &mut [Vm]) -> Option<usize> {
        if self.queue.len() > 0 {
            return None;
        }
        if queue.holds(self.number) {
            queue.dequeue(self.number, true);
        }
        let pool = vms[self.vm].pool.as_mut()?;
        pool.give_back(&mut self.part).then_some(self.vm)
    }
}

/// A machine on all processors.
#[derive(Clone, Debug)]
struct Vm {
    weight: i64,
    pool: Option<Pool>,
    /// Its groups.
    parts: Vec<usize>,
    /// Its virtual CPUs that want to run.
    wanting: usize,
}

/// One processor.
#[derive(Clone, Debug)]
struct Place {
    queue: Queue,
    /// The group of each number in the queue.
    groups: Vec<usize>,
}

/// Where a virtual CPU belongs: processor, group, number in the group.
type Address = (usize, usize, usize);

/// The fair class.
#[derive(Clone, Debug)]
pub struct Fair {
    places: Vec<Place>,
    /// Of all processors.
    groups: Vec<Group>,
    addresses: Vec<Option<Address>>,
    vms: Vec<Vm>,
    /// The numbers from 0 on up to that of the virtual CPUs of the largest machine.
    numbers: Vec<Divisor>,
}

impl Fair {
    /// All virtual CPUs that have no reservation, asleep.
    pub fn new(host: &Host, settings: LinuxSettings) -> Self {
        let (slice, tick) = (settings.base_slice_ns, settings.tick_ns);
        let empty = Place { queue: Queue::new(0, slice, tick), groups: Vec::new() };
        let vm = |domain: &super::super::Domain| Vm {
            weight: i64::from(domain.weight) * 1024,
            pool: domain.quota.map(|quota| Pool::new(quota, settings.bandwidth_slice_ns)),
            parts: Vec::new(),
            wanting: 0,
        };
        let most = host.domains.iter().map(|domain| domain.vcpus.len()).max().unwrap_or_default();
        let mut fair = Self {
            places: vec![empty; host.processors],
            groups: Vec::new(),
            addresses: Vec::new(),
            vms: host.domains.iter().map(vm).collect(),
            numbers: (0..=most as i64).map(Divisor::new).collect(),
        };
        let vcpus = host.homes().into_iter().zip(host.domain_of_vcpus()).enumerate();
        for (vcpu, (home, vm)) in vcpus {
            let address = host.domains[vm].reservation.is_none().then(|| fair.seat(vcpu, home, vm));
            fair.addresses.push(address);
        }
        for place in &mut fair.places {
            place.queue = Queue::new(place.groups.len(), slice, tick);
        }
        for group in &mut fair.groups {
            group.queue = Queue::new(group.members.len(), slice, tick);
        }
        fair
    }

    fn seat(&mut self, vcpu: usize, home: usize, vm: usize) -> Address {
        let place = &mut self.places[home];
        let found = place.groups.iter().copied().find(|group| self.groups[*group].vm == vm);
        let group = found.unwrap_or_else(|| {
            let (queue, number) = (place.queue.clone(), place.groups.len());
            let (members, part) = (Vec::new(), Part::default());
            place.groups.push(self.groups.len());
            self.vms[vm].parts.push(self.groups.len());
            self.groups.push(Group { vm, home, number, members, queue, wanting: 0, part });
            self.groups.len() - 1
        });
        let members = &mut self.groups[group].members;
        members.push(vcpu);
        (home, group, members.len() - 1)
    }

    /// The processor of a virtual CPU of this class.
    #[inline]
    pub fn home(&self, vcpu: usize) -> Option<usize> {
        self.addresses[vcpu].map(|address| address.0)
    }

    /// Quotas and when they are refilled first.
    pub fn refills(&self) -> impl Iterator<Item = (usize, Nanos)> + '_ {
        let first = |pool: &Pool| match pool.quota.phase_ns {
            0 => pool.quota.period_ns,
            phase => phase,
        };
        let vms = self.vms.iter().enumerate();
        vms.filter_map(move |(number, vm)| Some((number, first(vm.pool.as_ref()?))))
    }

    /// A virtual CPU ran. Returns whether another one's turn has come, or a quota is used up.
    #[inline(always)]
    pub fn ran(&mut self, vcpu: usize, length: Nanos) -> bool {
        let Some((home, group, member)) = self.addresses[vcpu] else { return false };
        let group = &mut self.groups[group];
        let inner = group.queue.ran(member, length);
        let outer = self.places[home].queue.ran(group.number, length);
        let used = match &mut self.vms[group.vm].pool {
            Some(pool) => pool.used(&mut group.part, length),
            None => false,
        };
        inner | outer | used
    }

    /// A virtual CPU wants to run. Returns whether its processor may have to decide anew.
    #[inline]
    pub fn wakes(&mut self, vcpu: usize) -> bool {
        let Some((home, address, member)) = self.addresses[vcpu] else { return false };
        let group = &mut self.groups[address];
        let (vm, number) = (group.vm, group.number);
        group.queue.enqueue(member);
        group.wanting += 1;
        self.vms[vm].wanting += 1;
        self.share_weight(vm);
        let (group, queue) = (&mut self.groups[address], &mut self.places[home].queue);
        if group.part.stopped {
            return false;
        }
        if queue.holds(number) {
            if queue.is_leaving(number) {
                queue.enqueue(number);
            }
        } else {
            if let Some(pool) = &mut self.vms[vm].pool {
                if pool.must_stop(&mut group.part) {
                    pool.stops(&mut group.part, home);
                    return false;
                }
            }
            queue.enqueue(number);
        }
        // As things stand, it would run; who is alone need not be looked for.
        let first = |queue: &Queue, one| queue.len() == 1 || queue.pick() == Some(one);
        first(queue, number) && first(&group.queue, member)
    }

    /// A virtual CPU wants nothing any more. Returns the machine whose quota has something to hand
    /// out because of that.
    #[inline]
    pub fn blocks(&mut self, vcpu: usize) -> Option<usize> {
        let (home, address, member) = self.addresses[vcpu]?;
        let group = &mut self.groups[address];
        let vm = group.vm;
        group.wanting -= 1;
        self.vms[vm].wanting -= 1;
        group.queue.dequeue(member, true);
        let freed = group.left(&mut self.places[home].queue, &mut self.vms);
        self.share_weight(vm);
        freed
    }

    /// Shares a machine's weight by where it wants to run.
    fn share_weight(&mut self, vm: usize) {
        let vm = &self.vms[vm];
        if vm.parts.len() < 2 && vm.wanting != 1 {
            // It has one processor: its weight is there, whole, since its first virtual CPU woke.
            return;
        }
        let all = self.numbers[vm.wanting];
        for part in &vm.parts {
            let group = &self.groups[*part];
            if group.wanting > 0 {
                let weight = all.floored(vm.weight * group.wanting as i64).max(1);
                self.places[group.home].queue.set_weight(group.number, weight);
            }
        }
    }

    /// Who runs next on a processor; stops what has used up its quota.
    #[inline]
    pub fn decides(&mut self, home: usize) -> Option<usize> {
        let place = &mut self.places[home];
        let before = place.queue.current();
        loop {
            let number = place.queue.pick()?;
            if place.queue.is_leaving(number) {
                place.queue.remove(number);
                continue;
            }
            let group = &mut self.groups[place.groups[number]];
            if let Some(pool) = &mut self.vms[group.vm].pool {
                if pool.must_stop(&mut group.part) {
                    pool.stops(&mut group.part, home);
                    place.queue.remove(number);
                    continue;
                }
            }
            let member = group.queue.pick()?;
            if group.queue.is_leaving(member) {
                group.queue.remove(member);
                group.left(&mut place.queue, &mut self.vms);
                continue;
            }
            group.queue.set_current(Some(member));
            let vcpu = group.members[member];
            place.queue.set_current(Some(number));
            if let Some(before) = before.filter(|before| *before != number) {
                self.groups[place.groups[before]].queue.set_current(None);
            }
            return Some(vcpu);
        }
    }

    /// Somebody of a higher class runs there now.
    pub fn put_aside(&mut self, home: usize) {
        let place = &mut self.places[home];
        if let Some(before) = place.queue.current() {
            self.groups[place.groups[before]].queue.set_current(None);
        }
        place.queue.set_current(None);
    }

    /// A quota's period begins. Returns the processors on which it may go on.
    pub fn refill(&mut self, vm: usize) -> Vec<usize> {
        if let Some(pool) = &mut self.vms[vm].pool {
            pool.refill();
        }
        self.hand_out(vm)
    }

    /// The period of a machine's quota.
    pub fn period(&self, vm: usize) -> Option<Nanos> {
        Some(self.vms[vm].pool.as_ref()?.quota.period_ns)
    }

    /// Pays stopped parts in turn. Returns the processors on which the machine may go on.
    pub fn hand_out(&mut self, vm: usize) -> Vec<usize> {
        let mut going_on = Vec::new();
        let Vm { pool: Some(pool), parts, .. } = &mut self.vms[vm] else { return going_on };
        pool.handing_out = false;
        for _ in 0..pool.stopped.len() {
            let Some(home) = pool.stopped.pop_front().filter(|_| pool.has()) else { break };
            let found = parts.iter().find(|part| self.groups[**part].home == home);
            let Some(found) = found else { continue };
            let group = &mut self.groups[*found];
            if !pool.pay(&mut group.part) {
                pool.stopped.push_front(home);
                break;
            }
            if group.queue.len() > 0 {
                self.places[home].queue.enqueue(group.number);
                going_on.push(home);
            }
        }
        going_on
    }
}
