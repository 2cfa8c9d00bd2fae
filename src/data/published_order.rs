//! The order in which NumPy's `argsort` of 2018 left equal values: its default sort was a quicksort, which is not stable.
//! Two of the published data sets come from designed experiments, where whole groups of rows tie at the boundary of a
//! split; only the same sort gives the same split.

/// Parts up to this length are sorted by insertion.
const SMALL: usize = 16;

/// Indices that sort the values: quicksort with the median of three as its pivot, the longer part put off.
pub(super) fn published_order(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    let mut parts = vec![(0, values.len())];
    // Parts are half open.
    while let Some((mut low, mut high)) = parts.pop() {
        while high - low > SMALL + 1 {
            let at = partition(values, &mut order[low..high]) + low;
            let (left, right) = ((low, at), (at + 1, high));
            if at - low < high - 1 - at {
                parts.push(right);
                (low, high) = left;
            } else {
                parts.push(left);
                (low, high) = right;
            }
        }
        insertion_sort(values, &mut order[low..high]);
    }
    order
}

/// Puts the pivot in its place, what is smaller before it, what is larger behind; equal values are swapped too.
fn partition(values: &[f64], part: &mut [usize]) -> usize {
    let less = |a: usize, b: usize| values[a] < values[b];
    let (last, middle) = (part.len() - 1, (part.len() - 1) / 2);
    if less(part[middle], part[0]) {
        part.swap(middle, 0);
    }
    if less(part[last], part[middle]) {
        part.swap(last, middle);
    }
    if less(part[middle], part[0]) {
        part.swap(middle, 0);
    }
    let pivot = part[middle];
    part.swap(middle, last - 1);
    let (mut i, mut j) = (0, last - 1);
    loop {
        i += 1;
        while less(part[i], pivot) {
            i += 1;
        }
        j -= 1;
        while less(pivot, part[j]) {
            j -= 1;
        }
        if i >= j {
            part.swap(i, last - 1);
            return i;
        }
        part.swap(i, j);
    }
}

fn insertion_sort(values: &[f64], part: &mut [usize]) {
    for i in 1..part.len() {
        let (mut j, row) = (i, part[i]);
        while j > 0 && values[row] < values[part[j - 1]] {
            part[j] = part[j - 1];
            j -= 1;
        }
        part[j] = row;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_out_sorted() {
        for n in [0, 1, 2, 16, 17, 18, 40, 333, 1000] {
            for ties in [1, 3, 1000] {
                let values: Vec<f64> = (0..n).map(|i| ((i * 7919 + 13) % 1009 % ties) as f64).collect();
                let order = published_order(&values);
                assert!(order.windows(2).all(|w| values[w[0]] <= values[w[1]]), "{n} {ties}");
                let mut rows = order.clone();
                rows.sort_unstable();
                assert_eq!(rows, (0..n).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn equal_values_are_left_as_that_sort_leaves_them() {
        // By hand: the pivot waits in the last place but one while pairs are swapped towards the middle.
        let order = published_order(&[0.0; 18]);
        assert_eq!(order, [0, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 16, 17]);
    }
}
