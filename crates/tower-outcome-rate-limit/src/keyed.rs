//! One budget for each key.

use std::{
    collections::HashMap,
    fmt,
    hash::{BuildHasher, Hash, RandomState},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tower_outcome_core::ConfigError;

use crate::{
    Budget, BudgetBuilder,
    builder::Config,
    shared::{Counted, Shared, Watch},
};

/// One budget for each host, API key or account, all with the same limits.
///
/// A budget is made when its key is first asked for, and forgotten when nobody has a handle to it
/// and everything that was used of it has been forgotten too, so that its like can be made again
/// without the difference being seen. Memory is that of the keys of the last window, and as many
/// again.
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
/// let hosts = KeyedBudget::<String>::new(per_host)?;
/// let budget = hosts.get("venue.example");
/// # let _ = budget;
/// # Ok(())
/// # }
/// ```
pub struct KeyedBudget<K>(Arc<Map<K>>);

struct Map<K> {
    name: Arc<str>,
    config: Config,
    watch: Option<Watch>,
    hash: RandomState,
    shards: [Mutex<Shard<K>>; SHARDS],
}

struct Shard<K> {
    budgets: HashMap<K, Budget>,
    /// How many there may be before the idle ones are looked for.
    sweep_at: usize,
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
    pub fn new(template: BudgetBuilder) -> Result<Self, ConfigError> {
        let config = template.check()?;
        let (name, watch) = template.into_name_and_watch();
        Ok(Self(Arc::new(Map {
            name,
            config,
            watch,
            hash: RandomState::new(),
            shards: std::array::from_fn(|_| {
                Mutex::new(Shard {
                    budgets: HashMap::new(),
                    sweep_at: FEW,
                })
            }),
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
        let shards = self.0.shards.iter();
        shards.map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn config(&self) -> &Config {
        &self.0.config
    }
}

impl<K: Hash + Eq> KeyedBudget<K> {
    /// Forgets all budgets that are idle. It happens by itself too, whenever a shard has doubled.
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
        let mut shard = map.shards[shard]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(budget) = shard.budgets.get(key) {
            return budget.clone();
        }
        if shard.budgets.len() >= shard.sweep_at {
            shard.sweep();
        }
        let shared = Shared::new(Arc::clone(&map.name), &map.config, map.watch.clone());
        let budget = Budget(Counted::new(shared));
        shard.budgets.insert(key.to_owned(), budget.clone());
        budget
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

// === impl Shard ===

impl<K: Hash + Eq> Shard<K> {
    fn sweep(&mut self) {
        // Whoever gets a handle to one takes this lock first, so none is lost that is in use.
        self.budgets.retain(|_, budget| !budget.is_idle());
        self.budgets.shrink_to(self.budgets.len() * 2);
        self.sweep_at = FEW.max(self.budgets.len() * 2);
    }
}
