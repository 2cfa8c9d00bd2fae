//! What the paper and the published log of its implementation say, to stand beside what is measured here.

/// Published figures of one data set.
pub struct Published {
    pub set: &'static str,
    /// Kernel, then RMSE and its standard error, then mean log likelihood of a test point and its standard error.
    pub random: [(&'static str, f64, f64, f64, f64); 3],
    /// Kernel, RMSE and mean log likelihood on the split along the first principal component.
    pub pca: [(&'static str, f64, f64); 3],
    /// What the log of the paper's implementation says of the network on random splits: RMSE and its standard error,
    /// log likelihood and its standard error, seconds a split; none where it has no such run.
    pub log: Option<[f64; 5]>,
    /// The same on the other split: RMSE and log likelihood.
    pub log_pca: Option<[f64; 2]>,
}

/// Every set of the paper.
pub const PUBLISHED: [Published; 8] = [
    Published {
        set: "boston",
        random: [
            ("NKN", 2.506, 0.15, -2.394, 0.08),
            ("RBF", 2.753, 0.137, -2.434, 0.069),
            ("SM-4", 2.979, 0.162, -2.518, 0.107),
        ],
        pca: [("NKN", 4.658, -3.557), ("RBF", 6.39, -4.063), ("SM", 8.6, -4.404)],
        log: Some([2.88002, 0.17362, -2.5010, 0.1904, 390.1]),
        log_pca: Some([5.36664, -3.7808]),
    },
    Published {
        set: "concrete",
        random: [
            ("NKN", 3.688, 0.249, -2.842, 0.263),
            ("RBF", 4.685, 0.137, -2.948, 0.025),
            ("SM-4", 3.73, 0.19, -2.662, 0.053),
        ],
        pca: [("NKN", 6.242, -3.112), ("RBF", 8.531, -3.246), ("SM", 7.591, -3.285)],
        log: Some([3.66887, 0.26933, -2.8163, 0.2552, 1605.9]),
        log_pca: Some([6.39197, -3.1082]),
    },
    Published {
        set: "energy",
        random: [
            ("NKN", 0.254, 0.02, -0.213, 0.162),
            ("RBF", 0.471, 0.013, -0.673, 0.035),
            ("SM-4", 0.316, 0.018, -0.32, 0.089),
        ],
        pca: [("NKN", 0.459, -0.649), ("RBF", 0.974, -1.297), ("SM", 0.447, -0.564)],
        log: Some([0.25326, 0.02150, -0.1397, 0.1661, 944.7]),
        log_pca: Some([0.43625, -0.5796]),
    },
    Published {
        set: "kin8nm",
        random: [
            ("NKN", 0.067, 0.001, 1.291, 0.006),
            ("RBF", 0.068, 0.001, 1.287, 0.007),
            ("SM-4", 0.061, 0.0, 1.387, 0.006),
        ],
        pca: [("NKN", 0.086, 1.057), ("RBF", 0.093, 0.998), ("SM", 0.065, 1.322)],
        log: None,
        log_pca: Some([0.08812, 1.0394]),
    },
    Published {
        set: "naval",
        random: [("NKN", 0.0, 0.0, 9.916, 0.0), ("RBF", 0.0, 0.0, 9.557, 0.001), ("SM-4", 0.0, 0.0, 9.923, 0.0)],
        pca: [("NKN", 0.0, 6.442), ("RBF", 0.0, 7.222), ("SM", 0.0, 9.037)],
        log: Some([0.00001, 0.00000, 10.4157, 0.0051, 20691.0]),
        log_pca: Some([0.00013, 6.5029]),
    },
    Published {
        set: "power_plant",
        random: [
            ("NKN", 2.675, 0.074, -2.406, 0.023),
            ("RBF", 3.014, 0.068, -2.518, 0.02),
            ("SM-4", 2.781, 0.071, -2.45, 0.022),
        ],
        pca: [("NKN", 3.742, -2.763), ("RBF", 4.768, -3.076), ("SM", 3.931, -2.877)],
        log: Some([2.74519, 0.07762, -2.4326, 0.0207, 15630.2]),
        log_pca: Some([3.80617, -2.7599]),
    },
    Published {
        set: "wine",
        random: [
            ("NKN", 0.523, 0.011, 0.852, 0.064),
            ("RBF", 0.597, 0.013, 0.723, 0.067),
            ("SM-4", 0.579, 0.012, 0.652, 0.06),
        ],
        pca: [("NKN", 0.65, -0.972), ("RBF", 0.701, -1.076), ("SM", 0.66, -1.002)],
        log: Some([0.52844, 0.01103, 0.8484, 0.0647, 3955.8]),
        log_pca: Some([0.67505, -1.0214]),
    },
    Published {
        set: "yacht",
        random: [
            ("NKN", 0.305, 0.06, -0.116, 0.27),
            ("RBF", 0.447, 0.083, -0.714, 0.449),
            ("SM-4", 0.436, 0.07, -0.891, 0.523),
        ],
        pca: [("NKN", 0.528, -0.694), ("RBF", 1.19, -2.896), ("SM", 1.736, -2.768)],
        log: Some([0.33689, 0.07027, 0.2849, 0.1524, 227.8]),
        log_pca: Some([0.45757, -0.6282]),
    },
];

/// The published figures of one set.
pub fn of(set: &str) -> Option<&'static Published> {
    PUBLISHED.iter().find(|p| p.set == set)
}
