//! The fair class of one host: on each processor a run queue of machines, and for each of them a run
//! queue of its virtual CPUs. Quotas throttle a machine on a processor.
//!
//! A machine's weight is divided among its processors by the number of runnable virtual CPUs there. The
//! kernel divides it by loads averaged over some 30 ms; here the current divisors count.
use super::super::divisor::Divisor;
use super::super::host::Host;
use super::bandwidth::{GlobalPool, LocalPool};
use super::eevdf::RunQueue;
use super::LinuxSettings;
use crate::Nanos;

/// A machine's virtual CPUs on one processor (a task group).
#[derive(Clone, Debug)]
struct TaskGroup {
    vm: usize,
    home: usize,
    /// Number in the run queue of its processor.
    number: usize,
    members: Vec<usize>,
    queue: RunQueue,
    runnable: usize,
    pool: LocalPool,
}

impl TaskGroup {
    /// Dequeues the group if none of its virtual CPUs is queued. Returns its machine if runtime that
    /// this returns has to be distributed.
    #[inline]
    fn sleep_if_empty(&mut self, queue: &mut RunQueue, vms: &mut [FairVm]) -> Option<usize> {
        if self.queue.len() > 0 {
            return None;
        }
        if queue.contains(self.number) {
            queue.dequeue(self.number);
        }
        let pool = vms[self.vm].pool.as_mut()?;
        pool.return_unused(&mut self.pool).then_some(self.vm)
    }
}

/// A machine on all processors.
#[derive(Clone, Debug)]
struct FairVm {
    weight: i64,
    pool: Option<GlobalPool>,
    groups: Vec<usize>,
    runnable: usize,
}

#[derive(Clone, Debug)]
struct FairProcessor {
    queue: RunQueue,
    /// Group of each number in the run queue.
    groups: Vec<usize>,
}

/// Processor, group, and number in the group of a virtual CPU.
type Address = (usize, usize, usize);

#[derive(Clone, Debug)]
pub struct Fair {
    processors: Vec<FairProcessor>,
    /// Groups of all processors.
    groups: Vec<TaskGroup>,
    addresses: Vec<Option<Address>>,
    vms: Vec<FairVm>,
    /// Divisors from 0 to the largest number of virtual CPUs of a machine.
    divisors: Vec<Divisor>,
}

impl Fair {
    /// Returns all virtual CPUs without a reservation, asleep.
    pub fn new(host: &Host, settings: LinuxSettings) -> Self {
        let (slice, tick) = (settings.base_slice_ns, settings.tick_ns);
        let empty = FairProcessor { queue: RunQueue::new(0, slice, tick), groups: Vec::new() };
        let vm = |domain: &super::super::Domain| FairVm {
            weight: i64::from(domain.weight) * 1024,
            pool: domain.quota.map(|quota| GlobalPool::new(quota, settings.bandwidth_slice_ns)),
            groups: Vec::new(),
            runnable: 0,
        };
        let max = host.domains.iter().map(|domain| domain.vcpus.len()).max().unwrap_or_default();
        let mut fair = Self {
            processors: vec![empty; host.processors],
            groups: Vec::new(),
            addresses: Vec::new(),
            vms: host.domains.iter().map(vm).collect(),
            divisors: (0..=max as i64).map(Divisor::new).collect(),
        };
        for (vcpu, (home, vm)) in host.vcpus().into_iter().enumerate() {
            let address =
                host.domains[vm].reservation.is_none().then(|| fair.insert(vcpu, home, vm));
            fair.addresses.push(address);
        }
        for processor in &mut fair.processors {
            processor.queue = RunQueue::new(processor.groups.len(), slice, tick);
        }
        for group in &mut fair.groups {
            group.queue = RunQueue::new(group.members.len(), slice, tick);
        }
        fair
    }

    fn insert(&mut self, vcpu: usize, home: usize, vm: usize) -> Address {
        let processor = &mut self.processors[home];
        let existing = processor.groups.iter().copied().find(|group| self.groups[*group].vm == vm);
        let group = existing.unwrap_or_else(|| {
            let (queue, number) = (processor.queue.clone(), processor.groups.len());
            let (members, pool) = (Vec::new(), LocalPool::default());
            processor.groups.push(self.groups.len());
            self.vms[vm].groups.push(self.groups.len());
            self.groups.push(TaskGroup { vm, home, number, members, queue, runnable: 0, pool });
            self.groups.len() - 1
        });
        let members = &mut self.groups[group].members;
        members.push(vcpu);
        (home, group, members.len() - 1)
    }

    /// Returns the processor of a virtual CPU of this class.
    #[inline]
    pub fn home(&self, vcpu: usize) -> Option<usize> {
        self.addresses[vcpu].map(|address| address.0)
    }

    /// Returns the machines that have a quota, and when it is refilled first.
    pub fn replenishments(&self) -> impl Iterator<Item = (usize, Nanos)> + '_ {
        let first = |pool: &GlobalPool| match pool.quota.phase_ns {
            0 => pool.quota.period_ns,
            phase => phase,
        };
        let vms = self.vms.iter().enumerate();
        vms.filter_map(move |(number, vm)| Some((number, first(vm.pool.as_ref()?))))
    }

    /// Charges a virtual CPU. Returns whether another one should run, or a quota is exhausted.
    #[inline(always)]
    pub fn charge(&mut self, vcpu: usize, ran: Nanos) -> bool {
        let Some((home, group, member)) = self.addresses[vcpu] else { return false };
        let group = &mut self.groups[group];
        let inner = group.queue.charge(member, ran);
        let outer = self.processors[home].queue.charge(group.number, ran);
        let exhausted = match &mut self.vms[group.vm].pool {
            Some(pool) => pool.charge(&mut group.pool, ran),
            None => false,
        };
        inner | outer | exhausted
    }

    /// Wakes a virtual CPU. Returns whether its processor may have to decide again.
    #[inline]
    pub fn wake(&mut self, vcpu: usize) -> bool {
        let Some((home, number_of_group, member)) = self.addresses[vcpu] else { return false };
        let group = &mut self.groups[number_of_group];
        let (vm, number) = (group.vm, group.number);
        group.queue.enqueue(member);
        group.runnable += 1;
        self.vms[vm].runnable += 1;
        self.divide_weight(vm);
        let (group, queue) = (&mut self.groups[number_of_group], &mut self.processors[home].queue);
        if group.pool.is_throttled {
            return false;
        }
        if queue.contains(number) {
            if queue.is_delayed(number) {
                queue.enqueue(number);
            }
        } else {
            let pool = self.vms[vm].pool.as_mut();
            if pool.is_some_and(|pool| pool.throttle_exhausted(&mut group.pool, home)) {
                return false;
            }
            queue.enqueue(number);
        }
        // It would run now; a single entity need not be searched for.
        let first = |queue: &RunQueue, number| queue.len() == 1 || queue.pick() == Some(number);
        first(queue, number) && first(&group.queue, member)
    }

    /// Puts a virtual CPU to sleep. Returns the machine whose returned runtime has to be distributed.
    #[inline]
    pub fn block(&mut self, vcpu: usize) -> Option<usize> {
        let (home, number_of_group, member) = self.addresses[vcpu]?;
        let group = &mut self.groups[number_of_group];
        let vm = group.vm;
        group.runnable -= 1;
        self.vms[vm].runnable -= 1;
        group.queue.dequeue(member);
        let distributing = group.sleep_if_empty(&mut self.processors[home].queue, &mut self.vms);
        self.divide_weight(vm);
        distributing
    }

    /// Divides a machine's weight among its processors.
    fn divide_weight(&mut self, vm: usize) {
        let vm = &self.vms[vm];
        if vm.groups.len() < 2 && vm.runnable != 1 {
            // It has one processor, which has its whole weight since its first virtual CPU woke.
            return;
        }
        let divisor = self.divisors[vm.runnable];
        for group in &vm.groups {
            let group = &self.groups[*group];
            if group.runnable > 0 {
                let weight = divisor.floor_div(vm.weight * group.runnable as i64).max(1);
                self.processors[group.home].queue.set_weight(group.number, weight);
            }
        }
    }

    /// Returns what runs next on a processor; throttles what has used up its quota.
    #[inline]
    pub fn decide(&mut self, home: usize) -> Option<usize> {
        let processor = &mut self.processors[home];
        let before = processor.queue.current();
        loop {
            let number = processor.queue.pick()?;
            if processor.queue.is_delayed(number) {
                processor.queue.remove(number);
                continue;
            }
            let group = &mut self.groups[processor.groups[number]];
            let pool = self.vms[group.vm].pool.as_mut();
            if pool.is_some_and(|pool| pool.throttle_exhausted(&mut group.pool, home)) {
                processor.queue.remove(number);
                continue;
            }
            let member = group.queue.pick()?;
            if group.queue.is_delayed(member) {
                group.queue.remove(member);
                group.sleep_if_empty(&mut processor.queue, &mut self.vms);
                continue;
            }
            group.queue.set_current(Some(member));
            let vcpu = group.members[member];
            processor.queue.set_current(Some(number));
            if let Some(before) = before.filter(|before| *before != number) {
                self.groups[processor.groups[before]].queue.set_current(None);
            }
            return Some(vcpu);
        }
    }

    /// A virtual CPU of a higher class runs on a processor now.
    pub fn preempt(&mut self, home: usize) {
        let processor = &mut self.processors[home];
        if let Some(before) = processor.queue.current() {
            self.groups[processor.groups[before]].queue.set_current(None);
        }
        processor.queue.set_current(None);
    }

    /// Starts a period of a quota. Returns the processors on which the machine may run again.
    pub fn refill(&mut self, vm: usize) -> Vec<usize> {
        if let Some(pool) = &mut self.vms[vm].pool {
            pool.refill();
        }
        self.distribute(vm)
    }

    pub fn period(&self, vm: usize) -> Option<Nanos> {
        Some(self.vms[vm].pool.as_ref()?.quota.period_ns)
    }

    /// Distributes runtime to throttled processors in turn. Returns those on which the machine may run
    /// again.
    pub fn distribute(&mut self, vm: usize) -> Vec<usize> {
        let mut unthrottled = Vec::new();
        let FairVm { pool: Some(pool), groups, .. } = &mut self.vms[vm] else { return unthrottled };
        pool.is_distributing = false;
        for _ in 0..pool.throttled.len() {
            let Some(home) = pool.throttled.pop_front().filter(|_| pool.has_runtime()) else {
                break;
            };
            let throttled = groups.iter().find(|group| self.groups[**group].home == home);
            let Some(throttled) = throttled else { continue };
            let group = &mut self.groups[*throttled];
            if !pool.repay(&mut group.pool) {
                pool.throttled.push_front(home);
                break;
            }
            if group.queue.len() > 0 {
                self.processors[home].queue.enqueue(group.number);
                unthrottled.push(home);
            }
        }
        unthrottled
    }
}
