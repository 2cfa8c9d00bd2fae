//! How evidence is computed: chosen by the number of rows, memory and facts about kernel and data, with the reason said.

use super::{Fit, LARGE};
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::gp::{Effort, Exact, Iterative, Sparse};
use crate::memory;
use serde::{Deserialize, Serialize};

/// The most rows that are fitted exactly unless asked otherwise: beyond, an evaluation takes seconds.
const EXACT_ROWS: usize = 2500;
/// The most inducing points unless asked otherwise.
const INDUCING: usize = 1000;
/// Rows of the exact fit that a sparse one starts from.
pub(super) const START: usize = 800;
/// The most rows whose weights in the mean are found from their whole covariance after a sparse fit: at most some seconds.
const WEIGHED_ROWS: usize = 12_000;
/// Rows of a chunk, at most.
const CHUNK: usize = 8192;

/// How evidence is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Exact or sparse, by rows, memory and kernel; the reason is in the notes.
    #[default]
    Auto,
    /// By the whole covariance of the rows: n² numbers, n³ work.
    Exact,
    /// A lower bound by m inducing points: m² numbers, n·m² work; rows may stay in a file.
    Sparse,
    /// Conjugate gradients, without the matrix: n² work for each product.
    Iterative,
}

impl Method {
    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Exact => "exact",
            Self::Sparse => "sparse",
            Self::Iterative => "iterative",
        }
    }
}

/// What will be done, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The method; never [`Method::Auto`].
    pub method: Method,
    /// Inducing points; nought where there are none.
    pub inducing: usize,
    /// Do means come from the weights of all rows, once a sparse fit has found the kernel?
    pub weighs_rows: bool,
    /// Bytes it will take, beyond the table itself.
    pub memory: usize,
    /// Why this method, where it was chosen and not asked for.
    pub why: Option<String>,
}

impl Plan {
    /// The choice in a sentence, where it was one that a user may want to know of.
    pub(super) fn note(&self) -> Option<String> {
        let why = self.why.as_ref().filter(|_| self.method != Method::Exact)?;
        Some(format!("method {}: {why}", self.method.name()))
    }
}

/// Inducing points for n rows: a third of them, at most a thousand, in round numbers.
fn default_inducing(n: usize) -> usize {
    let third = (n / 3).clamp(1, INDUCING);
    if third > 30 { third / 10 * 10 } else { third }
}

impl Fit {
    /// How evidence is computed; chosen by rows and memory unless one is asked for.
    #[must_use]
    pub fn method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    /// Number of inducing points of the sparse method.
    #[must_use]
    pub fn inducing(mut self, m: usize) -> Self {
        self.inducing = Some(m);
        self
    }

    /// Bytes that may be used, in place of what the machine says it has.
    #[must_use]
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// What a fit of this dataset will do.
    ///
    /// # Errors
    /// As [`Fit::plan_for`].
    pub fn plan(&self, data: &Dataset) -> Result<Plan> {
        self.plan_for(data.n(), data.d(), data.noise().is_some())
    }

    /// What a fit of n rows and d columns will do; `known_noise` tells whether rows have a known noise each.
    ///
    /// # Errors
    /// When the method asked for cannot do it.
    pub fn plan_for(&self, n: usize, d: usize, known_noise: bool) -> Result<Plan> {
        let free = self.memory.or_else(memory::available);
        let exact = self.memory(n, d);
        let mut inducing = self.inducing.unwrap_or(default_inducing(n));
        // Fewer points, where the usual number does not fit.
        while self.inducing.is_none() && inducing > 100 && free.is_some_and(|f| sparse_memory(n, d, inducing) > f) {
            inducing = inducing / 20 * 10;
        }
        let sparse = sparse_memory(n, d, inducing);
        let plan = |method: Method, why: Option<String>| {
            let (inducing, memory) = match method {
                Method::Sparse => (inducing, sparse),
                Method::Iterative => (0, Iterative::memory(n, Effort::default()) + Exact::memory(START.min(n))),
                _ => (0, exact),
            };
            Plan { method, inducing, weighs_rows: false, memory, why }
        };
        // After the fit, one factor of the whole covariance; none of it where somebody asked for the sparse method itself.
        let weighed = |plan: Plan| {
            let memory = plan.memory.max(Exact::memory(n));
            let weighs_rows = n <= WEIGHED_ROWS && free.is_none_or(|free| memory <= free);
            if weighs_rows { Plan { weighs_rows, memory, ..plan } } else { plan }
        };
        if self.inducing.is_some() && matches!(self.method, Method::Exact | Method::Iterative) {
            return Err(Error::option("inducing", format!("the {} method has none", self.method.name())));
        }
        if self.method == Method::Iterative && known_noise {
            return Err(Error::option("method", "known noise of each row needs the exact method"));
        }
        if self.method == Method::Sparse || (self.method == Method::Auto && self.inducing.is_some()) {
            if known_noise {
                let error = Error::option("method", "known noise of each row needs the exact method");
                return Err(error.with_hint("leave the column of noise out, or take the exact method"));
            }
            crate::gp::check_number(self.inducing.unwrap_or(1), n)?;
            let why = (self.method == Method::Auto).then(|| "inducing points were asked for".to_string());
            return Ok(plan(Method::Sparse, why));
        }
        if self.method != Method::Auto {
            return Ok(plan(self.method, None));
        }
        Ok(if known_noise {
            plan(Method::Exact, Some("known noise of each row needs it".into()))
        } else if self.kernel.tells_rows_apart() {
            plan(Method::Exact, Some("the kernel has white noise, which inducing points cannot carry".into()))
        } else if let Some(free) = free.filter(|free| exact > *free && sparse < exact) {
            let why = format!("the exact one needs {} MB for {n} rows, {} MB are available", exact >> 20, free >> 20);
            plan(Method::Sparse, Some(why))
        } else if n > EXACT_ROWS {
            let why = format!("{n} rows, and beyond {EXACT_ROWS} an evaluation of the exact one takes seconds");
            weighed(plan(Method::Sparse, Some(why)))
        } else {
            plan(Method::Exact, Some(format!("{n} rows, at most {EXACT_ROWS}")))
        })
    }

    /// What a fit of a file will do that is read in pieces of this many rows: the sparse method, whatever is asked.
    pub(super) fn plan_for_stream(&self, n: usize, chunk: usize) -> Result<Plan> {
        if matches!(self.method, Method::Exact | Method::Iterative) {
            let message = format!("the {} method needs all rows in memory", self.method.name());
            return Err(Error::option("method", message).with_hint("rows stay in their file with the sparse method"));
        }
        crate::gp::check_number(self.inducing.unwrap_or(1), n)?;
        let inducing = self.inducing.unwrap_or(default_inducing(n));
        let memory = Sparse::memory(n, inducing, chunk) + Exact::memory(START.min(n));
        let why = (self.method == Method::Auto).then(|| "the rows stay in their file".to_string());
        Ok(Plan { method: Method::Sparse, inducing, weighs_rows: false, memory, why })
    }

    /// Bytes that fitting n rows of d columns by the exact method takes, and what decides it.
    pub fn memory(&self, n: usize, d: usize) -> usize {
        // Starts go side by side, and so do the rivals of a network.
        let most = if self.kernel.is_network() && !self.is_alone() { usize::MAX } else { self.restarts };
        let beside = if n >= LARGE { 1 } else { most.min(rayon::current_num_threads()) };
        Exact::memory(n) * beside + 8 * n * (d + 4)
    }
}

/// Rows in memory, the work of an evaluation, and the exact fit it starts from.
fn sparse_memory(n: usize, d: usize, m: usize) -> usize {
    Sparse::memory(n, m, CHUNK) + Exact::memory(START.min(n)) + 16 * n * (d + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;

    fn auto(n: usize, free: usize) -> Plan {
        Fit::new(Kernel::rbf()).memory_limit(free).plan_for(n, 4, false).unwrap()
    }

    #[test]
    fn auto_is_exact_up_to_its_limit_and_sparse_beyond() {
        let all = usize::MAX;
        assert_eq!(auto(EXACT_ROWS, all).method, Method::Exact);
        let beyond = auto(EXACT_ROWS + 1, all);
        assert_eq!((beyond.method, beyond.inducing), (Method::Sparse, 830));
        assert!(beyond.why.unwrap().contains("2501 rows"));
    }

    #[test]
    fn rows_are_weighed_where_there_is_room_and_nobody_asked_otherwise() {
        let (all, room) = (usize::MAX, Fit::new(Kernel::rbf()).memory(10_000, 4));
        assert!(auto(WEIGHED_ROWS, all).weighs_rows && !auto(WEIGHED_ROWS + 1, all).weighs_rows);
        let plan = auto(10_000, room);
        assert!(plan.weighs_rows && plan.memory == Exact::memory(10_000));
        assert!(!auto(10_000, room - 1).weighs_rows && auto(10_000, room - 1).memory < plan.memory);
        let asked = |fit: Fit| fit.memory_limit(all).plan_for(10_000, 4, false).unwrap();
        assert!(!asked(Fit::new(Kernel::rbf()).method(Method::Sparse)).weighs_rows);
        assert!(!asked(Fit::new(Kernel::rbf()).inducing(500)).weighs_rows);
        assert!(!auto(EXACT_ROWS, all).weighs_rows);
    }

    #[test]
    fn memory_decides_first() {
        let need = Fit::new(Kernel::rbf()).memory(2400, 4);
        assert_eq!(auto(2400, need).method, Method::Exact);
        let short = auto(2400, need - 1);
        assert_eq!((short.method, short.inducing), (Method::Sparse, 400));
        assert!(short.memory < need);
        assert!(short.why.unwrap().contains("are available"));
    }

    #[test]
    fn what_inducing_points_cannot_do_stays_exact() {
        let white = Fit::new(Kernel::rbf() + Kernel::white()).memory_limit(1);
        assert_eq!(white.plan_for(100_000, 2, false).unwrap().method, Method::Exact);
        let fit = Fit::new(Kernel::rbf());
        assert_eq!(fit.plan_for(100_000, 2, true).unwrap().method, Method::Exact);
        assert!(fit.clone().method(Method::Sparse).plan_for(100, 2, true).is_err());
        assert!(fit.clone().method(Method::Sparse).inducing(101).plan_for(100, 2, false).is_err());
        assert!(fit.clone().method(Method::Exact).inducing(10).plan_for(100, 2, false).is_err());
        assert_eq!(fit.inducing(100).plan_for(100, 2, false).unwrap().method, Method::Sparse);
    }

    #[test]
    fn inducing_points_come_in_round_numbers() {
        assert_eq!([2, 60, 100, 2999, 10_000].map(default_inducing), [1, 20, 30, 990, 1000]);
    }
}
