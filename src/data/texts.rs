//! A column of texts in one piece of memory: a long table has a few bytes in each cell, and a string of its own for
//! each would take several times as much.

use std::fmt;
use std::ops::Index;

/// Texts by position.
///
/// ```
/// use covary::data::Texts;
///
/// let texts: Texts = ["red", "", "blue"].into_iter().collect();
/// assert_eq!((texts.len(), &texts[0], &texts[1], &texts[2]), (3, "red", "", "blue"));
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Texts {
    text: String,
    ends: Vec<usize>,
}

impl Texts {
    /// Number of texts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds one.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &str> + Clone {
        (0..self.len()).map(|i| &self[i])
    }

    /// All of them together, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    pub(super) fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

impl Index<usize> for Texts {
    type Output = str;

    fn index(&self, at: usize) -> &str {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[start..self.ends[at]]
    }
}

impl<S: AsRef<str>> Extend<S> for Texts {
    fn extend<I: IntoIterator<Item = S>>(&mut self, texts: I) {
        texts.into_iter().for_each(|text| self.push(text.as_ref()));
    }
}

impl<S: AsRef<str>> FromIterator<S> for Texts {
    fn from_iter<I: IntoIterator<Item = S>>(texts: I) -> Self {
        let mut all = Self::default();
        all.extend(texts);
        all.shrink();
        all
    }
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
