//! One budget for each key.

use std::{
    collections::HashMap,
    fmt,
    hash::{BuildHasher, Hash, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tower_outcome_core::ConfigError;

use crate::{
    Budget, BudgetBuilder, Cost, Limit,
    builder::Config,
    shared::{Counted, Shared, Watch},
};

/// One budget for each host, API key or account, all with the same limits.
///
/// A budget is made when its key is first asked for, and forgotten when nobody has a handle to it
/// and everything that was used of it has been forgotten too, so that its like can be made again
/// without the difference being seen. One that was [reconfigured](Budget::reconfigure) by itself stays.
/// Memory is that of the keys of the last window, and as many again, as long as anybody asks for any.
///
/// Clones share the budgets.
///
/// ```
/// use std::time::Duration;
/// use tower_outcome_rate_limit::{Budget, KeyedBudget, Limit};
///
/// # fn main() -> Result<(), tower_outcome_core::ConfigError> {
/// let per_host = Budget::builder("host")
///     .limit(Limit::sliding("requests", 10, Duration::from_secs(1)));
/// let hosts = KeyedBudget::<String>::try_new(per_host)?;
/// let budget = hosts.get("venue.example");
/// # let _ = budget;
/// # Ok(())
/// # }
/// ```
pub struct KeyedBudget<K>(Arc<Map<K>>);

struct Map<K> {
    name: Arc<str>,
    /// What new ones are made from. Taken after a shard's lock, never before.
    config: Mutex<Config>,
    watch: Option<Watch>,
    hash: RandomState,
    shards: [Mutex<Shard<K>>; SHARDS],
    /// Whose turn it is to be swept although nobody asks there.
    turn: AtomicUsize,
}

struct Shard<K> {
    budgets: HashMap<K, Budget>,
    /// How often somebody may ask until the idle ones are looked for: as often as there were some
    /// when that was done last.
    left: usize,
}

const SHARDS: usize = 16;
/// Fewer are not worth looking for.
const FEW: usize = 16;

// === impl KeyedBudget ===

impl<K> KeyedBudget<K> {
    /// Creates the map from what all budgets have in common.
    ///
    /// # Errors
    ///
    /// As [`BudgetBuilder::build`].
    pub fn try_new(template: BudgetBuilder) -> Result<Self, ConfigError> {
        let config = template.check()?;
        let (name, watch) = template.into_name_and_watch();
        Ok(Self(Arc::new(Map {
            name,
            config: Mutex::new(config),
            watch,
            hash: RandomState::new(),
            shards: std::array::from_fn(|_| {
                Mutex::new(Shard {
                    budgets: HashMap::new(),
                    left: FEW,
                })
            }),
            turn: AtomicUsize::new(0),
        })))
    }

    /// Returns how many budgets there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards().map(|shard| shard.budgets.len()).sum()
    }

    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn shards(&self) -> impl Iterator<Item = MutexGuard<'_, Shard<K>>> {
        (0..SHARDS).map(|shard| self.shard(shard))
    }

    fn shard(&self, shard: usize) -> MutexGuard<'_, Shard<K>> {
        let shard = self.0.shards[shard].lock();
        shard.unwrap_or_else(PoisonError::into_inner)
    }

    /// A budget like all others, and of nobody.
    pub(crate) fn sample(&self) -> Budget {
        self.0.make()
    }

    /// Makes a cost from units by the names of limits, as [`Budget::cost`].
    ///
    /// # Errors
    ///
    /// If there is no limit of such a name, or if one is named twice.
    pub fn cost<'a>(
        &self,
        units: impl IntoIterator<Item = (&'a str, u32)>,
    ) -> Result<Cost, ConfigError> {
        self.sample().cost(units)
    }

    /// Changes the limit of the same name in all budgets, present and future, and keeps what was used
    /// of it.
    ///
    /// # Errors
    ///
    /// As [`Budget::reconfigure`]; then nothing is changed.
    pub fn reconfigure(&self, limit: &Limit) -> Result<(), ConfigError> {
        self.sample().reconfigure(limit)?;
        {
            let mut config = self.0.config();
            let mut limits = config.limits.iter_mut();
            if let Some(own) = limits.find(|own| own.name() == limit.name()) {
                *own = limit.clone();
            }
        }
        // Who is sent away is woken, which may run code that asks for a budget: no lock is held
        // meanwhile. So two changes may overlap, and whoever finds that there is another by now
        // makes sure of that one.
        let mut newest = limit.clone();
        loop {
            for shard in 0..SHARDS {
                // Whoever made one of the old kind meanwhile has put it into its shard by now.
                let budgets: Vec<_> = self.shard(shard).budgets.values().cloned().collect();
                for budget in budgets {
                    budget.change(&newest, false)?;
                }
            }
            let config = self.0.config();
            let mut limits = config.limits.iter();
            match limits.find(|own| own.name() == limit.name()) {
                Some(own) if *own != newest => newest = own.clone(),
                _ => return Ok(()),
            }
        }
    }
}

impl<K: Hash + Eq> KeyedBudget<K> {
    /// Forgets all budgets that are idle. It happens by itself too, whenever as many have been asked
    /// for as there are.
    pub fn evict_idle(&self) {
        for mut shard in self.shards() {
            shard.sweep();
        }
    }

    /// Returns the budget of a key.
    pub fn get<Q>(&self, key: &Q) -> Budget
    where
        K: std::borrow::Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let map = &*self.0;
        let hash = map.hash.hash_one(key);
        // The low bits choose the place in the map; these are as good.
        let shard = usize::try_from(hash >> 60).unwrap_or(0);
        let mut shard = self.shard(shard);
        let budget = match shard.budgets.get(key) {
            Some(budget) => budget.clone(),
            None => {
                let budget = map.make();
                shard.budgets.insert(key.to_owned(), budget.clone());
                budget
            }
        };
        shard.left = shard.left.saturating_sub(1);
        if shard.left == 0 {
            // The handle of this one keeps it.
            shard.sweep();
            drop(shard);
            self.sweep_another();
        }
        budget
    }

    /// Sweeps the shard whose turn it is, so that those go too of which nobody asks for any more.
    fn sweep_another(&self) {
        let turn = self.0.turn.fetch_add(1, Ordering::Relaxed) % SHARDS;
        if let Ok(mut shard) = self.0.shards[turn].try_lock() {
            shard.sweep();
        }
    }
}

impl<K> Clone for KeyedBudget<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K> fmt::Debug for KeyedBudget<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedBudget")
            .field("name", &self.0.name)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

// === impl Map ===

impl<K> Map<K> {
    fn make(&self) -> Budget {
        let shared = Shared::new(Arc::clone(&self.name), &self.config(), self.watch.clone());
        Budget(Counted::new(shared))
    }

    fn config(&self) -> MutexGuard<'_, Config> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Shard ===

impl<K: Hash + Eq> Shard<K> {
    fn sweep(&mut self) {
        // Whoever gets a handle to one takes this lock first, so none is lost that is in use.
        self.budgets.retain(|_, budget| !budget.is_idle());
        self.budgets.shrink_to(self.budgets.len() * 2);
        self.left = FEW.max(self.budgets.len());
    }
}
