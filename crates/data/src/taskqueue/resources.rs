//! Amounts of resources, and the classes of tasks by the resources that they need.
//!
//! Tasks that need different resources are in different classes. While a queue has few classes,
//! tasks of one class also need similar amounts of each resource. Minima tell much about the tasks
//! of such a class. They would tell nothing about a mixture of tasks that need little of one
//! resource and much of another. The number of a class is never reused, so reads of the registry
//! conflict with nothing.

use std::any::Any;

use bytes::Bytes;

use crate::error::CommandError;
use crate::unit::signals::{Offer, Wants};
use quoin_base::limits::TASK_RESOURCES_MAX;
use quoin_layout::{TaskClass, TaskRegistry};

/// Amounts of named resources: the needs of a task, or what a consumer has. Names do not repeat.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Amounts(pub(super) Vec<(Bytes, f64)>);

impl Amounts {
    /// Of each resource of a queue, as much as any task may need.
    pub(super) fn unlimited(registry: &TaskRegistry) -> Self {
        let names = registry.resources.iter();
        Self(names.map(|name| (name.clone(), f64::INFINITY)).collect())
    }

    /// The amount of a resource; zero if it is not named.
    fn of(&self, name: &[u8]) -> f64 {
        let named = self.0.iter().find(|(known, _)| known == name);
        named.map_or(0.0, |(_, amount)| *amount)
    }

    /// Whether a task with these needs fits a consumer that has these amounts.
    fn fit(&self, having: &Amounts) -> bool {
        self.0
            .iter()
            .all(|(name, amount)| *amount <= having.of(name))
    }
}

fn amounts_in(value: &dyn Any) -> Option<&Amounts> {
    value.downcast_ref()
}

/// The needs of a task that has become ready.
impl Offer for Amounts {
    fn is_same(&self, other: &dyn Offer) -> bool {
        amounts_in(other) == Some(self)
    }
}

/// What a waiting consumer has.
impl Wants for Amounts {
    fn accepts(&self, offer: &dyn Offer) -> bool {
        amounts_in(offer).is_some_and(|needs| needs.fit(self))
    }

    fn is_same(&self, other: &dyn Wants) -> bool {
        amounts_in(other) == Some(self)
    }
}

/// Maximum number of classes that a queue creates by amounts of resources. Classes by sets of
/// resources do not count.
const FINE_CLASSES_MAX: usize = 16;

/// The needs of a task by the numbers of a queue's registry.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Classified {
    pub(super) class: u32,
    pub(super) mask: u8,
    pub(super) amounts: Vec<f64>,
}

/// The needs of a task, and the registry that has them.
pub(super) struct Classifying {
    pub(super) classified: Classified,
    pub(super) registry: TaskRegistry,
    /// The registry was changed for this task, and must be written.
    pub(super) is_new: bool,
}

/// The binary exponent of a positive amount.
fn octave(amount: f64) -> u16 {
    (amount.to_bits() >> 52) as u16
}

/// The least amount of an octave.
fn octave_begin(octave: u16) -> f64 {
    f64::from_bits(u64::from(octave) << 52)
}

/// Amounts by resource number, with the names of the resources.
pub(super) fn named(registry: &TaskRegistry, mask: u8, amounts: &[f64]) -> Amounts {
    let names = registry.resources.iter().enumerate();
    let needed = names.filter(|(number, _)| mask & (1 << number) != 0);
    Amounts(
        needed
            .zip(amounts)
            .map(|((_, name), amount)| (name.clone(), *amount))
            .collect(),
    )
}

/// What a consumer has of each resource of a class. `None` if no task of the class can fit.
pub(super) fn having_for(
    registry: &TaskRegistry,
    class: &TaskClass,
    having: &Amounts,
) -> Option<Vec<f64>> {
    let names = registry.resources.iter().enumerate();
    let needed = names.filter(|(number, _)| class.mask & (1 << number) != 0);
    let mut amounts = Vec::new();
    for (at, (_, name)) in needed.enumerate() {
        let amount = having.of(name);
        let least = class.octaves.get(at).copied().map_or(0.0, octave_begin);
        if amount <= 0.0 || amount < least {
            return None;
        }
        amounts.push(amount);
    }
    Some(amounts)
}

impl Classifying {
    /// Records in the registry that the queue has had a task with a group, or one that waits for
    /// others.
    pub(super) fn noting(mut self, has_group: bool, waits: bool) -> Self {
        let registry = &mut self.registry;
        self.is_new |= (has_group && !registry.has_groups) || (waits && !registry.has_waits);
        registry.has_groups |= has_group;
        registry.has_waits |= waits;
        self
    }
}

/// Finds the class of a task with these needs, or adds one to the registry.
pub(super) fn classify(
    mut registry: TaskRegistry,
    needs: &[(Bytes, f64)],
) -> Result<Classifying, CommandError> {
    let mut is_new = false;
    let mut by_number: Vec<(usize, f64)> = Vec::new();
    for (name, amount) in needs.iter().filter(|(_, amount)| *amount > 0.0) {
        let known = registry.resources.iter().position(|known| known == name);
        let number = match known {
            Some(number) => number,
            None if registry.resources.len() >= TASK_RESOURCES_MAX => {
                return Err(too_many_resources());
            }
            None => {
                registry.resources.push(name.clone());
                is_new = true;
                registry.resources.len() - 1
            }
        };
        by_number.push((number, *amount));
    }
    by_number.sort_by_key(|(number, _)| *number);
    let mask = by_number
        .iter()
        .fold(0_u8, |mask, (number, _)| mask | (1 << number));
    let amounts: Vec<f64> = by_number.iter().map(|(_, amount)| *amount).collect();
    // The minima of a single resource are exact, so octaves would gain nothing.
    let octaves: Vec<u16> = if amounts.len() > 1 {
        amounts.iter().map(|amount| octave(*amount)).collect()
    } else {
        Vec::new()
    };
    let fine = TaskClass { mask, octaves };
    let plain = TaskClass {
        mask,
        octaves: Vec::new(),
    };
    let place = |wanted: &TaskClass| registry.classes.iter().position(|class| class == wanted);
    let fine_classes = registry
        .classes
        .iter()
        .filter(|class| !class.octaves.is_empty())
        .count();
    let class = match place(&fine).or_else(|| {
        // The limit of fine classes is reached, so the task joins the class of its resources.
        (fine_classes >= FINE_CLASSES_MAX)
            .then(|| place(&plain))
            .flatten()
    }) {
        Some(class) => class,
        None => {
            let is_full = fine_classes >= FINE_CLASSES_MAX;
            registry.classes.push(if is_full { plain } else { fine });
            is_new = true;
            registry.classes.len() - 1
        }
    };
    Ok(Classifying {
        classified: Classified {
            class: u32::try_from(class).unwrap_or(u32::MAX),
            mask,
            amounts,
        },
        registry,
        is_new,
    })
}

/// The error of a queue that has too many resources.
pub(super) fn too_many_resources() -> CommandError {
    CommandError::Text(
        format!("ERR a task queue knows at most {TASK_RESOURCES_MAX} resources").into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The class of these needs, and the registry with it.
    fn class_of(registry: TaskRegistry, needs: &[(&str, f64)]) -> (TaskRegistry, u32) {
        let needs: Vec<_> = needs
            .iter()
            .map(|(name, amount)| (Bytes::copy_from_slice(name.as_bytes()), *amount))
            .collect();
        let classifying = classify(registry, &needs).unwrap();
        (classifying.registry, classifying.classified.class)
    }

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
}
