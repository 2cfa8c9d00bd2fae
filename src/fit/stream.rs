//! A fit of a file larger than memory: the sparse method, with rows read anew in every pass.

use super::method::START;
use super::problem::Problem;
use super::sparse::Source;
use super::{Fit, Model, Plan, Standardize, Step, Warp};
use crate::data::{Scaling, Stream};
use crate::error::{Error, Result};
use crate::gp::{Rows, Streamed, sample};
use std::ops::ControlFlow;
use std::time::Instant;

impl Fit {
    /// What a fit of this stream will do.
    ///
    /// # Errors
    /// When the method asked for needs all rows in memory, or there are fewer rows than inducing points.
    pub fn plan_stream(&self, stream: &Stream) -> Result<Plan> {
        self.plan_for_stream(stream.rows().unwrap_or(usize::MAX), stream.size())
    }

    /// Fits the rows of a file that is read in pieces ([`Stream::open`]), with memory that does not depend on their number.
    ///
    /// # Errors
    /// As [`Fit::run`]; when the method asked for needs all rows in memory; and when the file changes or ends while it
    /// is read.
    pub fn run_stream(&self, stream: &Stream) -> Result<Model> {
        self.run_stream_observed(stream, |_| ControlFlow::Continue(()))
    }

    /// The same, seen at every iteration, and stopped where the observer breaks.
    ///
    /// # Errors
    /// As [`Fit::run_stream`].
    pub fn run_stream_observed(
        &self,
        stream: &Stream,
        observer: impl Fn(Step) -> ControlFlow<()> + Sync,
    ) -> Result<Model> {
        let clock = Instant::now();
        if matches!(self.warp, Warp::Auto | Warp::By(_)) {
            let error = Error::option("transform", "a table that stays in its file is fitted as it is");
            return Err(error.with_hint("read it into memory, or transform its target in the file"));
        }
        let plan = self.plan_stream(stream)?;
        let scaling = match self.standardize {
            Standardize::Yes => Scaling::of_stream(stream)?,
            Standardize::No => Scaling::identity(stream.encoding().names().len()),
        };
        let rows = Streamed::new(stream, &scaling)?;
        let some = sample(&rows, START, self.seed)?;
        self.check_options(some.1.len())?;
        let some = Problem::of_stream(stream, &scaling, some, self.noise)?;
        self.train(Source { rows: &rows, n: rows.n(), weighed: None, some }, &plan, clock, &observer)
    }
}
