//! Everything about a budget that changes, behind its one lock.

mod earliest;
mod grant;
mod untaken;
mod usage;

use std::collections::VecDeque;

use crate::{
    Class, Guard, Limit,
    budget::MAX_LIMITS,
    builder::Config,
    driver::Desks,
    gate::{Gate, Rate},
    queue::{Mask, Queue, mask_of},
    rule::{Margin, NEVER, Rule, Taken, nanos},
    server_clock::ServerClock,
};

pub(crate) use self::{
    grant::{Round, Woken},
    untaken::Untaken,
    usage::Mark,
};

/// Units by limit.
pub(crate) type Units = [u32; MAX_LIMITS];

/// Everything about a budget that changes.
#[derive(Debug)]
pub(crate) struct State {
    rules: Vec<Rule>,
    classes: Vec<ClassState>,
    /// Whether any class is owed something; otherwise nobody keeps accounts.
    floors: bool,
    pub(crate) queue: Queue,
    pub(crate) gate: Gate,
    pub(crate) longest_pause: u64,
    pub(crate) longest_ban: u64,
    /// How many answers there were at the last refusal.
    answers_then: u32,
    clock: ServerClock,
    /// Held units of those that were given up on and may still arrive, in the order of arrival.
    lingering: VecDeque<(u64, Units)>,
    pub(crate) desks: Desks,
    /// Whether somebody waits for units that are held, so that no instant is known.
    on_held: bool,
    pub(crate) foreign: [usage::Foreign; MAX_LIMITS],
    pub(crate) guard: Guard,
    late: u64,
    margin: Margin,
    pub(crate) max_queue: u32,
    /// How many responses there were; wraps.
    pub(crate) answers: u32,
    /// Whether the limits are no longer those it was built with.
    is_reconfigured: bool,
    pub(crate) untaken: Untaken,
}

/// A class at work.
#[derive(Clone, Debug)]
pub(crate) struct ClassState {
    config: Class,
    /// By limit, the units that it leaves to higher classes.
    leave: Units,
    max_wait: u64,
    pub(crate) granted: u64,
    pub(crate) refused: u64,
    /// By limit, what it is owed, in hundredths of a unit.
    owed: [u64; MAX_LIMITS],
}

/// What keeps a request from going.
#[derive(Clone, Copy, Debug)]
struct Blocked {
    /// The limits that are in the way.
    by: Mask,
    /// Whether it is the gate, which is in everybody's way.
    by_gate: bool,
    /// When the first of these may be out of the way.
    first: u64,
    /// Whether one of them waits for something that is held.
    on_held: bool,
}

// === impl State ===

impl State {
    pub(crate) fn new(config: &Config) -> Self {
        let Config {
            limits,
            classes,
            guard,
            margin,
            max_queue,
            max_wait,
            longest_pause,
            longest_ban,
        } = config;
        let late = match guard {
            Guard::UntilResponse { late } => nanos(*late),
            Guard::Fixed(_) | Guard::None => 0,
        };
        let mut state = Self {
            rules: limits
                .iter()
                .map(|limit| Rule::new(limit.kind, *margin))
                .collect(),
            classes: classes
                .iter()
                .map(|class| ClassState {
                    config: class.clone(),
                    leave: [0; MAX_LIMITS],
                    max_wait: nanos(class.max_wait.unwrap_or(*max_wait)),
                    granted: 0,
                    refused: 0,
                    owed: [0; MAX_LIMITS],
                })
                .collect(),
            floors: classes.iter().any(|class| class.floor_percent > 0),
            queue: Queue::new(limits.len()),
            gate: Gate::new(),
            longest_pause: nanos(*longest_pause),
            longest_ban: nanos(*longest_ban),
            clock: ServerClock::unknown(margin.ppm),
            lingering: VecDeque::new(),
            desks: Desks::default(),
            on_held: false,
            foreign: Default::default(),
            guard: *guard,
            late,
            margin: *margin,
            max_queue: *max_queue,
            answers: 0,
            answers_then: 0,
            is_reconfigured: false,
            untaken: Untaken::default(),
        };
        state.set_leaves();
        state
    }

    fn set_leaves(&mut self) {
        for class in &mut self.classes {
            for (leave, rule) in class.leave.iter_mut().zip(&self.rules) {
                *leave = rule
                    .capacity()
                    .map_or(0, |capacity| class.config.leave(capacity));
            }
        }
    }

    pub(crate) fn classes(&self) -> &[ClassState] {
        &self.classes
    }

    pub(crate) fn class_mut(&mut self, class: usize) -> &mut ClassState {
        &mut self.classes[class]
    }

    /// The first limit that such a cost can never fit, with its capacity for that class.
    pub(crate) fn too_large(&self, class: usize, cost: &Units) -> Option<(usize, u32)> {
        let leave = &self.classes[class].leave;
        for (limit, rule) in self.rules.iter().enumerate() {
            if let Some(capacity) = rule.capacity() {
                let most = capacity.saturating_sub(leave[limit]);
                if cost[limit] > most {
                    return Some((limit, most));
                }
            }
        }
        None
    }

    /// Whether a newcomer may go whatever time it is: nobody waits, the gate is not in use, and there
    /// is room without anything being forgotten. Then nobody has to ask for the time.
    #[inline]
    pub(crate) fn passes_at_any_time(&self, class: usize, cost: &Units) -> bool {
        if !self.queue.is_empty() || self.gate.is_engaged() {
            return false;
        }
        let Some(ClassState { leave, .. }) = self.classes.get(class) else {
            return false;
        };
        let limits = self.rules.iter().zip(cost.iter().zip(leave));
        for (rule, (&units, &leave)) in limits {
            if units > 0 && !rule.fits_at_any_time(units, leave) {
                return false;
            }
        }
        true
    }

    /// Whether a newcomer may go at once, past everybody who waits.
    #[inline]
    pub(crate) fn passes(&mut self, now: u64, class: usize, cost: &Units) -> bool {
        if !self.queue.is_empty() && self.stands_in_line(class, cost) {
            return false;
        }
        if !self.lingering.is_empty() {
            self.settle_lingering(now);
        }
        if self.gate.is_engaged() {
            self.gate.disengage(now);
        }
        self.fits(now, class, cost)
    }

    /// Whether a newcomer has to join those who wait.
    fn stands_in_line(&self, class: usize, cost: &Units) -> bool {
        let mask = mask_of(cost, self.rules.len());
        let owes = self.floors && !self.owes_nothing(class);
        self.queue.would_overtake(class, mask) || owes && self.queue.waits_below(class)
    }

    #[inline]
    fn fits(&mut self, now: u64, class: usize, cost: &Units) -> bool {
        if self.gate.is_engaged() && now < self.gate.until().max(self.gate.paced_until(now, class))
        {
            return false;
        }
        let Some(ClassState { leave, .. }) = self.classes.get(class) else {
            return false;
        };
        let limits = self.rules.iter_mut().zip(self.gate.closed());
        for ((rule, &closed), (&units, &leave)) in limits.zip(cost.iter().zip(leave)) {
            if units > 0 && (now < closed || rule.ready_at(now, units, leave, &self.clock) > now) {
                return false;
            }
        }
        true
    }

    /// What keeps a request from going, if anything does. `standing` is the class whose share of
    /// the limits counts.
    fn blocked(
        &mut self,
        now: u64,
        standing: usize,
        cost: &Units,
        kept: &Units,
    ) -> Option<Blocked> {
        let gate = self.gate.until().max(self.gate.paced_until(now, standing));
        if gate > now {
            return Some(Blocked {
                by: Mask::MAX,
                by_gate: true,
                first: gate,
                on_held: false,
            });
        }
        let leave = &self.classes[standing].leave;
        let mut blocked = Blocked {
            by: 0,
            by_gate: false,
            first: NEVER,
            on_held: false,
        };
        for (limit, rule) in self.rules.iter_mut().enumerate() {
            if cost[limit] == 0 {
                continue;
            }
            // What is kept for one before it is as good as taken; what is kept for more than there
            // is leaves nothing, but is no reason to give up.
            let leave = leave[limit].saturating_add(kept[limit]);
            let ready = rule.ready_at(now, cost[limit], leave, &self.clock);
            let at = ready.max(self.gate.closed_until(limit));
            if at > now {
                blocked.by |= 1 << limit;
                blocked.first = blocked.first.min(at);
                blocked.on_held |= ready == NEVER;
            }
        }
        (blocked.by != 0).then_some(blocked)
    }

    /// Takes the units of a request that is let through.
    #[inline]
    pub(crate) fn hold(&mut self, now: u64, class: usize, cost: &Units) {
        for (limit, rule) in self.rules.iter_mut().enumerate() {
            if cost[limit] > 0 {
                rule.hold(cost[limit]);
            }
        }
        self.gate.pass(now, class, cost);
    }

    /// A request that was let through, and whose units are held, leaves.
    #[inline]
    pub(crate) fn depart(&mut self, now: u64, cost: &Units) {
        let log = !matches!(self.guard, Guard::UntilResponse { .. });
        for (limit, rule) in self.rules.iter_mut().enumerate() {
            if cost[limit] > 0 {
                rule.depart(now);
                if log {
                    rule.settle(now, cost[limit], &self.clock);
                }
                self.foreign[limit].note_departure(cost[limit]);
            }
        }
    }

    /// A newcomer that may go leaves at once.
    #[inline]
    pub(crate) fn pass(&mut self, now: u64, class: usize, cost: &Units) {
        if let Some(class) = self.classes.get_mut(class) {
            class.granted += 1;
        }
        let log = !matches!(self.guard, Guard::UntilResponse { .. });
        let limits = self.rules.iter_mut().zip(&mut self.foreign);
        for ((rule, foreign), &units) in limits.zip(cost) {
            if units > 0 {
                if log {
                    rule.log(now, units);
                } else {
                    rule.hold(units);
                }
                rule.depart(now);
                foreign.note_departure(units);
            }
        }
        self.gate.pass(now, class, cost);
    }

    /// A request was sent again without asking, and has reached the venue.
    pub(crate) fn charge(&mut self, now: u64, cost: &Units) {
        self.settle_lingering(now);
        let limits = self.rules.iter_mut().zip(&mut self.foreign);
        for ((rule, foreign), &units) in limits.zip(cost) {
            if units > 0 {
                rule.charge(now, units, &self.clock);
                foreign.note_departure(units);
            }
        }
    }

    /// Held units have reached the venue.
    #[inline]
    pub(crate) fn settle(&mut self, now: u64, cost: &Units) {
        if !self.lingering.is_empty() {
            // Logs are in order of time: what was due before comes first.
            self.settle_lingering(now);
        }
        self.answers = self.answers.wrapping_add(1);
        self.count(now, cost);
    }

    #[inline]
    fn count(&mut self, now: u64, cost: &Units) {
        for (rule, &units) in self.rules.iter_mut().zip(cost) {
            if units > 0 {
                rule.settle(now, units, &self.clock);
            }
        }
    }

    /// A request that was let through does not leave.
    pub(crate) fn revoke(&mut self, cost: &Units) {
        for (rule, &units) in self.rules.iter_mut().zip(cost) {
            if units > 0 {
                rule.revoke(units);
            }
        }
    }

    /// Held units will never reach the venue.
    pub(crate) fn refund(&mut self, cost: &Units) {
        for (limit, rule) in self.rules.iter_mut().enumerate() {
            rule.refund(cost[limit]);
        }
    }

    /// Units that count since `stamp` will never reach the venue.
    pub(crate) fn unlog(&mut self, now: u64, stamp: u64, cost: &Units) {
        for (limit, rule) in self.rules.iter_mut().enumerate() {
            if cost[limit] > 0 {
                rule.unlog(now, stamp, cost[limit], &self.clock);
            }
        }
    }

    /// Held units may reach the venue, and nobody will hear of it.
    pub(crate) fn linger(&mut self, now: u64, cost: &Units) {
        self.settle_lingering(now);
        if self.late == 0 {
            self.count(now, cost);
        } else if cost[..self.rules.len()].iter().any(|&units| units > 0) {
            self.lingering
                .push_back((now.saturating_add(self.late), *cost));
        }
    }

    fn settle_lingering(&mut self, now: u64) {
        while let Some(&(due, cost)) = self.lingering.front() {
            if due > now {
                return;
            }
            self.lingering.pop_front();
            self.count(due, &cost);
        }
    }

    /// The venue has refused a request. Returns when the gate opens.
    pub(crate) fn throttled(&mut self, now: u64, hint: Option<u64>, longest: u64) -> u64 {
        let pace = self.pace();
        // The refusal was an answer, too. Where nobody hears of answers, time alone has to do.
        let others = self.answers.wrapping_sub(self.answers_then) > 1;
        let hears = matches!(self.guard, Guard::UntilResponse { .. });
        self.answers_then = self.answers;
        let clean = (others || !hears).then(|| {
            let windows = self.rules.iter().map(Rule::window);
            windows.max().unwrap_or(0)
        });
        self.suspect_others(now);
        self.gate.throttled(now, hint, longest, pace, clean)
    }

    fn owes_nothing(&self, class: usize) -> bool {
        let class = self.classes.get(class);
        class.is_some_and(|class| class.config.owes_nothing)
    }

    pub(crate) fn observe_date(&mut self, sent: u64, received: u64, date: u64) {
        self.clock.observe(sent, received, date);
    }

    /// The rate at which requests go out after a pause: that of the limit with the shortest window,
    /// since it is the one that forbids bursts.
    pub(crate) fn pace(&self) -> Option<Rate> {
        let rates = self.rules.iter().enumerate().filter_map(|(limit, rule)| {
            let capacity = u64::from(rule.capacity()?);
            let window = rule.window();
            Some(Rate {
                limit,
                unit: window / capacity.max(1),
                window,
            })
        });
        rates.min_by_key(|rate| rate.window)
    }

    /// Takes on another configuration of a limit. Says whether it could.
    pub(crate) fn reconfigure(&mut self, now: u64, limit: usize, to: &Limit, is_own: bool) -> bool {
        if !self.rules[limit].reconfigure(now, to.kind, self.margin) {
            return false;
        }
        self.set_leaves();
        self.is_reconfigured |= is_own;
        true
    }

    pub(crate) fn capacity(&self, limit: usize) -> u32 {
        self.rules[limit].capacity().unwrap_or(0)
    }

    pub(crate) const fn margin(&self) -> Margin {
        self.margin
    }

    /// How much of each limit there is and how much is taken.
    pub(crate) fn taken(&mut self, now: u64) -> Vec<(u32, Taken)> {
        self.settle_lingering(now);
        let rules = self.rules.iter_mut();
        rules
            .map(|rule| (rule.capacity().unwrap_or(0), rule.taken(now, &self.clock)))
            .collect()
    }

    /// Whether nothing of this budget would be lost with it.
    pub(crate) fn is_idle(&mut self, now: u64) -> bool {
        self.settle_lingering(now);
        let taken = self
            .rules
            .iter_mut()
            .any(|rule| !rule.is_idle(now, &self.clock));
        self.gate.disengage(now);
        !taken
            && !self.is_reconfigured
            && self.queue.is_empty()
            && self.lingering.is_empty()
            && !self.gate.is_engaged()
    }
}

// === impl ClassState ===

impl ClassState {
    pub(crate) fn name(&self) -> &str {
        &self.config.name
    }

    pub(crate) const fn max_wait(&self) -> u64 {
        self.max_wait
    }
}
