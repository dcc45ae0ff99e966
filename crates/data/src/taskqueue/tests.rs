use super::classes::{FINE_CLASSES_MAX, class_of};
use quoin_layout::TaskRegistry;

#[test]
fn tasks_of_the_same_resources_and_octaves_share_a_class() {
    let (registry, first) = class_of(TaskRegistry::default(), &[("gb", 5.0), ("cards", 1.0)]);
    let (registry, same) = class_of(registry, &[("cards", 1.5), ("gb", 7.9)]);
    let (registry, more) = class_of(registry, &[("gb", 8.0), ("cards", 1.0)]);
    let (registry, single) = class_of(registry, &[("gb", 8.0)]);
    let (_, other) = class_of(registry, &[("gb", 800.0), ("cards", 0.0)]);
    assert_eq!((first, same, more, single, other), (0, 0, 1, 2, 2));
}

#[test]
fn what_is_new_joins_the_class_of_its_resources_when_there_are_many() {
    let mut registry = TaskRegistry::default();
    let mut last = 0;
    for power in 0..2 * FINE_CLASSES_MAX as i32 {
        (registry, last) = class_of(registry, &[("gb", 2_f64.powi(power)), ("cards", 1.0)]);
    }
    assert_eq!(registry.classes.len(), FINE_CLASSES_MAX + 1);
    assert_eq!(last as usize, FINE_CLASSES_MAX);
    let (_, known) = class_of(registry, &[("gb", 1.0), ("cards", 1.0)]);
    assert_eq!(known, 0);
}
