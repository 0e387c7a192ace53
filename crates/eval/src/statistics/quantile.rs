//! Quantiles of the normal distribution and of Student's t.

use std::f64::consts::FRAC_PI_2;

/// The 97.5 % quantile of the normal distribution: two-sided limits at 95 %.
pub(super) const NORMAL_975: f64 = 1.959_963_984_540_054;

/// The 80 % quantile of the normal distribution.
pub(super) const NORMAL_800: f64 = 0.841_621_233_572_914_3;

/// Above this number of degrees of freedom the normal quantile is used; the difference is below 0.0003.
const MANY: u32 = 10_000;

/// Returns the 97.5 % quantile of Student's t, by bisection of its distribution.
pub(super) fn student_975(degrees: u32) -> f64 {
    if degrees > MANY {
        return NORMAL_975;
    }
    // With one degree of freedom it is 12.7.
    let (mut low, mut high) = (NORMAL_975, 13.0);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if central_share(middle, degrees) < 0.95 {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// Returns the probability that Student's t is between `-t` and `t`.
///
/// Source: Abramowitz and Stegun, *Handbook of Mathematical Functions*, 26.7.3 and 26.7.4: a finite sum for integer degrees
/// of freedom.
fn central_share(t: f64, degrees: u32) -> f64 {
    let angle = (t / f64::from(degrees).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let is_odd = degrees % 2 == 1;
    // Odd: cos + 2/3 cos³ + 2·4/(3·5) cos⁵ …; even: 1 + 1/2 cos² + 1·3/(2·4) cos⁴ …
    let (mut term, mut power) = if is_odd { (cosine, 1) } else { (1.0, 0) };
    let mut sum = 0.0;
    while power + 2 <= degrees {
        sum += term;
        power += 2;
        term *= cosine * cosine * f64::from(power - 1) / f64::from(power);
    }
    if is_odd { (angle + sine * sum) / FRAC_PI_2 } else { sine * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compared with `scipy.stats.t.ppf(0.975, degrees)`.
    #[test]
    fn quantiles_are_those_of_scipy() {
        for (degrees, quantile) in [
            (1, 12.706_205),
            (2, 4.302_653),
            (3, 3.182_446),
            (4, 2.776_445),
            (5, 2.570_582),
            (7, 2.364_624),
            (10, 2.228_139),
            (19, 2.093_024),
            (30, 2.042_272),
            (49, 2.009_575),
            (100, 1.983_972),
            (999, 1.962_341),
            (10_000, 1.960_201),
        ] {
            let found = student_975(degrees);
            assert!((found - quantile).abs() < 1e-6, "{degrees}: {found}");
        }
    }
}
